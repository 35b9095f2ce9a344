//! What a sidecar's header page says, and whether the rest of the file agrees.

use super::maps::Maps;
use super::unusable::Unusable;
use crate::filter::format::groups::{CHECKSUM_BYTES, GROUP_BYTES, Seal};
use crate::filter::format::kind::KIND_AT;
use crate::filter::format::{Binding, HEADER_BYTES, Header, StoredKind};
use crate::filter::{FilterKind, LINE_BYTES, PrefixSet, Prober};
use crate::fs::{Map, ReadFile};
use crate::hash::KeyHasher;
use crate::id::FileId;
use std::ops::Range;
use std::path::Path;

/// What a sidecar must be to be trusted: one segment's filter, with keys hashed by the store's hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expect {
    /// The segment.
    pub binding: Binding,
    /// The store's key hash.
    pub hasher: KeyHasher,
}

impl Expect {
    fn check(&self, header: &Header) -> Result<(), Unusable> {
        if header.binding != Some(self.binding) {
            let name = |b: Binding| format!("segment {} with digest {:016x}", FileId(b.segment), b.digest);
            let found = header.binding.map_or("no segment".to_owned(), name);
            return Err(Unusable::NotOfThisSegment { found, expected: name(self.binding) });
        }
        Ok(())
    }
}

/// What a sidecar's header page says about it.
#[derive(Clone, Copy)]
pub struct Facts {
    pub(super) header: Header,
    pub(super) seal: Seal,
    pub(super) prober: Prober,
}

impl Facts {
    pub(super) fn read(maps: &Maps, path: &Path, expect: &Expect) -> Result<Self, Unusable> {
        // Ordinary reads, so that an unreadable file gives an error instead of a SIGBUS.
        let file = maps.fs.open(path)?;
        let len = file.len()?;
        let mut page = vec![0; HEADER_BYTES.min(usize::try_from(len).unwrap_or(HEADER_BYTES))];
        file.read_exact_at(&mut page, 0)?;
        let header = Header::decode(&page)?;
        header.check_length(len)?;
        expect.check(&header)?;
        let StoredKind::Lines(kind, hasher) = header.kind else {
            let what = "no segment has a filter of this kind".to_owned();
            return Err(Unusable::Invalid { offset: KIND_AT as u64, what });
        };
        if hasher != expect.hasher {
            return Err(Unusable::OtherHash);
        }
        Ok(Facts { header, seal: Seal::of(&page), prober: Prober::new(kind) })
    }

    /// How the lines are read.
    pub fn kind(&self) -> FilterKind {
        self.prober.kind()
    }

    /// Number of hashes when it was built, including those of prefixes.
    pub fn keys(&self) -> u64 {
        self.header.keys
    }

    /// How many of them are hashes of prefixes.
    pub fn prefix_members(&self) -> u64 {
        self.header.prefixes.count
    }

    /// What the prefixes of a key are.
    pub fn prefixes(&self) -> &PrefixSet {
        &self.header.prefixes.set
    }

    /// Its lines.
    pub fn lines(&self) -> u64 {
        self.header.lines
    }

    /// The size of its lines in bytes.
    pub fn filter_bytes(&self) -> u64 {
        self.header.lines * LINE_BYTES as u64
    }

    /// Its expected false-positive rate (0 to 1), computed when it was written.
    pub fn expected_fpr(&self) -> f64 {
        self.header.expected_fpr
    }

    /// See [`parts_of`].
    pub(super) fn parts_of(&self, group: usize) -> [Range<usize>; 2] {
        parts_of(&self.header, group)
    }

    /// Checks a piece of the file that begins at a multiple of a page: the header page by its seal, and
    /// groups by their checksums.
    pub(super) fn check_piece(&self, file: &dyn ReadFile, at: u64, piece: &[u8]) -> Result<(), Unusable> {
        let skip = match at {
            0 if piece.get(..HEADER_BYTES).map(Seal::of) != Some(self.seal) => return Err(replaced()),
            0 => HEADER_BYTES,
            _ => 0,
        };
        let lines_end = self.header.checksums_at().saturating_sub(at).min(piece.len() as u64) as usize;
        let lines = piece.get(skip..lines_end).unwrap_or_default();
        let first = (at + skip as u64).saturating_sub(HEADER_BYTES as u64) as usize / GROUP_BYTES;
        let mut checksums = vec![0; lines.len().div_ceil(GROUP_BYTES) * CHECKSUM_BYTES];
        file.read_exact_at(&mut checksums, self.header.checksums_at() + (first * CHECKSUM_BYTES) as u64)?;
        match self.seal.first_bad_group(first, lines, &checksums) {
            Some(group) => Err(Unusable::bad_group(group)),
            None => Ok(()),
        }
    }

    /// Checks by length and header page that these bytes belong to the opened file.
    pub(super) fn check_same(&self, map: &Map) -> Result<(), Unusable> {
        self.header.check_length(map.len() as u64)?;
        let same = map.get(..HEADER_BYTES).map(Seal::of) == Some(self.seal);
        match (map.has_faulted(), same) {
            (true, _) => Err(Unusable::Faulted),
            (_, false) => Err(replaced()),
            _ => Ok(()),
        }
    }
}

/// Where the file has a group's lines, and where their checksum. The file's length was checked.
pub(super) fn parts_of(header: &Header, group: usize) -> [Range<usize>; 2] {
    let lines_end = header.checksums_at() as usize;
    let (from, checksum) = (HEADER_BYTES + group * GROUP_BYTES, lines_end + group * CHECKSUM_BYTES);
    [from..(from + GROUP_BYTES).min(lines_end), checksum..checksum + CHECKSUM_BYTES]
}

fn replaced() -> Unusable {
    Unusable::Invalid { offset: 0, what: "the file was replaced after it was opened".into() }
}
