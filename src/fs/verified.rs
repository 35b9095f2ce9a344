//! Which parts of a map match their checksums.

use std::sync::atomic::{AtomicU64, Ordering};

/// One bit per part.
pub struct Verified(Box<[AtomicU64]>);

impl Verified {
    /// None of so many parts.
    pub fn none_of(parts: usize) -> Self {
        Verified((0..parts.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Whether this part was compared and matched.
    #[inline]
    pub fn has(&self, part: usize) -> bool {
        let word = self.0.get(part / 64);
        word.is_some_and(|word| word.load(Ordering::Acquire) >> (part % 64) & 1 == 1)
    }

    /// Records that this part matched. Returns whether that is new.
    pub fn set(&self, part: usize) -> bool {
        let bit = 1 << (part % 64);
        self.0.get(part / 64).is_some_and(|word| word.fetch_or(bit, Ordering::Release) & bit == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i1_a_part_that_was_compared_vouches_for_no_other() {
        let verified = Verified::none_of(200);
        for compared in (0..200).step_by(3) {
            assert!(verified.set(compared) && !verified.set(compared));
            for part in 0..300 {
                assert_eq!(verified.has(part), part % 3 == 0 && part <= compared, "{part} at {compared}");
            }
        }
    }
}
