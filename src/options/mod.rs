//! The settings of a store.

mod durability;
mod event_callback;
mod filter_policy;
mod keyspace_options;
mod option_changes;
mod stored_keyspace_options;
mod watching;

pub use durability::{Durability, Isolation};
pub(crate) use event_callback::EventCallback;
pub use filter_policy::FilterPolicy;
pub(crate) use filter_policy::Objective;
pub use keyspace_options::KeyspaceOptions;
pub use option_changes::OptionChanges;
pub(crate) use stored_keyspace_options::{
    Unreadable, decode as decode_keyspace_options, encode as encode_keyspace_options,
};

use crate::error::{Error, Result};
use crate::filter::{PrefixExtractor, PrefixSet};
use crate::fs::{Fs, RealFs};
use crate::hash::KeyHash;
use crate::segment::Compression;
use crate::sidecar::Residency;
use crate::sync::{SystemClock, WallClock};
use std::sync::Arc;

/// The number of segments in level 0 that starts a compaction.
const LEVEL0_TRIGGER: usize = 4;

/// The lowest limit of what compactions read and write, in bytes per second.
const COMPACTION_RATE_MIN: u64 = 64 << 10;

/// The settings of a store. None of them changes what is readable, so each may differ at the next open.
/// [`key_hash`](Self::key_hash) only affects a new store.
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) block_cache_bytes: u64,
    pub(crate) memtable_bytes: u64,
    pub(crate) segment_bytes: u64,
    pub(crate) block_bytes: usize,
    pub(crate) compression: Compression,
    pub(crate) durability: Durability,
    pub(crate) filter_policy: FilterPolicy,
    /// An error is returned at opening.
    pub(crate) prefixes: Result<PrefixSet, crate::filter::Error>,
    pub(crate) key_hash: KeyHash,
    pub(crate) residency: Residency,
    pub(crate) max_open_files: usize,
    pub(crate) max_mapped_filters: usize,
    pub(crate) background_threads: usize,
    pub(crate) compaction_bytes_per_second: u64,
    pub(crate) level0_trigger: usize,
    pub(crate) transaction_bytes: u64,
    pub(crate) create_if_missing: bool,
    pub(crate) read_only: bool,
    pub(crate) follow: bool,
    /// Whether there are segment files. A guard's image only has filter files.
    pub(crate) has_segments: bool,
    pub(crate) mode: Option<u32>,
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) clock: Arc<dyn WallClock>,
    pub(crate) on_event: Option<EventCallback>,
    pub(crate) latency_histograms: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            block_cache_bytes: 256 << 20,
            memtable_bytes: 64 << 20,
            segment_bytes: 64 << 20,
            block_bytes: 4096,
            compression: Compression::default(),
            durability: Durability::default(),
            filter_policy: FilterPolicy::default(),
            prefixes: Ok(PrefixSet::EMPTY),
            key_hash: KeyHash::default(),
            residency: Residency::default(),
            max_open_files: 512,
            max_mapped_filters: 32 << 10,
            background_threads: 2,
            compaction_bytes_per_second: 0,
            level0_trigger: LEVEL0_TRIGGER,
            transaction_bytes: 64 << 20,
            create_if_missing: true,
            read_only: false,
            follow: false,
            has_segments: true,
            mode: None,
            fs: Arc::new(RealFs),
            clock: Arc::new(SystemClock),
            on_event: None,
            latency_histograms: false,
        }
    }
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Size of the cache of decompressed blocks, in bytes. Default 256 MiB. Blocks that are read in place are
    /// not in it: the system's page cache holds them. Up to a quarter of it holds parts of
    /// the indexes. Up to another quarter holds the range tombstones of segments, which may always take 1
    /// MiB, or as much as one segment's. 0 turns it off: then parts of the indexes take up to 64 MiB, so that
    /// a found key reads one block, and no other block is kept. In addition, a reading thread keeps the
    /// memory of up to 16 evicted blocks of at most 32 KiB for the blocks that it reads next.
    pub fn block_cache_bytes(mut self, bytes: u64) -> Self {
        self.block_cache_bytes = bytes;
        self
    }

    /// Size at which a memtable is flushed (keys, values and overhead), in bytes. Default 64 MiB; from 4
    /// KiB to 256 GiB. Up to three memtables exist.
    pub fn memtable_bytes(mut self, bytes: u64) -> Self {
        self.memtable_bytes = bytes;
        self
    }

    /// Size at which compaction starts a new segment, in bytes. Default 64 MiB; at least 4 KiB. Level 1 holds
    /// 4 to 16 times as much.
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// Size of a data block before compression, in bytes. Default 4096; 256 bytes to 1 MiB.
    pub fn block_bytes(mut self, bytes: usize) -> Self {
        self.block_bytes = bytes;
        self
    }

    /// Compression of segments written from now on. Default [`Compression::Auto`]. If the store fits in
    /// memory, [`Compression::None`] reads and writes fastest, and takes the most space.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// When a write is acknowledged. Default [`Durability::Os`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The filters of new segments. Default 10 bits per key on average.
    pub fn filter_policy(mut self, policy: FilterPolicy) -> Self {
        self.filter_policy = policy;
        self
    }

    /// The prefixes of keys that filters hold in addition to the keys, so that a
    /// [`prefix`](crate::Keyspace::prefix) or a range within one prefix skips every memtable and segment that
    /// has no such key. Default none; up to 8 different ones, in any order.
    ///
    /// Each distinct prefix of a segment takes as many filter bits as a key, and [`FilterPolicy`] counts
    /// both. Nothing is stored but the prefixes in the filters: filters built with other extractors still
    /// serve keys, and deny no prefix until a compaction or [`rebuild_filters`](crate::Db::rebuild_filters)
    /// replaces them. Memtable filters do not get larger.
    ///
    /// ```
    /// use sidebloom::{Options, PrefixExtractor};
    ///
    /// Options::new().prefixes([PrefixExtractor::fixed(8)]); // the first 8 bytes
    /// Options::new().prefixes(PrefixExtractor::row_and_column(b'/')); // of keys like `row/column/version`
    /// ```
    pub fn prefixes(mut self, extractors: impl IntoIterator<Item = PrefixExtractor>) -> Self {
        self.prefixes = PrefixSet::new(extractors);
        self
    }

    /// How a new store hashes its keys. Default [`KeyHash::Xxh3`]. Choose [`KeyHash::SipHash13`] if outsiders
    /// choose keys and must not be able to force useless block reads. A store keeps the hash that it was
    /// created with, no matter what later opens ask for; [`Stats::key_hash`](crate::Stats::key_hash) returns
    /// it.
    pub fn key_hash(mut self, key_hash: KeyHash) -> Self {
        self.key_hash = key_hash;
        self
    }

    /// How filters, and blocks that are read in place, are kept in memory. Default [`Residency::Mapped`].
    pub fn residency(mut self, residency: Residency) -> Self {
        self.residency = residency;
        self
    }

    /// Maximum number of segment files that stay open between reads. Default 512; at least 8. A store opens
    /// segments on demand, so it works with any number of them. Active readers, the log and files being
    /// written need more descriptors: leave some room below the process's limit (`ulimit -n`). If descriptors
    /// still run out, the store closes open segments to free some.
    pub fn max_open_files(mut self, files: usize) -> Self {
        self.max_open_files = files;
        self
    }

    /// Maximum number of filters mapped at the same time. Default 32,768, half of the maps that Linux allows
    /// a process (`vm.max_map_count`); at least 8. With more segments than that, filters that were not probed
    /// recently are unmapped. Probing one maps it again; until there is room, it answers "maybe". A snapshot
    /// or an iterator keeps the maps that exist when it starts. [`Residency::Pinned`] maps nothing.
    pub fn max_mapped_filters(mut self, filters: usize) -> Self {
        self.max_mapped_filters = filters;
        self
    }

    /// Number of threads for flushing and compaction. Default 2; 2 to 64. One stays free for flushing.
    pub fn background_threads(mut self, threads: usize) -> Self {
        self.background_threads = threads;
        self
    }

    /// The most bytes that compactions read and write per second, filters included, all of them together:
    /// those of the background threads and [`compact`](crate::Db::compact). Default 0: unlimited; otherwise
    /// at least 64 KiB. After a pause, they may take a tenth of a second's bytes at once.
    ///
    /// Flushes, ingests, copies, and filters that are rebuilt do not count, so writers never wait for this
    /// limit. It does not hold while level 0 has 20 segments or more, from which on writers would be slowed
    /// down, nor while the store closes. If compactions cannot keep up, the levels grow beyond their sizes
    /// and reads get slower, until level 0 lifts the limit.
    /// [`Stats::compaction_throttled_micros`](crate::Stats::compaction_throttled_micros) tells how long
    /// compactions waited.
    pub fn compaction_bytes_per_second(mut self, bytes: u64) -> Self {
        self.compaction_bytes_per_second = bytes;
        self
    }

    /// Never compacts level 0, so that each flush adds a sorted run. For measuring what runs cost.
    #[cfg(feature = "bench-support")]
    #[doc(hidden)]
    pub fn hold_level0(mut self) -> Self {
        self.level0_trigger = usize::MAX;
        self
    }

    /// The most memory of one [`Transaction`](crate::Transaction), in bytes: its writes, and the keys that it
    /// has read. Default 64 MiB. An operation beyond that fails with
    /// [`Error::TransactionTooLarge`](crate::Error::TransactionTooLarge).
    ///
    /// While a transaction that has walked ranges commits, the store keeps at most as many bytes of what
    /// others write meanwhile, to compare them with the ranges.
    pub fn transaction_bytes(mut self, bytes: u64) -> Self {
        self.transaction_bytes = bytes;
        self
    }

    /// Whether to create a missing store. Default true.
    pub fn create_if_missing(mut self, create: bool) -> Self {
        self.create_if_missing = create;
        self
    }

    /// Whether to open the store without changing a byte. Any number of read-only opens can share a store,
    /// and a read-only directory suffices. Default false.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Whether to open the store read-only and follow the process that writes it. Default false.
    ///
    /// Any number of processes can follow a store. They see writes within some 10 ms, or at once with
    /// [`Db::catch_up`](crate::Db::catch_up). They share the filters in the page cache, and keep the rows of
    /// the logs in memory, up to three memtables. Writes show before the writer has synced them. Snapshots
    /// and iterators stay as they are; while one of them exists, the writer keeps the files that it reads,
    /// and their disk space. A killed follower leaves nothing locked.
    ///
    /// Without a writer, the store shows its contents, and a writer may open it later. On systems other than
    /// Linux, this is the same as [`read_only`](Self::read_only).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()
    /// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
    /// # let path = dir.path().join("seen.db");
    /// use sidebloom::{Db, Options};
    ///
    /// let writer = Db::open(&path)?; // in one process
    /// let follower = Options::new().follow(true).open(&path)?; // in another one
    /// writer.put("seen", "1")?;
    /// follower.catch_up()?;
    /// assert!(follower.contains_key("seen")?);
    /// # Ok::<(), sidebloom::Error>(())
    /// ```
    pub fn follow(mut self, follow: bool) -> Self {
        self.follow = follow;
        self
    }

    /// The permission bits of all files that the store creates from now on, as for `chmod`: `0o640`, say.
    /// Whoever may read a directory may also search it. The bits are exact, regardless of the process's mask
    /// (`umask`); the owner needs `0o600`. Default: those of the store's file `LOCK`, so that a private store
    /// stays private; for a new store, what the mask leaves of `0o666`.
    ///
    /// Existing files keep their permissions, and so do their hard links in a
    /// [`checkpoint`](crate::Db::checkpoint).
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = Some(mode);
        self
    }

    /// The file system to use. Default: the operating system's. For fault injection.
    pub fn filesystem(mut self, fs: Arc<dyn Fs>) -> Self {
        self.fs = fs;
        self
    }

    /// The clock by which rows expire. Default: the system's. For tests of what expires.
    pub fn clock(mut self, clock: Arc<dyn WallClock>) -> Self {
        self.clock = clock;
        self
    }

    /// The file system as chosen, which finds directories by path.
    pub(crate) fn named_fs(&self) -> Arc<dyn Fs> {
        let with_mode = self.mode.and_then(|mode| self.fs.with_mode(mode));
        with_mode.unwrap_or_else(|| Arc::clone(&self.fs))
    }

    pub(crate) fn validate(&self) -> Result<()> {
        // A memtable numbers its entries in 32 bits, and counts at least 128 bytes for each.
        check(
            (4096..=256 << 30).contains(&self.memtable_bytes),
            "memtable_bytes must be at least 4096, and at most 256 GiB",
        )?;
        check(self.segment_bytes >= 4096, "segment_bytes must be at least 4096")?;
        check_block_bytes(self.block_bytes)?;
        let is_usable = |mode: u32| mode & 0o600 == 0o600 && mode <= 0o777;
        check(
            self.mode.is_none_or(is_usable),
            "mode must be 0o600 to 0o777, and the owner must read and write",
        )?;
        check(self.max_open_files >= 8, "max_open_files must be at least 8")?;
        check(self.max_mapped_filters >= 8, "max_mapped_filters must be at least 8")?;
        check_background_threads(self.background_threads)?;
        check_compaction_rate(self.compaction_bytes_per_second)?;
        check_compression(self.compression)?;
        self.prefixes.clone()?;
        self.filter_policy.validate()
    }
}

fn check(ok: bool, what: &str) -> Result<()> {
    if ok { Ok(()) } else { Err(Error::InvalidArgument(what.to_owned())) }
}

fn check_background_threads(threads: usize) -> Result<()> {
    check((2..=64).contains(&threads), "background_threads must be 2 to 64")
}

fn check_compaction_rate(bytes: u64) -> Result<()> {
    check(
        bytes == 0 || bytes >= COMPACTION_RATE_MIN,
        "compaction_bytes_per_second must be 0 (unlimited), or at least 65536",
    )
}

fn check_block_bytes(bytes: usize) -> Result<()> {
    if (256..=1 << 20).contains(&bytes) {
        Ok(())
    } else {
        Err(Error::InvalidArgument("block_bytes must be 256 to 1048576".to_owned()))
    }
}

fn check_compression(compression: Compression) -> Result<()> {
    let what = || format!("Compression::{compression:?}");
    compression
        .missing_feature()
        .map_or(Ok(()), |feature| Err(Error::FeatureMissing { what: what(), feature }))
}
