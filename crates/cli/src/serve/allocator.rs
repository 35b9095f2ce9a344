//! Memory that clients give back goes back to the system.

/// Makes large buffers mappings of their own. glibc does so at first, but raises the size from which on it
/// does (up to 32 MiB) whenever one is freed; requests of many sizes then leave holes that stay resident:
/// half as much again as is in use.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back_large_buffers() {
    // SAFETY: `mallopt` has no requirements of its caller; it takes a lock of the allocator.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES) };
}

/// The size from which on a buffer is a mapping; glibc's own default, before it raises it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_BYTES: i32 = 128 << 10;

/// Other allocators do not raise it.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back_large_buffers() {}
