//! Building one line from its members.

use super::algebra::Algebra;
use super::checks::{Checks, Keys, most_null_vectors};
use super::equation::{Control, Products, largest_quota, place, rank};
use super::layout::{Layout, Words};
use super::solve::{NullVectors, System};

/// Builds lines, one after the other, in the same memory.
pub(super) struct LineBuilder {
    system: System,
    nulls: NullVectors,
    keys: Keys,
    checks: Checks,
}

impl LineBuilder {
    pub fn new() -> Self {
        LineBuilder {
            system: System::new(),
            nulls: NullVectors::new(),
            keys: Keys::new(),
            checks: Checks::new(),
        }
    }

    /// Builds a line of a level of `count` lines from its sorted members. Returns it with the number of
    /// members that it stores, counted from the end:
    ///
    /// 1. Solve the equations of the lanes, from the last member to the first that contradicts later ones.
    /// 2. Bump that member, with all members of its rank and below.
    /// 3. Solve as many checks across the lanes as the remaining freedom allows, and set the quota to match.
    #[inline(always)]
    pub fn build<L: Layout, A: Algebra>(&mut self, members: &[u64], count: u32) -> (Words, usize) {
        self.system.clear();
        for (i, &member) in members.iter().rev().enumerate() {
            let key = Products::of(member);
            self.keys.set(i, &key);
            self.system.push::<L>(key.equation::<L>());
            if self.system.is_full::<L>() {
                break;
            }
        }
        let solved = self.system.solve::<L>();
        let place_of = |hash: u64| place(hash, count).1;
        let (bumped, kept) = members.split_at(members.len() - solved);
        let threshold = bumped.last().map_or(0, |&hash| rank::<L>(place_of(hash)) + 1);
        let same_rank = kept.iter().take_while(|&&hash| rank::<L>(place_of(hash)) < threshold).count();
        let kept = solved - same_rank;

        let mut lanes = self.system.lanes::<L>();
        self.system.null_vectors::<L>(&mut self.nulls, most_null_vectors::<L>());
        let checks = self.checks.fill::<L, A>(&self.keys, kept, &self.nulls, &mut lanes);
        let quota = largest_quota(checks, kept, |key| place_of(members[members.len() - 1 - key]));
        let control = Control::encode::<L>(threshold, quota);
        (L::assemble(&lanes, control), kept)
    }
}
