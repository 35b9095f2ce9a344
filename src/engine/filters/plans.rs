//! The filters of all segments: those that share the store's policy have one plan for each [weight](Weight),
//! made together, and each keyspace with a policy of its own has another, for its segments alone.

use super::demand::Weight;
use super::level_sizes::LevelSizes;
use super::plan::{FilterPlan, Part};
use super::survey::Survey;
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

/// What keyspaces ask of their filters.
#[derive(Default)]
pub(crate) struct Needs {
    /// The policies of the keyspaces that have one of their own.
    pub own: BTreeMap<Space, FilterPolicy>,
    /// The weights of the others, if not 1.
    pub weights: BTreeMap<Space, Weight>,
}

/// Chooses the filter of each segment.
pub(crate) struct FilterPlans {
    choices: Choices,
    /// What the plans of keyspaces depend on. Such a plan is made when a segment needs it: there may be many.
    live: Arc<LiveSet>,
    leaving: BTreeSet<FileId>,
    /// The segments of level 0 of each keyspace that is not planned together with most others.
    level0: BTreeMap<Space, Vec<usize>>,
    coming: BTreeMap<(Space, u8), u64>,
    prefixes: PrefixSet,
}

/// What decides which filters are chosen, as long as no segment comes or goes. Keeps no segment open.
#[derive(Clone, PartialEq)]
pub(crate) struct Choices {
    /// For all segments but those of keyspaces in `own`, by weight; empty without filters.
    common: BTreeMap<Weight, FilterPlan>,
    /// The weights of keyspaces, if not 1.
    weights: BTreeMap<Space, Weight>,
    /// The policies of the keyspaces that have one.
    own: BTreeMap<Space, FilterPolicy>,
}

impl Choices {
    /// The keyspace of a segment, if that has a policy of its own.
    fn own_space(&self, meta: &SegmentMeta) -> Option<Space> {
        let owner = if self.own.is_empty() { None } else { meta.owner() };
        owner.filter(|owner| self.own.contains_key(owner))
    }

    /// Whether the segments of a keyspace are not planned together with most others.
    fn is_apart(&self, space: Space) -> bool {
        self.own.contains_key(&space) || self.weights.contains_key(&space)
    }

    /// The weight of the keyspace with a segment, if that has no policy of its own.
    fn weight(&self, meta: &SegmentMeta) -> Weight {
        if self.weights.is_empty() { Weight::default() } else { self.weight_of(meta.owner()) }
    }

    fn weight_of(&self, owner: Option<Space>) -> Weight {
        owner.and_then(|owner| self.weights.get(&owner)).copied().unwrap_or_default()
    }
}

impl FilterPlans {
    /// The plans for a live set without the segments in `leaving`, and with what is coming. `policy` is the
    /// store's; filters have the prefixes of `prefixes`.
    pub fn new<'a>(
        needs: Needs,
        live: &'a Arc<LiveSet>,
        policy: FilterPolicy,
        prefixes: PrefixSet,
        leaving: impl Iterator<Item = &'a LiveSegment> + Clone,
        coming: &[Coming],
    ) -> Self {
        let Needs { own, mut weights } = if policy.is_on() { needs } else { Needs::default() };
        weights.retain(|space, _| !own.contains_key(space));
        let mut plans = FilterPlans {
            choices: Choices { common: BTreeMap::new(), weights, own },
            live: Arc::clone(live),
            leaving: BTreeSet::new(),
            level0: BTreeMap::new(),
            coming: BTreeMap::new(),
            prefixes,
        };
        let mut runs: BTreeMap<(Option<Space>, u8), u64> = BTreeMap::new();
        for Coming { level, owner, entries } in coming {
            *runs.entry((*owner, *level)).or_default() += entries;
        }
        let choices = &plans.choices;
        let mut sizes: BTreeMap<Weight, LevelSizes> = BTreeMap::new();
        if choices.own.is_empty() && choices.weights.is_empty() {
            sizes.insert(Weight::default(), LevelSizes::of(live, leaving, &prefixes));
        } else {
            plans.leaving = leaving.clone().map(|s| s.meta.id).collect();
            plans.level0 = level0_of(live, |space| choices.is_apart(space));
            let of = |space: &Space| segments_by(&plans.level0, live, *space);
            let apart = choices.own.keys().chain(choices.weights.keys());
            let without = leaving
                .filter(|s| s.meta.owner().is_none_or(|owner| !choices.is_apart(owner)))
                .chain(apart.flat_map(of));
            let common = LevelSizes::of(live, without, &prefixes);
            let empty = LevelSizes { prefixes_per_key: common.prefixes_per_key, ..LevelSizes::default() };
            sizes.insert(Weight::default(), common);
            for (space, weight) in &choices.weights {
                let stays = |s: &&LiveSegment| !plans.leaving.contains(&s.meta.id);
                sizes.entry(*weight).or_insert(empty).add_segments(of(space).filter(stays), &prefixes);
            }
        }
        for ((owner, level), entries) in runs {
            match owner.filter(|owner| choices.own.contains_key(owner)) {
                Some(owner) => _ = plans.coming.insert((owner, level), entries),
                None => sizes.entry(choices.weight_of(owner)).or_default().add_entries(level, entries),
            }
        }
        plans.choices.common = common_plans(policy, sizes);
        plans
    }

    /// What decides.
    pub fn choices(&self) -> &Choices {
        &self.choices
    }

    /// Whether any segment gets a filter.
    pub fn are_on(&self) -> bool {
        !self.choices.common.is_empty()
    }

    /// The filter of a segment; `None` if it gets none.
    pub fn filter_for(&self, meta: &SegmentMeta) -> Option<FilterSpec> {
        self.with_plan(meta, |plan| plan.filter_for(meta))
    }

    /// Whether a segment's filter is the one that is chosen for it.
    pub fn suits(&self, segment: &LiveSegment) -> bool {
        self.with_plan(&segment.meta, |plan| plan.suits(segment)).unwrap_or(true)
    }

    /// Segments whose filters should be replaced: see [`Survey::worst`]. Those of keyspaces with policies of
    /// their own keep the filters that they were given.
    pub fn worst(&self, may_change: impl Fn(&LiveSegment) -> bool) -> Vec<Arc<SegmentMeta>> {
        let (choices, mut survey) = (&self.choices, Survey::default());
        for (weight, plan) in &choices.common {
            let is_planned =
                |s: &LiveSegment| choices.own_space(&s.meta).is_none() && choices.weight(&s.meta) == *weight;
            survey.add(plan, &self.live, is_planned, &may_change);
        }
        survey.worst()
    }

    fn with_plan<T>(&self, meta: &SegmentMeta, with: impl FnOnce(&FilterPlan) -> T) -> Option<T> {
        match self.choices.own_space(meta) {
            Some(space) => self.own_plan(space, meta).as_ref().map(with),
            None => self.choices.common.get(&self.choices.weight(meta)).map(with),
        }
    }

    /// The plan of a keyspace with a policy of its own, for one of its segments. If that is new, it has at
    /// least its own entries to come: nobody knows how many of them were in shared segments.
    fn own_plan(&self, space: Space, meta: &SegmentMeta) -> Option<FilterPlan> {
        let stays = |s: &&LiveSegment| !self.leaving.contains(&s.meta.id);
        let segments = segments_by(&self.level0, &self.live, space).filter(stays);
        let mut sizes = LevelSizes::default();
        sizes.add_segments(segments, &self.prefixes);
        let coming = self.coming.range((space, 0)..=(space, u8::MAX));
        let mut coming: BTreeMap<u8, u64> = coming.map(|((_, level), entries)| (*level, *entries)).collect();
        if let Some(level) = meta.place.level().filter(|_| self.live.now(meta).is_none()) {
            let entries = coming.entry(level).or_default();
            *entries = meta.entries.max(*entries);
        }
        coming.into_iter().for_each(|(level, entries)| sizes.add_entries(level, entries));
        self.choices.own.get(&space)?.plan(sizes)
    }
}

