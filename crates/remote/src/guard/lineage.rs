//! What a guard's directory remembers of its publication to a store: the file `PUBLISHED-HHHHHHHHHHHHHHHH`, with 16 hex digits of the
//! SHA-256 of the store's name. Integers are little-endian.
//!
//! ```text
//!  0  8  magic "SBLMLIN\n"
//!  8 16  the last state known to be published: writer and number
//! 24 16  the state that was about to be published: writer and number
//! 40  4  CRC-32 of bytes 0..40
//! ```

use crate::error::{Error, Result};
use crate::generation::hex;
use sha2::{Digest, Sha256};
use sidebloom_filter::codec::{Decoder, Encode, crc32};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"SBLMLIN\n";
const BYTES: usize = 44;

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
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Lineage { path, done: Mark::default(), next: Mark::default() });
            }
            Err(error) => return Err(Error::file("read", &path)(error)),
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
        for mark in [self.done, self.next] {
            bytes.put_u64(mark.writer);
            bytes.put_u64(mark.number);
        }
        let crc = crc32(&[&bytes]);
        bytes.put_u32(crc);
        replace(&self.path, &bytes).map_err(Error::file("write", &self.path))
    }
}

/// Replaces a file atomically and durably.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = File::create(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            fs::write(&lineage.path, bad).unwrap();
            assert!(matches!(Lineage::read(dir.path(), "a"), Err(Error::Damaged { .. })));
        }
        fs::write(&lineage.path, &good[..43]).unwrap();
        assert!(Lineage::read(dir.path(), "a").is_err());
    }
}
