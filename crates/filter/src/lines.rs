//! Lines in memory of their own: each in one cache line, on huge pages where the kernel gives them.

use super::{LINE_BYTES, Line};
use crate::error::{Error, Result};
use std::fmt;
use std::ops::{Deref, DerefMut};

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
struct Aligned(Line);

const _: () = assert!(size_of::<Aligned>() == LINE_BYTES && align_of::<Aligned>() == LINE_BYTES);

/// Memory from which huge pages are asked for: two of 2 MiB. Probes of an 8 MiB filter took a sixth less time with them (`-- others`
/// of the filter benchmark).
const HUGE_FROM_BYTES: usize = 4 << 20;

/// A slice of lines that owns its memory. A probe of lines that an allocator put anywhere would touch two cache lines.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Lines(Vec<Aligned>);

impl Lines {
    /// `count` zeroed lines.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn zeroed(count: usize) -> Result<Self> {
        let mut lines = Lines::default();
        lines.reserve(count)?;
        lines.0.resize(count, Aligned([0; LINE_BYTES]));
        Ok(lines)
    }

    /// Room for `more` lines that are still to come.
    pub(super) fn reserve(&mut self, more: usize) -> Result<()> {
        let before = self.0.capacity();
        if self.0.try_reserve_exact(more).is_err() {
            let lines = (self.0.len() as u64).saturating_add(more as u64);
            return Err(Error::OutOfMemory { bytes: lines.saturating_mul(LINE_BYTES as u64) });
        }
        if self.0.capacity() > before {
            ask_for_huge_pages(&self.0);
        }
        Ok(())
    }

    /// Appends a line.
    pub(super) fn push(&mut self, line: Line) {
        self.0.push(Aligned(line));
    }

    /// Appends lines.
    pub(crate) fn extend_from_slice(&mut self, lines: &[Line]) {
        self.0.extend(lines.iter().copied().map(Aligned));
    }
}

/// Asks for huge pages below all that a vector has room for. Advice only: the kernel may say no, and everything stays as it is.
pub(super) fn ask_for_huge_pages<T>(memory: &Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let bytes = memory.capacity() * size_of::<T>();
        let start = memory.as_ptr().cast::<u8>();
        let skipped = start.align_offset(PAGE);
        if bytes >= HUGE_FROM_BYTES + PAGE {
            let whole = (bytes - skipped) / PAGE * PAGE;
            // SAFETY: the range lies within the vector's own allocation, and the advice changes no byte of it.
            let _ =
                unsafe { libc::madvise(start.add(skipped).cast_mut().cast(), whole, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

impl From<&[Line]> for Lines {
    fn from(lines: &[Line]) -> Self {
        Lines(lines.iter().copied().map(Aligned).collect())
    }
}

impl Deref for Lines {
    type Target = [Line];

    #[inline]
    fn deref(&self) -> &[Line] {
        // SAFETY: an aligned line is a line and nothing else (see the assertion), and bytes have no alignment.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len()) }
    }
}

impl DerefMut for Lines {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Line] {
        // SAFETY: as above, and every value of its bytes is an aligned line.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len()) }
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lines({})", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_one_cache_line_however_the_memory_came() {
        let mut grown = Lines::default();
        for i in 0..300 {
            grown.push([i as u8; LINE_BYTES]);
        }
        let plain: Vec<Line> = (0..300).map(|i| [i as u8; LINE_BYTES]).collect();
        let mut extended = Lines::zeroed(0).unwrap();
        extended.extend_from_slice(&plain);
        for lines in [grown.clone(), grown, Lines::from(&plain[..]), extended] {
            assert_eq!(lines.as_ptr().align_offset(LINE_BYTES), 0);
            assert_eq!(&lines[..], &plain[..]);
        }
        let mut large = Lines::zeroed(HUGE_FROM_BYTES / LINE_BYTES + 100).unwrap();
        assert!(large.iter().all(|line| *line == [0; LINE_BYTES]));
        large.as_flattened_mut().fill(7);
        assert!(large.iter().all(|line| *line == [7; LINE_BYTES]));
    }

    #[test]
    fn more_memory_than_there_is_is_an_error_by_name() {
        for count in [usize::MAX, usize::MAX / LINE_BYTES, isize::MAX as usize / LINE_BYTES] {
            assert!(matches!(Lines::zeroed(count), Err(Error::OutOfMemory { .. })), "{count}");
        }
    }
}
