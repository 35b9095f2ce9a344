//! Which process has a store or a guard open.

use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The process that holds a lock file, if the system tells.
pub fn of(lock: &Path) -> Option<String> {
    let inode = std::fs::metadata(lock).ok()?.ino();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let process = holder(&locks, inode)?;
    let mut text = format!("process {process}");
    if let Ok(name) = std::fs::read_to_string(format!("/proc/{process}/comm")) {
        let _ = write!(text, " ({})", name.trim_end().escape_debug()); // Writing to a string cannot fail.
    }
    Some(text)
}

/// The process in the line with this inode: `1: FLOCK ADVISORY WRITE 1234 08:01:5678 0 EOF`.
/// Open-file-description locks show −1.
fn holder(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip_while(|field| *field != "WRITE").skip(1);
        let process = fields.next()?.parse().ok().filter(|process| *process > 0)?;
        let file = fields.next()?.rsplit(':').next()?;
        (file.parse() == Ok(inode)).then_some(process)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_by_the_inode() {
        let locks = "1: POSIX  ADVISORY  READ  77 00:1a:5 0 EOF\n2: FLOCK  ADVISORY  WRITE 4242 fd:00:131 0 EOF\n\
                     3: OFDLCK ADVISORY  WRITE -1 fd:00:132 0 EOF\n";
        assert_eq!([131, 132, 5, 1].map(|inode| holder(locks, inode)), [Some(4242), None, None, None]);
    }
}
