//! The kernel's counters for this process and its disk, and the page cache. Figures that the kernel does not
//! provide are `None`.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Resources used so far, or between two points in time.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct ResourceCounters {
    /// Bytes read from disk on behalf of this process, read-ahead included (`read_bytes` in /proc/self/io).
    pub read_bytes: u64,
    /// Bytes that this process asked to read, from the page cache or the disk (`rchar` in /proc/self/io).
    /// Accesses to mapped files are not among them.
    #[serde(default)]
    pub read_call_bytes: u64,
    /// Bytes that this process dirtied (`write_bytes` in /proc/self/io).
    pub write_bytes: u64,
    /// The disk's completed reads, machine-wide (/proc/diskstats); `None` if the file system has no device.
    pub device_reads: Option<u64>,
    /// Accesses to mapped pages that wait for the disk (`majflt` in /proc/self/stat). Counted as reads too.
    pub major_faults: u64,
    /// CPU time of all threads of this process, in nanoseconds.
    pub cpu_ns: u64,
}

impl ResourceCounters {
    /// Resources used until now. `dir` selects the device.
    pub fn now(dir: &Path) -> Self {
        let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
        let diskstats = fs::read_to_string("/proc/diskstats").unwrap_or_default();
        let device =
            fs::metadata(dir).ok().map(|meta| (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev())));
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        ResourceCounters {
            read_bytes: field(&io, "read_bytes:").unwrap_or(0),
            read_call_bytes: field(&io, "rchar:").unwrap_or(0),
            write_bytes: field(&io, "write_bytes:").unwrap_or(0),
            device_reads: device.and_then(|device| reads_completed(&diskstats, device)),
            major_faults: major_faults(&fs::read_to_string("/proc/self/stat").unwrap_or_default())
                .unwrap_or(0),
            cpu_ns: cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64,
        }
    }

    /// Resources used since `before`.
    pub fn since(self, before: ResourceCounters) -> ResourceCounters {
        ResourceCounters {
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            read_call_bytes: self.read_call_bytes.saturating_sub(before.read_call_bytes),
            write_bytes: self.write_bytes.saturating_sub(before.write_bytes),
            device_reads: self
                .device_reads
                .zip(before.device_reads)
                .map(|(now, then)| now.saturating_sub(then)),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
        }
    }
}

/// Column 4 of the device's line, see <https://docs.kernel.org/admin-guide/iostats.html>
fn reads_completed(diskstats: &str, (major, minor): (u32, u32)) -> Option<u64> {
    diskstats.lines().find_map(|line| {
        let mut columns = line.split_ascii_whitespace();
        let found = columns.next()?.parse() == Ok(major) && columns.next()?.parse() == Ok(minor);
        if found { columns.nth(1)?.parse().ok() } else { None }
    })
}

/// Field 12 of /proc/self/stat, see proc(5). The name in field 2 may have spaces.
fn major_faults(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(9)?.parse().ok()
}

/// CPU time of this thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Resident memory of this process in bytes: anonymous pages, and pages of mapped files.
pub fn resident_memory() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = |name: &str| field(&status, name).unwrap_or(0) * 1024;
    (kib("RssAnon:"), kib("RssFile:"))
}

/// All files in a directory and its subdirectories.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

/// Disk space of all files in a directory, in bytes. Counts blocks, so holes are excluded.
pub fn disk_bytes(dir: &Path) -> u64 {
    files(dir).iter().filter_map(|file| fs::metadata(file).ok()).map(|meta| meta.blocks() * 512).sum()
}

/// Whether a directory is in a memory-backed file system, where nothing is read from disk.
pub fn is_memory(dir: &Path) -> bool {
    // The magic numbers of tmpfs and ramfs.
    rustix::fs::statfs(dir).is_ok_and(|fs| [0x0102_1994, 0x8584_58f6].contains(&fs.f_type))
}

