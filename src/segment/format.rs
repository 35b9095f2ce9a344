//! The byte map of a segment file, format version 2. All integers are little-endian, `varint` is LEB128.
//!
//! ```text
//! segment    := block(data)*  block(index)*  block(top index)  block(properties)  footer      nothing in between
//! block(x)   := payload  type u8  crc u32        at most 128 MiB, before and after decompression
//! payload    := x                                type 0
//!             | length u32  lz4 block of x       type 1
//!             | length u32  zstd frame of x      type 2
//!
//! data       := restarts u32  heads length u32  (head u32  value u32)*restarts  head*  value*
//! head       := shared varint  rest varint  value varint  seq varint  bytes*rest
//! index      := base u64  count u32  separator*count          also the top index
//! separator  := shared varint  rest varint  length varint  bytes*rest
//!
//! properties := entries u64  tombstones u64  smallest seq u64  largest seq u64  raw bytes u64  store id u64
//!               hash code u8  hash key u64 u64  compression bytes  smallest key bytes  largest key bytes       bytes: varint length first
//! footer     := segment id u64        0      56 bytes, the last of the file
//!               top index offset u64  8
//!               properties offset u64 16
//!               digest u64            24
//!               top index length u32  32
//!               properties length u32 36
//!               version u32           40     version, magic and crc keep their distance from the end in every version
//!               magic "sbsegmnt"      44
//!               crc u32               52     of the 52 bytes before it, in every version
//! ```
//!
//! **block.** `crc` is over payload, type, and the block's place: segment id u64, offset u64. So a block of another file or of
//! another offset (a misdirected write, a recycled extent) does not pass. Invalid: a wrong crc, an unknown type, a `length` over
//! 128 MiB, over 255 times the lz4 block, or other than what decompression gives. Only data blocks are ever compressed; a block
//! that does not shrink by an eighth is type 0.
//!
//! **data.** Keys strictly increase through the whole file. The heads stand together before all values, so that a search reads
//! few cache lines. `shared` is exactly the number of leading bytes shared with the key before (the search relies on it), and 0 in
//! every sixteenth head: these are the restarts. A restart's `head` counts from the first head, its `value` from the first value.
//! `rest` is the number of key bytes that follow the shared ones. `value` is 0 for a tombstone, otherwise 1 + the length of the
//! value; the values stand in the order of their heads without gaps. Invalid: more than sixteen heads from one restart to the
//! next, a key over 64 KiB (prefixes expand: without these bounds a small block could ask for gigabytes). A data block is valid
//! exactly when the writer would give the same bytes for its entries; `verify` checks that.
//!
//! **index.** Each separator names one block: at least the block's last key, less than the first key of the next block. The first
//! block lies at `base`, each next one where the one before ends, and `length` counts payload, type and crc. The blocks of a
//! partition are data blocks, the blocks of the top index are the partitions. The last separator of a partition equals the
//! partition's separator in the top index; the very last one is the largest key. Invalid: no separator, separators that do not
//! strictly increase, a block that reaches beyond the area of its kind.
//!
//! **properties.** What the segment holds, for the manifest's repair and for statistics. `raw bytes` sums key and value lengths,
//! `compression` is the name that the writer was told ("none", "lz4", "zstd"). `store id`, `hash code` and `hash key` repeat the store's own,
//! so that a store that lost its manifest can be rebuilt from its segments. Invalid: no entries, or a value that contradicts the
//! entries.
//!
//! **footer.** The top index ends where the properties begin, and these end where the footer begins. `digest` is the 64-bit digest
//! of every byte before the footer: a sidecar names it to prove that it belongs to this segment. Invalid: a wrong crc or magic, a
//! segment id other than the file's number.

use crate::codec::{Crc32, Decoder, Encode, crc32};
use crate::error::{Error, Result};
use crate::hash::KeyHasher;
use crate::id::FileId;
use crate::key::{EntryKind, Seq};
use std::path::Path;

/// What a parser says about bytes that are not what the format asks for; the caller knows the file and the offset.
pub type Parsed<T> = std::result::Result<T, &'static str>;

/// Entries from one restart to the next.
pub const RESTART_INTERVAL: usize = 16;
/// Type and crc behind each payload.
pub const TRAILER_BYTES: usize = 5;
/// Largest block. The largest entry (64 MiB and a key) fits; so does the top index of a 5 TB segment.
pub const MAX_BLOCK_BYTES: usize = 128 << 20;
/// Size of the footer.
pub const FOOTER_BYTES: usize = 56;

const VERSION: u32 = 2;
const MAGIC: [u8; 8] = *b"sbsegmnt";
const VERSION_AT: usize = 40;
const MAGIC_AT: usize = 44;
const CRC_AT: usize = 52;
const _: () =
    assert!(CRC_AT + 4 == FOOTER_BYTES && MAGIC_AT + MAGIC.len() == CRC_AT && VERSION_AT + 4 == MAGIC_AT);
