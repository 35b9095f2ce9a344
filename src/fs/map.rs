//! Read-only memory: a mapped file, or a copy in anonymous memory. `tests/layering.rs` lists this and every other home of `unsafe`.

use super::ReadFile;
use super::sigbus::Watched;
use crate::error::{Error, Result};
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Deref;

/// Large enough for a disk to read at its speed.
const READ_BYTES: usize = 4 << 20;

/// Bytes of a file, mapped or copied. Page-aligned in both cases.
pub struct Map(Inner);

enum Inner {
    Empty,
    /// Dropped in this order: a range is watched while it is mapped.
    File(Option<Watched>, memmap2::Mmap),
    Anonymous(memmap2::MmapMut),
}

impl Map {
    /// Maps the whole of `file`.
    ///
    /// # Safety
    /// As [`Fs::map`](super::Fs::map).
    pub(super) unsafe fn of_file(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Map(Inner::Empty));
        }
        // SAFETY: the caller promises that the file's bytes stay as they are while it is mapped.
        let map = unsafe { memmap2::Mmap::map(file)? };
        Ok(Map(Inner::File(Watched::new(map.as_ptr(), map.len()), map)))
    }

    /// Copies `bytes` into anonymous memory, on huge pages where the kernel gives them.
    pub fn copied(bytes: &[u8]) -> io::Result<Self> {
        if bytes.is_empty() {
            return Ok(Map(Inner::Empty));
        }
        let mut map = anonymous(bytes.len())?;
        map.copy_from_slice(bytes);
        Ok(Map(Inner::Anonymous(map)))
    }

    /// Reads the first `bytes` bytes of a file into anonymous memory, as [`copied`](Self::copied). No file is mapped.
    ///
    /// # Errors
    /// Whatever reading can fail with; [`Error::Io`] when there is not that much memory.
    pub fn read(file: &dyn ReadFile, bytes: usize) -> Result<Self> {
        if bytes == 0 {
            return Ok(Map(Inner::Empty));
        }
        let mut map = anonymous(bytes).map_err(|e| Error::io("find memory to pin", file.path(), e))?;
        for (i, piece) in map.chunks_mut(READ_BYTES).enumerate() {
            file.read_exact_at(piece, (i * READ_BYTES) as u64)?;
        }
        Ok(Map(Inner::Anonymous(map)))
    }

    /// Whether pages of the mapped file were gone when they were touched: see [`catch_sigbus`](super::catch_sigbus). To be asked *after* reading
    /// what matters.
    #[inline]
    pub fn has_faulted(&self) -> bool {
        match &self.0 {
            Inner::File(Some(watched), _) => watched.has_faulted(),
            _ => false,
        }
    }

    /// Reads all pages in now, sequentially. Advice: an error of the kernel is ignored, the pages then come on first use.
    pub fn populate(&self) {
        if let Inner::File(_, map) = &self.0 {
            #[cfg(target_os = "linux")]
            {
                let _ = map.advise(memmap2::Advice::HugePage);
                if map.advise(memmap2::Advice::PopulateRead).is_ok() {
                    return;
                }
            }
            #[cfg(unix)]
            let _ = map.advise(memmap2::Advice::WillNeed);
        }
    }
}

fn anonymous(bytes: usize) -> io::Result<memmap2::MmapMut> {
    let map = memmap2::MmapMut::map_anon(bytes)?;
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage); // Advice only: without huge pages the answers are the same.
    Ok(map)
}

impl Deref for Map {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Inner::Empty => &[],
            Inner::File(_, map) => map,
            Inner::Anonymous(map) => map,
        }
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Map({} bytes)", self.len())
    }
}
