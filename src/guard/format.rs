//! The format of `GUARD`: a guard's settings and its live store's number. Integers are little-endian.
//!
//! ```text
//!  0  8  magic "SBLMGRD\n"
//!  8  4  version
//! 12  1  bytes per key hash
//! 13  1  canonical form: which differences between keys to ignore
//! 14  1  filter policy code
//! 15  1  hash code
//! 16 16  secret key of the key hash
//! 32  8  generation
//! 40  8  filter policy number
//! 48  4  CRC-32 of bytes 0..48
//! ```
//!
//! - *version*: 2. In every version, magic and version are at these offsets, and the file ends with the
//!   CRC-32 of all bytes before it.
//! - *bytes per key hash*: 8 or 16, the width of SipHash-1-3. Hashes are keys of the store, big-endian.
//! - *canonical form*: bit 0, letter case and Unicode spelling; bit 1, trailing spaces; bit 2, spellings of
//!   an integer; bit 3, spellings of a uuid; bit 4, keys that cannot be folded are all equal. Bits 2 and 3
//!   exclude each other. Any other bit is from a later version.
//! - *filter policy*: code 0, no filters, number 0; 1, average bits per key, and 2, false-positive rate, both
//!   IEEE 754; 3, bytes of memory; 4, bits per key of blocked Bloom filters, IEEE 754. Any greater code is
//!   from a later version.
//! - *hash code*: 4, SipHash-1-3 ([`crate::hash`]). Any greater code is from a later version. Removing a key
//!   decrements the count of every key with the same hash, so nobody may be able to choose colliding keys:
//!   the hash is a pseudorandom function under a secret key. Version 1 had XXH3, whose seed does not help:
//!   collisions can be prepared without knowing it (`tests/guard/chosen_keys.rs`).
//! - *secret key*: 128 random bits from the operating system, drawn when the guard is built and never shown.
//! - *generation*: the keys are in the store `NNNNNN.keys` with this number. A refresh writes the next one
//!   and then replaces this file.
//!
//! In the store, a key of exactly the hash's length is a hash, and its value is the number of rows with that
//! hash: a varint, or empty for one row. Longer keys begin with one zero byte per byte of a hash, then a tag:
//!
//! ```text
//! 't', stripe u8        rows and keys of the hashes whose last byte modulo 64 is the stripe: two varints
//! 'x', hash             a key that the database does not have although the filters said "maybe"; no value
//! 'n'                   the caller's note
//! 'e', hash             a key that expires: the row does then, in milliseconds since 1970, a varint
//! 'e'                   there is such a key, or was; no value
//! ```

use super::canonical::{Canonical, Values};
use crate::codec::{Decoder, Encode, crc32};
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::hash::{KeyHash, KeyHasher, is_newer_code};
use crate::options::FilterPolicy;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// The settings file.
pub(crate) const SETTINGS: &str = "GUARD";
/// The settings file while it is written.
pub(super) const FRESH: &str = "GUARD.new";
/// Locked while a guard is open.
pub(super) const LOCK: &str = "LOCK";
/// The suffix of a generation's store, after its number.
pub(super) const GENERATION_SUFFIX: &str = ".keys";
/// The temporary file of a sort.
pub(super) const SORT: &str = "hashes.run";

const MAGIC: &[u8; 8] = b"SBLMGRD\n";
/// The versions that this build reads.
const READS: RangeInclusive<u32> = 2..=2;
/// The version that it writes: the last one it reads.
const WRITES: u32 = *READS.end();
const BYTES: usize = 52;
/// No version is longer.
const BYTES_MAX: usize = 4096;
const _: () = assert!(BYTES == MAGIC.len() + 4 + 1 + 1 + 1 + 1 + 16 + 8 + 8 + 4);

const FOLD: u8 = 1;
const PAD: u8 = 2;
const INTEGERS: u8 = 4;
const UUIDS: u8 = 8;
const ANY: u8 = 16;

pub(super) const TOTALS: u8 = b't';
pub(super) const KNOWN_ABSENT: u8 = b'x';
pub(super) const NOTE: u8 = b'n';
pub(super) const EXPIRING: u8 = b'e';

/// The key of a row that is not a hash's.
pub(super) fn meta_key(width: HashWidth, tag: u8, rest: &[u8]) -> Vec<u8> {
    let mut key = vec![0; width.bytes()];
    key.push(tag);
    key.extend_from_slice(rest);
    key
}

/// How wide a guard's key hashes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HashWidth {
    /// 8 bytes: among a billion keys, one missing key in 18 billion shares a hash with an existing one. For
    /// guards whose keys are removed only after the database has removed them, as with a
    /// [`Source`](super::Source): anybody who can remove billions of missing keys can hit an existing one.
    Bits64,
    /// 16 bytes: no collisions in practice, at twice the disk space. The filters are the same.
    #[default]
    Bits128,
}

