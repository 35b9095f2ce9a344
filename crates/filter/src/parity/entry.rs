//! The entry points of each instruction set.

/// Defines the two functions of a [`ProbeFns`](crate::probe_fns::ProbeFns) and the solver, compiled with `$features`. The module
/// provides `read`, which reads a line for an equation.
macro_rules! entry_points {
    ($($features:literal)?) => {
        /// Whether a line denies a hash, which its threshold does not send on to the next level.
        ///
        /// # Safety
        /// The CPU has the features of this module.
        $(#[target_feature(enable = $features)])?
        pub(super) unsafe fn denies<L: Layout>(
            line: &$crate::line::Line,
            hash: &super::equation::ProbeHash,
            fraction: u64,
        ) -> bool {
            let reading = read::<L>(line, &hash.equation::<L>());
            !reading.fits && super::equation::rank_of::<L>(fraction) >= reading.threshold
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
            super::walk::probe::<L>(lines, hash, kind, |line, equation| read::<L>(line, equation), lower)
        }

        /// [`contains`] for many hashes. All verdicts are [`Maybe`]($crate::verdict::Verdict::Maybe) before the call.
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
            super::walk::probe_many::<L>(
                lines,
                hashes,
                kind,
                verdicts,
                |line, equation| read::<L>(line, equation),
                lower,
            );
        }

        /// # Safety
        /// Same as [`contains`].
        #[inline(never)]
        $(#[target_feature(enable = $features)])?
        unsafe fn lower_levels<L: Layout>(lines: &[$crate::line::Line], hash: u64, levels: &[u32]) -> bool {
            super::walk::probe_levels::<L>(lines, hash, levels, |line, equation| read::<L>(line, equation))
        }

        /// [`System::solve`](super::solve::System::solve), compiled for this instruction set.
        ///
        /// # Safety
        /// Same as [`contains`].
        $(#[target_feature(enable = $features)])?
        pub(super) unsafe fn solve<L: Layout>(
            system: &mut super::solve::System,
        ) -> (super::layout::Lanes, usize) {
            system.solve::<L>()
        }
    };
}
pub(super) use entry_points;
