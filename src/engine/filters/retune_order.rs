//! Which segments get new filters next. An idle store replaces filters that no longer suit its level sizes.

use super::plans::{Choices, FilterPlans};
use crate::live::{LiveSegment, LiveSet};
use crate::manifest::SegmentMeta;
use std::collections::VecDeque;
use std::sync::Arc;

/// Segments that wait for new filters. One scan finds several; otherwise retuning would be quadratic.
#[derive(Default)]
pub(crate) struct Retunes {
    /// What selected them. Other choices may select others.
    choices: Option<Choices>,
    /// The worst first.
    waiting: VecDeque<Arc<SegmentMeta>>,
}

impl Retunes {
    /// The next segment. It stays the next until it has the planned filter, is gone or is in quarantine.
    pub fn next<'a>(
        &mut self,
        plans: &FilterPlans,
        live: &'a LiveSet,
        may_change: impl Fn(&LiveSegment) -> bool,
    ) -> Option<&'a LiveSegment> {
        if self.choices.as_ref() != Some(plans.choices()) {
            *self = Retunes { choices: Some(plans.choices().clone()), waiting: VecDeque::new() };
        }
        let waits =
            |meta: &Arc<SegmentMeta>| live.now(meta).filter(|s| !s.is_quarantined() && !plans.suits(s));
        while self.waiting.front().is_some_and(|meta| waits(meta).is_none()) {
            self.waiting.pop_front();
        }
        if self.waiting.is_empty() {
            self.waiting = plans.worst(may_change).into();
        }
        self.waiting.front().and_then(waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::filters::plans::Needs;
    use crate::filter::PrefixSet;
    use crate::manifest::{Place, Quarantine};
    use crate::support::fast_dir;
    use crate::{FilterPolicy, Options};

    #[test]
    fn one_look_at_all_filters_finds_several_to_replace() {
        let dir = fast_dir();
        let options = Options::new().segment_bytes(4096).filter_policy(FilterPolicy::bits_per_key(8.0));
        let db = options.clone().open(dir.path()).unwrap();
        let value = |n: u64| {
            (0..20).flat_map(move |i| (n * 20 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
        };
        db.ingest((0..4000).map(|n| Ok((format!("{n:04}"), value(n).collect::<Vec<u8>>())))).unwrap();
        drop(db);
        let db = options.read_only(true).open(dir.path()).unwrap();
        db.warm().unwrap();

        let live = db.engine().shared.live();
        let segments = live.segments().count();
        assert!(segments > 100, "{segments}");
        let plan = |bits| {
            let (needs, policy) = (Needs::default(), FilterPolicy::bits_per_key(bits));
            FilterPlans::new(needs, &live, policy, PrefixSet::default(), std::iter::empty(), &[])
        };
        let (as_built, wider) = (plan(8.0), plan(16.0));
        let mut retunes = Retunes::default();
        assert!(retunes.next(&as_built, &live, |_| true).is_none());
        let first = retunes.next(&wider, &live, |_| true).unwrap().meta.id;
        assert_eq!(retunes.waiting.len(), 1 + segments / 64);
        assert_eq!(
            retunes.next(&wider, &live, |_| true).unwrap().meta.id,
            first,
            "it still has the old filter"
        );
        let gone: Vec<_> = live.segments().filter(|s| s.meta.id == first).cloned().collect();
        let without = live.with(Vec::new(), &gone);
        let second = retunes.next(&wider, &without, |_| true).unwrap().meta.id;
        assert_eq!(retunes.waiting.front().map(|meta| meta.id), Some(second));
        assert!(first != second && retunes.waiting.len() == segments / 64);
        let readable = |s: &&LiveSegment| s.meta.id != second;
        let left = retunes.waiting.front().and_then(|meta| without.now(meta)).unwrap().clone();
        let level = left.level().unwrap();
        let place = Place::Quarantine(Quarantine { left: level, overtaken: level });
        let quarantined = without.with(vec![left.at(place)], &[left]);
        let third = retunes.next(&wider, &quarantined, |_| true);
        assert!(third.filter(readable).is_some(), "what cannot be read gets no filter");
        assert!(retunes.next(&as_built, &live, |_| true).is_none(), "what another plan needs is forgotten");
        assert!(retunes.next(&wider, &live, |s| s.meta.id == second).is_some_and(|s| s.meta.id == second));
    }
}
