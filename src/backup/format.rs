//! The formats of a backup repository. Integers are little-endian; `varint` is LEB128.
//!
//! ```text
//! REPOSITORY                 whose backups these are
//! backups/NNNN…              a backup; its number in 20 digits
//! files/HHHH…                a file that backups list: the SHA-256 of its contents in 64 hex digits
//!
//! REPOSITORY, 28 bytes                       backup = head file*
//!  0  8  magic "SBLMREP\n"
//!  8  4  version                             head, 96 bytes
//! 12  1  kind                                 0  8  magic "SBLMBKP\n"
//! 13  3  zero                                 8  4  version
//! 16  8  owner                               12  1  kind
//! 24  4  CRC-32 of bytes 0..24               13  3  zero
//!                                            16  8  number
//! file                                       24  8  time
//!  1  what                                   32  8  owner
//!  …  number, varint                         40  8  generation
//!  …  length in bytes, varint                48  8  entries
//! 32  SHA-256                                56  8  bytes
//!  …  mark: 8 bytes of a segment, 32 of a    64  8  new bytes
//!     sidecar, none of others                72  8  files
//!                                            80  8  length of all files' entries
//!                                            88  4  CRC-32 of all files' entries
//!                                            92  4  CRC-32 of bytes 0..92
//! ```
//!
//! - *version*: 1, of both. In every version, magic, version and the CRC-32 of the head keep their places.
//! - *kind*: 1, a store; 2, a guard. A greater one is from a later version.
//! - *owner*: the number of the store, or of the guard. All backups of a repository have the same.
//! - *number*: that of the file's name, at least 1.
//! - *time*: when the backup began, in milliseconds since 1970, by the clock of the machine that made it.
//! - *generation*: that of the guard, at least 1; 0 for a store.
//! - *entries*: in segments and in the log; those that others hide or delete count too.
//! - *bytes*: the sum of the lengths of all files. *New bytes*: of those files that no earlier backup had.
//! - *what*: 1, a guard's settings; 2, the manifest; 3, a log; 4, a segment; 5, a sidecar. A greater code is
//!   from a later version. *Number* is that of a log, a segment or a sidecar, and 0 otherwise. The entries
//!   are in the order of both, each at most once. Names of files follow from both, so no backup can name a
//!   file outside of its store.
//! - *mark*: by which the next backup recognizes the file without reading it: a segment's own digest, and the
//!   SHA-256 of the first 4096 bytes of a sidecar, which have its segment's digest.
//!
//! Invalid, and damage: a checksum that does not match; a kind, a code or a number of 0 where none is
//! allowed; no manifest; settings in a store, or none in a guard; settings above 4096 bytes; a sidecar
//! without its segment; sums that are not those of the entries. The writer checks the same.

use super::owner::{Kind, Owner, WRITES, checked_head, take_kind};
use crate::codec::{Decoder, Encode, crc32};
use crate::error::{Error, Result};
use crate::id::{FileId, FileKind};
use crate::manifest::MANIFEST;
use std::path::Path;

const HEAD_MAGIC: &[u8; 8] = b"SBLMBKP\n";
pub(super) const HEAD_BYTES: usize = 96;
const SETTINGS_BYTES_MAX: u64 = 4096;
/// The largest backup that is read, in bytes: that of ten million segments.
pub(super) const RECORD_BYTES_MAX: u64 = 2 << 30;
const _: () = assert!(HEAD_BYTES == HEAD_MAGIC.len() + 4 + 1 + 3 + 9 * 8 + 4 + 4);

/// The SHA-256 of a file's contents.
pub type Sha256 = [u8; 32];

/// A file of a store or a guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum What {
    Settings,
    Manifest,
    Log(FileId),
    Segment(FileId),
    Sidecar(FileId),
}

impl What {
    fn code(self) -> (u8, u64) {
        match self {
            What::Settings => (1, 0),
            What::Manifest => (2, 0),
            What::Log(id) => (3, id.0),
            What::Segment(id) => (4, id.0),
            What::Sidecar(id) => (5, id.0),
        }
    }

