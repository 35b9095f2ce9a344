//! A sidecar and what is known about it.

use super::facts::{Expect, Facts};
use super::maps::{Maps, Share};
use super::owners::Owners;
use super::read_ahead::ProbeReads;
use super::unusable::Unusable;
#[cfg(feature = "bench-support")]
use crate::filter::FilterKind;
use crate::filter::format::HEADER_BYTES;
use crate::filter::{FirstProbe, LINE_BYTES, Line, Prober};
use crate::fs::{Map, Verified};
use crate::sync::atomic::{
    AtomicBool, AtomicU8,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// How the lines of sidecars are kept in memory, and the blocks of segments that can be read in place: those
/// of [`Compression::None`](crate::Compression::None) and [`Fsst`](crate::Compression::Fsst).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Residency {
    /// In the page cache, through a map of the file. The kernel may evict pages and read them again.
    ///
    /// A block of a segment is compared with its checksum on its first use, and read from the map from then
    /// on. At most [`max_open_files`](crate::Options::max_open_files) segments are mapped.
    ///
    /// Filters answer as soon as the store is open. A lookup verifies what it touches, 4 KiB at a time, and a
    /// background thread verifies the rest. **As with every mapped file, touching a missing page raises
    /// SIGBUS, which kills the process by default.** That happens if somebody truncates a mapped file of
    /// an open store (this crate never does), or if the disk fails to read the page. To avoid it, use
    /// [`Pinned`](Self::Pinned), or call [`catch_sigbus`](crate::fs::catch_sigbus): the affected filter then
    /// answers "maybe" and is rebuilt, and reads of an affected segment return errors. Only `Pinned` protects
    /// against truncation within a page: that raises no signal.
    #[default]
    Mapped,
    /// In anonymous memory, on huge pages if the kernel has them, and never evicted. Takes as much memory as
    /// the filters have bytes.
    ///
    /// A background thread reads the copy with ordinary reads after opening. Until it is complete and
    /// verified, the filter answers "maybe". Blocks of segments are read into the block cache, as compressed
    /// ones are. No file is mapped, so a truncated or unreadable file is an error
    /// that is counted and logged, never a SIGBUS.
    Pinned,
}

/// Answers nothing: not pinned yet, or condemned.
pub(super) const NOTHING: u8 = 0;
/// Each group is compared with its checksum before its first line is read.
pub(super) const BY_GROUP: u8 = 1;
/// All groups have matched their checksums in this map; no probe since [`Sidecar::take_asked`].
pub(super) const RESTED: u8 = 2;
/// All groups have matched their checksums in this map.
pub(super) const WHOLE: u8 = 3;

/// A sidecar, whose file is opened when first needed. What a first probe reads is in two cache lines: the
/// beginning of `bytes`, and its state with `trust`.
#[repr(C, align(64))]
pub struct Sidecar {
    /// The file's bytes: its map, from the first probe on, or the verified copy.
    pub(super) bytes: OnceLock<Bytes>,
    /// What a probe may trust. Changes from `NOTHING` (pinned) or `BY_GROUP` (mapped) to `WHOLE`, from there
    /// to `RESTED` and back, and from any of them to `NOTHING` when the sidecar is condemned.
    pub(super) trust: AtomicU8,
    /// What the header page says, once read.
    pub(super) facts: OnceLock<Facts>,
    expect: Expect,
    pub(super) path: Arc<Path>,
    pub(super) residency: Residency,
    pub(super) maps: Arc<Maps>,
    /// Probed since [`take_asked`](Self::take_asked). Not set while the state is `WHOLE`.
    pub(super) asked: AtomicBool,
    /// All lines have matched their checksums once, though perhaps not in this map.
    pub(super) checked: AtomicBool,
    pub(super) verifying: AtomicBool,
    pub(super) condemned: OnceLock<Unusable>,
    pub(super) owners: Owners,
}

/// A sidecar's bytes in memory, with what a probe needs. First probes read the first two fields only.
#[repr(C)]
pub(super) struct Bytes {
    pub first: FirstProbe,
    /// Its window has the lines of the first level.
    pub map: Map,
    /// The number of lines.
    lines: usize,
    /// Its share of the maps, if it is mapped.
    share: Option<Share>,
    pub prober: Prober,
    pub verified: Verified,
    pub reads: ProbeReads,
}

impl Bytes {
    pub fn new(map: Map, share: Option<Share>, facts: &Facts) -> Self {
        let Facts { header, prober, .. } = *facts;
        let lines = header.lines as usize; // The file's length was checked, so this fits.
        let map = map.with_window(HEADER_BYTES..HEADER_BYTES + prober.first_level(lines) * LINE_BYTES);
        let (first, verified) = (prober.first_probe(), Verified::none_of(header.groups()));
        Bytes { first, map, lines, share, prober, verified, reads: ProbeReads::default() }
    }

    /// The lines within the file's bytes, whose length was checked.
    #[inline]
    pub fn lines(&self) -> &[Line] {
        let bytes = self.map.get(HEADER_BYTES..HEADER_BYTES + self.lines * LINE_BYTES);
        bytes.unwrap_or_default().as_chunks().0
    }
}

