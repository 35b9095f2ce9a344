//! A file read in pieces, so that no length in it decides how much memory is taken.

use super::file::ReadFile;
use super::skip_unreadable::read_around_errors;
use crate::codec::Crc32;
use crate::error::Result;
use std::path::Path;
use std::sync::Arc;

/// Size of a read, in bytes.
const PIECE_BYTES: usize = 1 << 20;
/// Zeros longer than this, in bytes, are a hole in the file, not damage of written data. Searches end there.
pub(crate) const HOLE_BYTES: u64 = if cfg!(fuzzing) {
    1 << 16
} else if cfg!(test) {
    8 << 20
} else {
    1 << 30
};

/// A part of a file in memory, a window that moves.
pub(crate) struct Pieces {
    file: Arc<dyn ReadFile>,
    len: u64,
    window: Vec<u8>,
    window_at: u64,
    /// Unreadable bytes count as zeros.
    around_errors: bool,
}

impl Pieces {
    /// The first `len` bytes of a file.
    pub fn new(file: Arc<dyn ReadFile>, len: u64) -> Self {
        Pieces { file, len, window: Vec::new(), window_at: 0, around_errors: false }
    }

    /// The same with zeros for bytes that cannot be read.
    pub fn around_errors(self) -> Self {
        Pieces { around_errors: true, ..self }
    }

    /// The number of bytes to read.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The bytes from `at` on: at least `n`, or all up to the end. Takes memory for `n` bytes, so that must
    /// be a justified length.
    pub fn view(&mut self, at: u64, n: usize) -> Result<&[u8]> {
        let rest = self.len.saturating_sub(at);
        let held = |skip: u64| (self.window.len() as u64).checked_sub(skip);
        let inside = at.checked_sub(self.window_at).and_then(held);
        if inside.is_none_or(|held| held < rest.min(n as u64)) {
            let size = (n.max(PIECE_BYTES) as u64).min(rest) as usize;
            if self.window.capacity() < size || self.window.capacity() > 4 * PIECE_BYTES.max(size) {
                // Not grown, which takes memory for both, and not kept if far too large.
                self.window = Vec::new();
            }
            self.window.resize(size, 0);
            self.window_at = at;
            if self.around_errors {
                read_around_errors(&*self.file, &mut self.window, at)
            } else {
                self.file.read_exact_at(&mut self.window, at)?
            }
        }
        Ok(self.window.get(at.saturating_sub(self.window_at) as usize..).unwrap_or_default())
    }

    /// Passes the bytes of a range on, piece by piece, until `each` returns `false`. Each piece has at least
    /// one byte, and comes with its offset.
    pub fn each(&mut self, from: u64, to: u64, mut each: impl FnMut(u64, &[u8]) -> bool) -> Result<()> {
        let (mut at, to) = (from, to.min(self.len));
        while at < to {
            let view = self.view(at, 1)?;
            let piece = view.get(..(to - at).min(view.len() as u64) as usize).unwrap_or(view);
            if piece.is_empty() || !each(at, piece) {
                break;
            }
            at += piece.len() as u64;
        }
        Ok(())
    }

    /// The CRC-32 of a range.
    pub fn crc(&mut self, from: u64, to: u64) -> Result<u32> {
        let mut crc = Crc32::default();
        self.each(from, to, |_, piece| {
            crc.update(piece);
            true
        })?;
        Ok(crc.value())
    }

    /// The number of zeros from `at` on. Stops counting beyond [`HOLE_BYTES`].
    pub fn zeros(&mut self, at: u64) -> Result<u64> {
        let mut count = 0;
        self.each(at, self.len, |_, piece| {
            let zeros = leading_zeros(piece);
            count += zeros as u64;
            zeros == piece.len() && count <= HOLE_BYTES
        })?;
        Ok(count)
    }
}

impl std::fmt::Debug for Pieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pieces({}, {} bytes)", self.path().display(), self.len)
    }
}

/// The number of zeros at the start of a slice.
fn leading_zeros(bytes: &[u8]) -> usize {
    let is_zero = |chunk: &[u8; 64]| chunk.iter().fold(0, |any, byte| any | byte) == 0;
    let zeros = 64 * bytes.as_chunks().0.iter().take_while(|chunk| is_zero(chunk)).count();
    zeros + bytes.iter().skip(zeros).take_while(|byte| **byte == 0).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::Fs;
    use crate::support::SimFs;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_have_the_bytes_of_the_file(
            seed: u64, len in 0u64..3 << 20, places in proptest::collection::vec((0u64..4 << 20, 0usize..3 << 20), 1..20),
        ) {
            let bytes: Vec<u8> = (0..len).map(|at| (at.wrapping_mul(seed | 1) >> 13) as u8).collect();
            let fs = SimFs::new();
            fs.write("file", bytes.clone());
            let mut pieces = Pieces::new(fs.open(Path::new("file")).unwrap(), len);
            for (at, n) in places {
                let rest = bytes.get(at as usize..).unwrap_or_default();
                let view = pieces.view(at, n).unwrap();
                prop_assert!(view.len() >= n.min(rest.len()) && rest.starts_with(view));
                let to = at + n as u64;
                let range = rest.get(..n).unwrap_or(rest);
                prop_assert_eq!(pieces.crc(at, to).unwrap(), crate::codec::crc32(&[range]));
            }
        }
    }

    #[test]
    fn a_larger_view_takes_memory_for_its_bytes_alone() {
        let fs = SimFs::new();
        fs.write("file", vec![7; 20 << 20]);
        let mut pieces = Pieces::new(fs.open(Path::new("file")).unwrap(), 20 << 20);
        for bytes in [1, 3 << 20, 4 << 20, 13 << 20] {
            pieces.view(5, bytes).unwrap();
            assert_eq!(pieces.window.capacity(), bytes.max(PIECE_BYTES));
        }
        pieces.view(0, 1).unwrap();
        assert_eq!(pieces.window.capacity(), PIECE_BYTES, "what a huge value took is given back");
    }

    #[test]
    fn zeros_are_counted_to_their_end() {
        for (zeros, others) in [(0, 0), (0, 3), (63, 0), (64, 1), (65, 9), (200_000, 1), (3 << 20, 2)] {
            let fs = SimFs::new();
            fs.write("file", [vec![0; zeros], vec![7; others]].concat());
            let mut pieces = Pieces::new(fs.open(Path::new("file")).unwrap(), (zeros + others) as u64);
            assert_eq!(pieces.zeros(0).unwrap(), zeros as u64);
        }
    }
}
