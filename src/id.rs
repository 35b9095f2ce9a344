//! File numbers and names. Numbers are never reused within a store.

use std::fmt;

/// The lock file of a store.
pub(crate) const LOCK: &str = "LOCK";

/// The suffix of a file that is renamed once it is complete.
pub(crate) const TEMPORARY: &str = ".tmp";

/// The number of a file of a store. A segment and its sidecar share one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u64);

impl FileId {
    /// No manifest names a file with a larger number.
    pub(crate) const LARGEST: FileId = FileId(1 << 62);
    /// A store whose next number is larger than this takes no writes before a repair. So numbers never run
    /// out, and none exceeds [`LARGEST`](Self::LARGEST). At a million files a second this takes 70,000 years.
    pub(crate) const LARGEST_NEW: FileId = FileId(1 << 61);

    /// Whether a store may have given a file this number.
    pub(crate) fn is_usual(self) -> bool {
        self <= FileId::LARGEST_NEW
    }

    /// Whether there are as many numbers above this one as below it before a store takes no more writes. A
    /// repair abandons larger ones.
    pub(crate) fn leaves_room(self) -> bool {
        self.0 <= FileId::LARGEST_NEW.0 / 2
    }

    /// The file name for this number and kind: at least six digits, and the kind's extension.
    pub fn file_name(self, kind: FileKind) -> String {
        format!("{:06}.{}", self.0, kind.extension())
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06}", self.0)
    }
}

/// The kinds of numbered files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// Write-ahead log.
    Wal,
    /// Sorted table of entries.
    Segment,
    /// Sidecar filter of the segment with the same number.
    Filter,
    /// A segment that the manifest no longer lists but readers still hold. It has a different name so that a
    /// repair without a manifest does not take it for live: the tombstones that hide its entries may be gone.
    Obsolete,
}

impl FileKind {
    /// The file name extension, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            FileKind::Wal => "wal",
            FileKind::Segment => "segment",
            FileKind::Filter => "filter",
            FileKind::Obsolete => "obsolete",
        }
    }

    /// Parses a file name; `None` unless it names a numbered store file.
    pub fn parse(name: &str) -> Option<(FileId, FileKind)> {
        let (digits, extension) = name.split_once('.')?;
        let kind = [FileKind::Wal, FileKind::Segment, FileKind::Filter, FileKind::Obsolete]
            .into_iter()
            .find(|kind| kind.extension() == extension)?;
        let plain = digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_digit());
        let id = FileId(digits.parse().ok().filter(|_| plain)?);
        (id.file_name(kind) == name).then_some((id, kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back_and_nothing_else_parses() {
        for id in [0, 1, 999_999, 1_000_000, u64::MAX] {
            for kind in [FileKind::Wal, FileKind::Segment, FileKind::Filter, FileKind::Obsolete] {
                let name = FileId(id).file_name(kind);
                assert_eq!(FileKind::parse(&name), Some((FileId(id), kind)), "{name}");
            }
        }
        for name in
            ["1.wal", "0000001.wal", "00000a.wal", "000001.sst", "000001", "+00001.wal", "000001.wal.tmp"]
        {
            assert_eq!(FileKind::parse(name), None, "{name}");
        }
    }
}
