//! The extractors of a filter or a store.

use super::extractor::PrefixExtractor;
use crate::error::{Error, Result};

/// Up to [`MAX`](Self::MAX) different extractors. Their order does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrefixSet([Option<PrefixExtractor>; PrefixSet::MAX]);

impl PrefixSet {
    /// The largest number of extractors.
    pub const MAX: usize = 8;
    /// No extractors.
    pub const EMPTY: PrefixSet = PrefixSet([None; PrefixSet::MAX]);

    /// A set of these extractors.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for more than [`MAX`](Self::MAX), a duplicate, or parameters out of range.
    pub fn new(extractors: impl IntoIterator<Item = PrefixExtractor>) -> Result<Self> {
        let mut sorted = Vec::new();
        for extractor in extractors {
            extractor.check()?;
            if sorted.contains(&extractor) {
                return Err(Error::InvalidArgument(format!("prefix {extractor} is given twice")));
            }
            if sorted.len() == PrefixSet::MAX {
                return Err(Error::InvalidArgument(format!(
                    "more than {} kinds of prefixes",
                    PrefixSet::MAX
                )));
            }
            sorted.push(extractor);
        }
        sorted.sort_by_key(PrefixExtractor::code);
        let mut set = PrefixSet::EMPTY;
        set.0.iter_mut().zip(sorted).for_each(|(slot, extractor)| *slot = Some(extractor));
        Ok(set)
    }

    /// The extractors, in the order of their codes.
    pub fn iter(&self) -> impl Iterator<Item = PrefixExtractor> {
        self.0.into_iter().flatten()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }

    /// Whether the extractor is one of them.
    #[inline]
    pub fn contains(&self, extractor: PrefixExtractor) -> bool {
        self.0.contains(&Some(extractor))
    }
}
