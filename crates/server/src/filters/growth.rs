//! How the parts of a filter grow: each has the capacity of the one before times the expansion.

/// The capacity of each part that is needed for so many items, the first included. The expansion is at least
/// 2, so there are at most 64. Capacities saturate.
pub fn growing(first: u64, expansion: u64, items: u64) -> impl Iterator<Item = u64> {
    let (mut held, mut next) = (0u64, first);
    std::iter::from_fn(move || {
        if held > 0 && held >= items {
            return None;
        }
        let capacity = next;
        held = held.saturating_add(capacity);
        next = capacity.saturating_mul(expansion.max(2));
        Some(capacity)
    })
}
