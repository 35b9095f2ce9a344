//! The owner of a backup repository, and what the heads of all its files share. [`format`](super::format) has
//! the byte map.

use crate::codec::{Decoder, Encode, crc32};
use crate::error::{Error, Result};
use std::ops::RangeInclusive;
use std::path::Path;

/// The versions that this build reads.
pub(super) const READS: RangeInclusive<u32> = 1..=1;
/// The version that it writes: the last one it reads.
pub(super) const WRITES: u32 = *READS.end();
const OWNER_MAGIC: &[u8; 8] = b"SBLMREP\n";
pub(super) const OWNER_BYTES: usize = 28;
const _: () = assert!(OWNER_BYTES == OWNER_MAGIC.len() + 4 + 1 + 3 + 8 + 4);

/// What a backup was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A store.
    Store,
    /// A guard.
    Guard,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if *self == Kind::Store { "store" } else { "guard" })
    }
}

impl Kind {
    pub(super) fn code(self) -> u8 {
        match self {
            Kind::Store => 1,
            Kind::Guard => 2,
        }
    }

    fn decode(path: &Path, code: u8) -> Result<Self> {
        match code {
            0 => Err(Error::corruption(path, 12, "kind 0")),
            1 => Ok(Kind::Store),
            2 => Ok(Kind::Guard),
            code => Err(Error::unknown_code(path, 12, format!("kind {code}"))),
        }
    }
}

/// Whose backups a repository has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    pub kind: Kind,
    pub id: u64,
}

impl Owner {
    /// The bytes of `REPOSITORY`.
    pub fn encode(self) -> Vec<u8> {
        let mut buf = Vec::with_capacity(OWNER_BYTES);
        buf.extend_from_slice(OWNER_MAGIC);
        buf.put_u32(WRITES);
        buf.put_u8(self.kind.code());
        buf.extend_from_slice(&[0; 3]);
        buf.put_u64(self.id);
        buf.put_u32(crc32(&[&buf]));
        buf
    }

    pub fn decode(path: &Path, bytes: &[u8]) -> Result<Self> {
        let mut fields = checked_head(path, bytes, OWNER_MAGIC, OWNER_BYTES)?;
        if bytes.len() != OWNER_BYTES {
            return Err(Error::corruption(path, OWNER_BYTES as u64, "file too long"));
        }
        let kind = take_kind(path, &mut fields)?;
        let id = fields.u64().ok_or_else(|| Error::corruption(path, 16, "file too short"))?;
        Ok(Owner { kind, id })
    }
}

/// Checks magic, CRC-32 and version of a head. Returns its fields after these.
pub(super) fn checked_head<'a>(
    path: &Path,
    bytes: &'a [u8],
    magic: &[u8],
    len: usize,
) -> Result<Decoder<'a>> {
    let short = || Error::corruption(path, bytes.len() as u64, "file too short");
    let (covered, crc) = bytes.get(..len).and_then(|head| head.split_last_chunk()).ok_or_else(short)?;
    let mut fields = Decoder::new(covered);
    if fields.take(magic.len()) != Some(magic) {
        return Err(Error::corruption(path, 0, "no file of a backup repository begins like this"));
    }
    if *crc != crc32(&[covered]).to_le_bytes() {
        return Err(Error::corruption(path, covered.len() as u64, "checksum mismatch"));
    }
    let found = fields.u32().ok_or_else(short)?;
    if !READS.contains(&found) {
        return Err(Error::UnsupportedVersion { file: path.to_path_buf(), found, supported: READS });
    }
    Ok(fields)
}

pub(super) fn take_kind(path: &Path, fields: &mut Decoder<'_>) -> Result<Kind> {
    let code = fields.u8().unwrap_or(0);
    if fields.take(3) != Some(&[0; 3]) {
        return Err(Error::corruption(path, 13, "reserved bytes that are not zero"));
    }
    Kind::decode(path, code)
}
