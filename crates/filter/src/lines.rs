//! Lines in memory, each aligned to a cache line, on huge pages where the kernel provides them.

use crate::error::{Error, Result};
use crate::huge_pages::{advise_huge_pages, give_back_pages};
use crate::line::{LINE_BYTES, Line};
use std::fmt;
use std::ops::{Deref, DerefMut};

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
struct Aligned(Line);

const _: () = assert!(size_of::<Aligned>() == LINE_BYTES && align_of::<Aligned>() == LINE_BYTES);

/// An owned slice of lines, aligned to cache lines. Without alignment, a probe would touch two cache lines.
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

    /// Reserves memory for `more` lines.
    pub(super) fn reserve(&mut self, more: usize) -> Result<()> {
        let before = self.0.capacity();
        if self.0.try_reserve_exact(more).is_err() {
            let lines = (self.0.len() as u64).saturating_add(more as u64);
            return Err(Error::OutOfMemory { bytes: lines.saturating_mul(LINE_BYTES as u64) });
        }
        if self.0.capacity() > before {
            advise_huge_pages(&self.0);
        }
        Ok(())
    }

    /// Frees them, and gives their pages back to the kernel.
    pub(super) fn give_back(mut self) {
        give_back_pages(&mut self);
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

impl From<&[Line]> for Lines {
    fn from(lines: &[Line]) -> Self {
        Lines(lines.iter().copied().map(Aligned).collect())
    }
}

impl Deref for Lines {
    type Target = [Line];

    #[inline]
    fn deref(&self) -> &[Line] {
        // SAFETY: an aligned line consists of a line only (see the assertion), and bytes have no alignment.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len()) }
    }
}

impl DerefMut for Lines {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Line] {
        // SAFETY: as above, and any bytes are a valid aligned line.
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
        let mut large = Lines::zeroed(crate::huge_pages::MIN_BYTES / LINE_BYTES + 100).unwrap();
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