const _: () = assert!(MAX_BLOCK_BYTES > crate::key::MAX_VALUE_BYTES + crate::key::MAX_KEY_BYTES + 4096);

/// How the data blocks of new segments are compressed. Every build reads `None` and `Lz4`; `Zstd` takes the feature `zstd`, to
/// write and to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Compression {
    /// As they are.
    None = 0,
    /// LZ4: the fast one.
    #[default]
    Lz4 = 1,
    /// Zstandard, level 3: smaller and slower.
    Zstd = 2,
}

impl Compression {
    const ALL: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd];

    /// Reads a block's type.
    pub(super) fn from_u8(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u8 == byte)
    }

    /// "none", "lz4" or "zstd".
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }

    pub(super) fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name().as_bytes() == name)
    }
}

/// Where a block lies in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHandle {
    /// First byte.
    pub offset: u64,
    /// Payload and trailer, in bytes.
    pub len: u32,
}

impl BlockHandle {
    /// The first byte behind the block.
    pub fn end(self) -> u64 {
        self.offset.saturating_add(u64::from(self.len))
    }
}

/// A place in a segment file: what a block's crc binds it to, and what an error names.
#[derive(Debug, Clone, Copy)]
pub struct Location<'a> {
    /// The file.
    pub path: &'a Path,
    /// Its number.
    pub id: FileId,
    /// In bytes from its start.
    pub offset: u64,
}

impl Location<'_> {
    /// The error for damage found here.
    pub fn damaged(&self, what: impl Into<String>) -> Error {
        Error::corruption(self.path, self.offset, what)
    }
}

/// The crc of the block at `offset` of segment `id`, over the payload and its type byte.
pub fn block_crc(id: FileId, offset: u64, payload_and_type: &[u8]) -> u32 {
    crc32(&[payload_and_type, &location_bytes(id, offset)])
}

fn location_bytes(id: FileId, offset: u64) -> [u8; 16] {
    let mut location = [0; 16];
    location[..8].copy_from_slice(&id.0.to_le_bytes());
    location[8..].copy_from_slice(&offset.to_le_bytes());
    location
}

/// The length of the block that begins at `offset` of segment `id`, where `bytes` stand, if one does: the first with which its checksum
/// matches. For segments without an index.
pub fn block_len(id: FileId, offset: u64, bytes: &[u8]) -> Option<usize> {
    let location = location_bytes(id, offset);
    let mut crc = Crc32::default();
    for (at, kind) in bytes.iter().enumerate() {
        crc.update(std::slice::from_ref(kind));
        let stored = bytes.get(at + 1..)?.first_chunk()?;
        if at == 0 || Compression::from_u8(*kind).is_none() {
            continue;
        }
        let mut whole = crc.clone();
        whole.update(&location);
        if whole.value() == u32::from_le_bytes(*stored) {
            return Some(at + TRAILER_BYTES);
        }
    }
    None
}

/// Checks a stored block; gives its type and its payload.
pub fn open_block<'a>(location: Location<'_>, stored: &'a [u8]) -> Result<(Compression, &'a [u8])> {
    let parts = stored.split_last_chunk::<4>().and_then(|(body, crc)| Some((body, crc, body.split_last()?)));
    let Some((body, crc, (&kind, payload))) = parts else {
        return Err(location.damaged("a block shorter than its trailer"));
    };
    let (found, expected) = (block_crc(location.id, location.offset, body), u32::from_le_bytes(*crc));
    if found != expected {
        return Err(location.damaged(format!("block checksum {found:08x}, stored {expected:08x}")));
    }
    let kind =
        Compression::from_u8(kind).ok_or_else(|| location.damaged(format!("unknown block type {kind}")))?;
    Ok((kind, payload))
}

/// The fixed end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footer {
    /// The number of the segment.
    pub id: FileId,
    /// The top index.
    pub top: BlockHandle,
    /// The properties.
    pub properties: BlockHandle,
    /// Of all bytes before the footer.
    pub digest: u64,
}

