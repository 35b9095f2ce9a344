//! The parameters of a filter, of either kind.

use super::bloom::Bloom;
use super::cuckoo::Cuckoo;

/// The kind of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Items are added once, and never removed.
    Bloom,
    /// Items are counted, and can be removed.
    Cuckoo,
}

/// What a filter is created with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Parameters {
    /// A Bloom filter.
    Bloom(Bloom),
    /// A cuckoo filter.
    Cuckoo(Cuckoo),
}

impl Parameters {
    /// The kind of filter.
    pub fn kind(&self) -> Kind {
        match self {
            Parameters::Bloom(_) => Kind::Bloom,
            Parameters::Cuckoo(_) => Kind::Cuckoo,
        }
    }

    /// Whether nothing can be added to so many items.
    pub fn is_full(&self, items: u64) -> bool {
        match self {
            Parameters::Bloom(bloom) => bloom.is_full(items),
            Parameters::Cuckoo(cuckoo) => cuckoo.is_full(items),
        }
    }

    /// The number of layers or filters that so many items need.
    pub fn parts(&self, items: u64) -> u64 {
        match self {
            Parameters::Bloom(bloom) => bloom.layers(items),
            Parameters::Cuckoo(cuckoo) => cuckoo.filters(items),
        }
    }
}
