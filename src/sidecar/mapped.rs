//! Stand-alone filters that stay in their files: mapped, and compared with their checksums as they are read.

use super::facts::parts_of;
use super::standalone::{LinesFile, Opened, damaged, open};
use super::unusable::Unusable;
use crate::error::{Error, Result};
use crate::filter::format::groups::{GROUP_LINES, Seal};
use crate::filter::format::parts::filter_of;
use crate::filter::format::{HEADER_BYTES, Header, StoredProber};
use crate::filter::{AnyFilter, LINE_BYTES, Line, Lines, Verdict};
use crate::fs::{Fs, Map, RealFs, Verified};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::AcqRel, Ordering::Acquire};

/// A stand-alone filter in its file ([`write_filter`](crate::write_filter)), opened without reading it.
///
/// Parity, blocked Bloom and Bloom filters are mapped: processes that open the same file share its pages, and
/// a query reads only the lines that it needs. Each group of 64 lines is compared with its checksum before
/// its first use. The other kinds are read into memory. The filter is read-only.
///
/// Replacing the file by a rename leaves an open filter as it is. Truncating it raises SIGBUS, as with every
/// mapped file; after [`catch_sigbus`](crate::fs::catch_sigbus), queries return an error instead.
///
/// ```
/// use sidebloom::filter::{AnyFilter, FilterSpec, LineFilter, Verdict, Width};
/// use sidebloom::{MappedFilter, write_filter};
/// # fn main() -> sidebloom::Result<()> {
/// # let dir = tempfile::tempdir()
/// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
/// # let path = dir.path().join("names.filter");
/// let names = LineFilter::build(FilterSpec::Parity { width: Width::Eight }, ["ada", "grace"], 42)?;
/// write_filter(&path, &AnyFilter::Lines(names))?;
///
/// let names = MappedFilter::open(&path)?;
/// assert_eq!(names.contains("grace")?, Verdict::Maybe);
/// assert_eq!(names.contains_many(&["ada", "barbara"])?, [Verdict::Maybe, Verdict::Absent]);
/// # Ok(()) }
/// ```
pub struct MappedFilter {
    path: PathBuf,
    stored: Stored,
}

enum Stored {
    Mapped(Box<Mapped>),
    Read(AnyFilter),
}

struct Mapped {
    map: Map,
    header: Header,
    seal: Seal,
    prober: StoredProber,
    verified: Verified,
    /// Groups that have not been compared with their checksums.
    unverified: AtomicUsize,
}

