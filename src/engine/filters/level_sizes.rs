//! How many keys the levels have, for which `plan.rs` chooses filters.

use crate::filter::PrefixSet;
use crate::live::{LiveSegment, LiveSet};
use crate::manifest::LEVELS;
use crate::sidecar::Facts;
use crate::sync::assert_unlocked;
use std::f64::consts::SQRT_2;

/// Classes of runs in level 0.
const CLASSES: usize = u64::BITS as usize;

/// The number of filter members (keys, and distinct prefixes in each segment) and of runs in each level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LevelSizes {
    /// Nothing is in the first one: the runs of level 0 are in `level0`.
    pub levels: [LevelSize; LEVELS],
    /// The runs of level 0 by their [class](class_of).
    pub level0: [LevelSize; CLASSES],
    /// Prefixes per key, if a filter has shown it.
    pub prefixes_per_key: f64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LevelSize {
    /// Prefixes included.
    pub keys: u64,
    pub runs: u32,
}

impl Default for LevelSizes {
    fn default() -> Self {
        let level0 = [LevelSize::default(); CLASSES];
        LevelSizes { levels: Default::default(), level0, prefixes_per_key: 0.0 }
    }
}

impl LevelSizes {
    /// The live set's sizes without the segments in `leaving`, whose filters have or will get these prefixes.
    pub fn of<'a>(
        live: &LiveSet,
        leaving: impl IntoIterator<Item = &'a LiveSegment>,
        prefixes: &PrefixSet,
    ) -> Self {
        let known = |s: &LiveSegment| known_members(s, prefixes);
        if prefixes.is_empty() {
            let mut sizes = LevelSizes::default();
            for (level, of) in live.levels().iter().zip(&mut sizes.levels).skip(1) {
                (of.keys, of.runs) = (level.entries(), level.segments().len().min(1) as u32);
            }
            live.levels()[0].segments().iter().for_each(|s| sizes.add(0, s.meta.entries));
            return sizes.without(leaving, |s| s.meta.entries);
        }
        assert_unlocked();
        let (keys, members) = live
            .segments()
            .filter_map(|s| Some((s.meta.entries, known(s)?)))
            .fold((0u64, 0u64), |sum, (keys, members)| {
                (sum.0.saturating_add(keys), sum.1.saturating_add(members))
            });
        let prefixes_per_key =
            if keys == 0 { 0.0 } else { members.saturating_sub(keys) as f64 / keys as f64 };
        let mut sizes = LevelSizes { prefixes_per_key, ..LevelSizes::default() };
        let members =
            |s: &LiveSegment| known(s).unwrap_or_else(|| with_prefixes(s.meta.entries, prefixes_per_key));
        live.segments().for_each(|s| s.level().into_iter().for_each(|level| sizes.add(level, members(s))));
        sizes.without(leaving, members)
    }

    /// The members in all.
    pub fn keys(&self) -> f64 {
        self.levels.iter().chain(&self.level0).map(|of| of.keys as f64).sum()
    }

    /// Adds these segments, by their levels; not those in quarantine.
    pub fn add_segments<'a>(
        &mut self,
        segments: impl Iterator<Item = &'a LiveSegment>,
        prefixes: &PrefixSet,
    ) {
        for segment in segments {
            let members = known_members(segment, prefixes).unwrap_or(segment.meta.entries);
            segment.level().into_iter().for_each(|level| self.add(level, members));
        }
    }

    /// The sizes without some segments.
    fn without<'a>(
        mut self,
        leaving: impl IntoIterator<Item = &'a LiveSegment>,
        members: impl Fn(&LiveSegment) -> u64,
    ) -> Self {
        for segment in leaving {
            let (number, keys) = (segment.level(), members(segment));
            if let Some(of) = number.and_then(|number| self.size_mut(number, keys)) {
                of.keys = of.keys.saturating_sub(keys);
                let left = if number == Some(0) { of.runs.saturating_sub(1) } else { of.runs };
                of.runs = if of.keys == 0 { 0 } else { left };
            }
        }
        self
    }

    /// Adds keys, and the prefixes that they may have, to a level.
    pub fn add_entries(&mut self, level: u8, keys: u64) {
        self.add(level, with_prefixes(keys, self.prefixes_per_key));
    }

    /// Adds members to a level: as one more run in level 0, or to the only run of any other level.
    pub(super) fn add(&mut self, level: u8, keys: u64) {
        if let Some(of) = self.size_mut(level, keys) {
            of.keys = of.keys.saturating_add(keys);
            of.runs = if level == 0 { of.runs + 1 } else { 1 };
        }
    }

    /// Where a run of this many members counts.
    fn size_mut(&mut self, level: u8, keys: u64) -> Option<&mut LevelSize> {
        match level {
            0 => self.level0.get_mut(class_of(keys) as usize),
            _ => self.levels.get_mut(usize::from(level)),
        }
    }
}

/// The class of a run of level 0: the binary logarithm of its members.
pub(super) fn class_of(keys: u64) -> u32 {
    keys.max(1).ilog2()
}

/// How many members a run of this class counts as, when its filter is chosen.
pub(super) fn class_keys(class: u32) -> f64 {
    2f64.powi(class as i32) * SQRT_2
}

/// Keys, and the prefixes that they may have.
pub(super) fn with_prefixes(keys: u64, prefixes_per_key: f64) -> u64 {
    keys.saturating_add((keys as f64 * prefixes_per_key) as u64)
}

/// How many members the filter of a segment has, or would have with these prefixes. `None` if its filter has
/// others or was not read.
fn known_members(segment: &LiveSegment, prefixes: &PrefixSet) -> Option<u64> {
    if prefixes.is_empty() {
        Some(segment.meta.entries)
    } else {
        segment.sidecar.as_ref()?.known_facts().filter(|f| f.prefixes() == prefixes).map(Facts::keys)
    }
}
