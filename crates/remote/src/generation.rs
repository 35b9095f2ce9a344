//! A generation: what a store was at one time. Its object is immutable, and the next one has the next number.
//!
//! ```text
//! gen/NNNNNNNNNNNNNNNNNNNN := "sidebloom generation " version " " length " " CRC-32 in hex "\n" body
//! ```
//!
//! `length` is that of the body in bytes, and the CRC covers it. The body is JSON ([`Generation`]). Objects that it names are immutable, too:
//! their names contain the SHA-256 of their contents, so no writer replaces what another one has written.
//!
//! Invalid, and damage: more than [`BYTES_MAX`] bytes; a file whose name is not that of a segment or a sidecar, or that occurs twice; an object
//! whose name is not a folder of [`FOLDERS`] and one plain name; a SHA-256 or a number of a store that is not written in hex; a tail that
//! begins after the end of its file; sizes that add up to more than 2^64. The writer checks the same ([`Generation::check`]).

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sidebloom::FileSet;
use sidebloom::filter::codec::crc32;
use sidebloom::id::{FileId, FileKind};
use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MAGIC: &str = "sidebloom generation ";
const VERSION: u32 = 1;
/// Longest first line: the magic, two numbers and eight hex digits.
const HEAD_MAX: usize = 80;

/// The largest generation, in bytes: some 200,000 segments.
pub(crate) const BYTES_MAX: u64 = 128 << 20;
/// The largest manifest, in bytes: five times what as many segments need.
const MANIFEST_BYTES_MAX: u64 = 256 << 20;
/// Folders of the objects that generations name.
pub(crate) const FOLDERS: [&str; 3] = ["segment", "filter", "manifest"];
/// The longest name of an object in its folder.
const NAME_BYTES_MAX: usize = 128;

/// The object that says where the newest generation may be found. Written after each generation; never decides anything.
pub(crate) const LATEST: &str = "latest";

/// What a store was at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Generation {
    /// Its number, from 1.
    pub number: u64,
    /// Tells the store from others, in hex.
    pub store: String,
    /// The publisher that wrote it, in hex.
    pub writer: String,
    /// The time of this state by the writer's clock, in milliseconds since 1970: everything that was written before it is in here.
    pub as_of_ms: u64,
    /// Rises whenever segments leave the store.
    pub version: u64,
    pub manifest: Object,
    pub files: Vec<File>,
}

/// An object in the bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Object {
    /// Its name below the prefix.
    pub object: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// SHA-256 of its contents, in hex.
    pub sha256: String,
}

/// A file of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct File {
    /// Its name in the store's directory.
    pub name: String,
    #[serde(flatten)]
    pub object: Object,
    /// What tells the file from a later one of the same name without reading it: a segment's digest, the SHA-256 of a sidecar's header.
    pub mark: String,
    /// Of a segment: the part that readers keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<Tail>,
}

/// The end of a segment, with everything but its data blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tail {
    /// Where it begins.
    pub at: u64,
    /// SHA-256 of its contents, in hex.
    pub sha256: String,
}

impl Generation {
    /// The name of a generation's object.
    pub fn name_of(number: u64) -> String {
        format!("gen/{number:020}")
    }