impl HashWidth {
    /// The size of a hash in bytes.
    pub fn bytes(self) -> usize {
        match self {
            HashWidth::Bits64 => 8,
            HashWidth::Bits128 => 16,
        }
    }
}

/// A guard's settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Settings {
    pub width: HashWidth,
    pub canonical: Canonical,
    pub policy: FilterPolicy,
    pub hasher: KeyHasher,
    pub generation: u64,
}

impl Settings {
    /// For a new guard, with a new secret key.
    pub fn new(width: HashWidth, canonical: Canonical, policy: FilterPolicy) -> Result<Self> {
        let hasher = KeyHasher::random(KeyHash::SipHash13)?;
        Ok(Settings { width, canonical, policy, hasher, generation: 1 })
    }

    /// The path of the live generation's store.
    pub fn store(&self, dir: &Path) -> PathBuf {
        dir.join(self.store_name())
    }

    /// A number that identifies the guard, but not its copies and generations.
    pub fn guard_id(&self) -> u64 {
        self.hasher.hash(b"the id of this guard")
    }

    pub fn store_name(&self) -> String {
        format!("{:06}{GENERATION_SUFFIX}", self.generation)
    }

    /// The bytes on disk.
    ///
    /// # Errors
    /// [`Error::Unencodable`] for settings that [`decode`](Self::decode) refuses.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let bytes = self.bytes();
        match Self::decode(Path::new(SETTINGS), &bytes) {
            Ok(decoded) if decoded == *self => Ok(bytes),
            outcome => {
                let why = outcome
                    .map_or_else(|error| error.to_string(), |_| "they would be read back differently".into());
                Err(Error::Unencodable { what: "the settings of a guard", why })
            }
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut buf = Vec::with_capacity(BYTES);
        buf.extend_from_slice(MAGIC);
        buf.put_u32(WRITES);
        buf.put_u8(self.width.bytes() as u8);
        buf.put_u8(canonical_bits(self.canonical));
        let (policy, number) = self.policy.to_code();
        buf.put_u8(policy);
        let (code, key) = self.hasher.to_code();
        buf.put_u8(code);
        key.iter().for_each(|&word| buf.put_u64(word));
        buf.put_u64(self.generation);
        buf.put_u64(number);
        let crc = crc32(&[&buf]);
        buf.put_u32(crc);
        buf
    }

    pub fn decode(path: &Path, bytes: &[u8]) -> Result<Self> {
        let damaged = |offset, what: &str| {
            Error::corruption(
                path,
                offset,
                format!("{what}; delete the guard's directory and build it again"),
            )
        };
        let short = || damaged(bytes.len() as u64, "file too short");
        let (body, crc) = bytes.split_last_chunk().ok_or_else(short)?;
        let mut fields = Decoder::new(body);
        if fields.take(MAGIC.len()) != Some(MAGIC) {
            return Err(damaged(0, "not a guard's settings file"));
        }
        // Checked before the version, so that a damaged version is not taken for another one.
        if *crc != crc32(&[body]).to_le_bytes() {
            return Err(damaged(body.len() as u64, "checksum mismatch"));
        }
        let version = fields.u32().ok_or_else(short)?;
        if !READS.contains(&version) {
            let file = path.to_path_buf();
            return Err(Error::UnsupportedVersion { file, found: version, supported: READS });
        }
        let mut read = || {
            Some((
                [fields.u8()?, fields.u8()?, fields.u8()?, fields.u8()?],
                [fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?],
            ))
        };
        let ([width, canonical, policy, code], [first, second, generation, number]) =
            read().ok_or_else(short)?;
        if fields.remaining() != 0 {
            return Err(damaged(BYTES as u64, "file too long"));
        }
        let width = match width {
            8 => HashWidth::Bits64,
            16 => HashWidth::Bits128,
            _ => return Err(damaged(12, "key hashes must be 8 or 16 bytes long")),
        };
        let newer = [
            (13, "canonical form", canonical, canonical >= 2 * ANY),
            (14, "filter policy", policy, FilterPolicy::is_newer_code(policy)),
            (15, "hash code", code, is_newer_code(code)),
        ];
        if let Some((offset, what, code, _)) = newer.into_iter().find(|(.., is_newer)| *is_newer) {
            return Err(Error::unknown_code(path, offset, format!("{what} {code}")));
        }
        let canonical =
            canonical_from_bits(canonical).ok_or_else(|| damaged(13, "invalid canonical form"))?;
        let policy =
            FilterPolicy::from_code(policy, number).ok_or_else(|| damaged(14, "invalid filter policy"))?;
        let hasher = KeyHasher::from_code(code, [first, second])
            .filter(|hasher| hasher.function() == KeyHash::SipHash13)
            .ok_or_else(|| damaged(15, "invalid key hash"))?;
        if generation == 0 {
            return Err(damaged(32, "generation 0"));
        }
        Ok(Settings { width, canonical, policy, hasher, generation })
    }

