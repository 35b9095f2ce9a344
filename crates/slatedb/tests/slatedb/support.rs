//! Databases, entries and filters for the tests.

use crate::counted::Counted;
use sidebloom_slatedb::ParityFilterPolicy;
use slatedb::bytes::Bytes;
use slatedb::config::{FlushOptions, FlushType, Settings};
use slatedb::{
    BloomFilterPolicy, Db, Filter, FilterPolicy, FilterQuery, RowEntry, ValueDeletable, WriteBatch,
};
use std::sync::Arc;

pub type Policies = Vec<Arc<dyn FilterPolicy>>;

pub fn parity() -> Arc<dyn FilterPolicy> {
    Arc::new(ParityFilterPolicy::new(10.0).unwrap())
}

pub fn bloom() -> Arc<dyn FilterPolicy> {
    Arc::new(BloomFilterPolicy::new(10))
}

/// Blocks on the test's future.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

/// Opens the database, without compaction or cache.
pub async fn open(store: &Arc<Counted>, policies: Policies) -> Db {
    let settings = Settings {
        compactor_options: None,
        garbage_collector_options: None,
        min_filter_keys: 1,
        ..Settings::default()
    };
    let builder = Db::builder("db", Arc::clone(store) as _).with_settings(settings);
    builder.with_filter_policies(policies).with_db_cache_disabled().build().await.unwrap()
}

/// A key; odd numbers lie between even ones.
pub fn key(n: u32) -> Bytes {
    Bytes::from(format!("key {n:08}"))
}

/// Writes the even keys of a range, all to one SST file.
pub async fn put(db: &Db, range: std::ops::Range<u32>) {
    let mut batch = WriteBatch::new();
    for n in range.filter(|n| n % 2 == 0) {
        batch.put(key(n), format!("value {n}"));
    }
    db.write(batch).await.unwrap();
    flush(db).await;
}

pub async fn flush(db: &Db) {
    db.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await.unwrap();
}

pub fn entry(key: Bytes) -> RowEntry {
    let value = ValueDeletable::Value(Bytes::from_static(b"value"));
    RowEntry { key, value, seq: 1, create_ts: None, expire_ts: None }
}

/// The filter that a policy builds of these keys.
pub fn built(policy: &dyn FilterPolicy, keys: impl IntoIterator<Item = Bytes>) -> Arc<dyn Filter> {
    let mut builder = policy.builder();
    keys.into_iter().for_each(|key| builder.add_entry(&entry(key)));
    builder.build()
}

pub fn encoded(filter: &dyn Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.encode(&mut bytes);
    bytes
}

pub fn point(key: &[u8]) -> FilterQuery {
    FilterQuery::point(Bytes::copy_from_slice(key))
}

pub fn prefix(prefix: &[u8]) -> FilterQuery {
    FilterQuery::prefix(Bytes::copy_from_slice(prefix))
}
