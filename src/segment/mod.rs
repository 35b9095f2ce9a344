//! Segments: immutable sorted files of entries, each key at most once. See [`mod@format`] for the byte map.
//!
//! A [`SegmentWriter`] writes one front to back. A [`Segment`] is an open one: [`get`](Segment::get) reads one key,
//! [`cursor`](Segment::cursor) walks from a bound in either direction, [`verify`](Segment::verify) checks everything. A
//! [`SegmentFile`] opens its segment on first use. Data and index blocks come through the store's [`BlockCache`]; only the small top
//! index stays in memory.

pub mod format;

mod access;
mod appender;
mod block;
mod cache;
mod compress;
mod cursor;
mod file;
mod index;
mod interval;
mod reader;
mod salvage;
mod summary;
mod verify;
mod warm;
mod window;
mod writer;

#[cfg(test)]
mod tests;

pub use access::{Access, Direction};
#[cfg(feature = "bench-support")]
pub use block::{Block, BlockBuilder};
pub use cache::{BlockCache, ReadCounters};
pub use cursor::SegmentCursor;
pub use file::{OpenFiles, SegmentFile};
pub use format::{Compression, Properties, StoreIdentity};
pub use reader::Segment;
pub use salvage::{Gap, is_damage, read_properties, salvage};
pub use summary::SegmentSummary;
pub use verify::OnEntry;
pub use writer::{SegmentWriter, WriterOptions};
