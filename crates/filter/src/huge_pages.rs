//! Advice to the kernel about large memory: huge pages, and pages that are no longer needed.

use crate::line::{AtomicLine, Line};
use std::ops::Range;

/// The smallest allocation that asks for huge pages: two of 2 MiB. With them, probes of an 8 MiB filter took
/// a sixth less time (`-- others` of the filter benchmark).
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux takes the advice"))]
pub(crate) const MIN_BYTES: usize = 4 << 20;

/// Smallest memory whose pages are given back: less is not worth a system call.
#[cfg(target_os = "linux")]
const GIVEN_BACK_MIN_BYTES: usize = 64 << 10;

/// Gives the whole pages of large memory back to the kernel: from now on they read as zeros. Returns the
/// lines zeroed this way.
pub(crate) fn zero_pages(memory: &[AtomicLine]) -> Range<usize> {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 64 << 10; // The largest page size of the kernels that Rust supports.
        let bytes = size_of_val(memory);
        let start = memory.as_ptr().cast::<u8>();
        let skipped = start.align_offset(PAGE);
        if bytes >= GIVEN_BACK_MIN_BYTES + PAGE {
            let whole = (bytes - skipped) / PAGE * PAGE;
            // SAFETY: the range lies within the memory, which consists of atomics: others may change them at
            // any time, and zero is valid.
            let given_back =
                unsafe { libc::madvise(start.add(skipped).cast_mut().cast(), whole, libc::MADV_DONTNEED) };
            if given_back == 0 {
                return skipped / size_of::<AtomicLine>()..(skipped + whole) / size_of::<AtomicLine>();
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
    0..0
}

/// Gives the whole pages of large memory back to the kernel before it is freed, since an allocator may keep
/// them for what is allocated next. What the memory holds is then undefined.
pub(crate) fn give_back_pages(memory: &mut [Line]) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let bytes = size_of_val(memory);
        let start = memory.as_mut_ptr().cast::<u8>();
        let skipped = start.align_offset(PAGE);
        if bytes >= GIVEN_BACK_MIN_BYTES {
            let whole = (bytes - skipped) / PAGE * PAGE;
            // The advice to use huge pages would outlive the memory: a smaller allocation in its place would
            // get whole ones.
            for advice in [libc::MADV_DONTNEED, libc::MADV_NOHUGEPAGE] {
                // SAFETY: the range lies within the memory, which is borrowed mutably. Zeros are valid in it.
                let _ = unsafe { libc::madvise(start.add(skipped).cast(), whole, advice) };
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// Asks the kernel for huge pages under the whole capacity of a vector. The kernel may ignore this advice.
pub(crate) fn advise_huge_pages<T>(memory: &Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let bytes = memory.capacity() * size_of::<T>();
        let start = memory.as_ptr().cast::<u8>();
        let skipped = start.align_offset(PAGE);
        if bytes >= MIN_BYTES + PAGE {
            let whole = (bytes - skipped) / PAGE * PAGE;
            // SAFETY: the range is in the vector's own allocation, and the advice changes no byte of it.
            let _ =
                unsafe { libc::madvise(start.add(skipped).cast_mut().cast(), whole, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}
