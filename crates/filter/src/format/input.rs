//! A stream of bytes with its read offset.

use crate::error::{Error, Result};
use std::io::{ErrorKind, Read};

/// The name of the stream in errors.
pub(super) const STREAM: &str = "the filter stream";

pub(super) struct Input<'a, R> {
    pub input: &'a mut R,
    pub at: u64,
}

impl<R: Read> Input<'_, R> {
    /// Reads exactly these bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.input.read_exact(bytes).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => Error::damaged(self.at, "the filter ends too early"),
            _ => Error::io("read", STREAM, e),
        })?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}
