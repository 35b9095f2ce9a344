//! An embedded key-value store whose lookups for missing keys cost a cache line instead of a disk read.
//!
//! Choose it if many lookups are for keys that do not exist: deduplication, "seen before?", a cache in front
//! of a slow database. [`guard`] is for such a database alone: it stores keys, not rows. Keys are ordered,
//! and values are byte strings. Other stores are better where nearly all lookups find their key on a cold
//! disk (LMDB, libmdbx) or nothing needs an order (a hash table); `docs/measured.md` in the repository has
//! figures.
//!
//! ```
//! use sidebloom::{Batch, Db, Durability, Options};
//! # fn main() -> sidebloom::Result<()> {
//! # let dir = tempfile::tempdir()
//! #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
//! # let path = dir.path().join("songs.db");
//! let db = Options::new().durability(Durability::Sync).open(&path)?; // created if missing
//! db.put("Nina Simone - Sinnerman", "1965")?;
//! assert!(db.get("Nina Simone - Sinnerman")?.is_some_and(|year| year == b"1965"));
//! assert!(db.get("Nina Simone - Freebird")?.is_none()); // one filter line, no disk
//!
//! let mut batch = Batch::new(); // atomic, even after a crash
//! batch.put("Fela Kuti - Zombie", "1976");
//! batch.delete("Nina Simone - Sinnerman");
//! let before = db.snapshot();
//! db.write(batch)?;
//! for row in db.range("A".."N").rev() {
//!     let (title, year) = row?;
//!     println!("{} {}", title.escape_ascii(), year.escape_ascii());
//! }
//! assert!(before.contains_key("Nina Simone - Sinnerman")?);
//! println!("{} reads avoided", db.stats().filter_negatives);
//! # Ok(()) }
//! ```
//!
//! # Writes that depend on what is there
//! "Seen before? If not, remember it" is one call, and for a new key it reads nothing from disk unless a
//! filter errs. Conditions on keys make a batch conditional, and a [`Transaction`] holds no lock.
//! ```
//! use sidebloom::{Batch, Error};
//! # let dir = tempfile::tempdir().unwrap();
//! # let db = sidebloom::Db::open(dir.path().join("db"))?;
//! assert!(db.insert_new("https://example.org/", "")?); // of any number of callers, one gets true
//! let are_new = db.insert_new_many(&[("a", ""), ("b", "")])?; // one batch
//! assert_eq!(are_new, [true, true]);
//! assert!(db.compare_and_set("lease", None, Some(b"ann"))?.is_set());
//! db.update("visits", |count| Some([count.unwrap_or_default(), b"|"].concat()))?;
//!
//! let mut transfer = Batch::new();
//! transfer.expect("ann", "10"); // otherwise nothing is written: Error::Conflict names the key
//! transfer.put("ann", "7");
//! assert!(matches!(db.write(transfer), Err(Error::Conflict { .. })));
//!
//! let tx = db.transaction(); // serialisable
//! if tx.prefix("seat 7/").next().is_none() {
//!     tx.put("seat 7/ann", "")?;
//! }
//! tx.commit()?; // Error::Conflict if others changed what it has read, never because of a flush
//! let booked = db.transact(|tx| tx.insert_new("seat 8/ann", ""))?; // the same, again after a conflict
//! println!("{} after {} retries", booked.value, booked.retries);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Several sets of keys
//! One store holds several sets of keys, each a [`Keyspace`], with one log, one cache and batches across all.
//! Each has the filters that its lookups deserve, and all methods for reading and writing.
//! ```
//! use sidebloom::{Batch, FilterPolicy, KeyspaceOptions};
//! # let dir = tempfile::tempdir().unwrap();
//! # let db = sidebloom::Db::open(dir.path().join("db"))?;
//! let off = KeyspaceOptions::new().filter_policy(FilterPolicy::OFF); // only asked for users that exist
//! let users = db.create_keyspace("users", off)?; // later: db.keyspace("users")
//! let wide = KeyspaceOptions::new().filter_policy(FilterPolicy::bits_per_key(15.0)); // mostly for new pages
//! let seen = db.create_keyspace("seen", wide)?;
//! let mut batch = Batch::new(); // all or nothing
//! batch.keyspace(&users).put("ann", "1 page");
//! batch.keyspace(&seen).put("https://example.org/", "");
//! db.write(batch)?;
//! assert!(!seen.insert_new("https://example.org/", "")?);
//! assert_eq!(db.keyspaces()?, ["seen", "users"]);
//! db.drop_keyspace("seen")?; // removes its segments without reading them
//! # Ok::<(), sidebloom::Error>(())
//! ```
//!
//! # Rows that expire
//! Each row at its own moment, or all of a keyspace after the same time. Compactions remove what has expired,
//! and segments in which everything has expired are removed unread. [`KeyspaceOptions::window`] keeps
//! segments apart by time: rows of different twelfths of the window are not merged as long as all live
//! equally long, and forgetting means removing files.
//! ```
//! use sidebloom::{Expiry, KeyspaceOptions};
//! use std::time::Duration;
//! # let dir = tempfile::tempdir().unwrap();
//! # let db = sidebloom::Db::open(dir.path().join("db"))?;
//! let five_minutes = Expiry::after(Duration::from_secs(300));
//! assert!(db.insert_new_with("nonce 8d2f", "", five_minutes)?); // false if seen within five minutes
//! db.put_with("session 7", "ann", five_minutes)?;
//! db.touch("session 7", five_minutes)?; // five more minutes from now
//! println!("{:?}", db.time_to_live("session 7")?);
//! let month = KeyspaceOptions::new().expire_after(Duration::from_secs(30 * 86_400));
//! let urls = db.create_keyspace("urls of a month", month)?;
//! urls.insert_new("https://example.org/", "")?;
//! # Ok::<(), sidebloom::Error>(())
//! ```
//!
//! # Other processes and machines
//! Other processes can read the store while this one writes it: [`Options::follow`]. They see nearly all new
//! rows within 10 ms, and share the filters in the page cache. The package `sidebloom-remote` publishes a
//! store to object storage, where any number of machines read it. [`backup`] makes copies that keep every
//! file once.
//!
//! # How a lookup works
//! ```text
//! put ─▶ log ─▶ memtable (+ its own small filter) ─flush─▶ segment + sidecar ─compact─▶ segment + sidecar
//! get ─▶ hash the key once ─▶ memtable filter ─▶ one filter line of every run that could hold the key,
//!     newest first ─▶ only on "maybe": block index ─▶ block cache ─▶ one block read
//! ```
//! Keys and values live in *segments*: immutable sorted files in levels, as in LevelDB and RocksDB. Next to
//! each `NNNNNN.segment` is its *sidecar* `NNNNNN.filter`, a memory-mapped file of 64-byte lines computed
//! from the hashes of all its keys. For a missing key, the store probes one line in the sidecar of each run
//! that could hold the key, and reads a segment only on a false positive.
//!
//! # Invariants (tests name them by number)
//! - **I1** No false negative. A sidecar is trusted only if its header is valid, it is bound to its segment,
//!   and the checksum of the probed group of 64 lines was verified since it was mapped. Otherwise the answer
//!   is "maybe".
//! - **I2** A filter is derived data. Without sidecars, or with damaged ones, every answer is the same, and a
//!   background thread rebuilds them. Failing to write a sidecar stops no write.
//! - **I3** Retuning never rewrites data. [`Db::rebuild_filters`] only writes sidecars.
//! - **I4** Synced writes survive any crash, and losing one to damage is an error. Of the unsynced writes, a
//!   prefix survives. A batch is atomic.
//! - **I5** A failed write or fsync is never acknowledged, and its file is never written again. On a full
//!   disk, the store rewrites the contents from memory once there is space; after any other failure it is
//!   read-only ([`Error::Poisoned`]). After a failed *read*, the store stays writable: the segment goes to
//!   quarantine, where its readable blocks still serve reads, and returns once it is readable.
//! - **I6** A checksum covers every byte on disk. Damage is an [`Error::Corruption`] with file and offset. A
//!   code that only a newer version knows is an [`Error::UnknownCode`], and is left untouched.
//! - **I7** Readers never wait for writers, flushes or compactions, nor writers for a manual compaction.
//! - **I8** All I/O goes through one interface, [`fs::Fs`], so a test can fail, tear, drop or reorder it.
//! - **I9** Filters include every key of their segment, even tombstones, and never hide a range tombstone.
//! - **I10** The segments of a level below 0 are disjoint. Checked at every publication, at opening, and by
//!   [`Db::verify`].
//! - **I11** Nothing chosen by outsiders changes an answer. A hash that affects more than speed, such as a
//!   guard's, is a keyed PRF.
//! - **I12** [`Options`] bound the open files, the maps, the memory of compactions and the time under a lock.
//!   `docs/durability.md` says what grows with the store, such as the time to open it.
//! - **I13** A store acts only in its directory, under its lock ([`Error::LockLost`]), and in the process
//!   that opened it: a forked process gets [`Error::Forked`] and changes nothing.
//! - **I15** Time runs forwards: no later read sees a row that an earlier one saw expired
//!   ([`Keyspace::put_with`]).
//!
//! # Async
//! Every call is synchronous. What async code may call where it is depends on what the call can wait for:
//!
//! | call | waits for | time |
//! |---|---|---|
//! | [`may_contain`](Keyspace::may_contain) | nothing: it reads memory and maps | 0.14 µs; 0.7 µs if the page cache is cold |
//! | [`get`](Keyspace::get), [`multi_get`](Keyspace::multi_get), [`range`](Keyspace::range), cursors | one read for each block that is not in memory | missing key: as above; found key: 1.2 µs, cold 60 to 120 µs |
//! | [`put`](Keyspace::put), [`write`](Keyspace::write), [`insert_new`](Keyspace::insert_new), commits | the log; and for flushes and compactions, if these are too slow ([`Stats::write_stall`]) | 2 to 3 µs; in a stall, seconds |
//! | the same with [`Durability::Sync`]; [`sync`](Keyspace::sync) | an fsync, which writers share | that of the disk: 0.4 to 1.8 ms here, 1 % of them above 16 to 24 ms |
//! | [`flush`](Keyspace::flush), [`compact`](Keyspace::compact), [`ingest`](Keyspace::ingest), [`verify`](Db::verify), [`checkpoint`](Db::checkpoint), [`close`](Db::close), opening | work that grows with the memtable or the store | milliseconds to hours |
//!
//! So ask `may_contain` inline, and leave the rest to a thread that may block: with tokio, `spawn_blocking`
//! under a semaphore, since tokio alone would start 512 threads.
//!
//! ```text
//! if db.may_contain(&key) == Verdict::Absent {
//!     return Ok(None);
//! }
//! let permit = reads.clone().acquire_owned().await?;
//! spawn_blocking(move || { let value = db.get(key); drop((db, permit)); value }).await?
//! ```
//!
//! A store that was just opened verifies its filters in the background, and until then a probe may wait for
//! reads of up to some milliseconds: call [`warm`](Db::warm) before serving. The kernel may drop mapped
//! filters that are not used; with [`Residency::Pinned`] it cannot. Hold no [`Range`] or [`Snapshot`] across
//! an `.await` that may take long: they keep replaced files on the disk.
//!
//! The times of single calls are means in a store of 10 million keys (`cargo run --release -p versus`, in
//! `docs/measured.md`), those of fsyncs come from `examples/lookup_service`, a service with axum that does
//! all this, and its load test.
//!
//! # Limits
//! Keys have 0 to [`MAX_KEY_BYTES`] bytes and are ordered bytewise; the empty key is valid. Values have up to
//! [`MAX_VALUE_BYTES`] bytes, and batches up to 1 GiB. One process at a time can write; others can share a
//! store read-only, or follow it while it is written ([`Options::follow`]). Unix only: the store uses
//! positioned reads, memory maps and file locks.
//!
//! After a fork, the store belongs to the parent. In the child, reads see the store as of the fork, as long
//! as the parent keeps the files that they need; everything else returns [`Error::Forked`], and a guard
//! answers "maybe". Dropping the handles there closes nothing for the parent. To work in both, open the store
//! in each process after the fork: once for writing, elsewhere with [`Options::follow`]. A daemon opens the
//! store after it forks, or drops all handles and reopens it once its parent has ended.
//!
//! Sidecars, and segments whose blocks are not compressed as a whole, are mapped by default. As with every
//! mapped file, SIGBUS kills the process if one is truncated while the store is open, or if the disk fails to
//! read its pages. [`Residency`] and [`fs::catch_sigbus`] describe how to avoid that.

