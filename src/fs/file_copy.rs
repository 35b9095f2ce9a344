//! Copies of files in anonymous memory.

use super::file::ReadFile;
use super::map::{Map, anonymous};
use crate::error::{Error, IoOp, Result};

/// Size of a read, in bytes: large enough for the disk's full throughput.
pub(crate) const READ_BYTES: usize = 4 << 20;

impl Map {
    /// Reads the first `bytes` bytes of a file into anonymous memory, as [`copied`](Self::copied) does,
    /// without mapping the file. Passes each piece to `check` with its offset, a multiple of 4 MiB, and stops
    /// taking memory if that fails.
    ///
    /// # Errors
    /// The errors of reading the file and of `check`; [`Error::Io`] if there is not enough memory.
    pub fn read<E: From<Error>>(
        file: &dyn ReadFile,
        bytes: usize,
        mut check: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<Self, E> {
        if bytes == 0 {
            return Ok(Map::EMPTY);
        }
        let mut map =
            anonymous(bytes).map_err(|e| Error::io(IoOp::Other("allocate memory to pin"), file.path(), e))?;
        for (i, piece) in map.chunks_mut(READ_BYTES).enumerate() {
            let at = (i * READ_BYTES) as u64;
            file.read_exact_at(piece, at)?;
            check(at, piece)?;
        }
        Ok(Map::of_copy(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::{Fs, RealFs};

    #[test]
    fn a_copy_of_a_file_that_takes_several_reads_is_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let bytes: Vec<u8> = (0..2 * READ_BYTES as u32 + 1000).map(|i| (i / 1000) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let file = RealFs.open(&path).unwrap();
        for len in [0, 1000, READ_BYTES, READ_BYTES + 1, bytes.len()] {
            let read = Map::read(&*file, len, |_, _| Ok::<_, Error>(()));
            assert!(*read.unwrap() == bytes[..len], "{len} bytes");
        }
    }
}
