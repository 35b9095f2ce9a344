//! Checks a segment while it is copied, so that it is read once.

use super::format::{FOOTER_BYTES, Footer, Location};
use crate::error::Result;
use crate::hash::Digest;
use crate::id::FileId;
use std::path::Path;

/// Takes the bytes of a segment in order. Call protocol: `new update* finish`.
pub struct CopyCheck {
    digest: Digest,
    /// The offset of the footer.
    footer_at: u64,
    taken: u64,
    footer: Vec<u8>,
}

impl CopyCheck {
    /// For a file of this length.
    pub fn new(file_bytes: u64) -> Self {
        let footer_at = file_bytes.saturating_sub(FOOTER_BYTES as u64);
        CopyCheck { digest: Digest::default(), footer_at, taken: 0, footer: Vec::new() }
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        let before_footer = self.footer_at.saturating_sub(self.taken);
        let split = usize::try_from(before_footer).unwrap_or(usize::MAX).min(bytes.len());
        let (digested, footer) = bytes.split_at(split);
        self.digest.update(digested);
        self.footer.extend_from_slice(footer);
        self.taken += bytes.len() as u64;
    }

    /// Checks that this was segment `id` with this digest, byte for byte. `path` is for messages.
    ///
    /// # Errors
    /// [`Error::Corruption`](crate::Error::Corruption) and the errors of a footer.
    pub fn finish(&self, path: &Path, id: FileId, digest: u64) -> Result<()> {
        let location = Location { path, id, offset: self.footer_at };
        let Some(footer) = self.footer.first_chunk().filter(|_| self.footer.len() == FOOTER_BYTES) else {
            return Err(location.damaged(format!("{} bytes are too short for a segment", self.taken)));
        };
        let footer = Footer::decode(location, footer)?;
        if footer.digest != digest {
            return Err(location.damaged("the segment's digest differs from the one in the manifest"));
        }
        if self.digest.finish() != digest {
            return Err(location.damaged("file digest mismatch"));
        }
        Ok(())
    }
}