pub mod backup;
pub mod error;
pub mod fs;
pub mod guard;
pub mod show;

#[cfg(test)]
#[path = "../fixtures/all_kinds.rs"]
mod all_kinds;
mod api;
mod bounds;
mod direction;
mod engine;
mod event;
#[cfg(test)]
#[path = "../fixtures/golden.rs"]
mod golden;
mod id;
mod key;
mod live;
mod manifest;
mod memtable;
mod merge;
mod options;
mod progress;
mod ranges;
mod remedy;
mod segment;
mod shards;
mod sidecar;
mod sort;
mod sync;
mod wal;

pub use api::{
    CompareAndSet, Cursor, Db, Exposition, Keys, Keyspace, KeyspaceStats, KeyspaceTransaction, LevelStats,
    Range, Savepoint, Snapshot, Stats, TimeToLive, Transacted, Transaction, TransactionCursor,
    TransactionRange,
};
pub use bounds::KeyBounds;
pub use engine::copies::file_set::{FileSet, SegmentEntry};
pub use engine::filters::RebuildReport;
pub use engine::latency::{Latencies, LatencyHistogram};
pub use engine::repair::{LogSalvage, LostRange, RepairReport, repair, repair_with};
pub use engine::verify::VerifyReport;
pub use error::{Error, IoOp, Result};
pub use event::{Event, WriteStall};
pub use key::{Expiry, MAX_KEY_BYTES, MAX_VALUE_BYTES, Value, prefix_end};
pub use merge::{Skipped, SkippedKeys};
pub use options::{Durability, FilterPolicy, Isolation, KeyspaceOptions, OptionChanges, Options};
pub use progress::Progress;
pub use segment::Compression;
pub use sidebloom_filter as filter;
pub use sidebloom_filter::{KeyHash, KeyHasher, PrefixExtractor, receive_filter, send_filter};
use sidebloom_filter::{codec, hash};
pub use sidecar::{MappedFilter, Residency, read_filter, write_filter};
pub use sync::{SystemClock, WallClock};
pub use wal::{Batch, KeyspaceBatch};

