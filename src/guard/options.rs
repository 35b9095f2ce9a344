//! Options for building and opening a guard.

use super::canonical::Canonical;
use super::format::HashWidth;
use crate::fs::Fs;
use crate::segment::Compression;
use crate::sidecar::Residency;
use crate::sync::WallClock;
use crate::{Durability, FilterPolicy, Options};
use std::sync::Arc;

/// Options of a guard. `canonical` and `hash_width` are fixed when it is built, and `filter_policy` is kept
/// until another one is given; the others may differ each time it is opened.
#[derive(Debug, Clone)]
pub struct GuardOptions {
    /// `None`: the source's, or the one of the existing guard.
    pub(super) canonical: Option<Canonical>,
    pub(super) width: HashWidth,
    /// `None`: the guard's own, or the default for a new one.
    pub(super) policy: Option<FilterPolicy>,
    pub(super) durability: Durability,
    pub(super) known_absent: usize,
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
            known_absent: 0,
            read_only: false,
            fs: Arc::new(crate::fs::RealFs),
            store,
        }
    }
}

impl GuardOptions {
    /// Default filter bits per key: 0.4 % of the missing keys get a "maybe", for 1.1 bytes of memory per key.
    pub const BITS_PER_KEY: f64 = 9.0;

    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Which keys are equal. The default for a new guard is exact equality, or, if built from a database, the
    /// equality of the column ([`Source::equality`](super::Source::equality)). The default for an existing
    /// guard is its own form; any other form is an error.
    pub fn canonical(mut self, canonical: Canonical) -> Self {
        self.canonical = Some(canonical);
        self
    }

    /// The width of key hashes, for a new guard. Default 128 bits.
    pub fn hash_width(mut self, width: HashWidth) -> Self {
        self.width = width;
        self
    }

    /// The filters: how much memory they take, and how often a missing key gets a "maybe". Default: 9 bits
    /// per key for a new guard, and the stored policy for an existing one. A different policy applies to keys
    /// written from then on; it is stored once a refresh has applied it to all keys.
    pub fn filter_policy(mut self, policy: FilterPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// When an insertion is acknowledged. Default [`Durability::Sync`]: with less, a power failure may lose
    /// the insertion of a row that the database kept, and the guard would say no to it.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// How many known false positives to remember ([`Guard::confirm_absent`](super::Guard::confirm_absent)),
    /// so that they do not reach the database again. Default 0. About 70 bytes of memory each.
    pub fn known_absent(mut self, max: usize) -> Self {
        self.known_absent = max;
        self
    }

    /// Memory for the latest changes, in bytes. Default 8 MiB; up to three times as much during flushes.
    pub fn memtable_bytes(mut self, bytes: u64) -> Self {
        self.store = self.store.memtable_bytes(bytes);
        self
    }

    /// Opens without changing a byte; any number of processes can do so at once. Default false.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self.store = self.store.read_only(read_only);
        self
    }

    /// The permission bits of all files that the guard creates from now on
    /// ([`Options::mode`](crate::Options::mode)). Default: what the process's mask leaves of `0o666`, and
    /// `0o600` for the file `GUARD`, which has the secret key of the hashes.
    pub fn mode(mut self, mode: u32) -> Self {
        self.store = self.store.mode(mode);
        self
    }

    /// The clock by which keys expire. Default: the system's. For tests of what expires.
    pub fn clock(mut self, clock: Arc<dyn WallClock>) -> Self {
        self.store = self.store.clock(clock);
        self
    }

    /// The file system as chosen, which finds directories by path.
    pub(super) fn named_fs(&self) -> Arc<dyn Fs> {
        self.store.named_fs()
    }

    /// The file system to use; by default the operating system's. For fault injection.
    pub fn filesystem(mut self, fs: Arc<dyn Fs>) -> Self {
        self.store = self.store.filesystem(Arc::clone(&fs));
        self.fs = fs;
        self
    }
}
