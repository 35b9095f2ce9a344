//! Takes a filter apart into its header and lines, and puts it together again.

use super::header::{Header, KEYS_AT, StoredPrefixes};
use super::kind::StoredKind;
use super::small;
use crate::error::{Error, Result};
use crate::{AnyFilter, Bloom, BuiltFilter, CountingBloom, Line, LineFilter, Lines, ScalableBloom};

/// What is stored and sent of a filter.
pub enum Parts<'a> {
    /// The header, and the lines in order.
    Lines(Header, Vec<&'a [Line]>),
    /// A small filter, complete.
    Small(Vec<u8>),
}

/// Takes a filter apart.
pub fn parts_of(filter: &AnyFilter) -> Parts<'_> {
    let (kind, parts) = match filter {
        AnyFilter::Small(filter) => return Parts::Small(small::encode(filter)),
        AnyFilter::Lines(filter) => {
            (StoredKind::Lines(filter.built().kind, filter.hasher()), vec![&filter.built().lines[..]])
        }
        AnyFilter::Bloom(filter) => (StoredKind::Bloom(*filter.plan()), vec![filter.lines()]),
        AnyFilter::Counting(filter) => (StoredKind::Counting(*filter.plan()), vec![filter.lines()]),
        AnyFilter::Scalable(filter) => {
            let kind = StoredKind::Scalable { series: *filter.series(), layers: filter.layers().len() };
            (kind, filter.layers().iter().map(Bloom::lines).collect())
        }
    };
    let lines = parts.iter().map(|part| part.len() as u64).sum();
    let (keys, expected_fpr) = (filter.keys(), filter.fpr());
    let header =
        Header { kind, keys, lines, expected_fpr, binding: None, prefixes: StoredPrefixes::default() };
    Parts::Lines(header, parts)
}

/// The filter with a valid header and its lines, whose number must be that in the header.
///
/// # Errors
/// [`Error::Damaged`] if the number of keys is impossible for the series of filters.
pub fn filter_of(header: &Header, lines: Lines) -> Result<AnyFilter> {
    let keys = header.keys;
    Ok(match header.kind {
        StoredKind::Lines(kind, hasher) => {
            AnyFilter::Lines(LineFilter::from_built(BuiltFilter { kind, keys, lines }, hasher))
        }
        StoredKind::Bloom(plan) => AnyFilter::Bloom(Bloom::from_parts(plan, keys, lines)),
        StoredKind::Counting(plan) => AnyFilter::Counting(CountingBloom::from_parts(plan, keys, lines)),
        StoredKind::Scalable { series, layers } => {
            let filter = ScalableBloom::from_parts(series, layers, keys, &lines);
            let too_few = || {
                Error::damaged(
                    KEYS_AT as u64,
                    format!("{keys} keys are too few for a series of {layers} filters"),
                )
            };
            AnyFilter::Scalable(filter.ok_or_else(too_few)?)
        }
    })
}
