//! The memtable: recent writes in order, read without a lock, with its own updatable filter in front.
//!
//! Entries are ordered by key and, within a key, newest first. Nothing is ever removed or changed, so a
//! reader with the memtable and a sequence number has a stable snapshot.

mod cursor;
mod entry;
mod list;
mod owner;
mod ranges;
mod table;

pub use cursor::MemtableCursor;
pub use entry::MemKind;
pub use ranges::RangeList;
pub use table::{Memtable, MemtableFilter, RANGE_OVERHEAD_BYTES};
