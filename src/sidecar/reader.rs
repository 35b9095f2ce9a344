//! Reading: map, check the header, then believe the lines group by group.
//!
//! I1 by construction: a probe reads lines in two places only. [`Sidecar::ask`] reads any line once all groups have matched their checksums
//! ([`WHOLE`]). [`Sidecar::ask_by_group`] hands each line to [`Sidecar::believe`] first, which compares the line's group with its checksum
//! when nobody has done so through this map. Whatever does not match condemns the sidecar: it knows nothing from then on.

use super::format::{Binding, HEADER_BYTES, Header};
use super::groups::{CHECKSUM_BYTES, GROUP_BYTES, GROUP_LINES, Seal, Verified};
use super::kind::{KIND_AT, Kind};
use super::unusable::Unusable;
use crate::filter::{FilterKind, LINE_BYTES, Line, Prober, Verdict};
use crate::fs::{Fs, Map};
use crate::hash::KeyHasher;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// What a sidecar must be, to be believed: the filter of one segment, of keys hashed as the store hashes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expect {
    /// The segment.
    pub binding: Binding,
    /// The store's key hash.
    pub hasher: KeyHasher,
}

/// Where the lines of a sidecar live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Residency {
    /// In the page cache, through a map of the file. The kernel may evict them and read them again.
    ///
    /// A filter answers from the moment that the store is open: what a lookup touches is verified then, 4 KiB at a time, and everything
    /// in the background. **As with every mapped file, the process gets SIGBUS, and dies of it by default, when it touches a page that
    /// is gone**: when somebody truncates a `.filter` file of an open store (this crate never does), or when the disk fails to
    /// read the page. Where that must not be, take [`Pinned`](Self::Pinned), or call
    /// [`catch_sigbus`](crate::fs::catch_sigbus): the filter in question then answers "maybe" and is rebuilt.
    #[default]
    Mapped,
    /// In anonymous memory, on huge pages where the kernel gives them, never evicted: as much memory as the filters have bytes.
    ///
    /// The copy is read with ordinary reads in the background after opening; until it is complete and verified, the filter
    /// answers "maybe". No file is mapped, so that a file that is cut or cannot be read is an error that is counted and warned of, never a
    /// SIGBUS.
    Pinned,
}

/// The outcome of [`Sidecar::verify`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// All lines match their checksums.
    Verified,
    /// Another thread is at it.
    InProgress,
}

/// Nothing is known: not pinned yet, or condemned.
const NOTHING: u8 = 0;
/// Each group is compared with its checksum before its first line is read.
const BY_GROUP: u8 = 1;
/// All groups have matched their checksums.
const WHOLE: u8 = 2;

/// An open sidecar.
pub struct Sidecar {
    /// What a probe may believe. Goes from `NOTHING` (pinned) or `BY_GROUP` (mapped) to `WHOLE`, and from any to `NOTHING` when condemned.
    trust: AtomicU8,
    lines: usize,
    /// The file's bytes: its map, or the verified copy of them.
    bytes: OnceLock<Map>,
    prober: Prober,
    verified: Verified,
    seal: Seal,
    header: Header,
    path: PathBuf,
    residency: Residency,
    verifying: AtomicBool,
    condemned: OnceLock<Unusable>,
}