    /// The number in the name of an object.
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
        UNIX_EPOCH + Duration::from_millis(self.as_of_ms)
    }

    pub fn encode(&self) -> Vec<u8> {
        let body = serde_json::to_vec(self).unwrap_or_default(); // A map with names as keys: cannot fail.
        let mut bytes = format!("{MAGIC}{VERSION} {} {:08x}\n", body.len(), crc32(&[&body])).into_bytes();
        bytes.extend(body);
        bytes
    }

    /// Decodes the object `object` of generation `number`.
    pub fn decode(bytes: &[u8], object: &str, number: u64) -> Result<Self> {
        let damaged = |offset: usize, what: &str| Error::damaged(object, offset as u64, what);
        let head_len = bytes.iter().take(HEAD_MAX).position(|&byte| byte == b'\n');
        let head = head_len.and_then(|len| std::str::from_utf8(bytes.get(..len)?).ok());
        let fields =
            head.and_then(|head| head.strip_prefix(MAGIC)).map(|rest| rest.split(' ').collect::<Vec<_>>());
        let (Some(head_len), Some(fields)) = (head_len, fields) else {
            return Err(damaged(0, "it does not begin as a generation does"));
        };
        let number_at = |at: usize| fields.get(at).and_then(|field| field.parse::<usize>().ok());
        match number_at(0) {
            Some(version) if version == VERSION as usize => {}
            Some(found) => {
                let found = u32::try_from(found).unwrap_or(u32::MAX);
                return Err(Error::UnsupportedVersion { object: object.into(), found, supported: VERSION });
            }
            None => return Err(damaged(0, "it has no format version")),
        }
        let body = bytes.get(head_len + 1..).unwrap_or_default();
        let crc = fields.get(2).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        if number_at(1) != Some(body.len()) {
            return Err(damaged(
                bytes.len(),
                "it has another length than its first line says: it was cut short",
            ));
        }
        if crc != Some(crc32(&[body])) {
            return Err(damaged(head_len + 1, "checksum mismatch"));
        }
        let found: Generation =
            serde_json::from_slice(body).map_err(|e| damaged(head_len + 1, &e.to_string()))?;
        if found.number != number {
            return Err(damaged(head_len + 1, &format!("it says that it is generation {}", found.number)));
        }
        found.check().map_err(|what| damaged(head_len + 1, &what))?;
        Ok(found)
    }

    /// The number that tells the store from others.
    pub fn store_id(&self) -> u64 {
        u64::from_str_radix(&self.store, 16).unwrap_or_default() // `check` has seen the digits.
    }

    /// What makes it invalid, whoever wrote it.
    pub fn check(&self) -> std::result::Result<(), String> {
        let is_hex = |text: &str, digits| {
            (1..=digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        if !is_hex(&self.store, 16) || !is_hex(&self.writer, 64) {
            return Err("its store or its writer is no number in hex".into());
        }
        if self.manifest.bytes > MANIFEST_BYTES_MAX {
            return Err(format!(
                "a manifest of {} bytes, more than {MANIFEST_BYTES_MAX}",
                self.manifest.bytes
            ));
        }
        let mut names: HashSet<FileId> = HashSet::new();
        let mut sidecars: HashSet<FileId> = HashSet::new();
        for file in &self.files {
            let is_new = match FileKind::parse(&file.name) {
                Some((id, FileKind::Segment)) => names.insert(id),
                Some((id, FileKind::Filter)) => file.tail.is_none() && sidecars.insert(id),
                _ => false,
            };
            if !is_new {
                return Err(format!("{:?} is no file of a store, or is there twice", file.name));
            }
            if let Some(tail) = &file.tail
                && (tail.at > file.object.bytes || !is_sha256(&tail.sha256))
            {
                return Err(format!("the end of {} is not in it", file.name));
            }
        }
        if let Some(object) = self.objects().find(|object| !object.is_plain()) {
            return Err(format!("{:?} is no object of a published store", object.object));
        }
        let sizes = self.objects().try_fold(0u64, |sum, object| sum.checked_add(object.bytes));
        sizes.map(drop).ok_or_else(|| "its sizes add up to more than 2^64".into())
    }
}

impl Object {
    /// Whether the name is one that a publisher gives, and could be that of a file; and whether the hash is one.
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

/// Whether this is a SHA-256 as it stands in the names of files.
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
mod tests {
    use super::*;

    fn generation() -> Generation {
        let object = |name: &str| Object { object: name.into(), bytes: 7, sha256: sha256(b"contents") };
        let tail = Some(Tail { at: 3, sha256: sha256(b"tail") });
        Generation {
            number: 12,
            store: "1f".into(),
            writer: "2f".into(),
            as_of_ms: 1_700_000_000_000,
            version: 9,
            manifest: object("manifest/x"),
            files: vec![File {
                name: "000001.segment".into(),
                object: object("segment/x"),
                mark: "m".into(),
                tail,
            }],
        }
    }

    #[test]
    fn a_generation_is_decoded_to_what_was_encoded() {
        let generation = generation();
        assert_eq!(Generation::decode(&generation.encode(), "o", 12).unwrap(), generation);
        assert_eq!(Generation::number_in(&Generation::name_of(u64::MAX)), Some(u64::MAX));
        for name in ["gen/12", "gen/+0000000000000000012", "other/00000000000000000012", "gen/"] {
            assert_eq!(Generation::number_in(name), None, "{name}");
        }
    }

    #[test]
    fn the_bytes_of_a_generation_are_these() {
        let sha256 = sha256(b"contents");
        let object = |name: &str| format!(r#""object":"{name}","bytes":7,"sha256":"{sha256}""#);
        let body = format!(
            r#"{{"number":12,"store":"1f","writer":"2f","as_of_ms":1700000000000,"version":9,"manifest":{{{}}},"files":[{{"name":"000001.segment",{},"mark":"m","tail":{{"at":3,"sha256":"{}"}}}}]}}"#,
            object("manifest/x"),
            object("segment/x"),
            self::sha256(b"tail")
        );
        let expected =
            format!("sidebloom generation 1 {} {:08x}\n{body}", body.len(), crc32(&[body.as_bytes()]));
        assert_eq!(String::from_utf8(generation().encode()).unwrap(), expected);
    }

    #[test]
    fn i6_every_cut_every_changed_byte_and_another_number_is_a_named_error() {
        let bytes = generation().encode();
        for len in 0..bytes.len() {
            assert!(Generation::decode(&bytes[..len], "o", 12).is_err(), "cut to {len} bytes");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let error = Generation::decode(&changed, "o", 12).unwrap_err().to_string();
            assert!(error.starts_with("o "), "{error}");
        }
        assert!(Generation::decode(&bytes, "o", 13).is_err());
    }

    /// Whether a generation is refused after this change, by its reader and by its writer.
    fn refuses(change: impl FnOnce(&mut Generation)) -> bool {
        let mut changed = generation();
        change(&mut changed);
        let read = Generation::decode(&changed.encode(), "o", 12);
        assert_eq!(read.is_err(), changed.check().is_err(), "the writer refuses what the reader does");
        matches!(read, Err(Error::Damaged { .. }))
    }

    #[test]
    fn i11_names_hashes_and_sizes_from_a_bucket_are_checked() {
        for name in [
            "../000001.segment",
            "/etc/passwd",
            "LOCK",
            "MANIFEST",
            "PUBLISHED",
            "authorized_keys",
            "000001.wal",
            "000001.obsolete",
            "1.segment",
            "000001.segment\0",
            "000001.segment\n",
            "",
            ".",
            "..",
        ] {
            assert!(refuses(|changed| changed.files[0].name = name.into()), "{name:?}");
        }
        for name in [
            "authorized_keys",
            "segment/../../x",
            "segment//x",
            "segment/",
            "/segment/x",
            "segment/x/y",
            "segment/.x",
            "segment/..",
            "segment/a\0",
            "segment/\u{1b}[2J",
            "gen/1",
            "latest",
            "segment/CON ",
            "segment\\x",
        ] {
            assert!(refuses(|changed| changed.files[0].object.object = name.into()), "{name:?}");
            assert!(refuses(|changed| changed.manifest.object = name.into()), "{name:?}");
        }
        assert!(refuses(|changed| changed.manifest.object = format!("manifest/{}", "x".repeat(129))));
        for hash in ["", "..", "0", &"A".repeat(64), &"/".repeat(64), &"0".repeat(63)] {
            assert!(refuses(|changed| changed.files[0].object.sha256 = hash.into()), "{hash:?}");
            assert!(
                refuses(|changed| changed.files[0].tail.as_mut().unwrap().sha256 = hash.into()),
                "{hash:?}"
            );
        }
        assert!(refuses(|changed| changed.files[0].tail.as_mut().unwrap().at = 8));
        assert!(refuses(|changed| changed.files[0].object.bytes = u64::MAX));
        assert!(refuses(|changed| changed.manifest.bytes = MANIFEST_BYTES_MAX + 1));
        assert!(refuses(|changed| changed.files.push(changed.files[0].clone())));
        assert!(refuses(|changed| changed.files[0].name = "000001.filter".into()), "a filter with a tail");
        for digits in ["", "x", "\u{1b}[2J", "00000000000000000"] {
            assert!(refuses(|changed| changed.store = digits.into()), "{digits:?}");
        }
        assert!(refuses(|changed| changed.writer = "\n".into()));
        assert!(!refuses(|_| ()));
    }
}
