//! Huge pages for large vectors.

/// The smallest allocation that asks for huge pages: two of 2 MiB. With them, probes of an 8 MiB filter took a sixth less time
/// (`-- others` of the filter benchmark).
pub(crate) const MIN_BYTES: usize = 4 << 20;

/// Asks the kernel for huge pages under the whole capacity of a vector. This is advice only, and the kernel may ignore it.
pub(crate) fn advise_huge_pages<T>(memory: &Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let bytes = memory.capacity() * size_of::<T>();
        let start = memory.as_ptr().cast::<u8>();
        let skipped = start.align_offset(PAGE);
        if bytes >= MIN_BYTES + PAGE {
            let whole = (bytes - skipped) / PAGE * PAGE;
            // SAFETY: the range lies within the vector's own allocation, and the advice changes no byte of it.
            let _ =
                unsafe { libc::madvise(start.add(skipped).cast_mut().cast(), whole, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}
