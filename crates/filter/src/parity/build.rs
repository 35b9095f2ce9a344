//! Building: sort, solve line by line, bump what does not fit to the next level, repeat.

use super::equation::{next_level, place};
use super::layout::{Layout, Words, for_width, line_of_words};
use super::line_builder::LineBuilder;
use super::loops::ProbeLoop;
use super::sort::{SortHashes, reserve};
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

/// Builds the filter of all hashes that a sorter holds, with this many keys per line on average.
pub(crate) fn build<S: SortHashes>(
    hashes: &mut S,
    width: Width,
    keys_per_line: f64,
) -> Result<ParityLines, S::Error> {
    for_width!(width, L => build_levels::<L, S>(Isa::best(), hashes, keys_per_line))
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
    // The lower levels take a twentieth; reserve a little more, so that nothing is reallocated.
    let more = if depth == 0 { count as usize / 16 + MAX_LEVELS } else { 0 };
    built.lines.reserve(count as usize + more)?;
    let mut level = LevelBuilder {
        isa,
        count,
        lines: &mut built.lines,
        next: 0,
        begun: Vec::new(),
        line: LineBuilder::new(),
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
    line: LineBuilder,
}

impl LevelBuilder<'_> {
    /// Builds all lines whose members are complete.
    fn take<L: Layout, E: From<Error>>(
        &mut self,
        mut piece: &[u64],
        bump: &mut impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(&last) = piece.last() else { return Ok(()) };
        let incomplete = place(last, self.count).0;
        if !self.begun.is_empty() {
            let members = self.members::<L>(&mut piece);
            reserve(&mut self.begun, members.len())?;
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
        reserve(&mut self.begun, piece.len())?;
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
        let here = piece.iter().take_while(|&&hash| place(hash, self.count).0 == self.next).count();
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
        let (words, kept) = build_line::<L>(self.isa, &mut self.line, members, self.count);
        self.lines.push(line_of_words(&words));
        self.next += 1;
        members[..members.len() - kept].iter().try_for_each(|&hash| bump(hash))
    }
}

/// [`LineBuilder::build`] on an instruction set.
fn build_line<L: Layout>(isa: Isa, line: &mut LineBuilder, members: &[u64], count: u32) -> (Words, usize) {
    // SAFETY: an `Isa` proves that the CPU has its instruction set, which this function is compiled for.
    on_isa!(isa, module => unsafe { module::build_line::<L>(line, members, count) })
}

/// Here, next to the other call of what is compiled for an instruction set.
impl Isa {
    /// Runs a loop compiled for this instruction set. That is a call, so a loop of at most two words, like
    /// its hash, stays in registers.
    #[inline(always)]
    pub fn run<L: ProbeLoop>(self, probe_loop: L, hash: u64) -> L::Output {
        // SAFETY: an `Isa` exists only where detection found it.
        on_isa!(self, module => unsafe { module::run(probe_loop, hash) })
    }
}
