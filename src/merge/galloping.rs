//! The search for the lead: it starts at the next entry and doubles its steps.

/// How many of the numbers from 1 to `most` satisfy `holds`, which is true up to some number and false after
/// it. Cheap where the answer is 0 or `most`.
#[inline]
pub(super) fn count_leading(most: usize, holds: impl Fn(usize) -> bool) -> usize {
    if most == 0 || !holds(1) {
        return 0;
    }
    if holds(most) {
        return most;
    }
    let (mut low, mut step) = (1, 1);
    while low + step < most && holds(low + step) {
        low += step;
        step *= 2;
    }
    let mut high = most.min(low + step);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_is_the_linear_count() {
        for most in 0..40 {
            for lead in 0..=most {
                assert_eq!(count_leading(most, |n| n <= lead), lead, "of {most}");
            }
        }
    }
}
