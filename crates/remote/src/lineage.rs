//! The published generations that a store's or guard's directory descends from, in the file `PUBLISHED` next
//! to its other files. Integers are little-endian.
//!
//! ```text
//!  0  8  magic "SBLMPUB\n"
//!  8  4  version
//! 12  …  the number of places, a varint; for each of them, by ascending URL:
//!        the URL, a varint length and bytes
//!        8  the number of the last generation that the directory is known to descend from; 0 if there was
//!           none
//!        the number of digests, a varint, and for each of them:
//!        32 SHA-256 of that generation, and then of each one that was about to be created after it
//!     4  CRC-32 of all bytes before
//! ```
//! *version*: 2; version 1 had no digest of the last generation. In every version, magic and version are at
//! these offsets, and the last four bytes are the CRC-32 of all others.
//!
//! *URL*: as [`Remote::url`](crate::Remote::url) has it, without keys.
//!
//! *digests*: one is left by each process that died before it learnt of its success. The newest
//! [`DIGESTS_MAX`] are kept.
//!
//! Damage is an error whenever the file is read, including before a change, because a change keeps the other
//! places. The file is replaced whole.

use crate::error::{Error, Result};
use crate::generation::Generation;
use crate::private_files;
use sha2::{Digest, Sha256};
use sidebloom::filter::codec::{Decoder, Encode, crc32};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// The name of the file.
const NAME: &str = "PUBLISHED";
const MAGIC: &[u8; 8] = b"SBLMPUB\n";
/// The versions that this build reads.
const READS: RangeInclusive<u32> = 2..=2;
/// The version that this build writes.
const WRITES: u32 = *READS.end();
/// The largest file: hundreds of places.
const BYTES_MAX: u64 = 16 << 20;
/// Digests kept for each place.
const DIGESTS_MAX: usize = 1000;

/// What this directory published to, or was cloned from, by URL.
type Lineages = BTreeMap<String, Lineage>;

/// A directory's relation to one URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lineage {
    /// The last generation that the directory is known to descend from; 0 if there was none.
    pub generation: u64,
    /// SHA-256 of that generation, and of each next one that it was about to create.
    digests: Vec<[u8; 32]>,
}

impl Lineage {
    /// Whether the directory descends from this generation.
    pub fn has(&self, newest: &Generation) -> bool {
        self.digests.contains(&digest(newest))
    }

    fn attempt(&mut self, next: [u8; 32]) {
        let excess = (self.digests.len() + 1).saturating_sub(DIGESTS_MAX);
        self.digests.drain(..excess);
        self.digests.push(next);
    }
}

fn digest(generation: &Generation) -> [u8; 32] {
    Sha256::digest(generation.encode()).into()
}

fn encode(lineages: &Lineages) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.put_u32(WRITES);
    bytes.put_varint(lineages.len() as u64);
    for (url, lineage) in lineages {
        bytes.put_bytes(url.as_bytes());
        bytes.put_u64(lineage.generation);
        bytes.put_varint(lineage.digests.len() as u64);
        lineage.digests.iter().for_each(|digest| bytes.extend_from_slice(digest));
    }
    let crc = crc32(&[&bytes]);
    bytes.put_u32(crc);
    bytes
}

fn decode(bytes: &[u8], path: &Path) -> Result<Lineages> {
    let name = || path.display().to_string();
    let damaged = |offset: usize, what: &str| {
        let what = format!("{what}; remove the file, and take over when you next publish");
        Error::damaged(name(), offset as u64, what)
    };
    let (body, crc) = bytes.split_last_chunk().ok_or_else(|| damaged(bytes.len(), "cut short"))?;
    let mut fields = Decoder::new(body);
    if fields.take(MAGIC.len()) != Some(MAGIC) {
        return Err(damaged(0, "it has no valid header"));
    }
    // Before the version, so that a damaged version is not mistaken for another one.
    if *crc != crc32(&[body]).to_le_bytes() {
        return Err(damaged(body.len(), "checksum mismatch"));
    }
    let found = fields.u32().unwrap_or_default();
    if !READS.contains(&found) {
        return Err(Error::UnsupportedVersion { object: name(), found, supported: READS });
    }
    let lineages = decode_places(&mut fields).ok_or_else(|| damaged(fields.position(), "invalid field"))?;
    match fields.remaining() {
        0 => Ok(lineages),
        _ => Err(damaged(fields.position(), "bytes after the end")),
    }
}

fn decode_places(fields: &mut Decoder<'_>) -> Option<Lineages> {
    let mut lineages = Lineages::new();
    // Each place and each digest takes bytes, so a count that is too high ends with them.
    for _ in 0..fields.varint()? {
        let url = std::str::from_utf8(fields.bytes()?).ok()?.to_owned();
        let generation = fields.u64()?;
        let mut digests = Vec::new();
        for _ in 0..fields.varint()? {
            digests.push(fields.take(32)?.try_into().ok()?);
        }
        let is_ascending = lineages.last_key_value().is_none_or(|(last, _)| *last < url);
        if !is_ascending || digests.len() > DIGESTS_MAX {
            return None;
        }
        lineages.insert(url, Lineage { generation, digests });
    }
    Some(lineages)
}

