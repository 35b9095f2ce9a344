//! Probing lines for one hash or for many.

use crate::isa::Isa;
use crate::kind::FilterKind;
use crate::line::{LINE_BYTES, Line, line_of};
use crate::parity::ProbeHash;
use crate::parity::equation::FirstLanes;
use crate::prefetch::prefetch;
use crate::probe_fns::ProbeFns;
use crate::verdict::Verdict;
use crate::{blocked, parity};

/// The probe of a filter's first line, which denies 95 % of the absent hashes. Takes the lines of the first
/// level: see [`Prober::first_level`].
#[derive(Debug, Clone, Copy)]
pub struct FirstProbe {
    lanes: Option<FirstLanes>,
    denies: unsafe fn(line: &Line, hash: &ProbeHash, fraction: u64) -> bool,
}

impl FirstProbe {
    /// Prefetches the line that [`denies`](Self::denies) will read.
    #[inline]
    pub fn prefetch(&self, lines: &[Line], hash: u64) {
        if let Some(line) = lines.get(line_of(hash, lines.len())) {
            prefetch(line);
        }
    }

    /// Whether the first line alone shows that the hash was not added. If not, [`Prober::probe`] decides.
    #[inline(always)]
    pub fn denies(&self, lines: &[Line], hash: &ProbeHash) -> bool {
        let Some((line, fraction)) = line_and_fraction(lines, lines.len(), hash.hash) else { return false };
        // SAFETY: as in `Prober::probe`.
        unsafe { (self.denies)(line, hash, fraction) }
    }

    /// Its first lanes with the line and the place of a hash; `None` without at least eight lanes.
    #[inline(always)]
    pub(crate) fn lanes_and_line<'l>(
        &self,
        lines: &'l [Line],
        hash: u64,
    ) -> Option<(&FirstLanes, &'l Line, u64)> {
        let lanes = self.lanes.as_ref()?;
        let (line, place) = line_and_fraction(lines, lines.len(), hash)?;
        Some((lanes, line, place))
    }
}

/// The line of a hash among the first ones, and the low word of hash × lines.
#[inline(always)]
fn line_and_fraction(lines: &[Line], first: usize, hash: u64) -> Option<(&Line, u64)> {
    let product = u128::from(hash) * first as u128;
    Some((lines.get((product >> 64) as usize)?, product as u64))
}

/// Probes lines that are stored elsewhere: in a mapped file, or in a [`BuiltFilter`](crate::BuiltFilter). A
/// prober is small and [`Copy`], so it can be kept next to its lines.
#[derive(Debug, Clone, Copy)]
pub struct Prober {
    kind: FilterKind,
    fns: ProbeFns,
    /// The number of lines among which the first probe chooses; 0 for all of them.
    first_level: u32,
}

impl Prober {
    /// A prober for the fastest instruction set of this CPU.
    pub fn new(kind: FilterKind) -> Self {
        Prober::with_isa(kind, Isa::best())
    }

    /// A prober for the given instruction set, for tests and benchmarks. The answers are the same on all.
    pub fn with_isa(kind: FilterKind, isa: Isa) -> Self {
        let fns = match kind {
            FilterKind::BlockedBloom { k } => blocked::probe::probe_fns(isa, k),
            FilterKind::Parity { width, .. } => parity::probe::probe_fns(isa, width),
        };
        let first_level = match kind {
            FilterKind::BlockedBloom { .. } => 0,
            FilterKind::Parity { levels: [first, ..], .. } => first,
        };
        Prober { kind, fns, first_level }
    }

    /// The probe of the first line.
    pub fn first_probe(&self) -> FirstProbe {
        let lanes = match self.kind {
            FilterKind::BlockedBloom { .. } => None,
            FilterKind::Parity { width, .. } => parity::probe::first_lanes(width),
        };
        FirstProbe { lanes, denies: self.fns.denies }
    }

    /// The number of lines, of this many in total, among which the first probe chooses.
    pub fn first_level(&self, lines: usize) -> usize {
        if self.first_level == 0 { lines } else { self.first_level as usize }
    }

    /// How the lines are read.
    pub fn kind(&self) -> FilterKind {
        self.kind
    }

    /// Prefetches the line that [`probe`](Self::probe) will read first. Issue all prefetches of a lookup
    /// before its first probe.
    #[inline]
    pub fn prefetch(&self, lines: &[Line], hash: u64) {
        if let Some((line, _)) = self.first_line(lines, hash) {
            prefetch(line);
        }
    }

    /// [`prefetch`](Self::prefetch) for lines that may each span two cache lines.
    #[inline]
    pub fn prefetch_unaligned(&self, lines: &[Line], hash: u64) {
        if let Some((line, _)) = self.first_line(lines, hash) {
            prefetch(line);
            prefetch(&line[LINE_BYTES - 1]);
        }
    }

    /// The line read first, and the low word of hash × lines.
    #[inline(always)]
    fn first_line<'l>(&self, lines: &'l [Line], hash: u64) -> Option<(&'l Line, u64)> {
        line_and_fraction(lines, self.first_level(lines.len()), hash)
    }

    /// Whether the first line alone shows that the hash was not added, as for 95 % of the absent ones. If
    /// not, [`probe`](Self::probe) decides.
    #[inline(always)]
    pub fn denies(&self, lines: &[Line], hash: &ProbeHash) -> bool {
        // SAFETY: as in `probe`.
        self.first_line(lines, hash.hash)
            .is_some_and(|(line, fraction)| unsafe { (self.fns.denies)(line, hash, fraction) })
    }

    /// Probes for the hash of a key. Without any lines, the answer is [`Verdict::Maybe`].
    #[inline]
    pub fn probe(&self, lines: &[Line], hash: u64) -> Verdict {
        // SAFETY: the function was chosen for an `Isa`, and an `Isa` exists only where detection found it.
        let present = unsafe { (self.fns.one)(lines, hash, &self.kind) };
        Verdict::of(present)
    }

    /// Like [`probe`](Self::probe), for lines that may not all be trusted: calls `believe` with the number of
    /// each line before reading it. Returns `None` as soon as `believe` returns false. A bumped key of a
    /// parity filter has a line in more than one level.
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
                parity::probe::probe_believed(*width, lines, hash, levels, believe)
            }
        }
    }

    /// Probes for many hashes and appends the verdicts in order. Each line is prefetched some hashes before
    /// it is read, so that cache misses overlap: the more hashes in one call, the better.
    pub fn probe_many(&self, lines: &[Line], hashes: &[u64], verdicts: &mut Vec<Verdict>) {
        let before = verdicts.len();
        verdicts.resize(before + hashes.len(), Verdict::Maybe);
        // SAFETY: as in `probe`.
        unsafe { (self.fns.many)(lines, hashes, &self.kind, &mut verdicts[before..]) }
    }
}
