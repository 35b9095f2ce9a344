//! The filters of all segments: those that share the store's policy have one plan, and each keyspace with a
//! policy of its own has another, for its segments alone.

use super::level_sizes::LevelSizes;
use super::plan::FilterPlan;
use crate::engine::keyspaces::registry::Keyspaces;
use crate::filter::{FilterSpec, PrefixSet};
use crate::id::FileId;
use crate::key::Space;
use crate::live::{LiveSegment, LiveSet};
use crate::manifest::SegmentMeta;
use crate::options::FilterPolicy;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Entries that will be in segments of a level: those of each keyspace in one run, and the others in another.
pub(crate) struct Coming {
    pub level: u8,
    /// Their keyspace; `None` if they are of several.
    pub owner: Option<Space>,
    pub entries: u64,
}

/// Chooses the filter of each segment.
pub(crate) struct FilterPlans {
    choices: Choices,
    /// What the plans of keyspaces depend on. Such a plan is made when a segment needs it: there may be many.
    live: Arc<LiveSet>,
    leaving: BTreeSet<FileId>,
    coming: BTreeMap<(Space, u8), u64>,
    prefixes: PrefixSet,
}

/// What decides which filters are chosen, as long as no segment comes or goes. Keeps no segment open.
#[derive(Clone, PartialEq)]
pub(crate) struct Choices {
    /// For all segments but those of keyspaces in `own`; `None` without filters.
    common: Option<FilterPlan>,
    /// The policies of the keyspaces that have one.
    own: BTreeMap<Space, FilterPolicy>,
}

impl FilterPlans {
    /// The plans for a live set without the segments in `leaving`, and with what is coming. `policy` is the
    /// store's; filters have the prefixes of `prefixes`.
    pub fn new<'a>(
        keyspaces: &Keyspaces,
        live: &'a Arc<LiveSet>,
        policy: FilterPolicy,
        prefixes: PrefixSet,
        leaving: impl Iterator<Item = &'a LiveSegment> + Clone,
        coming: &[Coming],
    ) -> Self {
        let own = if policy.is_on() { keyspaces.own_policies() } else { BTreeMap::new() };
        let mut plans = FilterPlans {
            choices: Choices { common: None, own },
            live: Arc::clone(live),
            leaving: BTreeSet::new(),
            coming: BTreeMap::new(),
            prefixes,
        };
        let mut runs: BTreeMap<(Option<Space>, u8), u64> = BTreeMap::new();
        for Coming { level, owner, entries } in coming {
            *runs.entry((*owner, *level)).or_default() += entries;
        }
        let mut sizes = if plans.choices.own.is_empty() {
            LevelSizes::of(live, leaving, &prefixes)
        } else {
            plans.leaving = leaving.clone().map(|s| s.meta.id).collect();
            let own = plans.choices.own.keys().flat_map(|space| segments_of(live, *space));
            let others = leaving.filter(|s| plans.own_space(&s.meta).is_none());
            LevelSizes::of(live, others.chain(own), &prefixes)
        };
        for ((owner, level), entries) in runs {
            match owner.filter(|owner| plans.choices.own.contains_key(owner)) {
                Some(owner) => _ = plans.coming.insert((owner, level), entries),
                None => sizes.add_entries(level, entries),
            }
        }
        plans.choices.common = policy.plan(&sizes);
        plans
    }

    /// What decides.
    pub fn choices(&self) -> &Choices {
        &self.choices
    }

    /// Whether any segment gets a filter.
    pub fn are_on(&self) -> bool {
        self.choices.common.is_some()
    }

    /// The filter of a segment; `None` if it gets none.
    pub fn filter_for(&self, meta: &SegmentMeta) -> Option<FilterSpec> {
        self.with_plan(meta, |plan| plan.filter_for(meta))
    }

    /// Whether a segment's filter is the one that is chosen for it.
    pub fn suits(&self, segment: &LiveSegment) -> bool {
        self.with_plan(&segment.meta, |plan| plan.suits(segment)).unwrap_or(true)
    }

    /// Segments whose filters should be replaced: see [`FilterPlan::worst`]. Those of keyspaces with policies
    /// of their own keep the filters that they were given.
    pub fn worst(&self, may_change: impl Fn(&LiveSegment) -> bool) -> Vec<Arc<SegmentMeta>> {
        let plan = self.choices.common.as_ref();
        let is_common = |s: &LiveSegment| self.own_space(&s.meta).is_none();
        plan.map_or_else(Vec::new, |plan| plan.worst(&self.live, is_common, may_change))
    }

    fn with_plan<T>(&self, meta: &SegmentMeta, with: impl FnOnce(&FilterPlan) -> T) -> Option<T> {
        match self.own_space(meta) {
            Some(space) => self.own_plan(space, meta).as_ref().map(with),
            None => self.choices.common.as_ref().map(with),
        }
    }

    /// The keyspace of a segment, if that has a policy of its own.
    fn own_space(&self, meta: &SegmentMeta) -> Option<Space> {
        let owner = if self.choices.own.is_empty() { None } else { meta.owner() };
        owner.filter(|owner| self.choices.own.contains_key(owner))
    }

    /// The plan of a keyspace with a policy of its own, for one of its segments. If that is new, it has at
    /// least its own entries to come: nobody knows how many of them were in shared segments.
    fn own_plan(&self, space: Space, meta: &SegmentMeta) -> Option<FilterPlan> {
        let stays = |s: &&LiveSegment| !self.leaving.contains(&s.meta.id);
        let segments = segments_of(&self.live, space).filter(stays);
        let mut sizes = LevelSizes::of_segments(segments, &self.prefixes);
        let coming = self.coming.range((space, 0)..=(space, u8::MAX));
        let mut coming: BTreeMap<u8, u64> = coming.map(|((_, level), entries)| (*level, *entries)).collect();
        if let Some(level) = meta.place.level().filter(|_| self.live.now(meta).is_none()) {
            let entries = coming.entry(level).or_default();
            *entries = meta.entries.max(*entries);
        }
        coming.into_iter().for_each(|(level, entries)| sizes.add_entries(level, entries));
        self.choices.own.get(&space)?.plan(&sizes)
    }
}

/// The segments of a keyspace, without those that it shares.
pub(crate) fn segments_of(live: &LiveSet, space: Space) -> impl Iterator<Item = &LiveSegment> {
    let (first, end) = space.bounds();
    let [level0, sorted @ ..] = live.levels();
    let sorted = sorted.iter().flat_map(move |level| {
        let segments = level.segments();
        segments.range(segments.overlapping(&first, &end))
    });
    let is_of_it = move |s: &&LiveSegment| s.meta.owner() == Some(space);
    level0.segments().iter().chain(sorted).chain(live.quarantined()).filter(is_of_it)
}
