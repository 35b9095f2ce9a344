//! Parity filters as SlateDB's filter policy.

use crate::filter::ParityFilter;
use bytes::Bytes;
use sidebloom_filter::hash::random_u64;
use sidebloom_filter::{KeyHasher, LINE_BYTES, Width};
use slatedb::{Filter, FilterBuilder, FilterPolicy, PrefixExtractor, PrefixTarget, RowEntry};
use std::fmt;
use std::sync::Arc;

/// Bytes of the wire form other than the filter's lines.
const AROUND_BYTES: usize = 136;

/// Parity filters inside the SST files, in place of SlateDB's Bloom filters: at most a third of the false
/// positives in fewer bytes.
///
/// Give it to everything that opens the database: `DbBuilder`, `DbReaderBuilder`, and a separate compactor or
/// compaction worker. A reader without the policy reads the database correctly, but without these filters; a
/// compactor without it writes none.
///
/// ```
/// use sidebloom_slatedb::ParityFilterPolicy;
/// use slatedb::{Db, object_store::memory::InMemory};
/// use std::sync::Arc;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let policy = ParityFilterPolicy::new(10.0)?;
/// let db = Db::builder("songs", Arc::new(InMemory::new()))
///     .with_filter_policies(vec![Arc::new(policy)])
///     .build()
///     .await?;
/// # db.close().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The name
/// `sidebloom.parity`, or `sidebloom.parity:p=NAME` with a prefix extractor of that name. Each filter stores
/// its width, hash function, seed, format version and a checksum. So any policy can read filters of all
/// widths, and a filter that is damaged, or of a later version, answers "maybe".
///
/// # Which queries it answers
/// Queries for a key; with a prefix extractor, also for a prefix. All others are "maybe".
#[derive(Clone)]
pub struct ParityFilterPolicy {
    width: Width,
    hasher: KeyHasher,
    prefixes: Option<Arc<dyn PrefixExtractor>>,
    name: String,
}

/// Fewer bits per key than any parity filter has.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{bits_per_key} bits per key: a parity filter has {min} or more")]
pub struct BitsPerKeyError {
    /// The requested bits per key.
    pub bits_per_key: f64,
    /// The bits per key of the smallest filter.
    pub min: f64,
}

impl ParityFilterPolicy {
    /// The policy's name, without a prefix extractor.
    pub const NAME: &'static str = "sidebloom.parity";

    /// Filters with the lowest false-positive rate that take at most `bits_per_key`: for 10 bits,
    /// [`Width::Eight`](sidebloom_filter::Width::Eight), with 8.85 bits and 0.28 %. The keys are hashed with
    /// a random seed.
    ///
    /// # Errors
    /// [`BitsPerKeyError`] for less than the smallest filter's (7.68), or not a number.
    pub fn new(bits_per_key: f64) -> Result<Self, BitsPerKeyError> {
        let fits = |width: &Width| width.bits_per_key() <= bits_per_key;
        let width = Width::ALL.into_iter().rfind(fits);
        let width = width.ok_or(BitsPerKeyError { bits_per_key, min: Width::Seven.bits_per_key() })?;
        let hasher = KeyHasher::from(random_u64());
        Ok(ParityFilterPolicy { width, hasher, prefixes: None, name: Self::NAME.to_owned() })
    }

    /// Adds the prefixes of the keys to the filters, so that they answer prefix queries. The extractor's name
    /// becomes part of the policy's.
    #[must_use]
    pub fn with_prefix_extractor(mut self, prefixes: Arc<dyn PrefixExtractor>) -> Self {
        self.name = format!("{}:p={}", Self::NAME, prefixes.name());
        self.prefixes = Some(prefixes);
        self
    }

    /// The width of the filters that it builds.
    pub fn width(&self) -> Width {
        self.width
    }
}

impl fmt::Debug for ParityFilterPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParityFilterPolicy").field("name", &self.name).field("width", &self.width).finish()
    }
}

impl FilterPolicy for ParityFilterPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn builder(&self) -> Box<dyn FilterBuilder> {
        let (policy, hashes, last_prefix) = (self.clone(), Vec::new(), None);
        Box::new(ParityFilterBuilder { policy, hashes, last_prefix })
    }

    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        Arc::new(ParityFilter::decode(data, self.prefixes.clone()))
    }

    fn estimate_size(&self, num_keys: usize) -> usize {
        let lines = self.width.expected_lines(num_keys as u64, self.width.keys_per_line());
        lines as usize * LINE_BYTES + AROUND_BYTES
    }

    fn supports_prefix_queries(&self) -> bool {
        self.prefixes.is_some()
    }
}

/// Collects the hashes of keys and prefixes, and builds a filter from them.
struct ParityFilterBuilder {
    policy: ParityFilterPolicy,
    hashes: Vec<u64>,
    /// The prefix of the last key that has one.
    last_prefix: Option<Bytes>,
}

impl FilterBuilder for ParityFilterBuilder {
    /// Keys come in order, once for each of their versions.
    fn add_entry(&mut self, entry: &RowEntry) {
        let (key, hasher) = (&entry.key, self.policy.hasher);
        let prefixes = self.policy.prefixes.as_ref();
        let prefix_len = prefixes.and_then(|prefixes| prefixes.prefix_len(&PrefixTarget::Point(key.clone())));
        // An extractor must not return more bytes than there are. Queries for such prefixes are "maybe".
        let prefix = prefix_len.filter(|&len| len <= key.len()).map(|len| key.slice(..len));
        if let Some(prefix) = prefix
            && self.last_prefix.as_ref() != Some(&prefix)
        {
            self.hashes.push(hasher.hash(&prefix));
            self.last_prefix = Some(prefix);
        }
        let hash = hasher.hash(key);
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    fn build(&mut self) -> Arc<dyn Filter> {
        let hashes = std::mem::take(&mut self.hashes);
        let ParityFilterPolicy { width, hasher, prefixes, .. } = &self.policy;
        Arc::new(ParityFilter::build(*width, &hashes, *hasher, prefixes.clone()))
    }
}