/// The plans for keyspaces of each weight: a bit is worth as much as missing keys are looked up there.
fn common_plans(policy: FilterPolicy, sizes: BTreeMap<Weight, LevelSizes>) -> BTreeMap<Weight, FilterPlan> {
    let demand = |weight: &Weight, sizes: &LevelSizes| weight.factor() * sizes.keys();
    let all: f64 = sizes.iter().map(|(weight, sizes)| demand(weight, sizes)).sum();
    let (weights, parts): (Vec<Weight>, Vec<Part>) = sizes
        .into_iter()
        .map(|(weight, sizes)| {
            let share = if all > 0.0 { demand(&weight, &sizes) / all } else { 1.0 };
            (weight, Part { sizes, share })
        })
        .unzip();
    weights.into_iter().zip(policy.plan_parts(&parts)).collect()
}

/// The positions in level 0 of the segments that some keyspaces do not share.
fn level0_of(live: &LiveSet, is_asked: impl Fn(Space) -> bool) -> BTreeMap<Space, Vec<usize>> {
    let mut positions: BTreeMap<Space, Vec<usize>> = BTreeMap::new();
    for (position, segment) in live.levels()[0].segments().iter().enumerate() {
        if let Some(owner) = segment.meta.owner().filter(|owner| is_asked(*owner)) {
            positions.entry(owner).or_default().push(position);
        }
    }
    positions
}

/// The segments of a keyspace that it does not share, given the positions of those in level 0. Not those in
/// quarantine.
fn segments_by<'a>(
    level0: &BTreeMap<Space, Vec<usize>>,
    live: &'a LiveSet,
    space: Space,
) -> impl Iterator<Item = &'a LiveSegment> + Clone {
    let positions = level0.get(&space).map(Vec::as_slice).unwrap_or_default();
    let level0 = live.levels()[0].segments();
    positions.iter().filter_map(|position| level0.get(*position)).chain(sorted_segments_of(live, space))
}

/// The segments of a keyspace, without those that it shares.
pub(crate) fn segments_of(live: &LiveSet, space: Space) -> impl Iterator<Item = &LiveSegment> {
    let is_of_it = move |s: &&LiveSegment| s.meta.owner() == Some(space);
    let unsorted = live.levels()[0].segments().iter().chain(live.quarantined());
    unsorted.filter(is_of_it).chain(sorted_segments_of(live, space))
}

/// Those in the levels below 0.
fn sorted_segments_of(live: &LiveSet, space: Space) -> impl Iterator<Item = &LiveSegment> + Clone {
    let (first, end) = space.bounds();
    let levels = live.levels().iter().skip(1).flat_map(move |level| {
        let segments = level.segments();
        segments.range(segments.overlapping(&first, &end))
    });
    levels.filter(move |s| s.meta.owner() == Some(space))
}
