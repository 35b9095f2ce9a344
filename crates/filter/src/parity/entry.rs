//! The probe, level by level, and its entry points for each instruction set. `ask` says whether a line may
//! hold a hash with a place; `None` if it is bumped.

use super::equation::{next_level, place as place_of};
use crate::kind::FilterKind;
use crate::line::Line;
use crate::prefetch::{Prefetched, prefetch};
use crate::verdict::Verdict;

/// Probes the first level, and calls `lower` for the levels below it when the threshold of the line says that
/// the key was bumped. (A loop over all levels would be unrolled, and each level would then have too much
/// code to be inlined.)
#[inline(always)]
pub(super) fn probe(
    lines: &[Line],
    hash: u64,
    kind: &FilterKind,
    ask: impl Fn(&Line, u64, u64) -> Option<bool>,
    lower: impl Fn(&[Line], u64, &[u32]) -> bool,
) -> bool {
    let FilterKind::Parity { levels: [first, further @ ..], .. } = kind else { return true };
    let (line, place) = place_of(hash, *first);
    let Some(line) = lines.get(line as usize) else { return true };
    match ask(line, hash, place) {
        Some(maybe) => maybe,
        None => lower(lines.get(*first as usize..).unwrap_or_default(), next_level(hash), further),
    }
}

/// Probes `levels` one after the other.
#[inline(always)]
pub(super) fn probe_levels(
    mut lines: &[Line],
    mut hash: u64,
    levels: &[u32],
    ask: impl Fn(&Line, u64, u64) -> Option<bool>,
) -> bool {
    for &count in levels {
        let (line, place) = place_of(hash, count);
        let Some(line) = lines.get(line as usize) else { return true };
        if let Some(maybe) = ask(line, hash, place) {
            return maybe;
        }
        lines = lines.get(count as usize..).unwrap_or_default();
        hash = next_level(hash);
    }
    true
}

/// The number of probes that wait for their line of the second level: about as many as 200 hashes produce.
const WAITING: usize = 8;

/// [`probe`] for many hashes, whose verdicts are all [`Verdict::Maybe`] before the call. Prefetches lines of
/// the first level ahead, and lines of the second level as soon as a hash needs one, to read them in batches.
#[inline(always)]
pub(super) fn probe_many(
    lines: &[Line],
    hashes: &[u64],
    kind: &FilterKind,
    verdicts: &mut [Verdict],
    ask: impl Fn(&Line, u64, u64) -> Option<bool>,
    lower: impl Fn(&[Line], u64, &[u32]) -> bool,
) {
    let FilterKind::Parity { levels: [first, further @ ..], .. } = kind else { return };
    let Some((level, below)) = lines.split_at_checked(*first as usize) else { return };
    let go_on = |hash| Verdict::of(lower(below, hash, further));
    let mut waiting = [(0, 0); WAITING];
    let mut waiters = 0;
    for (i, hash) in Prefetched::new(level, hashes).enumerate() {
        let (line, place) = place_of(hash, *first);
        let Some(line) = level.get(line as usize) else { return };
        if let Some(maybe) = ask(line, hash, place) {
            verdicts[i] = Verdict::of(maybe);
            continue;
        }
        let hash = next_level(hash);
        let (line, _) = place_of(hash, further[0]);
        if let Some(line) = below.get(line as usize) {
            prefetch(line);
        }
        waiting[waiters] = (i, hash);
        waiters += 1;
        if waiters == WAITING {
            waiting.iter().for_each(|&(i, hash)| verdicts[i] = go_on(hash));
            waiters = 0;
        }
    }
    let waiting = waiting.iter().take(waiters);
    waiting.for_each(|&(i, hash)| verdicts[i] = go_on(hash));
}