    /// Reads a guard's settings.
    pub fn read(fs: &dyn Fs, dir: &Path) -> Result<Self> {
        let path = dir.join(SETTINGS);
        let file = fs.open(&path)?;
        let len = usize::try_from(file.len()?).unwrap_or(usize::MAX).min(BYTES_MAX);
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, 0)?;
        Self::decode(&path, &bytes)
    }

    /// Replaces the settings atomically, and makes them and the directory's other entries durable.
    pub fn write(&self, fs: &dyn Fs, dir: &Path) -> Result<()> {
        let fresh = dir.join(FRESH);
        if fs.file_len(&fresh)?.is_some() {
            fs.remove(&fresh)?;
        }
        let mut file = fs.create_private(&fresh)?; // It has the secret key.
        file.append(&self.encode()?)?;
        file.sync()?;
        drop(file);
        fs.rename(&fresh, &dir.join(SETTINGS))?;
        fs.sync_dir(dir)
    }
}

fn canonical_bits(canonical: Canonical) -> u8 {
    let values = match canonical.values {
        Values::Texts => 0,
        Values::Integers => INTEGERS,
        Values::Uuids => UUIDS,
    };
    u8::from(canonical.fold) * FOLD + u8::from(canonical.pad) * PAD + u8::from(canonical.any) * ANY + values
}

/// `None` for bits of a later version.
fn canonical_from_bits(bits: u8) -> Option<Canonical> {
    let values = match bits & !(FOLD | PAD | ANY) {
        0 => Values::Texts,
        INTEGERS => Values::Integers,
        UUIDS => Values::Uuids,
        _ => return None,
    };
    Some(Canonical { fold: bits & FOLD != 0, pad: bits & PAD != 0, any: bits & ANY != 0, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Settings = Settings {
        width: HashWidth::Bits128,
        canonical: Canonical { fold: true, ..Canonical::EXACT },
        policy: FilterPolicy::bits_per_key(9.0),
        hasher: KeyHasher::siphash13([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]),
        generation: 7,
    };

    #[test]
    fn the_bytes_are_frozen() {
        let bytes = SAMPLE.encode().unwrap();
        let fields = [
            (8, "magic"),
            (4, "version 2"),
            (1, "16 bytes per key hash"),
            (1, "keys: case folded"),
            (1, "filters: bits per key on average"),
            (1, "hash code: siphash-1-3"),
            (16, "secret key"),
            (8, "generation 7"),
            (8, "9 bits per key"),
            (4, "CRC-32"),
        ];
        crate::golden::check("guard", &bytes, &fields);
        assert_eq!(Settings::decode(Path::new("GUARD"), &bytes).unwrap(), SAMPLE);
    }

    #[test]
    fn canonical_forms_round_trip_as_bits() {
        for bits in 0..=u8::MAX {
            match canonical_from_bits(bits) {
                Some(canonical) => assert_eq!(canonical_bits(canonical), bits),
                None => assert!(bits & 12 == 12 || bits >= 32, "{bits}"),
            }
        }
        assert!([12, 32].iter().all(|&bits| canonical_from_bits(bits).is_none()));
    }

    #[test]
    fn every_flipped_bit_and_every_shorter_or_longer_file_is_refused() {
        let path = Path::new("GUARD");
        let good = SAMPLE.encode().unwrap();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let error = Settings::decode(path, &bad).unwrap_err();
            assert!(matches!(error, Error::Corruption { .. }), "bit {bit}: {error}");
        }
        (0..good.len())
            .for_each(|len| assert!(Settings::decode(path, &good[..len]).is_err(), "cut to {len}"));
        assert!(Settings::decode(path, &[&good[..], &[0]].concat()).is_err());
    }

    #[test]
    fn settings_of_another_version_and_length_are_reported_as_such() {
        for (version, len) in [(1, 44), (3, BYTES), (3, 200)] {
            let mut other = SAMPLE.encode().unwrap();
            other.resize(len - 4, 7);
            other[8] = version;
            other.put_u32(crc32(&[&other]));
            let error = Settings::decode(Path::new("GUARD"), &other).unwrap_err();
            let found = u32::from(version);
            assert!(matches!(error, Error::UnsupportedVersion { found: f, .. } if f == found), "{error}");
        }
    }
}