fn path(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

fn read_all(dir: &Path) -> Result<Lineages> {
    let path = path(dir);
    match private_files::read_at_most(&path, BYTES_MAX).map_err(Error::file("read", &path))? {
        Some(bytes) => decode(&bytes, &path),
        None => Ok(Lineages::default()),
    }
}

/// The files that [`note`] may leave in a directory.
pub(crate) fn files(dir: &Path) -> [PathBuf; 2] {
    [path(dir), private_files::temporary_of(&path(dir))]
}

/// The directory's relation to `url`.
pub(crate) fn read(dir: &Path, url: &str) -> Result<Lineage> {
    Ok(read_all(dir)?.remove(url).unwrap_or_default())
}

/// Notes durably that the directory descends from this generation.
pub(crate) fn note(dir: &Path, url: &str, known: &Generation) -> Result<()> {
    let lineage = Lineage { generation: known.number, digests: vec![digest(known)] };
    change(dir, url, |changed| *changed = lineage)
}

/// Durably notes, before it is created, that the next generation is the directory's own.
pub(crate) fn note_attempt(dir: &Path, url: &str, next: &Generation) -> Result<()> {
    change(dir, url, |lineage| lineage.attempt(digest(next)))
}

fn change(dir: &Path, url: &str, change: impl FnOnce(&mut Lineage)) -> Result<()> {
    let mut lineages = read_all(dir)?;
    change(lineages.entry(url.to_owned()).or_default());
    let (path, bytes) = (path(dir), encode(&lineages));
    if bytes.len() as u64 > BYTES_MAX {
        let what = format!("it would have {} bytes, more than {BYTES_MAX}: remove it", bytes.len());
        return Err(Error::damaged(path.display().to_string(), 0, what));
    }
    private_files::replace(&path, &bytes).map_err(Error::file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(number: u64) -> Generation {
        crate::generation::tests::numbered(number)
    }

    fn two_places(dir: &Path) -> Vec<u8> {
        note(dir, "file:///b", &known(7)).unwrap();
        change(dir, "file:///a", |lineage| lineage.attempt([0xaa; 32])).unwrap();
        std::fs::read(path(dir)).unwrap()
    }

    #[test]
    fn lineages_are_remembered_for_each_place_and_their_bytes_are_these() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = two_places(dir.path());
        let fields = [
            (8, "magic"),
            (4, "version"),
            (1, "two places"),
            (10, "file:///a"),
            (8, "no generation"),
            (1, "one digest"),
            (32, "of an attempt"),
            (10, "file:///b"),
            (8, "generation 7"),
            (1, "one digest"),
            (32, "its SHA-256"),
            (4, "crc"),
        ];
        crate::golden::check("published", &bytes, &fields);
        let published = read(dir.path(), "file:///b").unwrap();
        assert!(published.generation == 7 && published.has(&known(7)) && !published.has(&known(8)));
        let another = Generation { writer: "3f".into(), ..known(7) };
        assert!(!published.has(&another), "of another writer under this number");
        assert_eq!(read(dir.path(), "file:///a").unwrap().digests, [[0xaa; 32]]);
        assert_eq!(read(dir.path(), "file:///c").unwrap(), Lineage::default());
        let mut many = Lineage::default();
        (0..2 * DIGESTS_MAX).for_each(|n| many.attempt([n as u8; 32]));
        let many = Lineages::from([("x".to_owned(), many)]);
        assert_eq!(decode(&encode(&many), Path::new("x")).unwrap(), many, "what is kept can be read");
    }

    #[test]
    fn i6_a_damaged_published_file_is_named_and_no_place_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let good = two_places(dir.path());
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(decode(&bad, Path::new("x")), Err(Error::Damaged { .. })), "bit {bit}");
        }
        (0..good.len())
            .for_each(|len| assert!(decode(&good[..len], Path::new("x")).is_err(), "cut to {len}"));
        let mut bad = good.clone();
        bad[20] ^= 1;
        std::fs::write(path(dir.path()), &bad).unwrap();
        assert!(note(dir.path(), "file:///c", &known(1)).is_err(), "the other places are not dropped");
        assert_eq!(std::fs::read(path(dir.path())).unwrap(), bad);
        let counted = |count: u64, rest: &[u8]| {
            let mut bytes = [&good[..12], &[][..]].concat();
            bytes.put_varint(count);
            bytes.extend_from_slice(rest);
            let crc = crc32(&[&bytes]);
            bytes.put_u32(crc);
            decode(&bytes, Path::new("x"))
        };
        assert!(counted(u64::MAX, &[]).is_err() && counted(0, &[0]).is_err() && counted(0, &[]).is_ok());
    }

    #[test]
    fn a_published_file_of_another_version_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let good = two_places(dir.path());
        for (version, words) in [(1, "an older sidebloom"), (3, "a newer sidebloom")] {
            let mut other = good[..good.len() - 4].to_vec();
            other[8] = version;
            let crc = crc32(&[&other]);
            other.put_u32(crc);
            std::fs::write(path(dir.path()), &other).unwrap();
            let error = read(dir.path(), "file:///a").unwrap_err();
            assert!(matches!(error, Error::UnsupportedVersion { .. }), "{error}");
            assert!(error.to_string().contains(words), "{error}");
            assert!(note(dir.path(), "file:///c", &known(1)).is_err(), "it is not replaced");
        }
    }

    #[test]
    fn published_and_its_temporary_file_follow_no_link() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let victim = other.path().join("authorized_keys");
        std::fs::write(&victim, "a key").unwrap();
        std::os::unix::fs::symlink(&victim, dir.path().join("PUBLISHED.tmp")).unwrap();
        note(dir.path(), "file:///a", &known(1)).unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "a key");
        std::fs::remove_file(path(dir.path())).unwrap();
        std::os::unix::fs::symlink(&victim, path(dir.path())).unwrap();
        assert!(note(dir.path(), "file:///a", &known(1)).is_err());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "a key");
    }
}
