//! The filters of the comparison and how each is built.

#[cfg(feature = "rocksdb")]
use super::rocksdb;
use super::{filter::Filter, other_crates, ribbon, sidebloom_filters};
use crate::error::Result;
use sidebloom::filter::{FilterSpec, Width};

/// Builds a filter over all keys.
pub type BuildFn = Box<dyn Fn(&[u64]) -> Result<Box<dyn Filter>>>;

type BuildKeys = fn(&[u64]) -> Result<Box<dyn Filter>>;

/// The name and the builder of each filter.
pub fn contestants() -> Vec<(String, BuildFn)> {
    let mut all: Vec<(String, BuildFn)> = Vec::new();
    let mut add = |name: String, build: BuildFn| all.push((name, build));
    for width in Width::ALL {
        let spec = FilterSpec::Parity { width };
        add(
            format!("Parity {}", width.number()),
            Box::new(move |keys| Ok(Box::new(sidebloom_filters::SidebloomFilter::build(spec, keys)?))),
        );
    }
    for bits in [8.0, 10.0, 12.0, 16.0] {
        let spec = FilterSpec::BlockedBloom { bits_per_key: bits };
        add(
            format!("BlockedBloom {bits}"),
            Box::new(move |keys| Ok(Box::new(sidebloom_filters::SidebloomFilter::build(spec, keys)?))),
        );
    }
    #[cfg(feature = "rocksdb")]
    for (ribbon, name) in [(false, "RocksDB Bloom"), (true, "RocksDB Ribbon")] {
        for bits in [8.0, 10.0, 12.0, 16.0] {
            let build = move |keys: &[u64]| {
                Ok(Box::new(rocksdb::RocksFilter::build(ribbon, bits, keys)?) as Box<dyn Filter>)
            };
            add(format!("{name} {bits}"), Box::new(build));
        }
    }
    for bits in [8, 10, 12, 16] {
        add(
            format!("fastbloom {bits}"),
            Box::new(move |keys| Ok(Box::new(other_crates::FastbloomFilter::build(f64::from(bits), keys)))),
        );
    }
    for bits in [8, 10, 12, 16] {
        add(
            format!("sbbf-rs {bits}"),
            Box::new(move |keys| Ok(Box::new(other_crates::SbbfFilter::build(bits, keys)))),
        );
    }
    add(
        "xorf BinaryFuse 8".to_owned(),
        Box::new(|keys| Ok(Box::new(other_crates::Fuse8Filter::build(keys)?))),
    );
    add(
        "xorf BinaryFuse 16".to_owned(),
        Box::new(|keys| Ok(Box::new(other_crates::Fuse16Filter::build(keys)?))),
    );
    let standard: [BuildKeys; 4] = [
        ribbon::StandardRibbon::<8>::build,
        ribbon::StandardRibbon::<10>::build,
        ribbon::StandardRibbon::<12>::build,
        ribbon::StandardRibbon::<16>::build,
    ];
    let homogeneous: [BuildKeys; 4] = [
        ribbon::HomogeneousRibbon::<8>::build,
        ribbon::HomogeneousRibbon::<10>::build,
        ribbon::HomogeneousRibbon::<12>::build,
        ribbon::HomogeneousRibbon::<16>::build,
    ];
    for (name, builds) in [("pleat Ribbon", standard), ("pleat homogeneous", homogeneous)] {
        for (bits, build) in [8, 10, 12, 16].into_iter().zip(builds) {
            add(format!("{name} {bits}"), Box::new(build));
        }
    }
    all
}
