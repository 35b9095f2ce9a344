//! Measurements from the operating system: dropping the page cache, disk reads, peak memory.
//!
//! The figures come from Linux's /proc. On other systems they are unknown, and reports leave them out.

use crate::human;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::Path;

/// How the page cache was dropped.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PageCache {
    /// All of it.
    Dropped,
    /// Only the store's files were dropped (posix_fadvise), not the metadata of the file system.
    StoreDropped,
    /// It could not be dropped, for this reason.
    Kept(String),
}

impl PageCache {
    /// Drops the page cache as far as this process may. Mapped files, such as sidecars, stay in memory.
    pub fn drop_for(dir: &Path) -> Self {
        let dropped = clean(dir).and_then(|()| fs::write("/proc/sys/vm/drop_caches", "3"));
        match dropped {
            Ok(()) => PageCache::Dropped,
            Err(refused) => match advise_dont_need(dir) {
                Ok(()) => PageCache::StoreDropped,
                Err(_) => PageCache::Kept(refused.to_string()),
            },
        }
    }

    /// A description for people.
    pub fn describe(&self) -> String {
        match self {
            PageCache::Dropped => "page cache dropped".to_owned(),
            PageCache::StoreDropped => "the store's files dropped from the page cache".to_owned(),
            PageCache::Kept(why) => {
                format!("page cache NOT dropped ({why}; try as root): these reads come from memory")
            }
        }
    }
}

/// Syncs the directory's files, since only clean pages can be dropped.
fn clean(dir: &Path) -> io::Result<()> {
    fs::read_dir(dir)?.try_for_each(|entry| fs::File::open(entry?.path())?.sync_all())
}

#[cfg(target_os = "linux")]
fn advise_dont_need(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let file = fs::File::open(entry?.path())?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn advise_dont_need(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether `dir` is on an in-memory file system, where nothing reads a disk.
#[cfg(target_os = "linux")]
pub fn is_memory(dir: &Path) -> bool {
    // TMPFS_MAGIC and RAMFS_MAGIC of linux/magic.h; the type of `f_type` differs between architectures.
    rustix::fs::statfs(dir).is_ok_and(|fs| matches!(fs.f_type, 0x0102_1994 | 0x8584_58f6))
}

/// Whether `dir` is on an in-memory file system, where nothing reads a disk.
#[cfg(not(target_os = "linux"))]
pub fn is_memory(_: &Path) -> bool {
    false
}

/// Counts disk reads of the device that holds a directory.
#[derive(Debug, Clone, Copy)]
pub struct DiskMeter {
    /// Major and minor number.
    device: Option<(u32, u32)>,
}

/// Disk reads in total, or between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskReads {
    /// The disk's completed reads, machine-wide (/proc/diskstats); unknown if the file system spans devices.
    pub reads: Option<u64>,
    /// Bytes that this process caused to be read from disk (/proc/self/io, read_bytes; includes read-ahead).
    pub bytes: Option<u64>,
}

impl DiskMeter {
    /// For the device under `dir`.
    pub fn new(dir: &Path) -> Self {
        let device = rustix::fs::stat(dir)
            .ok()
            .map(|stat| (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev)));
        DiskMeter { device }
    }

    /// The counters now.
    pub fn read(&self) -> DiskReads {
        let diskstats = fs::read_to_string("/proc/diskstats").unwrap_or_default();
        let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
        DiskReads {
            reads: self.device.and_then(|device| reads_completed(&diskstats, device)),
            bytes: field(&io, "read_bytes:"),
        }
    }
}

impl DiskReads {
    /// The sum; unknown if either is.
    pub fn plus(self, other: DiskReads) -> DiskReads {
        let plus = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        DiskReads { reads: plus(self.reads, other.reads), bytes: plus(self.bytes, other.bytes) }
    }

    /// What was read since `before`.
    pub fn since(self, before: DiskReads) -> DiskReads {
        let minus = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        DiskReads { reads: minus(self.reads, before.reads), bytes: minus(self.bytes, before.bytes) }
    }
}

/// Column 4 of the device's line: https://docs.kernel.org/admin-guide/iostats.html
fn reads_completed(diskstats: &str, (major, minor): (u32, u32)) -> Option<u64> {
    diskstats.lines().find_map(|line| {
        let mut columns = line.split_ascii_whitespace();
        let found = columns.next()?.parse() == Ok(major) && columns.next()?.parse() == Ok(minor);
        if found { columns.nth(1)?.parse().ok() } else { None }
    })
}

/// Largest resident memory of this process in bytes, since [`reset_peak_memory`]; mapped files count.
pub fn peak_memory_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    field(&status, "VmHWM:").map(|kib| kib * 1024)
}

/// Logs the peak memory, code and mapped files included; --verbose shows it.
pub fn log_peak_memory() {
    if let Some(bytes) = peak_memory_bytes() {
        tracing::info!("peak memory {}", human::bytes(bytes as f64));
    }
}

/// Resets [`peak_memory_bytes`]. Without permission, the process's peak remains: an upper bound.
pub fn reset_peak_memory() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_tables_are_read() {
        let diskstats = "   8       0 sda 1 2 3 4 5\n 254       1 vda1 1234 5 6 7 8\n";
        assert_eq!(reads_completed(diskstats, (254, 1)), Some(1234));
        assert_eq!(reads_completed(diskstats, (254, 0)), None);
        assert_eq!(field("rchar: 1\nread_bytes: 4096\n", "read_bytes:"), Some(4096));
        assert_eq!(field("VmPeak:\t 1 kB\nVmHWM:\t    2048 kB\n", "VmHWM:"), Some(2048));
    }
}
