//! RocksDB's own Bloom and Ribbon code, called through `rocksdb.cc`.

use super::filter::{BATCH_KEYS, Filter};
use crate::error::Result;
use std::ffi::c_void;

// Links the library.
use librocksdb_sys as _;

unsafe extern "C" {
    fn versus_rocksdb_hash(key: u64) -> u64;
    fn versus_rocksdb_build(
        ribbon: bool,
        bits_per_key: f64,
        keys: *const u64,
        count: usize,
        bytes: *mut usize,
    ) -> *mut c_void;
    fn versus_rocksdb_copy(filter: *const c_void) -> *mut c_void;
    fn versus_rocksdb_may_match(filter: *const c_void, hash: u64) -> bool;
    fn versus_rocksdb_may_match_many(filter: *const c_void, keys: *const u64, count: usize) -> usize;
    fn versus_rocksdb_free(filter: *mut c_void);
}

/// A filter that RocksDB built.
pub struct RocksFilter {
    filter: *mut c_void,
    bytes: usize,
}

impl RocksFilter {
    /// A filter over all keys.
    pub fn build(ribbon: bool, bits_per_key: f64, keys: &[u64]) -> Result<Self> {
        let mut bytes = 0;
        // SAFETY: `keys` has `keys.len()` numbers, and `bytes` outlives the call.
        let filter =
            unsafe { versus_rocksdb_build(ribbon, bits_per_key, keys.as_ptr(), keys.len(), &mut bytes) };
        if filter.is_null() {
            Err("RocksDB cannot build this filter".into())
        } else {
            Ok(RocksFilter { filter, bytes })
        }
    }
}

impl Drop for RocksFilter {
    fn drop(&mut self) {
        // SAFETY: versus_rocksdb_build or versus_rocksdb_copy made it, and nothing uses it after this.
        unsafe { versus_rocksdb_free(self.filter) }
    }
}

impl Filter for RocksFilter {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn copy(&self) -> Result<Box<dyn Filter>> {
        // SAFETY: the filter lives until `self` is dropped. The copy has its own memory.
        Ok(Box::new(RocksFilter { filter: unsafe { versus_rocksdb_copy(self.filter) }, bytes: self.bytes }))
    }

    fn prepared(&self, key: u64) -> u64 {
        // SAFETY: a pure function.
        unsafe { versus_rocksdb_hash(key) }
    }

    #[inline]
    fn may_contain(&self, prepared: u64) -> bool {
        // SAFETY: the filter lives until `self` is dropped.
        unsafe { versus_rocksdb_may_match(self.filter, prepared) }
    }

    fn batched(&self, keys: &[u64], _: &[u64]) -> Option<usize> {
        // SAFETY: as above, and no more than BATCH_KEYS keys in a call.
        let asked =
            |keys: &[u64]| unsafe { versus_rocksdb_may_match_many(self.filter, keys.as_ptr(), keys.len()) };
        Some(keys.chunks(BATCH_KEYS).map(asked).sum())
    }
}
