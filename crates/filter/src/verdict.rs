//! The answer of a filter.

/// What a filter says about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The key was never added.
    Absent,
    /// The key may have been added; look it up.
    Maybe,
}

impl Verdict {
    /// [`Maybe`](Verdict::Maybe) if the key may have been added.
    #[inline(always)]
    pub(crate) fn of(maybe: bool) -> Verdict {
        if maybe { Verdict::Maybe } else { Verdict::Absent }
    }
}
