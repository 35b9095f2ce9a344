//! Reading: map, check the header, verify the lines once, then probe.
//!
//! I1 by construction: the map moves into `verified` only after its checksum has matched, and a probe looks nowhere else. Before
//! that, and for ever after a mismatch, every answer is [`Verdict::Maybe`].

use super::format::{Binding, DIGEST_BYTES, HEADER_BYTES, Header};
use super::kind::{KIND_AT, Kind};
use super::unusable::Unusable;
use crate::error::Error;
use crate::filter::{FilterKind, LINE_BYTES, Line, Prober, Verdict};
use crate::fs::{Fs, Map};
use crate::hash::{KeyHasher, digest};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// What a sidecar must be, to be believed: the filter of one segment, of keys hashed as the store hashes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expect {
    /// The segment.
    pub binding: Binding,
    /// The store's key hash.
    pub hasher: KeyHasher,
}

/// Where the lines of a verified sidecar live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Residency {
    /// In the page cache, through the map of the file. The kernel may evict them.
    #[default]
    Mapped,
    /// In anonymous memory, on huge pages where the kernel gives them: copied when verified, never evicted.
    Pinned,
}

/// The outcome of [`Sidecar::verify`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// The lines' checksum matches; probes are answered from here on.
    Verified,
    /// Another thread is at it.
    InProgress,
}

/// An open sidecar.
pub struct Sidecar {
    /// The map, once its checksum has matched: all that a probe reads, beside the prober.
    verified: OnceLock<Map>,
    prober: Prober,
    header: Header,
    path: PathBuf,
    residency: Residency,
    pending: Mutex<Pending>,
}

/// What `verified` does not know.
enum Pending {
    Unverified(Map),
    InProgress,
    Verified,
    Bad(Unusable),
}

impl Sidecar {
    /// Maps a sidecar and checks its header page and its length; reads no line.
    ///
    /// # Errors
    /// [`Unusable`] for whatever is wrong: the file is missing, damaged, of another segment, of a newer build.
    pub fn open(
        fs: &dyn Fs,
        path: &Path,
        expect: &Expect,
        residency: Residency,
    ) -> Result<Sidecar, Unusable> {
        // SAFETY: this crate writes a sidecar under a temporary name, renames it into place and never touches its bytes again.
        // `Residency::Mapped` documents what happens when somebody else does.
        let mapped = unsafe { fs.map(path) };
        let map = mapped.map_err(|e| match e {
            Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => Unusable::Missing,
            other => Unusable::Io(other),
        })?;
        let header = Header::decode(&map)?;
        if map.len() as u64 != header.file_bytes() {
            let what = format!("the file has {} bytes, its header says {}", map.len(), header.file_bytes());
            return Err(Unusable::Invalid { offset: header.file_bytes().min(map.len() as u64), what });
        }
        expect.check(&header)?;
        let Kind::Lines(kind, hasher) = header.kind else {
            let what = "a filter of a kind that no segment has".to_owned();
            return Err(Unusable::Invalid { offset: KIND_AT as u64, what });
        };
        if hasher != expect.hasher {
            return Err(Unusable::OtherHash);
        }
        Ok(Sidecar {
            verified: OnceLock::new(),
            prober: Prober::new(kind),
            header,
            path: path.to_path_buf(),
            residency,
            pending: Mutex::new(Pending::Unverified(map)),
        })
    }

    /// Starts to load what [`probe`](Self::probe) will read.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        if let Some(map) = self.verified.get() {
            self.prober.prefetch(lines_of(map), hash);
        }
    }

    /// Asks for a key's hash. [`Verdict::Maybe`] until verified.
    #[inline]
    pub fn probe(&self, hash: u64) -> Verdict {
        match self.verified.get() {
            Some(map) => self.prober.probe(lines_of(map), hash),
            None => Verdict::Maybe,
        }
    }

    /// Reads all lines (into anonymous memory, when pinned) and checks their digest; after that, probes are answered. Cheap when
    /// already done. Never waits for another thread's verification.
    ///
    /// # Errors
    /// [`Unusable`] when the digest does not match, or pinning found no memory: now and on every later call.
    pub fn verify(&self) -> Result<Verification, Unusable> {
        let map = {
            let mut pending = self.pending();
            match std::mem::replace(&mut *pending, Pending::InProgress) {
                Pending::Unverified(map) => map,
                Pending::InProgress => return Ok(Verification::InProgress),
                Pending::Verified => {
                    *pending = Pending::Verified;
                    return Ok(Verification::Verified);
                }
                Pending::Bad(reason) => {
                    *pending = Pending::Bad(reason.clone());
                    return Err(reason);
                }
            }
        };
        match self.check(map) {
            Ok(map) => {
                // Only this thread held the map, so nobody can have set it before.
                let _ = self.verified.set(map);
                *self.pending() = Pending::Verified;
                Ok(Verification::Verified)
            }
            Err(reason) => {
                *self.pending() = Pending::Bad(reason.clone());
                Err(reason)
            }
        }
    }

    /// The map that will serve, if its lines match their digest: what is checked is what is probed.
    fn check(&self, map: Map) -> Result<Map, Unusable> {
        map.populate();
        let map = match self.residency {
            Residency::Mapped => map,
            Residency::Pinned => {
                Map::copied(&map).map_err(|e| Unusable::Io(Error::io("pin", &self.path, e)))?
            }
        };
        let (lines, stored) = map.split_at(map.len() - DIGEST_BYTES);
        if digest(&lines[HEADER_BYTES..]).to_le_bytes() != stored {
            let what = "the digest of the lines does not match".to_owned();
            return Err(Unusable::Invalid { offset: self.header.digest_at(), what });
        }
        Ok(map)
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether probes are answered from the lines.
    #[inline]
    pub fn is_verified(&self) -> bool {
        self.verified.get().is_some()
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

/// The lines in a sidecar's bytes: `open` has checked that the length is exactly header, lines, digest.
#[inline]
fn lines_of(map: &Map) -> &[Line] {
    let bytes = map.get(HEADER_BYTES..).unwrap_or_default();
    // The digest is shorter than a line: it is the remainder.
    bytes.as_chunks().0
}

const _: () = assert!(DIGEST_BYTES < LINE_BYTES);

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
