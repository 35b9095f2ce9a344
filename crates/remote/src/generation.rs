//! A generation: the state of a store or a guard at one time. Its object is immutable, and the next one has
//! the next number. All names are below the prefix of the URL; a guard's are below `guard/` there:
//!
//! ```text
//! gen/NNNNNNNNNNNNNNNNNNNN   a generation; 20 digits
//! segment/NNNNNN-HHHH…       a file that generations name: the number of its segment, and 32 hex digits of
//! filter/NNNNNN-HHHH…        the SHA-256 of its contents, so that no writer replaces what another one has
//! manifest/HHHH…             written
//! latest                     the digits of a generation that is the newest, or was a moment ago: a hint,
//!                            which decides nothing
//!
//! gen/NNNNNNNNNNNNNNNNNNNN := "sidebloom generation " version " " length " " CRC-32 in hex "\n" body
//! ```
//!
//! *version*: 2. It is at this offset in every version. Version 1 was for stores only; guards had their own
//! format, in `guard/state/`.
//!
//! *length*, *CRC-32*: of the body; the length is in bytes.
//!
//! *body*: JSON, the fields of [`Generation`] together with those of its [`Holds`].
//!
//! Invalid, and damage: more than [`BYTES_MAX`] bytes; a number other than in the name; a file whose name is
//! not a sidecar's or, in a store, a segment's, or that occurs twice; an object whose name is not a folder of
//! [`FOLDERS`] and one plain name; a SHA-256 or a store's number that is not hex; a tail that begins after
//! the end of its file, or belongs to a sidecar; settings or a manifest above their limits; a sum of sizes
//! above 2^64. The writer checks the same ([`Generation::check`]).

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sidebloom::FileSet;
use sidebloom::filter::codec::crc32;
use sidebloom::internal::{FileId, FileKind};
use std::collections::HashSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MAGIC: &str = "sidebloom generation ";
/// The versions that this build reads.
pub(crate) const READS: RangeInclusive<u32> = 2..=2;
/// The version that this build writes.
const WRITES: u32 = *READS.end();
/// Longest first line: the magic, two numbers and eight hex digits.
const HEAD_MAX: usize = 80;

/// The largest generation, in bytes: about 240,000 segments.
pub(crate) const BYTES_MAX: u64 = 128 << 20;
/// The largest manifest, in bytes: five times what that many segments need.
const MANIFEST_BYTES_MAX: u64 = 256 << 20;
/// The largest settings of a guard, in bytes.
const SETTINGS_BYTES_MAX: usize = 4096;
/// Folders of the objects that generations name.
pub(crate) const FOLDERS: [&str; 3] = ["segment", "filter", "manifest"];
/// The longest name of an object in its folder.
const NAME_BYTES_MAX: usize = 128;

/// The object that hints at the newest generation. Written after each generation; never decides anything.
pub(crate) const LATEST: &str = "latest";

/// What is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Store,
    Guard,
}

impl Kind {
    /// The folder of its objects below the prefix.
    pub fn folder(self) -> &'static str {
        match self {
            Kind::Store => "",
            Kind::Guard => "guard",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Kind::Store { "store" } else { "guard" })
    }
}

/// The state of a store or a guard at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Generation {
    /// Its number, from 1.
    pub number: u64,
    /// Identifies the store or the guard, in hex. Copies have the same.
    pub id: String,
    /// The publisher that wrote it, in hex.
    pub writer: String,
    /// The time of this state by the writer's clock, in milliseconds since 1970. Includes all earlier writes.
    pub as_of_ms: u64,
    #[serde(flatten)]
    pub holds: Holds,
    pub manifest: Object,
    /// Segments and sidecars; for a guard, only sidecars.
    pub files: Vec<File>,
}

/// What a generation of each kind has in addition to its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Holds {
    Store {
        /// Rises whenever segments leave the store.
        version: u64,
    },
    Guard {
        /// Whether every answer is "maybe".
        suspended: bool,
        /// The contents of the guard's settings file, including its secret key.
        settings: Vec<u8>,
        /// The numbers of segments without a sidecar.
        unfiltered: Vec<u64>,
    },
}

impl Holds {
    /// A store's version; a guard has none.
    pub fn version(&self) -> u64 {
        match self {
            Holds::Store { version } => *version,
            Holds::Guard { .. } => 0,
        }
    }
}

/// An object in the bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Object {
    /// Its name below the prefix and the folder of its kind.
    pub object: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// SHA-256 of its contents, in hex.
    pub sha256: String,
}

/// A file of the store or the guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct File {
    /// Its name in the store's directory.
    pub name: String,
    #[serde(flatten)]
    pub object: Object,
    /// Tells the file from a later one of the same name without reading it: a segment's digest, or the
    /// SHA-256 of a sidecar's header.
    pub mark: String,
    /// For a segment: the part that readers keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<Tail>,
}

/// The end of a segment: everything except its data blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tail {
    /// Its offset.
    pub at: u64,
    /// SHA-256 of its contents, in hex.
    pub sha256: String,
}

impl Generation {
    /// The name of a generation's object.
    pub fn name_of(number: u64) -> String {
        format!("gen/{number:020}")
    }

    /// The number in an object's name.
    pub fn number_in(name: &str) -> Option<u64> {
        let digits = name.strip_prefix("gen/")?;
        let number = digits.parse().ok()?;
        (Self::name_of(number) == name).then_some(number)
    }

