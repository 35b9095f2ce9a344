//! Read-only memory: a mapped file, or a copy in anonymous memory. `tests/layering/ranks.rs` lists every file
//! with `unsafe` code.

use super::sigbus::{FAULTS, WatchedRange, zero_pages};
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::slice;
use std::sync::LazyLock;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed},
    fence,
};

/// Linux's default limit on the mappings of a process, which include allocations.
const MAX_MAP_COUNT: usize = 65_530;
/// Limits the files that this process maps at a time to three quarters of the kernel's limit, because a
/// process aborts when its allocator cannot map memory.
static FILE_MAPS: LazyLock<MapBudget> = LazyLock::new(|| {
    let allowed = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok();
    let allowed = allowed.and_then(|count| count.trim().parse().ok()).unwrap_or(MAX_MAP_COUNT);
    MapBudget { taken: AtomicUsize::new(0), max: allowed / 4 * 3 }
});

/// A limit on simultaneous mappings.
struct MapBudget {
    taken: AtomicUsize,
    max: usize,
}

/// One slot of a [`MapBudget`], until dropped.
struct Permit(&'static MapBudget);

impl MapBudget {
    /// `None` if none is left.
    fn take(&'static self) -> Option<Permit> {
        let permit = Permit(self);
        (self.taken.fetch_add(1, Relaxed) < self.max).then_some(permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Relaxed);
    }
}

/// Bytes of a file, mapped or copied. Page-aligned in both cases.
///
/// Fields are dropped in this order, so that a range is watched only while it is mapped.
#[repr(C)]
pub struct Map {
    /// The part of `bytes` that is read most, in cache lines. First, next to what else a probe reads.
    window: &'static [[u8; 64]],
    watched: Option<WatchedRange>,
    /// The memory of `backing`. A separate reference, or every read of a filter would have to tell the kinds
    /// of backing apart.
    bytes: &'static [u8],
    backing: Backing,
}

enum Backing {
    Empty,
    File { map: memmap2::Mmap, _permit: Permit },
    Anonymous { _map: memmap2::MmapMut },
}

impl Map {
    pub(super) const EMPTY: Map = Map { watched: None, bytes: &[], window: &[], backing: Backing::Empty };

    /// Maps the whole of `file`.
    ///
    /// # Safety
    /// Same as [`Fs::map`](super::Fs::map).
    pub(super) unsafe fn of_file(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Map::EMPTY);
        }
        let permit = FILE_MAPS.take().ok_or_else(|| {
            let what = format!(
                "this process already maps {} files, three quarters of vm.max_map_count",
                FILE_MAPS.max
            );
            io::Error::new(io::ErrorKind::OutOfMemory, what)
        })?;
        // SAFETY: the caller promises that the file does not change while it is mapped.
        let map = unsafe { memmap2::Mmap::map(file)? };
        let watched = WatchedRange::new(map.as_ptr(), map.len());
        // SAFETY: memory stays in place while `backing` lives, and no copy of the reference leaves the `Map`.
        let bytes = unsafe { slice::from_raw_parts(map.as_ptr(), map.len()) };
        Ok(Map { watched, bytes, window: &[], backing: Backing::File { map, _permit: permit } })
    }

    /// Copies `bytes` into anonymous memory, on huge pages if the kernel provides them.
    pub fn copied(bytes: &[u8]) -> io::Result<Self> {
        if bytes.is_empty() {
            return Ok(Map::EMPTY);
        }
        let mut map = anonymous(bytes.len())?;
        map.copy_from_slice(bytes);
        Ok(Map::of_copy(map))
    }

    pub(super) fn of_copy(map: memmap2::MmapMut) -> Self {
        // SAFETY: as in `of_file`; nothing writes to the memory from here on.
        let bytes = unsafe { slice::from_raw_parts(map.as_ptr(), map.len()) };
        Map { watched: None, bytes, window: &[], backing: Backing::Anonymous { _map: map } }
    }

    /// The same map with [`window`](Self::window) set to this range, in whole cache lines, or to nothing if
    /// it exceeds the map.
    pub fn with_window(mut self, range: Range<usize>) -> Self {
        self.window = self.bytes.get(range).unwrap_or_default().as_chunks().0;
        self
    }

    /// The lines chosen by [`with_window`](Self::with_window); none before that.
    #[inline]
    pub fn window(&self) -> &[[u8; 64]] {
        self.window
    }

    /// Whether an access to the mapped file has faulted: see [`catch_sigbus`](super::catch_sigbus). Call it
    /// *after* reading the bytes in question.
    #[inline]
    pub fn has_faulted(&self) -> bool {
        self.watched.as_ref().is_some_and(|watched| any_fault() && watched.is_flagged())
    }

    /// Gives back the memory and the file while others may still read the bytes. From now on these are zeros,
    /// and nobody may rely on them. Only the addresses stay taken until the map is dropped.
    pub fn give_back(&self) {
        if !self.bytes.is_empty() {
            // SAFETY: these are the bytes of `backing`, which has its own map, and the caller ensures that
            // nobody relies on them.
            let _ = unsafe { zero_pages(self.bytes.as_ptr().cast_mut().cast(), self.bytes.len()) };
        }
    }

    /// Tells the kernel that pages are read one at a time, so that it reads none ahead.
    pub fn expect_single_pages(&self) {
        #[cfg(unix)]
        self.advise(memmap2::Advice::Random);
    }

    /// Tells the kernel that many pages will be read, so that it reads ahead as it does by default.
    pub fn expect_many_pages(&self) {
        #[cfg(unix)]
        self.advise(memmap2::Advice::Normal);
    }

    /// Tells the kernel that all pages will be read, on huge pages if it can.
    pub fn expect_all_pages(&self) {
        self.expect_many_pages();
        #[cfg(target_os = "linux")]
        self.advise(memmap2::Advice::HugePage); // Of the whole map: otherwise it would become two maps.
    }

    #[cfg(unix)]
    fn advise(&self, advice: memmap2::Advice) {
        if let Backing::File { map, .. } = &self.backing {
            let _ = map.advise(advice); // Only advice.
        }
    }

    /// Starts to read the pages of a range, and does not wait. Only advice.
    pub fn will_need(&self, range: Range<usize>) {
        #[cfg(unix)]
        if let Backing::File { map, .. } = &self.backing
            && let Some((from, len)) = self.within(range)
        {
            let _ = map.advise_range(memmap2::Advice::WillNeed, from, len);
        }
        #[cfg(not(unix))]
        let _ = range;
    }

    /// Where a range begins and how long it is, without what exceeds the map. `None` if nothing is left.
    #[cfg(unix)]
    fn within(&self, range: Range<usize>) -> Option<(usize, usize)> {
        let len = range.end.min(self.bytes.len()).checked_sub(range.start)?;
        (len > 0).then_some((range.start, len))
    }

    /// Reads the pages of a range now, sequentially. Only advice: the kernel may read pages on first use.
    pub fn populate(&self, range: Range<usize>) {
        #[cfg(target_os = "linux")]
        if let Backing::File { map, .. } = &self.backing
            && let Some((from, len)) = self.within(range.clone())
        {
            self.expect_all_pages();
            if map.advise_range(memmap2::Advice::PopulateRead, from, len).is_ok() {
                return;
            }
        }
        self.will_need(range);
    }
}

