//! Bloom filters of earlier SST files, for a database that has switched to other filters.

use bytes::BufMut;
use slatedb::{BloomFilterPolicy, Filter, FilterBuilder, FilterPolicy, FilterQuery, RowEntry};
use std::sync::Arc;

/// Reads the Bloom filters of SST files written with [`BloomFilterPolicy`], and builds no more of them.
/// SlateDB builds a filter for every policy it is given. Next to
/// [`ParityFilterPolicy`](crate::ParityFilterPolicy), this one keeps earlier filters in use until a
/// compaction has replaced the last of their files.
///
/// New files get a Bloom filter of 3 bytes that answers "maybe" to everything, so they stay readable with
/// [`BloomFilterPolicy`] itself.
#[derive(Debug)]
pub struct BloomReader(BloomFilterPolicy);

impl BloomReader {
    /// Reads what this policy has written. Bits per key make no difference; the prefix extractor does.
    pub fn new(policy: BloomFilterPolicy) -> Self {
        BloomReader(policy)
    }
}

impl FilterPolicy for BloomReader {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn builder(&self) -> Box<dyn FilterBuilder> {
        Box::new(Full)
    }

    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        self.0.decode(data)
    }

    fn estimate_size(&self, _: usize) -> usize {
        FULL.len()
    }

    fn supports_prefix_queries(&self) -> bool {
        self.0.supports_prefix_queries()
    }
}

/// SlateDB's encoding of a Bloom filter that tests no bits (two bytes, big-endian), with one byte of filter.
const FULL: [u8; 3] = [0, 0, 0xff];

/// A filter that answers "maybe" to everything, and its builder.
struct Full;

impl FilterBuilder for Full {
    fn add_entry(&mut self, _: &RowEntry) {}

    fn build(&mut self) -> Arc<dyn Filter> {
        Arc::new(Full)
    }
}

impl Filter for Full {
    fn might_match(&self, _: &FilterQuery) -> bool {
        true
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        writer.put_slice(&FULL);
    }

    fn size(&self) -> usize {
        1
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        Arc::new(Full)
    }
}
