//! Where a key may be, and which segment to read first.

pub(crate) use super::counts::{FilterCounters, QUARANTINE};
use crate::live::{GROUP_RUNS_MAX, LiveSegment, LiveSet, Run};

/// A key with its hash, which is computed once per operation.
#[derive(Clone, Copy)]
pub(crate) struct HashedKey<'a> {
    pub key: &'a [u8],
    pub hash: u64,
}

/// The number of a run: its group, and its place there. One word, so that a [`Route`] is returned in
/// registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct RunNumber(u32);

impl RunNumber {
    #[inline(always)]
    pub(super) fn new(group: usize, run: usize) -> Self {
        RunNumber((group * GROUP_RUNS_MAX + run) as u32)
    }

    pub fn group(self) -> usize {
        self.0 as usize / GROUP_RUNS_MAX
    }

    pub fn in_group(self) -> usize {
        self.0 as usize % GROUP_RUNS_MAX
    }
}

/// The index, plus 1, of the first segment in its level that may have the key; 0 if not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FirstSegment(u32);

impl FirstSegment {
    pub const UNKNOWN: FirstSegment = FirstSegment(0);

    #[inline(always)]
    pub(super) fn new(number: Option<usize>) -> Self {
        FirstSegment(number.and_then(|number| u32::try_from(number + 1).ok()).unwrap_or(0))
    }

    /// The run and the segment, in the live set whose filters were probed; `None` if unknown.
    #[inline]
    pub fn find(self, run: RunNumber, live: &LiveSet) -> Option<(&Run, &LiveSegment)> {
        let number = self.0.checked_sub(1)?;
        let run = live.run_groups().get(run.group())?.runs().get(run.in_group())?;
        Some((run, live.levels().get(run.level())?.segments().get(number as usize)?))
    }
}

/// Where a key may be, according to the filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// Anywhere. The runs were not probed, because a memtable may have the key.
    Memtables,
    /// In this run or a later one, or in quarantine.
    Runs(RunNumber),
    /// In quarantine.
    Quarantine,
    /// The key is missing.
    Nowhere,
}

/// A route and its first segment in two words, so that it stays in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Routed {
    /// The number of a run, or a value below.
    run: u32,
    first: FirstSegment,
}

impl Routed {
    pub const NOWHERE: Routed = Routed { run: u32::MAX, first: FirstSegment::UNKNOWN };
    /// Not known yet.
    pub const UNKNOWN: Routed = Routed { run: u32::MAX - 1, first: FirstSegment::UNKNOWN };
    pub(super) const MEMTABLES: Routed = Routed { run: u32::MAX - 2, first: FirstSegment::UNKNOWN };
    pub(super) const QUARANTINE: Routed = Routed { run: u32::MAX - 3, first: FirstSegment::UNKNOWN };

    #[inline(always)]
    pub(super) fn runs(RunNumber(run): RunNumber, first: FirstSegment) -> Self {
        Routed { run, first }
    }

    /// Whether the key is missing.
    #[inline(always)]
    pub fn is_nowhere(self) -> bool {
        self.run == Self::NOWHERE.run
    }

    /// Whether the key may be in a run, and is in no memtable.
    #[inline(always)]
    pub fn is_in_runs(self) -> bool {
        self.run < Self::QUARANTINE.run
    }

    /// What is known; everything is possible if nothing is.
    pub fn parts(self) -> (Route, FirstSegment) {
        let route = match self {
            Routed { run, .. } if self.is_in_runs() => Route::Runs(RunNumber(run)),
            Self::NOWHERE => Route::Nowhere,
            Self::QUARANTINE => Route::Quarantine,
            _ => Route::Memtables,
        };
        (route, self.first)
    }
}

/// The result of [`Filters::quick_look`](super::filters::Filters::quick_look): the number of runs that are
/// left to be asked, or a value below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuickLook(pub(super) u32);

impl QuickLook {
    /// The key is missing.
    pub const NOWHERE: QuickLook = QuickLook(0);
    /// Nothing was asked.
    pub(super) const UNTRIED: QuickLook = QuickLook(u32::MAX);
    /// All runs deny the key.
    pub(super) const BEYOND_RUNS: QuickLook = QuickLook(u32::MAX - 1);

    /// The number of runs that are left.
    #[inline(always)]
    pub(super) fn left(self) -> Option<usize> {
        (self.0 <= GROUP_RUNS_MAX as u32).then_some(self.0 as usize)
    }
}
