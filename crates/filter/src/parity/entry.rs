//! The entry points of each instruction set.

/// Defines the functions of a [`ProbeFns`](crate::probe_fns::ProbeFns) and the builder, compiled with
/// `$features`. The module provides `control`, the control byte of a line; `fits`, whether its first lanes
/// satisfy an equation; `rest`, its version of [`fits_wholly`](super::rest::fits_wholly); and `Steps`, to
/// build.
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
                && !super::control::is_bumped::<L>(control(line), place)
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
            if super::control::is_bumped::<L>(control, place) {
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
            super::walk::probe(lines, hash, kind, ask, lower)
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
            super::walk::probe_many(lines, hashes, kind, verdicts, ask, lower);
        }

        /// # Safety
        /// Same as [`contains`].
        #[inline(never)]
        $(#[target_feature(enable = $features)])?
        unsafe fn lower_levels<L: Layout>(lines: &[$crate::line::Line], hash: u64, levels: &[u32]) -> bool {
            let ask = |line: &_, hash, place| ask::<L>(line, hash, place);
            super::walk::probe_levels(lines, hash, levels, ask)
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