/// Whether an access to any map of this crate has faulted before this call. If not,
/// [`has_faulted`](Map::has_faulted) is false for each of them.
#[inline]
pub(crate) fn any_fault() -> bool {
    // Keeps reads of the maps before the check. On the faulting thread, only the compiler could reorder them.
    fence(Acquire);
    FAULTS.load(Acquire) != 0
}

/// Zeroed memory, on huge pages if the kernel provides them.
pub(super) fn anonymous(bytes: usize) -> io::Result<memmap2::MmapMut> {
    let map = memmap2::MmapMut::map_anon(bytes)?;
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage); // Only advice.
    Ok(map)
}

impl Deref for Map {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Map({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The budget limits the number of maps, and a dropped map makes room.
    #[test]
    fn the_budget_of_maps_is_kept_and_a_map_that_is_dropped_makes_room() {
        static BUDGET: MapBudget = MapBudget { taken: AtomicUsize::new(0), max: 2 };
        let first = BUDGET.take();
        let second = BUDGET.take();
        assert!(first.is_some() && second.is_some());
        assert!(BUDGET.take().is_none());
        assert!(BUDGET.take().is_none(), "an attempt that failed takes nothing");
        drop(first);
        assert!(BUDGET.take().is_some());
    }

    #[test]
    fn a_mapped_file_counts_until_it_is_unmapped() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(10).unwrap();
        // SAFETY: nobody else knows the file.
        let maps: Vec<_> = (0..100).map(|_| unsafe { Map::of_file(&file) }.unwrap()).collect();
        let with_maps = FILE_MAPS.taken.load(Relaxed);
        assert!(with_maps >= 100);
        drop(maps);
        // Other tests map files too, but not a hundred of them at once.
        assert!(FILE_MAPS.taken.load(Relaxed) < with_maps);
    }
}
