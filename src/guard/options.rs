//! How a guard is built and opened.

use super::canonical::Canonical;
use super::format::HashWidth;
use crate::db::{Durability, FilterPolicy, Options};
use crate::fs::Fs;
use crate::segment::Compression;
use crate::sidecar::Residency;
use std::sync::Arc;

/// Settings of a guard. `canonical` and `hash_width` are fixed when it is built, `filter_policy` is kept until another is named; the others
/// may differ at each opening.
#[derive(Debug, Clone)]
pub struct GuardOptions {
    /// `None`: as the source, or whatever the guard was built with.
    pub(super) canonical: Option<Canonical>,
    pub(super) width: HashWidth,
    /// `None`: the guard's own, or the default for a new one.
    pub(super) policy: Option<FilterPolicy>,
    pub(super) durability: Durability,
    pub(super) exceptions: usize,
    pub(super) read_only: bool,
    pub(super) fs: Arc<dyn Fs>,
    pub(super) store: Options,
}

impl Default for GuardOptions {
    fn default() -> Self {
        let store = Options::new()
            .residency(Residency::Pinned)
            .compression(Compression::None)
            .block_cache_bytes(1 << 20)
            .memtable_bytes(8 << 20)
            .segment_bytes(64 << 20);
        GuardOptions {
            canonical: None,
            width: HashWidth::default(),
            policy: None,
            durability: Durability::Sync,
            exceptions: 0,
            read_only: false,
            fs: Arc::new(crate::fs::RealFs),
            store,
        }
    }
}

impl GuardOptions {
    /// Filter bits per key, unless told otherwise: 0.4 % of the missing keys get a "maybe", for 1.1 bytes of memory a key.
    pub const BITS_PER_KEY: f64 = 9.0;

    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// When two keys count as one. Default: for a guard that is built from a database, what its column takes for one key
    /// ([`Source::equality`](super::Source::equality)), for another new guard exact, and for one that is opened as it was built; another
    /// one than that is refused.
    pub fn canonical(mut self, canonical: Canonical) -> Self {
        self.canonical = Some(canonical);
        self
    }

    /// How wide key hashes are; for a new guard. Default 128 bits.
    pub fn hash_width(mut self, width: HashWidth) -> Self {
        self.width = width;
        self
    }

    /// Which filters: what a missing key costs in memory, and how often it gets a "maybe". Default for a new guard 9 bits per key, and for
    /// one that is opened those that it has. Another one holds for what is written from then on, and stays with the guard once a refresh has
    /// given it to all keys.
    pub fn filter_policy(mut self, policy: FilterPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// When an insertion is acknowledged. Default [`Durability::Sync`]: with less, a power cut may lose the insertion of a row that the
    /// database has kept, and the guard would say no to it.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// How many known false positives are remembered, so that they are not asked again. Default 0. About 70 bytes of memory each.
    pub fn exceptions(mut self, max: usize) -> Self {
        self.exceptions = max;
        self
    }

    /// Memory for the latest changes, in bytes. Default 8 MiB; up to three times as much while they are written out.
    pub fn memtable_bytes(mut self, bytes: u64) -> Self {
        self.store = self.store.memtable_bytes(bytes);
        self
    }

    /// Opens without changing a byte, beside any number of other read-only openings. Default false.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self.store = self.store.read_only(read_only);
        self
    }

    /// The file system to work on; the operating system's by default. For fault injection.
    pub fn filesystem(mut self, fs: Arc<dyn Fs>) -> Self {
        self.store = self.store.filesystem(Arc::clone(&fs));
        self.fs = fs;
        self
    }
}