impl Sidecar {
    /// Checks a sidecar's header page and its length, and maps it unless it is to be pinned; reads no line.
    ///
    /// # Errors
    /// [`Unusable`] for whatever is wrong: the file is missing, damaged, of another segment, of another version.
    pub fn open(
        fs: &dyn Fs,
        path: &Path,
        expect: &Expect,
        residency: Residency,
    ) -> Result<Sidecar, Unusable> {
        // With ordinary reads: what cannot be read is an error here.
        let file = fs.open(path)?;
        let len = file.len()?;
        let mut page = vec![0; HEADER_BYTES.min(usize::try_from(len).unwrap_or(HEADER_BYTES))];
        file.read_exact_at(&mut page, 0)?;
        let header = Header::decode(&page)?;
        header.check_length(len)?;
        expect.check(&header)?;
        let Kind::Lines(kind, hasher) = header.kind else {
            let what = "a filter of a kind that no segment has".to_owned();
            return Err(Unusable::Invalid { offset: KIND_AT as u64, what });
        };
        if hasher != expect.hasher {
            return Err(Unusable::OtherHash);
        }
        let bytes = OnceLock::new();
        let trust = match residency {
            Residency::Pinned => NOTHING,
            Residency::Mapped => {
                // SAFETY: this crate writes a sidecar under a temporary name, renames it into place and never touches its bytes
                // again. `Residency::Mapped` says what happens when somebody else does.
                let map = unsafe { fs.map(path) }?;
                header.check_length(map.len() as u64)?;
                let _ = bytes.set(map); // It is empty.
                BY_GROUP
            }
        };
        Ok(Sidecar {
            trust: AtomicU8::new(trust),
            lines: header.lines as usize, // No more than the file has, whose length was checked.
            bytes,
            prober: Prober::new(kind),
            verified: Verified::none_of(header.groups()),
            seal: Seal::of(&page),
            header,
            path: path.to_path_buf(),
            residency,
            verifying: AtomicBool::new(false),
            condemned: OnceLock::new(),
        })
    }

