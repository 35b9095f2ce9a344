//! Which groups of lines match their checksums.

use std::sync::atomic::{AtomicU64, Ordering};

/// One bit per group.
pub(super) struct Verified(Box<[AtomicU64]>);

impl Verified {
    pub fn none_of(groups: usize) -> Self {
        Verified((0..groups.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    pub fn has(&self, group: usize) -> bool {
        let word = self.0.get(group / 64);
        word.is_some_and(|word| word.load(Ordering::Acquire) >> (group % 64) & 1 == 1)
    }

    pub fn set(&self, group: usize) {
        if let Some(word) = self.0.get(group / 64) {
            word.fetch_or(1 << (group % 64), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i1_a_group_that_was_compared_vouches_for_no_other_one() {
        let verified = Verified::none_of(200);
        for compared in (0..200).step_by(3) {
            verified.set(compared);
            for group in 0..300 {
                assert_eq!(verified.has(group), group % 3 == 0 && group <= compared, "{group} at {compared}");
            }
        }
    }
}
