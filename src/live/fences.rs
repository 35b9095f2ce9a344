//! Segments with their fences, which lookups compare before keys.

use super::segment::LiveSegment;
use crate::filter::{ProbeHash, Verdict};
use crate::key::prefix8;
use crate::manifest::SegmentMeta;
use crate::sidecar::{LiveSidecar, Sidecar};
use std::sync::Arc;

/// What a lookup needs of a segment whose filter denies the key. Does not keep the segment's files.
pub struct Fenced {
    /// The fences of its smallest and its largest key.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// From its [`LiveSegment`]. Its denials count only while a view has the segment.
    pub sidecar: Option<Arc<Sidecar>>,
    pub(crate) meta: Arc<SegmentMeta>,
}

impl Fenced {
    /// A segment of a run whose keys share the first `shared` bytes.
    pub(crate) fn new(segment: &LiveSegment, shared: usize) -> Self {
        let fence = |key: &[u8]| prefix8(key.get(shared..).unwrap_or_default());
        Fenced {
            first: fence(&segment.meta.smallest),
            last: fence(&segment.meta.largest),
            sidecar: segment.sidecar.as_ref().map(LiveSidecar::shared),
            meta: Arc::clone(&segment.meta),
        }
    }

    /// Whether the segment's filter denies the hash. A caller that relies on it must check afterwards that no
    /// map has faulted ([`any_fault`](crate::fs::any_fault)).
    #[inline(always)]
    pub fn denies(&self, hash: &ProbeHash) -> bool {
        let denies = |s: &Sidecar| s.denies(hash) || s.ask(hash.hash()) == Some(Verdict::Absent);
        self.sidecar.as_deref().is_some_and(denies)
    }

    /// Whether the segment's range includes the key with this fence; `None` if it ends before the key.
    #[inline]
    pub(crate) fn includes_or_follows(&self, fence: u64, key: &[u8]) -> Option<bool> {
        if self.last < fence || self.last == fence && &*self.meta.largest < key {
            return None;
        }
        Some(self.first < fence || self.first == fence && self.meta.smallest.as_slice() <= key)
    }
}
