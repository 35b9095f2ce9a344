//! How data blocks are compressed.

/// How the data blocks of new segments are compressed. Every build reads all but `Zstd`, which needs the
/// feature `zstd` for both writing and reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Compression {
    /// Uncompressed. Blocks are read in place, in a map of the file: found keys are fastest.
    None = 0,
    /// LZ4. A read decompresses a block of many rows.
    Lz4 = 1,
    /// Zstandard, level 3: smaller and slower.
    Zstd = 2,
    /// FSST (Boncz, Neumann, Leis, PVLDB 2020). Each value is compressed by itself with the segment's table
    /// of frequent strings, so a found key decodes its own value only, in place as with `None`. Text such as
    /// URLs, titles or JSON gets about a fifth smaller than with LZ4. Walks over all rows can be slower than
    /// with LZ4. Values that do not shrink are stored as they are.
    Fsst = 3,
    /// Chosen for each segment by its first values: `Fsst` if they get no larger with it than with `Lz4`,
    /// otherwise `Lz4`; `None` if neither saves an eighth. Never stored.
    #[default]
    Auto = 255,
}

impl Compression {
    /// All of them, those included that this build [lacks](Self::missing_feature).
    pub const ALL: &[Compression] =
        &[Compression::None, Compression::Lz4, Compression::Zstd, Compression::Fsst, Compression::Auto];

    /// Those that files have.
    fn stored() -> impl Iterator<Item = Compression> {
        Self::ALL.iter().copied().filter(|kind| *kind != Compression::Auto)
    }

    /// Decodes a block's type.
    pub(super) fn from_u8(byte: u8) -> Option<Self> {
        Self::stored().find(|&kind| kind as u8 == byte)
    }

    /// "none", "lz4", "zstd", "fsst" or "auto".
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
            Compression::Fsst => "fsst",
            Compression::Auto => "auto",
        }
    }

    /// Whether a block holds its rows as they are, except perhaps the values, so that it can be read in
    /// place.
    pub(super) fn is_in_place(self) -> bool {
        matches!(self, Compression::None | Compression::Fsst)
    }

    /// The feature that this build would need; `None` if it has what it takes.
    pub fn missing_feature(self) -> Option<&'static str> {
        match self {
            Compression::Zstd if !cfg!(feature = "zstd") => Some("zstd"),
            _ => None,
        }
    }

    pub(super) fn from_name(name: &[u8]) -> Option<Self> {
        Self::stored().find(|kind| kind.name().as_bytes() == name)
    }
}