impl MappedFilter {
    /// Opens a filter's file. Checks its header and its length.
    ///
    /// # Errors
    /// Those of [`read_filter`](crate::read_filter).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let stored = match open(path)? {
            Opened::Small(filter) => Stored::Read(AnyFilter::Small(filter)),
            Opened::Lines(file) => match StoredProber::of(&file.header.kind) {
                Some(prober) => Stored::Mapped(Box::new(Mapped::new(path, &file, prober)?)),
                None => Stored::Read(file.read(path)?),
            },
        };
        Ok(MappedFilter { path: path.to_path_buf(), stored })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The display name of the kind ([`AnyFilter::name`]).
    pub fn name(&self) -> &'static str {
        match &self.stored {
            Stored::Read(filter) => filter.name(),
            Stored::Mapped(mapped) => mapped.header.kind.name(),
        }
    }

    /// The number of keys ([`AnyFilter::keys`]).
    pub fn keys(&self) -> u64 {
        match &self.stored {
            Stored::Read(filter) => filter.keys(),
            Stored::Mapped(mapped) => mapped.header.keys,
        }
    }

    /// The size of the lines, or of a small filter's values, in bytes.
    pub fn bytes(&self) -> u64 {
        match &self.stored {
            Stored::Read(filter) => filter.bytes(),
            Stored::Mapped(mapped) => mapped.header.lines * LINE_BYTES as u64,
        }
    }

    /// The false-positive rate (0 to 1), as it was when the file was written.
    pub fn fpr(&self) -> f64 {
        match &self.stored {
            Stored::Read(filter) => filter.fpr(),
            Stored::Mapped(mapped) => mapped.header.expected_fpr,
        }
    }

    /// Queries a key.
    ///
    /// # Errors
    /// [`Error::Corruption`] for a group of lines that does not match its checksum, or whose pages could not
    /// be read.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<Verdict> {
        let mapped = match &self.stored {
            Stored::Read(filter) => return Ok(filter.contains(key)),
            Stored::Mapped(mapped) => mapped,
        };
        let (key, mut bad) = (key.as_ref(), None);
        let verdict = if mapped.is_whole() {
            Some(mapped.prober.probe(mapped.lines(), key))
        } else {
            let mut believe = |line| mapped.believe(line / GROUP_LINES, &mut bad);
            mapped.prober.probe_believed(mapped.lines(), key, &mut believe)
        };
        // Checked after the probe: missing lines read as zeros.
        verdict.filter(|_| !mapped.map.has_faulted()).ok_or_else(|| self.damaged(bad))
    }

    /// Queries many keys, in order, prefetching their lines.
    ///
    /// # Errors
    /// The errors of [`contains`](Self::contains).
    pub fn contains_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Verdict>> {
        let mapped = match &self.stored {
            Stored::Read(filter) => return Ok(filter.contains_many(keys)),
            Stored::Mapped(mapped) => mapped,
        };
        let (mut verdicts, mut bad) = (Vec::new(), None);
        let are_all = if mapped.is_whole() {
            mapped.prober.probe_many(mapped.lines(), keys, &mut verdicts);
            true
        } else {
            let mut believe = |line| mapped.believe(line / GROUP_LINES, &mut bad);
            mapped.prober.probe_many_believed(mapped.lines(), keys, &mut verdicts, &mut believe)
        };
        if are_all && !mapped.map.has_faulted() { Ok(verdicts) } else { Err(self.damaged(bad)) }
    }

    /// The filter in memory, from the file as it was opened; every byte is verified.
    ///
    /// # Errors
    /// The errors of [`contains`](Self::contains); [`Error::OutOfMemory`].
    pub fn to_memory(&self) -> Result<AnyFilter> {
        match &self.stored {
            Stored::Read(filter) => Ok(filter.clone()),
            Stored::Mapped(mapped) => {
                self.verify()?;
                let mut lines = Lines::zeroed(mapped.lines().len())?;
                lines.copy_from_slice(mapped.lines());
                if mapped.map.has_faulted() {
                    return Err(self.damaged(None));
                }
                filter_of(&mapped.header, lines).map_err(|bad| damaged(&self.path, bad.into()))
            }
        }
    }

    /// Compares the whole file with its checksums. Later queries compare nothing.
    ///
    /// # Errors
    /// The errors of [`contains`](Self::contains).
    pub fn verify(&self) -> Result<()> {
        let Stored::Mapped(mapped) = &self.stored else { return Ok(()) };
        let mut bad = None;
        if !mapped.is_whole() {
            mapped.map.expect_many_pages();
            let are_good = (0..mapped.header.groups()).all(|group| mapped.believe(group, &mut bad));
            if are_good { mapped.map.expect_all_pages() } else { mapped.map.expect_single_pages() }
        }
        if mapped.is_whole() && !mapped.map.has_faulted() { Ok(()) } else { Err(self.damaged(bad)) }
    }

    /// The error for a bad group, or for pages that could not be read.
    fn damaged(&self, bad: Option<usize>) -> Error {
        damaged(&self.path, bad.map_or(Unusable::Faulted, Unusable::bad_group))
    }
}

impl Mapped {
    fn new(path: &Path, file: &LinesFile, prober: StoredProber) -> Result<Self> {
        // SAFETY: this crate writes the file of a filter under a temporary name, renames it into place and
        // never touches its bytes again. The documentation of the type says what happens if another program
        // does.
        let map = unsafe { RealFs.map(path) }?;
        if map.get(..HEADER_BYTES).map(Seal::of) != Some(file.seal)
            || map.len() as u64 != file.header.file_bytes()
        {
            return Err(Error::corruption(
                path,
                0,
                "the file was replaced while it was opened; open it again",
            ));
        }
        map.expect_single_pages();
        let groups = file.header.groups();
        Ok(Mapped {
            map,
            header: file.header,
            seal: file.seal,
            prober,
            verified: Verified::none_of(groups),
            unverified: AtomicUsize::new(groups),
        })
    }

    fn is_whole(&self) -> bool {
        self.unverified.load(Acquire) == 0
    }

    /// The lines. The length of the file was checked, so all are there.
    fn lines(&self) -> &[Line] {
        let end = HEADER_BYTES + self.header.lines as usize * LINE_BYTES;
        self.map.get(HEADER_BYTES..end).unwrap_or_default().as_chunks().0
    }

    /// Whether a group's lines match their checksum. If not, `bad` is the group, or `None` after a fault.
    fn believe(&self, group: usize, bad: &mut Option<usize>) -> bool {
        self.verified.has(group) || self.compare(group, bad)
    }

    #[inline(never)]
    fn compare(&self, group: usize, bad: &mut Option<usize>) -> bool {
        let [lines, stored] =
            parts_of(&self.header, group).map(|part| self.map.get(part).unwrap_or_default());
        let matches = stored == self.seal.checksum(group, lines).to_le_bytes();
        // Checked after the comparison: missing pages read as zeros from the fault on.
        if self.map.has_faulted() {
            return false;
        }
        if !matches {
            *bad = Some(group);
        } else if self.verified.set(group) {
            self.unverified.fetch_sub(1, AcqRel);
        }
        matches
    }
}

impl fmt::Debug for MappedFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedFilter")
            .field("path", &self.path)
            .field("kind", &self.name())
            .field("keys", &self.keys())
            .finish()
    }
}
