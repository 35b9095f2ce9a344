//! The filter of an SST file: a parity filter in its wire form, or none.

use bytes::{BufMut, Bytes};
use sidebloom_filter::{
    AnyFilter, FilterSpec, KeyHasher, LineFilter, Verdict, Width, receive_filter, send_filter,
};
use slatedb::{Filter, FilterQuery, FilterTarget, PrefixExtractor};
use std::sync::Arc;

/// A decoded filter. Clones share it.
#[derive(Clone)]
pub struct ParityFilter {
    /// `None` if it could not be built, or is damaged: then any key may be in the file. [`AnyFilter`] is the
    /// type with a wire form.
    filter: Option<Arc<AnyFilter>>,
    prefixes: Option<Arc<dyn PrefixExtractor>>,
}

impl ParityFilter {
    /// Builds the filter; none if memory is short or there are too many keys.
    pub fn build(
        width: Width,
        hashes: &[u64],
        hasher: KeyHasher,
        prefixes: Option<Arc<dyn PrefixExtractor>>,
    ) -> Self {
        let built = LineFilter::from_hashes(FilterSpec::Parity { width }, hashes, hasher);
        ParityFilter { filter: built.ok().map(|filter| Arc::new(AnyFilter::Lines(filter))), prefixes }
    }

    /// Reads the wire form. Damage, a later version, or trailing bytes give no filter.
    pub fn decode(data: &[u8], prefixes: Option<Arc<dyn PrefixExtractor>>) -> Self {
        let mut rest = data;
        // No limit: lines are allocated as they arrive, and compression shrinks a filter of few keys to less
        // than its lines.
        let received = receive_filter(&mut rest, u64::MAX).ok();
        let sound = received.filter(|filter| rest.is_empty() && matches!(filter, AnyFilter::Lines(_)));
        ParityFilter { filter: sound.map(Arc::new), prefixes }
    }

    fn may_contain(&self, hashed: &[u8]) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.contains(hashed) == Verdict::Maybe)
    }

    fn may_contain_prefix(&self, target: &FilterTarget, prefix: &Bytes) -> bool {
        let Some((prefixes, target)) = self.prefixes.as_ref().zip(target.as_prefix_target()) else {
            return true;
        };
        let hashed = prefixes.prefix_len(&target).and_then(|len| prefix.get(..len));
        hashed.is_none_or(|hashed| self.may_contain(hashed))
    }
}

impl Filter for ParityFilter {
    fn might_match(&self, query: &FilterQuery) -> bool {
        match &query.target {
            FilterTarget::Point(key) => self.may_contain(key),
            FilterTarget::Prefix(prefix) => self.may_contain_prefix(&query.target, prefix),
            FilterTarget::Range { .. } => true,
        }
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        let mut wire = Vec::with_capacity(self.size());
        let Some(filter) = &self.filter else { return };
        if send_filter(filter, &mut wire).is_ok() {
            writer.put_slice(&wire);
        }
    }

    fn size(&self) -> usize {
        self.filter.as_ref().map_or(0, |filter| filter.bytes() as usize)
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        Arc::new(self.clone()) // It owns exactly its lines.
    }
}
