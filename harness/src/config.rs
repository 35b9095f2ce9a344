//! Random options, from the smallest allowed to large ones.

use crate::support::Rng;
use sidebloom::fs::{Fs, RealFs};
use sidebloom::{
    Compression, Durability, FilterPolicy, KeyHash, OptionChanges, Options, PrefixExtractor, Residency,
};
use std::sync::Arc;

/// Options for stores of a few hundred keys: small enough for constant flushes and compactions, and rarely so
/// large that there are none.
pub fn random(rng: &mut Rng, fs: Arc<dyn Fs>) -> Options {
    let mut codecs = Compression::ALL.to_vec();
    codecs.retain(|codec| codec.missing_feature().is_none());
    Options::new()
        .memtable_bytes(*rng.pick(&[4096, 4096, 6000, 16 << 10, 64 << 10, 1 << 20]))
        .segment_bytes(*rng.pick(&[4096, 4096, 5000, 16 << 10, 1 << 20]))
        .block_bytes(*rng.pick(&[256, 256, 300, 1024, 4096, 1 << 20]))
        .block_cache_bytes(*rng.pick(&[0, 4096, 1 << 20]))
        .compression(*rng.pick(&codecs))
        .durability(*rng.pick(&[Durability::Os, Durability::Os, Durability::Os, Durability::Sync]))
        .filter_policy(policy(rng))
        .prefixes(prefixes(rng))
        .key_hash(*rng.pick(&[KeyHash::Xxh3, KeyHash::SipHash13]))
        .residency(*rng.pick(&[Residency::Mapped, Residency::Pinned]))
        .max_open_files(*rng.pick(&[8, 8, 512]))
        .max_mapped_filters(*rng.pick(&[8, 1000]))
        .background_threads(*rng.pick(&[2, 3, 4, 5, 8]))
        .compaction_bytes_per_second(rate(rng))
        .filesystem(fs)
}

/// What compactions may read and write per second: seldom so little that they wait.
fn rate(rng: &mut Rng) -> u64 {
    *rng.pick(&[0, 0, 0, 8 << 20, 1 << 40])
}

/// Changes of options of an open store, without its filters.
pub fn changes(rng: &mut Rng) -> OptionChanges {
    let mut changes = OptionChanges::new();
    if rng.percent(50) {
        changes = changes.block_cache_bytes(*rng.pick(&[0, 4096, 1 << 20]));
    }
    if rng.percent(50) {
        changes = changes.background_threads(*rng.pick(&[2, 3, 4, 5, 8]));
    }
    if rng.percent(50) {
        changes = changes.compaction_bytes_per_second(rate(rng));
    }
    if rng.percent(30) {
        changes = changes.durability(*rng.pick(&[Durability::Os, Durability::Os, Durability::Sync]));
    }
    changes
}

/// Up to four different kinds of prefixes: with delimiters that keys have, or that no key has.
pub fn prefixes(rng: &mut Rng) -> Vec<PrefixExtractor> {
    let mut found = Vec::new();
    for _ in 0..rng.below(5) {
        let extractor = if rng.percent(50) {
            PrefixExtractor::fixed(1 + rng.below(12) as usize)
        } else {
            PrefixExtractor::delimited(*rng.pick(b"/k0a\0\xff"), 1 + rng.below(3) as usize)
        };
        if !found.contains(&extractor) {
            found.push(extractor);
        }
    }
    found
}

/// Filters of any kind and size, or none.
pub fn policy(rng: &mut Rng) -> FilterPolicy {
    if rng.percent(15) { FilterPolicy::OFF } else { filters(rng) }
}

/// Filters of any kind and size; a small budget leaves some segments without.
pub fn filters(rng: &mut Rng) -> FilterPolicy {
    match rng.below(10) {
        0 | 1 => FilterPolicy::blocked_bloom(2.0 + rng.below(180) as f64 / 10.0),
        2 => FilterPolicy::memory_budget(rng.below(4096)),
        3 => FilterPolicy::target_fpr((1 + rng.below(999)) as f64 / 1000.0),
        _ => policy_with_filters(rng),
    }
}

/// A filter of any size for every segment.
pub fn policy_with_filters(rng: &mut Rng) -> FilterPolicy {
    FilterPolicy::bits_per_key(2.0 + rng.below(180) as f64 / 10.0)
}

/// The options in one line, without the disk's contents.
pub fn describe(options: &Options) -> String {
    let mut line = format!("{:?}", options.clone().filesystem(Arc::new(RealFs)));
    line.retain(|c| c != '\n');
    line
}