    /// Its name in the store's directory; `None` for a guard's settings, which are not there.
    pub fn name(self) -> Option<String> {
        match self {
            What::Settings => None,
            What::Manifest => Some(MANIFEST.to_owned()),
            What::Log(id) => Some(id.file_name(FileKind::Wal)),
            What::Segment(id) => Some(id.file_name(FileKind::Segment)),
            What::Sidecar(id) => Some(id.file_name(FileKind::Filter)),
        }
    }
}

/// By what the next backup recognizes a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Mark {
    None,
    Digest(u64),
    Head(Sha256),
}

/// A file of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct File {
    pub what: What,
    pub bytes: u64,
    pub sha256: Sha256,
    pub mark: Mark,
}

/// The head of a backup: what a list of backups shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub number: u64,
    pub time_ms: u64,
    pub owner: Owner,
    pub generation: u64,
    pub entries: u64,
    pub bytes: u64,
    pub new_bytes: u64,
    pub files: u64,
    body_bytes: u64,
    body_crc: u32,
}

/// A whole backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub head: Head,
    /// In the order of [`What`].
    pub files: Vec<File>,
}

impl Head {
    pub fn decode(path: &Path, bytes: &[u8]) -> Result<Self> {
        let mut fields = checked_head(path, bytes, HEAD_MAGIC, HEAD_BYTES)?;
        let kind = take_kind(path, &mut fields)?;
        let mut numbers = || {
            let mut numbers = [0; 9];
            for number in &mut numbers {
                *number = fields.u64()?;
            }
            Some((numbers, fields.u32()?))
        };
        let ([number, time_ms, id, generation, entries, bytes, new_bytes, files, body_bytes], body_crc) =
            numbers().ok_or_else(|| Error::corruption(path, 16, "file too short"))?;
        let head = Head {
            number,
            time_ms,
            owner: Owner { kind, id },
            generation,
            entries,
            bytes,
            new_bytes,
            files,
            body_bytes,
            body_crc,
        };
        match head.fault() {
            Some((offset, what)) => Err(Error::corruption(path, offset, what)),
            None => Ok(head),
        }
    }

    fn fault(&self) -> Option<(u64, &'static str)> {
        let generation_is_right = (self.owner.kind == Kind::Guard) == (self.generation > 0);
        let rules = [
            (self.number > 0, 16, "backup number 0"),
            (generation_is_right, 40, "a guard has a generation, and a store has none"),
            (self.new_bytes <= self.bytes, 64, "more new bytes than bytes"),
            (self.body_bytes <= RECORD_BYTES_MAX, 80, "more entries than any backup has"),
        ];
        rules.into_iter().find(|(holds, ..)| !holds).map(|(_, offset, what)| (offset, what))
    }

    fn bytes(&self) -> Vec<u8> {
        let mut buf = Vec::with_capacity(HEAD_BYTES);
        buf.extend_from_slice(HEAD_MAGIC);
        buf.put_u32(WRITES);
        buf.put_u8(self.owner.kind.code());
        buf.extend_from_slice(&[0; 3]);
        let Head { number, time_ms, owner, generation, entries, bytes, new_bytes, files, body_bytes, .. } =
            *self;
        for number in [number, time_ms, owner.id, generation, entries, bytes, new_bytes, files, body_bytes] {
            buf.put_u64(number);
        }
        buf.put_u32(self.body_crc);
        buf.put_u32(crc32(&[&buf]));
        buf
    }
}

impl Record {
    /// A backup with these files. `head` has everything that does not follow from them.
    pub fn new(owner: Owner, number: u64, time_ms: u64, mut files: Vec<File>) -> Self {
        files.sort_by_key(|file| file.what);
        let bytes = files.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
        let (count, generation, entries, new_bytes) = (files.len() as u64, 0, 0, 0);
        let (body_bytes, body_crc) = (0, 0);
        let head = Head {
            number,
            time_ms,
            owner,
            generation,
            entries,
            bytes,
            new_bytes,
            files: count,
            body_bytes,
            body_crc,
        };
        Record { head, files }
    }