impl Sidecar {
    /// A sidecar that should be at `path`. Reads nothing; whether it is usable is found out on first use.
    pub fn expected(maps: &Arc<Maps>, path: &Path, expect: &Expect, residency: Residency) -> Self {
        Sidecar::new(maps, path.into(), OnceLock::new(), *expect, residency)
    }

    /// Opens a sidecar and checks its header page and length. Reads no lines and maps nothing yet.
    ///
    /// # Errors
    /// [`Unusable`] if the file is missing or damaged, or belongs to another segment or version.
    pub fn open(
        maps: &Arc<Maps>,
        path: &Path,
        expect: &Expect,
        residency: Residency,
    ) -> Result<Sidecar, Unusable> {
        let sidecar = Sidecar::expected(maps, path, expect, residency);
        sidecar.facts()?;
        Ok(sidecar)
    }

    /// What its header says. Opens the file if necessary.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn facts(&self) -> Result<&Facts, Unusable> {
        match self.facts.get() {
            Some(facts) => Ok(facts),
            None => {
                let facts = Facts::read(&self.maps, &self.path, &self.expect)?;
                Ok(self.facts.get_or_init(|| facts))
            }
        }
    }

    /// Its kind and lines, if in memory.
    #[cfg(feature = "bench-support")]
    pub fn lines_in_memory(&self) -> Option<(FilterKind, &[Line])> {
        let bytes = self.bytes.get()?;
        Some((bytes.prober.kind(), bytes.lines()))
    }

    /// What its header says, if it was read.
    pub fn known_facts(&self) -> Option<&Facts> {
        self.facts.get()
    }

    /// What its header says, if it [is verified](Self::is_verified).
    pub fn verified_facts(&self) -> Option<&Facts> {
        self.facts.get().filter(|_| self.is_verified())
    }

    fn new(
        maps: &Arc<Maps>,
        path: Arc<Path>,
        facts: OnceLock<Facts>,
        expect: Expect,
        residency: Residency,
    ) -> Self {
        let trust = match residency {
            Residency::Pinned => NOTHING,
            Residency::Mapped => BY_GROUP,
        };
        Sidecar {
            trust: AtomicU8::new(trust),
            bytes: OnceLock::new(),
            facts,
            expect,
            path,
            residency,
            maps: Arc::clone(maps),
            asked: AtomicBool::new(false),
            checked: AtomicBool::new(false),
            verifying: AtomicBool::new(false),
            condemned: OnceLock::new(),
            owners: Owners::default(),
        }
    }

    /// A copy without a map, to replace this sidecar. Mapped again when probed, and trusted group by group.
    pub fn unmapped(&self) -> Self {
        let sidecar =
            Sidecar::new(&self.maps, self.path.clone(), self.facts.clone(), self.expect, self.residency);
        sidecar.checked.store(self.is_verified(), Relaxed);
        sidecar
    }

    /// Whether both come from one [`open`](Self::open): either may be an [`unmapped`](Self::unmapped) copy.
    pub fn is_same_opening(&self, other: &Sidecar) -> bool {
        Arc::ptr_eq(&self.path, &other.path) // Copies share it.
    }

    /// Whether it holds a map of its file.
    pub fn is_mapped(&self) -> bool {
        self.bytes.get().is_some_and(|bytes| bytes.share.is_some())
    }

    /// Whether it was probed since the last call, or since it was opened.
    pub fn take_asked(&self) -> bool {
        self.asked.swap(false, Relaxed) | self.trust.compare_exchange(WHOLE, RESTED, AcqRel, Relaxed).is_ok()
    }

    /// Whether all lines are trusted, so that [`ask`](Self::ask) answers unless the map has faulted.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.trust.load(Acquire) == WHOLE
    }

    /// The first probe with its lines, if all lines are trusted. If the probe does not deny a hash,
    /// [`ask`](Self::ask) decides. A caller that relies on it must check afterwards that no map has faulted
    /// ([`any_fault`](crate::fs::any_fault)).
    #[inline(always)]
    pub fn first_probe(&self) -> Option<(&FirstProbe, &[Line])> {
        let bytes = self.bytes.get().filter(|_| self.is_whole())?;
        Some((&bytes.first, bytes.map.window()))
    }

    /// Whether an access to its map has faulted.
    pub fn has_faulted(&self) -> bool {
        self.bytes.get().is_some_and(|bytes| bytes.map.has_faulted())
    }

    /// Whether a defect was found.
    pub fn is_bad(&self) -> bool {
        self.condemned.get().is_some() || self.has_faulted()
    }

    /// Whether all lines have matched their checksums and no defect was found since.
    pub fn is_verified(&self) -> bool {
        let matched = match self.trust.load(Acquire) {
            NOTHING => false,
            BY_GROUP => self.checked.load(Acquire),
            _ => true,
        };
        matched && !self.has_faulted()
    }
}

impl fmt::Debug for Sidecar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sidecar")
            .field("path", &self.path)
            .field("header", &self.facts.get().map(|facts| facts.header))
            .field("residency", &self.residency)
            .field("verified", &self.is_verified())
            .finish()
    }
}