/// Defines the functions of a [`ProbeFns`](crate::probe_fns::ProbeFns) and the builder, compiled with
/// `$features`. The module provides `control`, the control byte of a line; `fits`, whether its first lanes
/// satisfy an equation; `rest`, its version of [`fits_wholly`](super::equation::fits_wholly); `Asked`,
/// `asked` and `lanes_deny`, for loops (see [`loops`](super::loops)); and `Steps`, to build.
macro_rules! entry_points {
    ($($features:literal)?) => {
        /// Whether the first lanes of a line deny a hash that its threshold does not bump to the next level.
        ///
        /// # Safety
        /// The CPU has the features of this module.
        $(#[target_feature(enable = $features)])?
        pub(super) unsafe fn denies<L: Layout>(
            line: &$crate::line::Line,
            hash: &super::equation::ProbeHash,
            place: u64,
        ) -> bool {
            !fits::<L>(line, &hash.products.equation::<L>())
                && !super::equation::is_bumped::<L>(control(line), place)
        }

        /// `rest`, out of line. (Callers end with this call and pass all in registers, so they need no
        /// stack.)
        ///
        /// # Safety
        /// Same as [`denies`].
        #[inline(never)]
        $(#[target_feature(enable = $features)])?
        unsafe fn fits_wholly<L: Layout>(
            line: &$crate::line::Line,
            products: super::equation::Products,
            place: u64,
            control: u32,
        ) -> bool {
            rest::<L>(line, products, place, control)
        }

        /// Whether a line may hold a hash with this place; `None` if it bumps such a hash to the next level.
        /// (Computing the rest only for hashes that stay leaves more registers.)
        #[inline]
        $(#[target_feature(enable = $features)])?
        pub(super) fn ask<L: Layout>(line: &$crate::line::Line, hash: u64, place: u64) -> Option<bool> {
            let control = control(line);
            if super::equation::is_bumped::<L>(control, place) {
                return None;
            }
            let products = super::equation::Products::of(hash);
            // SAFETY: the same instruction set.
            let wholly = || unsafe { fits_wholly::<L>(line, products, place, control) };
            Some(fits::<L>(line, &products.equation::<L>()) && wholly())
        }

        /// Whether a hash may have been added.
        ///
        /// # Safety
        /// The CPU has the features of this module.
        $(#[target_feature(enable = $features)])?
        pub(super) unsafe fn contains<L: Layout>(
            lines: &[$crate::line::Line],
            hash: u64,
            kind: &$crate::kind::FilterKind,
        ) -> bool {
            // SAFETY: the same instruction set.
            let lower = |lines: &[_], hash, levels: &[_]| unsafe { lower_levels::<L>(lines, hash, levels) };
            let ask = |line: &_, hash, place| ask::<L>(line, hash, place);
            super::entry::probe(lines, hash, kind, ask, lower)
        }

        /// [`contains`] for many hashes. All verdicts are [`Maybe`]($crate::verdict::Verdict::Maybe) before.
        ///
        /// # Safety
        /// Same as [`contains`].
        $(#[target_feature(enable = $features)])?
        pub(super) unsafe fn contains_many<L: Layout>(
            lines: &[$crate::line::Line],
            hashes: &[u64],
            kind: &$crate::kind::FilterKind,
            verdicts: &mut [$crate::verdict::Verdict],
        ) {
            // SAFETY: the same instruction set.
            let lower = |lines: &[_], hash, levels: &[_]| unsafe { lower_levels::<L>(lines, hash, levels) };
            let ask = |line: &_, hash, place| ask::<L>(line, hash, place);
            super::entry::probe_many(lines, hashes, kind, verdicts, ask, lower);
        }

        /// # Safety
        /// Same as [`contains`].
        #[inline(never)]
        $(#[target_feature(enable = $features)])?
        unsafe fn lower_levels<L: Layout>(lines: &[$crate::line::Line], hash: u64, levels: &[u32]) -> bool {
            let ask = |line: &_, hash, place| ask::<L>(line, hash, place);
            super::entry::probe_levels(lines, hash, levels, ask)
        }

        /// The instruction set of this module, in a loop that [`run`] has compiled for it.
        #[derive(Clone, Copy)]
        pub(super) struct Here(());

        #[allow(unused_unsafe, reason = "the scalar functions are safe")]
        impl super::loops::Probes for Here {
            type Hash = (Asked, u64);

            #[inline(always)]
            fn hash(self, hash: super::equation::ProbeHash) -> Self::Hash {
                // SAFETY: only `run` makes a `Here`, and its caller promises the features.
                (unsafe { asked(&hash) }, hash.hash)
            }

            #[inline(always)]
            fn denies(
                self,
                (asked, hash): &Self::Hash,
                first: &$crate::prober::FirstProbe,
                lines: &[$crate::line::Line],
            ) -> bool {
                match first.lanes_and_line(lines, *hash) {
                    // SAFETY: as above.
                    Some((lanes, line, place)) => unsafe { lanes_deny(line, asked, lanes, place) },
                    None => false,
                }
            }
        }

        /// Runs a loop compiled for these features.
        ///
        /// # Safety
        /// Same as [`contains`].
        #[inline(never)]
        $(#[target_feature(enable = $features)])?
        pub(super) unsafe fn run<L: super::loops::ProbeLoop>(probe_loop: L, hash: u64) -> L::Output {
            probe_loop.run(Here(()), hash)
        }

        /// [`LineBuilder::build`](super::line_builder::LineBuilder::build), compiled for these features.
        ///
        /// # Safety
        /// Same as [`contains`].
        $(#[target_feature(enable = $features)])?
        pub(super) unsafe fn build_line<L: Layout>(
            line: &mut super::line_builder::LineBuilder,
            members: &[u64],
            count: u32,
        ) -> (super::layout::Words, usize) {
            line.build::<L, Steps>(members, count)
        }
    };
}
pub(super) use entry_points;