impl Footer {
    /// The bytes on disk.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        out.put_u64(self.id.0);
        out.put_u64(self.top.offset);
        out.put_u64(self.properties.offset);
        out.put_u64(self.digest);
        out.put_u32(self.top.len);
        out.put_u32(self.properties.len);
        out.put_u32(VERSION);
        out.extend_from_slice(&MAGIC);
        let crc = crc32(&[&out]);
        out.put_u32(crc);
        out
    }

    /// Reads the footer that stands at `place`, the end of the file less [`FOOTER_BYTES`].
    pub fn decode(location: Location<'_>, bytes: &[u8; FOOTER_BYTES]) -> Result<Self> {
        if bytes[MAGIC_AT..CRC_AT] != MAGIC {
            return Err(location.damaged("no segment footer here: the file is truncated, or no segment"));
        }
        let mut fields = Decoder::new(bytes);
        let mut decode = || -> Option<(Footer, u32, u32)> {
            let (id, top, properties, digest) = (fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?);
            let (top_len, properties_len, version) = (fields.u32()?, fields.u32()?, fields.u32()?);
            fields.take(MAGIC.len())?;
            let top = BlockHandle { offset: top, len: top_len };
            let properties = BlockHandle { offset: properties, len: properties_len };
            Some((Footer { id: FileId(id), top, properties, digest }, version, fields.u32()?))
        };
        let (footer, version, crc) = decode().ok_or_else(|| location.damaged("short footer"))?;
        // Comes first: a damaged version is no other version.
        if crc32(&[&bytes[..CRC_AT]]) != crc {
            return Err(location.damaged("the footer's checksum is wrong"));
        }
        if version != VERSION {
            let file = location.path.to_path_buf();
            return Err(Error::UnsupportedVersion { file, found: version, supported: VERSION });
        }
        if footer.id != location.id {
            return Err(location.damaged(format!("this is segment {}: was the file renamed?", footer.id)));
        }
        if footer.top.end() != footer.properties.offset || footer.properties.end() != location.offset {
            return Err(location.damaged("the footer's offsets do not meet: bytes are missing or were added"));
        }
        Ok(footer)
    }
}

/// The store that a segment belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreIdentity {
    /// Drawn when the store was created.
    pub store_id: u64,
    /// The store's key hash.
    pub hasher: KeyHasher,
}

/// What the properties block says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Properties {
    /// Puts and tombstones.
    pub entries: u64,
    /// Tombstones.
    pub tombstones: u64,
    /// Least sequence number.
    pub min_seq: Seq,
    /// Largest sequence number.
    pub max_seq: Seq,
    /// Sum of key and value lengths.
    pub raw_bytes: u64,
    /// The store.
    pub store: StoreIdentity,
    /// What the writer was told.
    pub compression: Compression,
    /// First key.
    pub smallest: Vec<u8>,
    /// Last key.
    pub largest: Vec<u8>,
}

impl Properties {
    /// Of a segment without entries.
    pub fn new(store: StoreIdentity, compression: Compression) -> Self {
        let (smallest, largest) = (Vec::new(), Vec::new());
        let (entries, tombstones, min_seq, max_seq, raw_bytes) = (0, 0, Seq::MAX, 0, 0);
        Properties { entries, tombstones, min_seq, max_seq, raw_bytes, store, compression, smallest, largest }
    }

    /// Takes the next entry into account; the largest key is left to the end.
    #[inline]
    pub fn count(&mut self, key: &[u8], seq: Seq, kind: EntryKind, value_len: usize) {
        if self.entries == 0 {
            self.smallest = key.to_vec();
        }
        self.entries += 1;
        self.tombstones += u64::from(kind == EntryKind::Tombstone);
        self.min_seq = self.min_seq.min(seq);
        self.max_seq = self.max_seq.max(seq);
        self.raw_bytes += (key.len() + value_len) as u64;
    }

    /// The payload of the properties block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let StoreIdentity { store_id, hasher } = self.store;
        let sums = [self.entries, self.tombstones, self.min_seq, self.max_seq, self.raw_bytes];
        sums.into_iter().chain([store_id]).for_each(|number| out.put_u64(number));
        let (code, key) = hasher.to_code();
        out.put_u8(code);
        key.iter().for_each(|&word| out.put_u64(word));
        out.put_bytes(self.compression.name().as_bytes());
        out.put_bytes(&self.smallest);
        out.put_bytes(&self.largest);
    }

    /// Reads the payload of the properties block.
    pub fn decode(payload: &[u8]) -> Parsed<Self> {
        let mut fields = Decoder::new(payload);
        let mut decode = || -> Option<Properties> {
            Some(Properties {
                entries: fields.u64()?,
                tombstones: fields.u64()?,
                min_seq: fields.u64()?,
                max_seq: fields.u64()?,
                raw_bytes: fields.u64()?,
                store: StoreIdentity {
                    store_id: fields.u64()?,
                    hasher: KeyHasher::from_code(fields.u8()?, [fields.u64()?, fields.u64()?])?,
                },
                compression: Compression::from_name(fields.bytes()?)?,
                smallest: fields.bytes()?.to_vec(),
                largest: fields.bytes()?.to_vec(),
            })
        };
        let properties = decode().ok_or("properties that do not parse")?;
        let sensible = properties.tombstones <= properties.entries
            && properties.min_seq <= properties.max_seq
            && properties.smallest <= properties.largest;
        if properties.entries == 0 || !sensible || fields.remaining() != 0 {
            return Err("properties that contradict themselves");
        }
        Ok(properties)
    }
}
