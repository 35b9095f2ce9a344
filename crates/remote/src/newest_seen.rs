//! The newest generation of a store or a guard seen by a cache directory: the file `newest-HHHHHHHHHHHHHHHH`,
//! named by the number of the store or the guard. It is durable, so that a bucket that goes back to an older
//! state is noticed after a restart too. Integers are little-endian.
//!
//! ```text
//!  0  8  magic "SBLMNEW\n"
//!  8  4  version
//! 12  8  the number of the store or the guard
//! 20  8  the number of the generation
//! 28  4  CRC-32 of bytes 0..28
//! ```
//! *version*: 1. Magic, version and the CRC of all other bytes keep their offsets at this length.

use crate::error::{Error, Result};
use crate::private_files;
use crate::remote::Remote;
use sidebloom_filter::codec::{Decoder, Encode, crc32};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"SBLMNEW\n";
/// The versions that this build reads.
const READS: RangeInclusive<u32> = 1..=1;
/// The version that this build writes.
const WRITES: u32 = *READS.end();
const BYTES: u64 = 32;
/// Held while the mark is raised.
const LOCK: &str = "newest.lock";

/// The newest number seen of one store or guard.
#[derive(Debug)]
pub(crate) struct NewestSeen {
    dir: PathBuf,
    /// The number of the store or the guard.
    owner: u64,
}

impl NewestSeen {
    pub fn new(dir: &Path, owner: u64) -> Self {
        NewestSeen { dir: dir.to_path_buf(), owner }
    }

    fn path(&self) -> PathBuf {
        self.dir.join(format!("newest-{:016x}", self.owner))
    }

    /// The newest number seen; 0 if none. Read it before asking the bucket, since another reader may see a
    /// newer one at any time.
    pub fn read(&self) -> Result<u64> {
        let path = self.path();
        match private_files::read_at_most(&path, BYTES).map_err(Error::file("read", &path))? {
            Some(bytes) => self.decode(&bytes),
            None => Ok(0),
        }
    }

    /// Refuses a number lower than one seen before.
    pub fn check(&self, remote: &Remote, seen: u64, found: u64) -> Result<()> {
        if found < seen {
            Err(Error::WentBack { url: remote.url().to_owned(), seen, found, cache: self.dir.clone() })
        } else {
            Ok(())
        }
    }

    pub fn raise(&self, number: u64) -> Result<()> {
        let path = self.dir.join(LOCK);
        let lock = private_files::lock_file(&path).map_err(Error::file("open", &path))?;
        lock.lock().map_err(Error::file("lock", &path))?;
        if number <= self.read()? {
            return Ok(());
        }
        let path = self.path();
        private_files::replace(&path, &self.encode(number)).map_err(Error::file("write", path))
    }

    fn encode(&self, number: u64) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.put_u32(WRITES);
        bytes.put_u64(self.owner);
        bytes.put_u64(number);
        let crc = crc32(&[&bytes]);
        bytes.put_u32(crc);
        bytes
    }

    fn decode(&self, bytes: &[u8]) -> Result<u64> {
        let name = || self.path().display().to_string();
        let damaged = |offset: u64, what: &str| {
            Error::damaged(name(), offset, format!("{what}; remove it to trust the URL again"))
        };
        let found = bytes.split_last_chunk().filter(|_| bytes.len() as u64 == BYTES);
        let (body, crc) = found.ok_or_else(|| damaged(bytes.len() as u64, "wrong length"))?;
        if *crc != crc32(&[body]).to_le_bytes() {
            return Err(damaged(BYTES - 4, "checksum mismatch"));
        }
        let mut fields = Decoder::new(body);
        if fields.take(MAGIC.len()) != Some(MAGIC) {
            return Err(damaged(0, "not a mark of the newest generation"));
        }
        let found = fields.u32().unwrap_or_default();
        if !READS.contains(&found) {
            return Err(Error::UnsupportedVersion { object: name(), found, supported: READS });
        }
        match (fields.u64(), fields.u64()) {
            (Some(owner), Some(number)) if owner == self.owner => Ok(number),
            _ => Err(damaged(12, "it belongs to another store")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_only_rises_and_damage_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let mark = NewestSeen::new(dir.path(), 0x1f);
        assert_eq!(mark.read().unwrap(), 0);
        mark.raise(7).unwrap();
        mark.raise(5).unwrap();
        assert_eq!((mark.read().unwrap(), NewestSeen::new(dir.path(), 0x2f).read().unwrap()), (7, 0));
        let good = std::fs::read(mark.path()).unwrap();
        crate::golden::check(
            "newest",
            &good,
            &[(8, "magic"), (4, "version"), (8, "store 1f"), (8, "generation 7"), (4, "crc")],
        );
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(mark.decode(&bad), Err(Error::Damaged { .. })), "bit {bit}");
        }
        (0..good.len()).for_each(|len| assert!(mark.decode(&good[..len]).is_err(), "cut to {len}"));
        assert!(NewestSeen::new(dir.path(), 0x2f).decode(&good).is_err());
    }
}
