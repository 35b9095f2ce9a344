//! An embedded key-value store whose lookups for missing keys cost a cache line instead of a disk read.
//!
//! ```
//! use sidebloom::{Batch, Db, Durability, Options};
//! # fn main() -> sidebloom::Result<()> {
//! # let dir = tempfile::tempdir().map_err(|e| sidebloom::Error::io("create", "a temporary directory", e))?;
//! # let path = dir.path().join("songs.db");
//! let db = Options::new().durability(Durability::Sync).open(&path)?; // created if missing
//! db.put("Nina Simone - Sinnerman", "1965")?;
//! assert!(db.get("Nina Simone - Sinnerman")?.is_some_and(|year| year == b"1965"));
//! assert!(db.get("Nina Simone - Freebird")?.is_none()); // one filter line, no disk
//!
//! let mut batch = Batch::new(); // all or nothing, also after a crash
//! batch.put("Fela Kuti - Zombie", "1976");
//! batch.delete("Nina Simone - Sinnerman");
//! let before = db.snapshot();
//! db.write(batch)?;
//! for row in db.range("A".."N").rev() {
//!     let (title, year) = row?;
//!     println!("{} {}", title.escape_ascii(), year.escape_ascii());
//! }
//! assert!(before.contains_key("Nina Simone - Sinnerman")?);
//! println!("{} questions answered without a read", db.stats().filter_negatives);
//! # Ok(()) }
//! ```
//!
//! # How a lookup goes
//! ```text
//! put ─▶ log ─▶ memtable (+ its own small filter) ─flush─▶ segment + sidecar ─compact─▶ segment + sidecar
//! get ─▶ hash the key once ─▶ memtable filter ─▶ prefetch the filter line of every run that could hold the key
//!     ─▶ test newest to oldest ─▶ only on "maybe": block index ─▶ block cache ─▶ one block read
//! ```
//! Keys and values live in *segments*, immutable sorted files, leveled as in LevelDB and RocksDB. Beside each `NNNNNN.segment`
//! stands its *sidecar* `NNNNNN.filter`: 64-byte lines over the hashes of all its keys, memory-mapped. A missing key is answered by
//! the sidecars of the runs that could hold it, one line each, without a look at the segments.
//!
//! # What holds (the tests name these by number)
//! - **I1** No false negative: a sidecar is believed only when its header is valid, it is bound to its segment, and the checksum of the
//!   64 lines around the one that is asked has been verified since it was mapped. Anything else means "maybe".
//! - **I2** A filter is derived data: without sidecars, or with damaged ones, every answer is the same; they are rebuilt in the background.
//!   One that cannot be written stops no write.
//! - **I3** Retuning never rewrites data: [`Db::rebuild_filters`] writes sidecars only.
//! - **I4** What was acknowledged as synced survives any crash, and its loss by damage is an error; without sync, a prefix of what was written
//!   survives. A batch is all or nothing.
//! - **I5** A failed write or fsync is never acknowledged, and its file is never written again: on a full disk, what it held is written
//!   anew from memory when there is space; after any other failure the store is read-only ([`Error::Poisoned`]).
//!   A failed *read* stops nothing: its segment is quarantined, and what is readable of it answers. It returns when it reads well
//!   again.
//! - **I6** Every byte on disk is under a checksum; damage is an [`Error::Corruption`] with file and offset.
//! - **I7** Readers never wait for writers, flushes or compactions; writers never wait for a manual compaction.
//! - **I8** All I/O goes through one seam, [`fs::Fs`], where a test can fail, tear, drop or reorder any operation.
//! - **I9** Filters see every key of their segment, tombstones included.
//! - **I10** Levels below 0 are disjoint: checked whenever segments are published, at opening, and by [`Db::verify`].
//! - **I11** No key chosen from outside changes an answer: a hash that decides more than speed, as a guard's, is a keyed PRF.
//! - **I12** Open files, maps and the memory of compactions are bounded by [`Options`], not by the size of the store.
//!
//! # Limits
//! Keys of 0 to [`MAX_KEY_BYTES`] bytes, ordered bytewise (the empty key is a key); values to [`MAX_VALUE_BYTES`]; batches to 1 GiB. One
//! process at a time writes; read-only openings share. Unix only: it reads at offsets, maps and locks files.
//!
//! Sidecars are mapped by default. As with every mapped file, the process dies of SIGBUS when somebody truncates one of them while the
//! store is open, or the disk fails to read its pages; [`Residency`] and [`fs::catch_sigbus`] say what to do where that must not be.

pub mod error;
pub mod fs;
pub mod guard;
pub mod id;

mod codec;
mod db;
pub mod filter;
#[cfg(test)]
mod golden;
mod hash;
mod key;
mod manifest;
mod memtable;
mod merge;
mod segment;
mod sidecar;
mod wal;

pub use db::{
    Db, Durability, FilterPolicy, LevelStats, LogSalvage, LostRange, Options, Range, RebuildReport,
    RepairReport, Snapshot, Stats, VerifyReport, repair,
};
pub use error::{Error, Result};
pub use hash::{KeyHash, KeyHasher};
pub use key::{MAX_KEY_BYTES, MAX_VALUE_BYTES, Value};
pub use segment::Compression;
pub use sidecar::{Residency, read_filter, receive_filter, send_filter, write_filter};
pub use wal::Batch;

/// What the targets in `fuzz/` reach of the private modules. Only `cargo fuzz` sets the cfg; it is no part of the interface.
#[cfg(fuzzing)]
#[allow(missing_docs, reason = "each item has its documentation where it is defined")]
pub mod fuzzing {
    pub use crate::codec::{Decoder, Encode, crc32};
    pub use crate::filter::{BuiltFilter, FilterKind, FilterSpec, Isa, Line, Prober, Verdict, Width};
    pub use crate::hash::{digest, digest_at};
    pub use crate::key::{Entry, EntryKind};
    pub use crate::manifest::{MANIFEST, Manifest, ManifestState, read_state};
    pub use crate::segment::format as segment_format;
    pub use crate::segment::{Access, BlockCache, Direction, Segment};
    pub use crate::sidecar::{Binding, Expect, Maps, Sidecar};
    pub use crate::wal::{ExpectedLog, LogEnd, LogRecord, LogWriter, identify, ops, replay};
}

/// What `benches/` reaches of the private modules. Only the cargo feature `bench-support` shows it; it is no part of the interface.
#[cfg(feature = "bench-support")]
#[doc(hidden)]
pub mod bench_support {
    pub use crate::hash::hash_key;
    pub use crate::key::{Entry, EntryKind, Seq};
    pub use crate::memtable::Memtable;
    pub use crate::segment::{Block, BlockBuilder};
}

#[cfg(test)]
extern crate self as sidebloom;
/// The simulated file system of the integration tests; it names this crate from outside.
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;
