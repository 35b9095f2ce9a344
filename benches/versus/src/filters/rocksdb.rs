//! RocksDB's own Bloom and Ribbon code; `rocksdb.cc` is the other side.

use super::Filter;
use crate::engine::Result;
use std::ffi::c_void;

// So that the library is linked.
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
pub struct Rocks {
    filter: *mut c_void,
    bytes: usize,
}

impl Rocks {
    /// Of all keys.
    pub fn build(ribbon: bool, bits_per_key: f64, keys: &[u64]) -> Result<Self> {
        let mut bytes = 0;
        // SAFETY: `keys` has as many numbers as it is said to have, and `bytes` is written once.
        let filter =
            unsafe { versus_rocksdb_build(ribbon, bits_per_key, keys.as_ptr(), keys.len(), &mut bytes) };
        if filter.is_null() { Err("RocksDB built no filter".into()) } else { Ok(Rocks { filter, bytes }) }
    }
}

impl Drop for Rocks {
    fn drop(&mut self) {
        // SAFETY: made by versus_rocksdb_build, and not used after this.
        unsafe { versus_rocksdb_free(self.filter) }
    }
}

impl Filter for Rocks {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn copy(&self) -> Box<dyn Filter> {
        // SAFETY: the filter lives until it is dropped; the copy has its own memory.
        Box::new(Rocks { filter: unsafe { versus_rocksdb_copy(self.filter) }, bytes: self.bytes })
    }

    fn prepared(&self, key: u64) -> u64 {
        // SAFETY: a pure function.
        unsafe { versus_rocksdb_hash(key) }
    }

    #[inline]
    fn may_contain(&self, prepared: u64) -> bool {
        // SAFETY: the filter lives until it is dropped.
        unsafe { versus_rocksdb_may_match(self.filter, prepared) }
    }

    fn batched(&self, keys: &[u64], _: &[u64]) -> Option<usize> {
        // SAFETY: as above; no more than 32 keys in a call.
        let asked =
            |keys: &[u64]| unsafe { versus_rocksdb_may_match_many(self.filter, keys.as_ptr(), keys.len()) };
        Some(keys.chunks(32).map(asked).sum())
    }
}
