//! Building: sort, solve line by line, bump what does not fit to the next level, repeat.

use super::equation::{equation_of, next_level, place};
use super::layout::{Lanes, Layout, Words, for_width, line_of_words};
use super::solve::System;
use super::sort::SortHashes;
use super::width::{Levels, MAX_LEVELS, Width};
use crate::error::Error;
use crate::isa::{Isa, on_isa};
use crate::lines::Lines;

/// The lines of a parity filter, level after level.
pub(crate) struct ParityLines {
    pub lines: Lines,
    /// The number of lines in each level.
    pub levels: Levels,
    /// The number of distinct hashes.
    pub keys: u64,
}

/// Builds the filter of all hashes that a sorter holds.
pub(crate) fn build<S: SortHashes>(hashes: &mut S, width: Width) -> Result<ParityLines, S::Error> {
    for_width!(width, L => build_levels::<L, S>(Isa::best(), hashes, width.keys_per_line()))
}

/// Builds all levels.
pub(super) fn build_levels<L: Layout, S: SortHashes>(
    isa: Isa,
    hashes: &mut S,
    keys_per_line: f64,
) -> Result<ParityLines, S::Error> {
    let keys = hashes.distinct()?;
    let mut built = ParityLines { lines: Lines::default(), levels: Levels::default(), keys };
    let mut left = build_level::<L, S>(isa, hashes, keys, keys_per_line, 0, &mut built)?;
    for depth in 1..MAX_LEVELS {
        let Some(mut hashes) = left else { break };
        let keys = hashes.distinct()?;
        left = build_level::<L, S>(isa, &mut hashes, keys, keys_per_line, depth, &mut built)?;
    }
    // Probes answer "maybe" for keys that the last level bumps.
    Ok(built)
}

/// Appends one level. Returns the hashes that it bumps, rehashed for the next level, if there are any.
fn build_level<L: Layout, S: SortHashes>(
    isa: Isa,
    hashes: &mut S,
    keys: u64,
    keys_per_line: f64,
    depth: usize,
    built: &mut ParityLines,
) -> Result<Option<S>, S::Error> {
    let count = (keys as f64 / keys_per_line).ceil().max(1.0);
    if count > f64::from(u32::MAX) {
        let max = (f64::from(u32::MAX) * keys_per_line) as u64;
        return Err(Error::TooManyKeys { keys, max }.into());
    }
    let count = count as u32;
    built.levels[depth] = count;
    if depth == 0 {
        // The lower levels take a twentieth; reserve a little more, so that nothing is reallocated.
        built.lines.reserve(count as usize / 16 * 17 + MAX_LEVELS)?;
    }
    let mut level = LevelBuilder {
        isa,
        count,
        lines: &mut built.lines,
        next: 0,
        begun: Vec::new(),
        system: System::new(),
    };
    let (mut bumped, mut any) = (hashes.another()?, false);
    let mut bump = |hash| {
        any = true;
        bumped.push(next_level(hash))
    };
    hashes.in_order(&mut |piece| level.take::<L, _>(piece, &mut bump))?;
    level.finish::<L, _>(&mut bump)?;
    Ok(any.then_some(bumped))
}

/// A level under construction.
struct LevelBuilder<'a> {
    isa: Isa,
    count: u32,
    lines: &'a mut Lines,
    /// The number of the next line to build.
    next: u32,
    /// Members of that line so far; the next piece may have more.
    begun: Vec<u64>,
    system: System,
}

impl LevelBuilder<'_> {
    /// Builds all lines whose members are complete.
    fn take<L: Layout, E>(
        &mut self,
        mut piece: &[u64],
        bump: &mut impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(&last) = piece.last() else { return Ok(()) };
        let incomplete = place::<L>(last, self.count).0;
        if !self.begun.is_empty() {
            let members = self.members::<L>(&mut piece);
            self.begun.extend_from_slice(members);
            if self.next < incomplete {
                let members = std::mem::take(&mut self.begun);
                self.line::<L, E>(&members, bump)?;
            }
        }
        while self.next < incomplete {
            let members = self.members::<L>(&mut piece);
            self.line::<L, E>(members, bump)?;
        }
        self.begun.extend_from_slice(piece);
        Ok(())
    }

    /// Builds the remaining lines.
    fn finish<L: Layout, E>(mut self, bump: &mut impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        let members = std::mem::take(&mut self.begun);
        self.line::<L, E>(&members, bump)?;
        while self.next < self.count {
            self.line::<L, E>(&[], bump)?;
        }
        Ok(())
    }

    /// Splits the members of the next line off the start of a piece.
    #[inline(always)]
    fn members<'a, L: Layout>(&self, piece: &mut &'a [u64]) -> &'a [u64] {
        let here = piece.iter().take_while(|&&hash| place::<L>(hash, self.count).0 == self.next).count();
        let (members, rest) = piece.split_at(here);
        *piece = rest;
        members
    }

    /// Builds the next line.
    #[inline(always)]
    fn line<L: Layout, E>(
        &mut self,
        members: &[u64],
        bump: &mut impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let (words, kept) = build_line::<L>(self.isa, members, self.count, &mut self.system);
        self.lines.push(line_of_words(&words));
        self.next += 1;
        members[..members.len() - kept].iter().try_for_each(|&hash| bump(hash))
    }
}

/// Builds a line from its sorted members. Returns it with the number of members that it stores, counted from the end.
fn build_line<L: Layout>(isa: Isa, members: &[u64], count: u32, system: &mut System) -> (Words, usize) {
    system.clear();
    let mut taken = members.len();
    while taken > 0 && !system.is_full(L::ROWS) {
        taken -= 1;
        system.push(equation_of::<L>(members[taken]));
    }
    let (lanes, solved) = solve::<L>(isa, system);
    let (bumped, kept) = members.split_at(members.len() - solved);
    // The first member that does not fit is bumped, with all members of its rank and below.
    let rank = |hash: u64| place::<L>(hash, count).1;
    let threshold = bumped.last().map_or(0, |&hash| rank(hash) + 1);
    let same_rank = kept.iter().take_while(|&&hash| rank(hash) < threshold).count();
    (L::assemble(&lanes, threshold), solved - same_rank)
}

fn solve<L: Layout>(isa: Isa, system: &mut System) -> (Lanes, usize) {
    // SAFETY: an `Isa` exists only where detection found its instruction set, for which the function is compiled.
    on_isa!(isa, module => unsafe { module::solve::<L>(system) })
}