/// For the other packages of this repository, and nobody else: it may change in any release.
#[doc(hidden)]
pub mod internal {
    pub use crate::engine::copies::file_set::sidecar_head;
    pub use crate::id::{FileId, FileKind};
    pub use crate::sort::{Counted, ExternalSorter, Record};

    /// For `fuzz/`. Only `cargo fuzz` sets this cfg.
    #[cfg(fuzzing)]
    #[allow(missing_docs, reason = "each item has its documentation where it is defined")]
    pub mod fuzz {
        pub use crate::codec::{Decoder, Encode, crc32};
        pub use crate::direction::Direction;
        pub use crate::filter::{
            BuiltFilter, FilterKind, FilterSpec, Isa, Line, ProbeHash, Prober, Verdict, Width,
        };
        pub use crate::hash::{digest, digest_at};
        pub use crate::key::{Entry, EntryKind, MAX_SEQ};
        pub use crate::manifest::{
            MANIFEST, Manifest, ManifestState, WRITES as MANIFEST_VERSION, read_state,
        };
        pub use crate::ranges::RangeTombstones;
        pub use crate::segment::format as segment_format;
        pub use crate::segment::{
            Access, BlockCache, Facts, FactsBuilder, Properties, Segment, StoreIdentity,
        };
        pub use crate::sidecar::{Binding, Expect, Maps, Sidecar};
        pub use crate::wal::{
            ExpectedLog, LogEnd, LogRecord, LogWriter, WRITES as LOG_VERSION, identify, ops, replay,
        };
    }

    /// For `benches/`.
    #[cfg(feature = "bench-support")]
    pub mod bench {
        pub use crate::api::SegmentFilter;
        pub use crate::hash::hash_key;
        pub use crate::key::{Entry, EntryKind, Seq, prefix8};
        pub use crate::memtable::{MemKind, Memtable};
        pub use crate::segment::{Block, BlockBuilder};
        pub use crate::sync::cpu_nanos;
    }
}

/// Compiles the README's examples, and runs those that need no directory of the reader's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

#[cfg(test)]
extern crate self as sidebloom;
/// The simulated file system of the integration tests, which names this crate from outside.
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;
