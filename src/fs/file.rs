//! Open files, as [`Fs`](super::Fs) hands them out.

use crate::error::Result;
use std::fmt::Debug;
use std::path::Path;

/// A file being written, front to back.
pub trait AppendFile: Send + Debug {
    /// Appends all of `bytes`. After an error the end of the file is unknown: never append again.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
    /// Makes all appended bytes durable (fdatasync). After an error nothing is known: never sync again.
    fn sync(&mut self) -> Result<()>;
}

/// A file being read.
pub trait ReadFile: Send + Sync + Debug {
    /// Fills `buf` from `offset`; a file that ends earlier is [`Error::Corruption`](crate::Error::Corruption) at its end.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()>;
    /// Its length in bytes.
    fn len(&self) -> Result<u64>;
    /// The path it was opened with, for messages.
    fn path(&self) -> &Path;
    /// Whether it has no bytes.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
}
