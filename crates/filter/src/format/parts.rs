//! A filter taken apart into its header and its lines, and put together again.

use super::header::{Header, KEYS_AT};
use super::kind::Kind;
use crate::error::{Error, Result};
use crate::{AnyFilter, Bloom, BuiltFilter, CountingBloom, Line, LineFilter, Lines, ScalableBloom};

/// The header of a filter, and its lines in order.
pub fn parts_of(filter: &AnyFilter) -> (Header, Vec<&[Line]>) {
    let (kind, parts) = match filter {
        AnyFilter::Lines(filter) => {
            (Kind::Lines(filter.built().kind, filter.hasher()), vec![&filter.built().lines[..]])
        }
        AnyFilter::Bloom(filter) => (Kind::Bloom(*filter.plan()), vec![filter.lines()]),
        AnyFilter::Counting(filter) => (Kind::Counting(*filter.plan()), vec![filter.lines()]),
        AnyFilter::Scalable(filter) => {
            let kind = Kind::Scalable { series: *filter.series(), layers: filter.layers().len() };
            (kind, filter.layers().iter().map(Bloom::lines).collect())
        }
    };
    let lines = parts.iter().map(|part| part.len() as u64).sum();
    (Header { kind, keys: filter.keys(), lines, binding: None }, parts)
}

/// The filter of a valid header and as many lines as it says.
///
/// # Errors
/// [`Error::Damaged`] when the header and the lines contradict each other.
pub fn filter_of(header: &Header, lines: Lines) -> Result<AnyFilter> {
    let keys = header.keys;
    Ok(match header.kind {
        Kind::Lines(kind, hasher) => {
            AnyFilter::Lines(LineFilter::from_built(BuiltFilter { kind, keys, lines }, hasher))
        }
        Kind::Bloom(plan) => AnyFilter::Bloom(Bloom::from_parts(plan, keys, lines)),
        Kind::Counting(plan) => AnyFilter::Counting(CountingBloom::from_parts(plan, keys, lines)),
        Kind::Scalable { series, layers } => {
            let filter = ScalableBloom::from_parts(series, layers, keys, &lines);
            let too_few =
                || Error::damaged(KEYS_AT as u64, format!("{keys} keys do not fill {layers} filters"));
            AnyFilter::Scalable(filter.ok_or_else(too_few)?)
        }
    })
}