    /// The bytes on disk.
    ///
    /// # Errors
    /// [`Error::Unencodable`] for what [`decode`](Self::decode) refuses.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        for file in &self.files {
            let (code, number) = file.what.code();
            body.put_u8(code);
            body.put_varint(number);
            body.put_varint(file.bytes);
            body.extend_from_slice(&file.sha256);
            match file.mark {
                Mark::None => {}
                Mark::Digest(digest) => body.put_u64(digest),
                Mark::Head(sha256) => body.extend_from_slice(&sha256),
            }
        }
        let head = Head { body_bytes: body.len() as u64, body_crc: crc32(&[&body]), ..self.head };
        let bytes = [head.bytes(), body].concat();
        match Record::decode(Path::new("-"), &bytes) {
            Ok(decoded) if decoded.files == self.files && decoded.head == head => Ok(bytes),
            outcome => {
                let why = outcome.map_or_else(|e| e.to_string(), |_| "it would be read differently".into());
                Err(Error::Unencodable { what: "a backup", why })
            }
        }
    }

    pub fn decode(path: &Path, bytes: &[u8]) -> Result<Self> {
        let head = Head::decode(path, bytes)?;
        let damaged = |offset: usize, what: &str| Error::corruption(path, offset as u64, what);
        let body = bytes.get(HEAD_BYTES..).unwrap_or_default();
        if body.len() as u64 != head.body_bytes {
            return Err(damaged(bytes.len(), "the file does not have the length that its head says"));
        }
        if crc32(&[body]) != head.body_crc {
            return Err(damaged(HEAD_BYTES, "checksum mismatch"));
        }
        let (mut fields, mut files) = (Decoder::new(body), Vec::new());
        while fields.remaining() > 0 {
            let at = HEAD_BYTES + fields.position();
            let file = decode_file(path, at as u64, &mut fields)?;
            let file = file.ok_or_else(|| damaged(at, "an invalid entry of a file"))?;
            if files.last().is_some_and(|last: &File| last.what >= file.what) {
                return Err(damaged(at, "the entries are not in order"));
            }
            files.push(file);
        }
        let record = Record { head, files };
        match record.fault() {
            Some(what) => Err(damaged(HEAD_BYTES, what)),
            None => Ok(record),
        }
    }

    /// What is wrong with the files together.
    fn fault(&self) -> Option<&'static str> {
        let has = |what| self.files.binary_search_by_key(&what, |file| file.what).is_ok();
        let sum = self.files.iter().try_fold(0u64, |sum, file| sum.checked_add(file.bytes));
        let is_alone = |file: &File| matches!(file.what, What::Sidecar(id) if !has(What::Segment(id)));
        let is_too_large = |file: &File| file.what == What::Settings && file.bytes > SETTINGS_BYTES_MAX;
        let rules = [
            (has(What::Manifest), "there is no manifest"),
            (has(What::Settings) == (self.head.owner.kind == Kind::Guard), "a guard alone has settings"),
            (!self.files.iter().any(is_alone), "a sidecar without its segment"),
            (!self.files.iter().any(is_too_large), "the settings are too large"),
            (sum == Some(self.head.bytes), "the lengths have another sum"),
            (self.files.len() as u64 == self.head.files, "there is another number of files"),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map(|(_, what)| what)
    }
}

/// `None` if it is invalid.
fn decode_file(path: &Path, at: u64, fields: &mut Decoder<'_>) -> Result<Option<File>> {
    let Some(code) = fields.u8() else { return Ok(None) };
    if code > 5 {
        return Err(Error::unknown_code(path, at, format!("a file of kind {code}")));
    }
    let mut read = || {
        let (number, bytes) = (fields.varint()?, fields.varint()?);
        let sha256 = take_sha256(fields)?;
        let id = FileId(number);
        let is_numbered = number > 0 && id <= FileId::LARGEST;
        let (what, mark) = match code {
            1 if number == 0 => (What::Settings, Mark::None),
            2 if number == 0 => (What::Manifest, Mark::None),
            3 if is_numbered => (What::Log(id), Mark::None),
            4 if is_numbered => (What::Segment(id), Mark::Digest(fields.u64()?)),
            5 if is_numbered => (What::Sidecar(id), Mark::Head(take_sha256(fields)?)),
            _ => return None,
        };
        Some(File { what, bytes, sha256, mark })
    };
    Ok(read())
}

fn take_sha256(fields: &mut Decoder<'_>) -> Option<Sha256> {
    fields.take(32)?.try_into().ok()
}
