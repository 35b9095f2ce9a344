//! What a guard's directory remembers of its publication to a store: the file `PUBLISHED-HHHHHHHHHHHHHHHH`, with 16 hex digits of the
//! SHA-256 of the store's name. Integers are little-endian.
//!
//! ```text
//!  0  8  magic "SBLMLIN\n"
//!  8  4  version
//! 12 16  the last state known to be published: writer and number
//! 28 16  the state that was about to be published: writer and number
//! 44  4  CRC-32 of bytes 0..44
//! ```
//! *version*: 1. Magic, version and the CRC of all other bytes keep their places in every version of this length.

use crate::error::{Error, Result};
use crate::generation::hex;
use crate::private;
use sha2::{Digest, Sha256};
use sidebloom_filter::codec::{Decoder, Encode, crc32};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"SBLMLIN\n";
const VERSION: u32 = 1;
const BYTES: usize = 48;

/// A state: who published it, and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    pub writer: u64,
    pub number: u64,
}

/// The newest state that the directory has published, as far as it knows.
#[derive(Debug)]
pub struct Lineage {
    path: PathBuf,
    done: Mark,
    next: Mark,
}

impl Lineage {
    /// Reads it; empty if the directory has published nothing there.
    pub fn read(dir: &Path, store: &str) -> Result<Self> {
        let hash = Sha256::digest(store.as_bytes());
        let digits = hex(&hash);
        let path = dir.join(format!("PUBLISHED-{}", digits.get(..16).unwrap_or(&digits)));
        let found = private::read_at_most(&path, BYTES as u64).map_err(Error::file("read", &path))?;
        let Some(bytes) = found else {
            return Ok(Lineage { path, done: Mark::default(), next: Mark::default() });
        };
        let damaged = |what: &str| {
            Error::damaged(
                path.display().to_string(),
                0,
                format!("{what}; remove it, refresh the guard, and take over"),
            )
        };
        let (body, crc) = bytes
            .split_last_chunk()
            .filter(|_| bytes.len() == BYTES)
            .ok_or_else(|| damaged("wrong length"))?;
        if *crc != crc32(&[body]).to_le_bytes() {
            return Err(damaged("checksum mismatch"));
        }
        let mut fields = Decoder::new(body);
        let magic = fields.take(MAGIC.len());
        let found = fields.u32().unwrap_or_default();
        if magic == Some(MAGIC) && found != VERSION {
            let object = path.display().to_string();
            return Err(Error::UnsupportedVersion { object, found, supported: VERSION });
        }
        let mut mark = || Some(Mark { writer: fields.u64()?, number: fields.u64()? });
        match (magic == Some(MAGIC), mark(), mark()) {
            (true, Some(done), Some(next)) => Ok(Lineage { path, done, next }),
            _ => Err(damaged("not a lineage")),
        }
    }

    /// Whether the directory has published this state, and nobody anything after it.
    pub fn ends_with(&self, newest: Mark) -> bool {
        newest.number > 0 && (newest == self.done || newest == self.next)
    }

    /// The highest number that was used.
    pub fn number(&self) -> u64 {
        self.done.number.max(self.next.number)
    }

    /// Durably notes which state is about to be published.
    pub fn intend(&mut self, next: Mark) -> Result<()> {
        self.next = next;
        self.write()
    }

    /// Durably notes that it is published.
    pub fn confirm(&mut self, done: Mark) -> Result<()> {
        (self.done, self.next) = (done, done);
        self.write()
    }

    fn write(&self) -> Result<()> {
        let mut bytes = MAGIC.to_vec();
        bytes.put_u32(VERSION);
        for mark in [self.done, self.next] {
            bytes.put_u64(mark.writer);
            bytes.put_u64(mark.number);
        }
        let crc = crc32(&[&bytes]);
        bytes.put_u32(crc);
        private::replace(&self.path, &bytes).map_err(Error::file("write", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_lineage_is_remembered_for_each_store_and_damage_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let mark = |number| Mark { writer: 7, number };
        let mut lineage = Lineage::read(dir.path(), "a").unwrap();
        assert!(!lineage.ends_with(Mark::default()));
        lineage.confirm(mark(4)).unwrap();
        lineage.intend(mark(5)).unwrap();
        let lineage = Lineage::read(dir.path(), "a").unwrap();
        assert!(lineage.ends_with(mark(4)) && lineage.ends_with(mark(5)) && !lineage.ends_with(mark(6)));
        assert!(!lineage.ends_with(Mark { writer: 8, number: 5 }));
        assert_eq!((lineage.number(), Lineage::read(dir.path(), "b").unwrap().number()), (5, 0));
        let good = fs::read(&lineage.path).unwrap();
        crate::golden::check(
            "published-guard",
            &good,
            &[
                (8, "magic"),
                (4, "version"),
                (8, "published by writer 7"),
                (8, "state 4"),
                (8, "about to be published by writer 7"),
                (8, "state 5"),
                (4, "crc"),
            ],
        );
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            fs::write(&lineage.path, bad).unwrap();
            assert!(matches!(Lineage::read(dir.path(), "a"), Err(Error::Damaged { .. })));
        }
        fs::write(&lineage.path, &good[..47]).unwrap();
        assert!(Lineage::read(dir.path(), "a").is_err());
    }
}