    /// All objects that it names.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        std::iter::once(&self.manifest).chain(self.files.iter().map(|file| &file.object))
    }

    /// The manifest as a file of the store.
    pub fn manifest_file(&self) -> File {
        let object = self.manifest.clone();
        File { name: FileSet::MANIFEST.into(), mark: object.sha256.clone(), object, tail: None }
    }

    /// The time of the state.
    pub fn as_of(&self) -> SystemTime {
        UNIX_EPOCH.checked_add(Duration::from_millis(self.as_of_ms)).unwrap_or(UNIX_EPOCH)
    }

    pub fn kind(&self) -> Kind {
        match self.holds {
            Holds::Store { .. } => Kind::Store,
            Holds::Guard { .. } => Kind::Guard,
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let body = serde_json::to_vec(self).unwrap_or_default(); // Cannot fail: the map's keys are strings.
        let mut bytes = format!("{MAGIC}{WRITES} {} {:08x}\n", body.len(), crc32(&[&body])).into_bytes();
        bytes.extend(body);
        bytes
    }

    /// Encodes it, unless a reader would refuse it.
    pub fn encode_checked(&self) -> std::result::Result<Vec<u8>, String> {
        self.check()?;
        let bytes = self.encode();
        if bytes.len() as u64 <= BYTES_MAX {
            Ok(bytes)
        } else {
            let len = bytes.len();
            Err(format!("{len} bytes, more than {BYTES_MAX}: raise segment_bytes to have fewer files"))
        }
    }

    /// Decodes the object `object` of generation `number`.
    pub fn decode(bytes: &[u8], object: &str, number: u64) -> Result<Self> {
        let damaged = |offset: usize, what: &str| Error::damaged(object, offset as u64, what);
        let head_len = bytes.iter().take(HEAD_MAX).position(|&byte| byte == b'\n');
        let head = head_len.and_then(|len| std::str::from_utf8(bytes.get(..len)?).ok());
        let fields =
            head.and_then(|head| head.strip_prefix(MAGIC)).map(|rest| rest.split(' ').collect::<Vec<_>>());
        let (Some(head_len), Some(fields)) = (head_len, fields) else {
            return Err(damaged(0, "it has no generation header"));
        };
        let number_at = |at: usize| fields.get(at).and_then(|field| field.parse::<usize>().ok());
        let found = number_at(0).ok_or_else(|| damaged(0, "it has no format version"))?;
        let found = u32::try_from(found).unwrap_or(u32::MAX);
        if !READS.contains(&found) {
            return Err(Error::UnsupportedVersion { object: object.into(), found, supported: READS });
        }
        let body = bytes.get(head_len + 1..).unwrap_or_default();
        let crc = fields.get(2).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        if number_at(1) != Some(body.len()) {
            return Err(damaged(bytes.len(), "it was cut short: its length differs from its first line"));
        }
        if crc != Some(crc32(&[body])) {
            return Err(damaged(head_len + 1, "checksum mismatch"));
        }
        let found: Generation =
            serde_json::from_slice(body).map_err(|e| damaged(head_len + 1, &e.to_string()))?;
        if found.number != number {
            return Err(damaged(head_len + 1, &format!("it claims to be generation {}", found.number)));
        }
        found.check().map_err(|what| damaged(head_len + 1, &what))?;
        Ok(found)
    }

    /// The number that identifies the store or the guard.
    pub fn owner(&self) -> u64 {
        u64::from_str_radix(&self.id, 16).unwrap_or_default() // `check` has validated the digits.
    }

    /// Why it is invalid, whoever wrote it.
    pub fn check(&self) -> std::result::Result<(), String> {
        let is_hex = |text: &str, digits| {
            (1..=digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        if !is_hex(&self.id, 16) || !is_hex(&self.writer, 64) {
            return Err("its id or its writer is not a hex number".into());
        }
        if let Holds::Guard { settings, .. } = &self.holds
            && settings.len() > SETTINGS_BYTES_MAX
        {
            return Err(format!("settings of {} bytes, more than {SETTINGS_BYTES_MAX}", settings.len()));
        }
        if self.manifest.bytes > MANIFEST_BYTES_MAX {
            return Err(format!(
                "a manifest of {} bytes, more than {MANIFEST_BYTES_MAX}",
                self.manifest.bytes
            ));
        }
        let (mut segments, mut sidecars) = (HashSet::<FileId>::new(), HashSet::<FileId>::new());
        for file in &self.files {
            let is_new = match FileKind::parse(&file.name) {
                Some((id, FileKind::Segment)) => self.kind() == Kind::Store && segments.insert(id),
                Some((id, FileKind::Filter)) => file.tail.is_none() && sidecars.insert(id),
                _ => false,
            };
            if !is_new {
                return Err(format!("{:?} is not a file of a {}, or occurs twice", file.name, self.kind()));
            }
            if let Some(tail) = &file.tail
                && (tail.at > file.object.bytes || !is_sha256(&tail.sha256))
            {
                return Err(format!("the tail of {} is outside the file", file.name));
            }
        }
        if let Some(object) = self.objects().find(|object| !object.is_plain()) {
            return Err(format!("{:?} is not an object of a published store", object.object));
        }
        let sizes = self.objects().try_fold(0u64, |sum, object| sum.checked_add(object.bytes));
        sizes.map(drop).ok_or_else(|| "its sizes add up to more than 2^64".into())
    }
}

impl Object {
    /// Whether a publisher gives such a name, it could be a file's, and the hash is valid.
    fn is_plain(&self) -> bool {
        let is_name = |name: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain)
        };
        let parts = self.object.split_once('/');
        is_sha256(&self.sha256)
            && parts.is_some_and(|(folder, name)| FOLDERS.contains(&folder) && is_name(name))
    }
}

/// The SHA-256 of some bytes, in hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Whether this is a SHA-256 as in the names of files.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Bytes as hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
#[path = "generation_tests.rs"]
pub(crate) mod tests;
