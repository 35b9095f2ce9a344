//! Asking from memory alone: memtables and filters, never a block. What a guard before a slow database asks.

use super::core::Core;
use super::snapshot::KEYS_AHEAD;
use super::view::Probe;
use crate::filter::Verdict;
use std::sync::atomic::Ordering;

impl Core {
    #[inline]
    pub fn may_contain(&self, key: &[u8]) -> Verdict {
        let view = self.view.load();
        let seq = self.visible.load(Ordering::Acquire);
        view.may_contain(self.probe(key), seq, self.filters_on(), self.metrics.reads())
    }

    pub fn may_contain_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Verdict> {
        let (view, seq) = self.snapshot();
        let counters = self.metrics.reads();
        let mut verdicts = Vec::with_capacity(keys.len());
        for keys in keys.chunks(KEYS_AHEAD) {
            let mut probes = [Probe { key: &[], hash: 0 }; KEYS_AHEAD];
            for (probe, key) in probes.iter_mut().zip(keys) {
                *probe = self.probe(key.as_ref());
                view.prefetch(*probe);
            }
            let probes = probes.into_iter().take(keys.len());
            verdicts.extend(probes.map(|probe| view.may_contain(probe, seq, self.filters_on(), counters)));
        }
        verdicts
    }
}
