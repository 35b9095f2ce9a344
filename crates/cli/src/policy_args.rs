//! The options that choose a filter policy.

use crate::human::{parse_bits, parse_bytes, parse_rate};
use sidebloom::FilterPolicy;

/// A filter policy; at most one of the options.
#[derive(clap::Args)]
#[group(multiple = false)]
pub struct PolicyArgs {
    /// Bits per key, on average over the levels: with 8, about 0.8 % of absent keys pass; with 10, 0.2 %;
    /// with 14, 0.02 %
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    bits_per_key: Option<f64>,
    /// False-positive rate of a lookup over all levels, as 0.001 or 0.1%, using as little memory as possible
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    target_fpr: Option<f64>,
    /// Memory for all filters together, in bytes; K, M and G stand for powers of 1024
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Blocked Bloom filters of this many bits per key on every level
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    blocked_bloom: Option<f64>,
}

impl PolicyArgs {
    /// The policy that was given.
    pub fn policy(&self) -> Option<FilterPolicy> {
        let bits = self.bits_per_key.map(FilterPolicy::bits_per_key);
        let rate = self.target_fpr.map(FilterPolicy::target_fpr);
        let memory = self.memory.map(FilterPolicy::memory_budget);
        let bloom = self.blocked_bloom.map(FilterPolicy::blocked_bloom);
        bits.or(rate).or(memory).or(bloom)
    }
}
