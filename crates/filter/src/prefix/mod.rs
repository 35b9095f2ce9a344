//! Prefixes of keys as further members of a filter, so that it can deny all keys with a prefix at once.
//!
//! A [`PrefixExtractor`] says which prefix a key has. A filter over sorted keys gets each distinct prefix
//! once ([`DistinctPrefixes`]). A range whose keys all have one prefix probes for it ([`PrefixQuery`]). The
//! filter must tell which extractors it was built with ([`PrefixSet`]): it knows nothing of others.

mod distinct;
mod extractor;
mod query;
mod set;

pub use distinct::DistinctPrefixes;
pub use extractor::PrefixExtractor;
pub use query::PrefixQuery;
pub use set::PrefixSet;

#[cfg(test)]
mod tests;
