//! Asking lines for a hash, or for many at once.

use super::{FilterKind, Isa, Line, Verdict, blocked, isa, line_of, parity};
use std::slice;

/// Asks lines that live elsewhere: in a mapped file, in a [`BuiltFilter`](super::BuiltFilter). Small and [`Copy`], so that it can stand
/// beside them.
#[derive(Debug, Clone, Copy)]
pub struct Prober {
    kind: FilterKind,
    asks: Asks,
}

/// The functions of one width or number of bits and one instruction set, so that a probe finds all of that decided. The parity ones take
/// the levels from the kind.
///
/// # Safety
/// The machine has the instruction set that they are compiled for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asks {
    /// Whether a hash may have been added.
    pub one: unsafe fn(lines: &[Line], hash: u64, kind: &FilterKind) -> bool,
    /// The same for many hashes; `verdicts` is as long as `hashes`.
    pub many: unsafe fn(lines: &[Line], hashes: &[u64], kind: &FilterKind, verdicts: &mut [Verdict]),
}

impl Prober {
    /// A prober on the fastest instruction set of this machine.
    pub fn new(kind: FilterKind) -> Self {
        Prober::with_isa(kind, Isa::best())
    }

    /// A prober on a given instruction set, for tests and benchmarks. Answers are the same on all.
    pub fn with_isa(kind: FilterKind, isa: Isa) -> Self {
        let asks = match kind {
            FilterKind::BlockedBloom { k } => blocked::asks(isa, k),
            FilterKind::Parity { width, .. } => parity::asks(isa, width),
        };
        Prober { kind, asks }
    }

    /// How the lines are read.
    pub fn kind(&self) -> FilterKind {
        self.kind
    }

    /// Starts to load what [`probe`](Self::probe) will read. Send out all prefetches of a lookup before its first probe.
    #[inline]
    pub fn prefetch(&self, lines: &[Line], hash: u64) {
        let first = match &self.kind {
            FilterKind::BlockedBloom { .. } => lines.len(),
            FilterKind::Parity { levels, .. } => levels[0] as usize,
        };
        if let Some(line) = lines.get(line_of(hash, first)) {
            isa::prefetch(line);
        }
    }

    /// Asks for a key's hash. No lines at all know nothing: [`Verdict::Maybe`].
    #[inline]
    pub fn probe(&self, lines: &[Line], hash: u64) -> Verdict {
        // SAFETY: the function was chosen for an `Isa`, and there is one of those only where detection found it.
        let present = unsafe { (self.asks.one)(lines, hash, &self.kind) };
        Verdict::of(present)
    }

    /// As [`probe`](Self::probe), of lines that are not all to be believed: `believe` is asked for a line's number before the line is read.
    /// `None` when it says no. A bumped key of a parity filter has a line in more than one level.
    pub fn probe_believed(
        &self,
        lines: &[Line],
        hash: u64,
        believe: &mut dyn FnMut(usize) -> bool,
    ) -> Option<Verdict> {
        match &self.kind {
            FilterKind::BlockedBloom { .. } => {
                believe(line_of(hash, lines.len())).then(|| self.probe(lines, hash))
            }
            FilterKind::Parity { width, levels } => {
                parity::probe_believed(*width, lines, hash, levels, believe)
            }
        }
    }

    /// Asks for many hashes and appends the verdicts, in their order. Each line is fetched some hashes before it is read, so that as
    /// many cache misses overlap as the machine can: the more hashes in one call, the better.
    pub fn probe_many(&self, lines: &[Line], hashes: &[u64], verdicts: &mut Vec<Verdict>) {
        let before = verdicts.len();
        verdicts.resize(before + hashes.len(), Verdict::Maybe);
        // SAFETY: as above.
        unsafe { (self.asks.many)(lines, hashes, &self.kind, &mut verdicts[before..]) }
    }
}

/// How many hashes before it is read a line is fetched. Processors have ten to sixteen misses under way at once; 24 and 32 do equally well,
/// 16 costs a little.
const AHEAD: usize = 24;

/// Lines of so many bytes are in the second cache by themselves.
const NEAR_BYTES: usize = 512 << 10;

/// Hashes, each of which comes after its line among `lines` was fetched.
pub(super) struct FetchedAhead<'a> {
    lines: &'a [Line],
    hashes: slice::Iter<'a, u64>,
    to_fetch: slice::Iter<'a, u64>,
}

impl<'a> FetchedAhead<'a> {
    #[inline(always)]
    pub fn new(lines: &'a [Line], hashes: &'a [u64]) -> Self {
        let to_fetch = if size_of_val(lines) > NEAR_BYTES { hashes } else { &[] };
        let mut ahead = FetchedAhead { lines, hashes: hashes.iter(), to_fetch: to_fetch.iter() };
        (0..AHEAD).for_each(|_| ahead.fetch());
        ahead
    }

    #[inline(always)]
    fn fetch(&mut self) {
        if let Some(&hash) = self.to_fetch.next()
            && let Some(line) = self.lines.get(line_of(hash, self.lines.len()))
        {
            isa::prefetch(line);
        }
    }
}

impl Iterator for FetchedAhead<'_> {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        self.fetch();
        self.hashes.next().copied()
    }
}
