//! The entry points of each instruction set.

/// Defines the two functions of a [`ProbeFns`](crate::probe_fns::ProbeFns), compiled with `$features`. The
/// module provides `all_set`, which tells whether all `K` bits of a hash are set in its line. Without any
/// lines, the answer is "maybe" for every hash.
macro_rules! entry_points {
    ($($features:literal)?) => {
        /// Whether some of the bits of a hash are not set in its line.
        ///
        /// # Safety
        /// The CPU has the features of this module.
        $(#[target_feature(enable = $features)])?
        pub(super) unsafe fn denies<const K: usize>(
            line: &$crate::line::Line,
            hash: &$crate::parity::ProbeHash,
            _: u64,
        ) -> bool {
            !all_set::<K>(line, hash.hash)
        }

        /// Whether a hash may have been added.
        ///
        /// # Safety
        /// The CPU has the features of this module.
        $(#[target_feature(enable = $features)])?
        pub(super) unsafe fn contains<const K: usize>(
            lines: &[$crate::line::Line],
            hash: u64,
            _: &$crate::kind::FilterKind,
        ) -> bool {
            match lines.get($crate::line::line_of(hash, lines.len())) {
                Some(line) => all_set::<K>(line, hash),
                None => super::entry::no_lines(),
            }
        }

        /// [`contains`] for many hashes.
        ///
        /// # Safety
        /// Same as [`contains`].
        $(#[target_feature(enable = $features)])?
        pub(super) unsafe fn contains_many<const K: usize>(
            lines: &[$crate::line::Line],
            hashes: &[u64],
            kind: &$crate::kind::FilterKind,
            verdicts: &mut [$crate::verdict::Verdict],
        ) {
            for (hash, verdict) in $crate::prefetch::Prefetched::new(lines, hashes).zip(verdicts) {
                // SAFETY: the same instruction set.
                *verdict = $crate::verdict::Verdict::of(unsafe { contains::<K>(lines, hash, kind) });
            }
        }
    };
}
pub(super) use entry_points;

/// The answer without any lines. Cold, so that it stays off the path of every probe.
#[cold]
pub(super) fn no_lines() -> bool {
    true
}