/// Writes these files back and drops them from the page cache. If pages stay, because they are mapped or
/// dirty, drops the whole page cache, if permitted.
pub fn drop_page_cache(files: &[PathBuf]) -> io::Result<()> {
    write_back(files)?; // Only clean pages can be dropped.
    for file in files {
        let file = fs::File::open(file)?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    if cached_share(files)? > 0.0 {
        let _ = fs::write("/proc/sys/vm/drop_caches", "1");
    }
    Ok(())
}

/// Reads files into the page cache.
pub fn fill_page_cache(files: &[PathBuf]) -> io::Result<()> {
    for file in files {
        io::copy(&mut fs::File::open(file)?, &mut io::sink())?;
    }
    Ok(())
}

/// Writes these files back, so that the kernel does not do so while the next engine is measured.
pub fn write_back(files: &[PathBuf]) -> io::Result<()> {
    files.iter().try_for_each(|file| fs::File::open(file)?.sync_all())
}

/// The share of these files' pages in the page cache, 0 to 1.
pub fn cached_share(files: &[PathBuf]) -> io::Result<f64> {
    let (mut cached, mut all) = (0, 0);
    for file in files {
        let (of_file, pages) = cached_pages(file)?;
        cached += of_file;
        all += pages;
    }
    Ok(if all == 0 { 0.0 } else { cached as f64 / all as f64 })
}

/// Bytes of these files in the page cache, mapped or not. A file that a compaction has just deleted has none.
pub fn cached_bytes(files: &[PathBuf]) -> u64 {
    let pages = files.iter().filter_map(|file| cached_pages(file).ok()).map(|(cached, _)| cached);
    (pages.sum::<usize>() * rustix::param::page_size()) as u64
}

/// The pages of a file in the page cache, and all of its pages.
fn cached_pages(path: &Path) -> io::Result<(usize, usize)> {
    let file = fs::File::open(path)?;
    let bytes = file.metadata()?.len() as usize;
    if bytes == 0 {
        return Ok((0, 0));
    }
    let pages = pages_in_memory(&file, bytes)?;
    Ok((pages.iter().filter(|&&page| page & 1 == 1).count(), pages.len()))
}

/// A byte for each page; its lowest bit says whether the page is in memory.
fn pages_in_memory(file: &fs::File, bytes: usize) -> io::Result<Vec<u8>> {
    let mut pages = vec![0u8; bytes.div_ceil(rustix::param::page_size())];
    // SAFETY: a new read-only mapping of the whole file, placed by the kernel. Nothing reads through it.
    let map = unsafe {
        libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    if map == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `map` is `bytes` long, and `pages` has one byte per page.
    let asked = unsafe { libc::mincore(map, bytes, pages.as_mut_ptr().cast()) };
    let result = if asked == 0 { Ok(pages) } else { Err(io::Error::last_os_error()) };
    // SAFETY: the mapping made above, which nothing uses from here on.
    unsafe { libc::munmap(map, bytes) };
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_tables_are_parsed() {
        let diskstats = "   8       0 sda 1 2 3 4 5\n 254       1 vda1 1234 5 6 7 8\n";
        assert_eq!(reads_completed(diskstats, (254, 1)), Some(1234));
        assert_eq!(reads_completed(diskstats, (254, 0)), None);
        assert_eq!(major_faults("7 (a (b) c) S 1 7 7 0 -1 4194304 99 0 42 0 1 2"), Some(42));
        assert_eq!(field("rchar: 1\nread_bytes: 4096\n", "read_bytes:"), Some(4096));
    }

    #[test]
    fn a_file_just_written_is_in_the_page_cache() {
        let path = std::env::temp_dir().join(format!("versus-cached-{}", std::process::id()));
        fs::write(&path, vec![1; 100_000]).unwrap();
        let files = [path.clone(), path.with_extension("deleted")];
        assert_eq!(cached_share(&files[..1]).unwrap(), 1.0);
        assert_eq!(cached_bytes(&files), 100_000u64.next_multiple_of(rustix::param::page_size() as u64));
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn dropped_pages_count_again_only_once_they_are_read() {
        use std::io::Read;
        let path = std::env::temp_dir().join(format!("versus-dropped-{}", std::process::id()));
        let files = [path.clone()];
        fs::write(&path, vec![1; 1 << 20]).unwrap();
        drop_page_cache(&files).unwrap();
        if is_memory(&std::env::temp_dir()) || cached_bytes(&files) > 0 {
            return eprintln!("skipped: the page cache cannot be dropped here");
        }
        io::copy(&mut fs::File::open(&path).unwrap().take(4096), &mut io::sink()).unwrap();
        let cached = cached_bytes(&files);
        assert!((4096..=1 << 20).contains(&cached), "{cached}");
        fs::remove_file(path).unwrap();
    }
}