    /// Starts to load what [`ask`](Self::ask) will read.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        if let Some(map) = self.bytes.get() {
            self.prober.prefetch(self.lines_of(map), hash);
        }
    }

    /// Asks for a key's hash. `None`: the sidecar knows nothing, because it is not pinned yet, or condemned.
    #[inline]
    pub fn ask(&self, hash: u64) -> Option<Verdict> {
        let trust = self.trust.load(Ordering::Acquire);
        let map = self.bytes.get()?;
        if trust != WHOLE {
            return self.ask_by_group(map, hash);
        }
        let verdict = self.prober.probe(self.lines_of(map), hash);
        // After the probe: lines that were gone read as zeros.
        if verdict == Verdict::Absent && map.has_faulted() {
            return None;
        }
        Some(verdict)
    }

    /// As [`ask`](Self::ask), where [`Verdict::Maybe`] stands for not knowing as well.
    #[inline]
    pub fn probe(&self, hash: u64) -> Verdict {
        self.ask(hash).unwrap_or(Verdict::Maybe)
    }

    #[inline(never)]
    fn ask_by_group(&self, map: &Map, hash: u64) -> Option<Verdict> {
        if self.trust.load(Ordering::Acquire) == NOTHING {
            return None;
        }
        let mut believe = |line| self.believe(map, line / GROUP_LINES);
        let verdict = self.prober.probe_believed(self.lines_of(map), hash, &mut believe);
        verdict.filter(|_| !map.has_faulted())
    }

    /// Whether a group's lines have matched their checksum through this map; compares them on the first call.
    fn believe(&self, map: &Map, group: usize) -> bool {
        self.verified.has(group) || self.compare(map, group)
    }

    #[inline(never)]
    fn compare(&self, map: &Map, group: usize) -> bool {
        let from = HEADER_BYTES + group * GROUP_BYTES;
        let to = (from + GROUP_BYTES).min(self.header.checksums_at() as usize);
        let lines = map.get(from..to).unwrap_or_default();
        let stored = map.get(self.header.checksums_at() as usize + group * CHECKSUM_BYTES..);
        let stored: Option<&[u8; CHECKSUM_BYTES]> = stored.and_then(|rest| rest.first_chunk());
        let matches = stored == Some(&self.seal.checksum(group, lines).to_le_bytes());
        // After the comparison: what was gone read as zeros, and would go on doing so.
        if map.has_faulted() {
            self.condemn(Unusable::Faulted);
        } else if matches {
            self.verified.set(group);
            return true;
        } else {
            self.condemn(Unusable::bad_group(group));
        }
        false
    }

    /// From here on the sidecar knows nothing; the first reason stays.
    fn condemn(&self, reason: Unusable) -> Unusable {
        let reason = self.condemned.get_or_init(|| reason).clone();
        self.trust.store(NOTHING, Ordering::Release);
        reason
    }

    /// Reads all lines (into anonymous memory, when pinned) and compares all checksums. Cheap when already done. Never waits for
    /// another thread's verification.
    ///
    /// # Errors
    /// [`Unusable`] when a checksum does not match, now or when a probe compared it, when lines cannot be read, or pinning found no memory:
    /// now and on every later call.
    pub fn verify(&self, fs: &dyn Fs) -> Result<Verification, Unusable> {
        if self.has_faulted() {
            return Err(self.condemn(Unusable::Faulted));
        }
        if let Some(reason) = self.condemned.get() {
            return Err(reason.clone());
        }
        if self.trust.load(Ordering::Acquire) == WHOLE {
            return Ok(Verification::Verified);
        }
        if self.verifying.swap(true, Ordering::Acquire) {
            return Ok(Verification::InProgress);
        }
        let checked = match self.residency {
            Residency::Mapped => self.compare_all(),
            Residency::Pinned => self.pin(fs),
        };
        let result = match checked {
            Ok(from) => {
                // Not over a condemnation: by a probe, meanwhile.
                let _ = self.trust.compare_exchange(from, WHOLE, Ordering::AcqRel, Ordering::Acquire);
                self.condemned.get().map_or(Ok(Verification::Verified), |reason| Err(reason.clone()))
            }
            Err(reason) => Err(self.condemn(reason)),
        };
        self.verifying.store(false, Ordering::Release);
        result
    }

    /// Returns what was believed before.
    fn compare_all(&self) -> Result<u8, Unusable> {
        let Some(map) = self.bytes.get() else { return Ok(BY_GROUP) };
        map.populate();
        match (0..self.header.groups()).find(|&group| !self.believe(map, group)) {
            None => Ok(BY_GROUP),
            Some(group) => Err(Unusable::bad_group(group)),
        }
    }

    /// Returns what was believed before.
    fn pin(&self, fs: &dyn Fs) -> Result<u8, Unusable> {
        if self.bytes.get().is_some() {
            return Ok(NOTHING); // Another thread has pinned it since this one looked.
        }
        let file = fs.open(&self.path)?;
        self.header.check_length(file.len()?)?;
        let map = Map::read(&*file, self.header.file_bytes() as usize)?;
        let (lines, checksums) = map.split_at(self.header.checksums_at() as usize);
        match self.seal.first_bad_group(&lines[HEADER_BYTES..], checksums) {
            Some(group) => Err(Unusable::bad_group(group)),
            None => {
                let _ = self.bytes.set(map); // Only this thread is here.
                Ok(NOTHING)
            }
        }
    }

    /// Whether pages of its map were found to be gone.
    pub fn has_faulted(&self) -> bool {
        self.bytes.get().is_some_and(Map::has_faulted)
    }

    /// Whether all lines have been verified, so that probes are answered without further checks.
    #[inline]
    pub fn is_verified(&self) -> bool {
        self.trust.load(Ordering::Acquire) == WHOLE && !self.has_faulted()
    }

    /// How the lines are read.
    pub fn kind(&self) -> FilterKind {
        self.prober.kind()
    }

    /// How many hashes were added when it was built.
    pub fn keys(&self) -> u64 {
        self.header.keys
    }

    /// Its lines.
    pub fn lines(&self) -> u64 {
        self.header.lines
    }

    /// The size of its lines in bytes.
    pub fn filter_bytes(&self) -> u64 {
        self.header.lines * LINE_BYTES as u64
    }

    /// The false-positive rate (0 to 1) that the theory gives for its keys and lines.
    pub fn expected_fpr(&self) -> f64 {
        self.kind().expected_fpr(self.header.keys, self.header.lines)
    }

    /// The lines among the file's bytes, whose length was checked.
    #[inline]
    fn lines_of<'a>(&self, map: &'a Map) -> &'a [Line] {
        let lines = map.get(HEADER_BYTES..HEADER_BYTES + self.lines * LINE_BYTES);
        lines.unwrap_or_default().as_chunks().0
    }
}

impl Expect {
    fn check(&self, header: &Header) -> Result<(), Unusable> {
        if header.binding != Some(self.binding) {
            let name = |b: Binding| format!("segment {} with digest {:016x}", b.segment, b.digest);
            let found = header.binding.map_or("no segment".to_owned(), name);
            return Err(Unusable::NotOfThisSegment { found, expected: name(self.binding) });
        }
        Ok(())
    }
}

impl fmt::Debug for Sidecar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sidecar")
            .field("path", &self.path)
            .field("header", &self.header)
            .field("residency", &self.residency)
            .field("verified", &self.is_verified())
            .finish()
    }
}
