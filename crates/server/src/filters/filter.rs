//! One filter in memory: what its record says, and what changes.

use super::parameters::{Kind, Parameters};
use super::record::{ItemKey, Record, Totals};
use sidebloom::KeyHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Release};

/// A filter. Its items are in the store; handles stay valid after it was deleted, and then find nothing.
#[derive(Debug)]
pub struct Filter {
    id: u64,
    hash_key: [u64; 2],
    hasher: KeyHasher,
    parameters: Parameters,
    items: AtomicU64,
    deletions: AtomicU64,
    expires_at: AtomicU64,
    /// Grows with each change.
    version: AtomicU64,
    is_gone: AtomicBool,
}

/// A filter at some moment: it has not changed if another mark is equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    id: u64,
    version: u64,
}

impl Filter {
    pub(super) fn new(record: &Record) -> Self {
        Filter {
            id: record.id,
            hash_key: record.hash_key,
            hasher: KeyHasher::siphash13(record.hash_key),
            parameters: record.parameters,
            items: AtomicU64::new(record.totals.items),
            deletions: AtomicU64::new(record.totals.deletions),
            expires_at: AtomicU64::new(record.expires_at),
            version: AtomicU64::new(0),
            is_gone: AtomicBool::new(false),
        }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.parameters.kind()
    }

    /// What it was created with.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// How many items it has, each counted as often as it was added.
    pub fn items(&self) -> u64 {
        self.items.load(Acquire)
    }

    /// Removed items, since the last compaction of a cuckoo filter.
    pub fn deletions(&self) -> u64 {
        self.deletions.load(Acquire)
    }

    /// When it expires, in milliseconds since 1970.
    pub fn expires_at(&self) -> Option<u64> {
        Some(self.expires_at.load(Acquire)).filter(|millis| *millis > 0)
    }

    /// What it is now, to find out later whether it has changed.
    pub fn mark(&self) -> Mark {
        Mark { id: self.id, version: self.version.load(Acquire) }
    }

    /// The hash of an item.
    #[inline]
    pub fn hash(&self, item: &[u8]) -> u128 {
        self.hasher.hash_128(item)
    }

    /// Its number: filters have ascending ones.
    pub fn id(&self) -> u64 {
        self.id
    }

    #[inline]
    pub(super) fn key(&self, hash: u128) -> ItemKey {
        ItemKey::new(self.id, hash)
    }

    pub(super) fn totals(&self) -> Totals {
        Totals { items: self.items(), deletions: self.deletions() }
    }

    /// Its record with other totals.
    pub(super) fn record(&self, totals: Totals) -> Record {
        Record {
            id: self.id,
            hash_key: self.hash_key,
            parameters: self.parameters,
            totals,
            expires_at: self.expires_at.load(Acquire),
        }
    }

    pub(super) fn set_totals(&self, totals: Totals) {
        self.items.store(totals.items, Release);
        self.deletions.store(totals.deletions, Release);
        self.note_change();
    }

    pub(super) fn set_expiry(&self, millis: u64) {
        self.expires_at.store(millis, Release);
        self.note_change();
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Acquire)
    }

    pub(super) fn set_gone(&self) {
        self.is_gone.store(true, Release);
        self.note_change();
    }

    fn note_change(&self) {
        self.version.fetch_add(1, Release);
    }
}
