//! Read-only memory: a mapped file, or a copy in anonymous memory. `tests/layering.rs` lists this and every other home of `unsafe`.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Deref;

/// Bytes of a file, mapped or copied. Page-aligned in both cases.
pub struct Map(Inner);

enum Inner {
    Empty,
    File(memmap2::Mmap),
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
        Ok(Map(Inner::File(map)))
    }

    /// Copies `bytes` into anonymous memory, on huge pages where the kernel gives them.
    pub fn copied(bytes: &[u8]) -> io::Result<Self> {
        if bytes.is_empty() {
            return Ok(Map(Inner::Empty));
        }
        let mut map = memmap2::MmapMut::map_anon(bytes.len())?;
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage); // Advice only: without huge pages the answers are the same.
        map.copy_from_slice(bytes);
        Ok(Map(Inner::Anonymous(map)))
    }

    /// Reads all pages in now, sequentially. Advice: an error of the kernel is ignored, the pages then come on first use.
    pub fn populate(&self) {
        if let Inner::File(map) = &self.0 {
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

impl Deref for Map {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Inner::Empty => &[],
            Inner::File(map) => map,
            Inner::Anonymous(map) => map,
        }
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Map({} bytes)", self.len())
    }
}
