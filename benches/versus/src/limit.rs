//! Limits the memory of one process, page cache included, with a Linux control group of version 1 or 2
//! (<https://docs.kernel.org/admin-guide/cgroup-v1/memory.html>,
//! <https://docs.kernel.org/admin-guide/cgroup-v2.html>).

use crate::error::Result;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What to do when no group can be created.
const ADVICE: &str = "run as root, or with systemd-run --user --scope -p Delegate=yes COMMAND";

/// Version of the kernel's interface, which decides the names of files and fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CgroupVersion {
    /// One hierarchy per resource.
    V1,
    /// One hierarchy for all resources.
    V2,
}

/// A directory in which groups with a limit can be created.
#[derive(Debug, Clone)]
pub struct CgroupParent {
    dir: PathBuf,
    version: CgroupVersion,
}

/// A group with a limit. Its creator removes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cgroup {
    dir: PathBuf,
    version: CgroupVersion,
    /// The limit in bytes.
    pub bytes: u64,
}

/// The kernel's counters of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupUsage {
    /// The limit, as read back.
    pub limit_bytes: u64,
    /// Memory charged now.
    pub usage_bytes: u64,
    /// Peak of the memory charged.
    pub peak_bytes: u64,
    /// The part of `usage_bytes` in file pages.
    pub page_cache_bytes: u64,
    /// The part of `usage_bytes` in anonymous pages.
    pub own_bytes: u64,
    /// Processes that the kernel killed for lack of memory.
    pub killed: u64,
}

impl CgroupParent {
    /// Finds a directory and tries it. The error says why there is none, and what to do.
    pub fn find() -> std::result::Result<CgroupParent, String> {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut reasons = Vec::new();
        for home in candidates(&text("/proc/mounts"), &text("/proc/self/cgroup")) {
            remove_stale(&home.dir);
            match home.enable().and_then(|()| home.group(64 << 20)) {
                Ok(group) => {
                    group.remove();
                    return Ok(home);
                }
                Err(why) => reasons.push(why.to_string()),
            }
        }
        let why = reasons.first().map_or("the kernel has no memory controller mounted", String::as_str);
        Err(format!("cannot create a control group ({why}): {ADVICE}"))
    }

    /// Creates a group that is limited to `bytes`, without swap.
    pub fn group(&self, bytes: u64) -> Result<Cgroup> {
        let dir = self.dir.join(format!("versus-{}", std::process::id()));
        fs::create_dir(&dir).map_err(|error| named(&dir, error))?;
        let group = Cgroup { dir, version: self.version, bytes };
        let (limit, with_swap, swap) = match self.version {
            CgroupVersion::V1 => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", bytes),
            CgroupVersion::V2 => ("memory.max", "memory.swap.max", 0),
        };
        let set = group.write(limit, bytes);
        // The file is missing on a kernel without swap accounting.
        if group.dir.join(with_swap).exists() {
            group.write(with_swap, swap).ok();
        }
        set.inspect_err(|_| group.remove())?;
        Ok(group)
    }

    /// Version 2: enables the memory controller for child groups. A group with processes cannot do that, so
    /// this process moves to a child of its own first.
    fn enable(&self) -> Result<()> {
        if self.version == CgroupVersion::V1 {
            return Ok(());
        }
        let has = |file: &str| {
            let words = fs::read_to_string(self.dir.join(file)).unwrap_or_default();
            words.split_ascii_whitespace().any(|word| word == "memory")
        };
        if !has("cgroup.controllers") {
            return Err(format!("{} has no memory controller", self.dir.display()).into());
        }
        let control = self.dir.join("cgroup.subtree_control");
        if has("cgroup.subtree_control") || fs::write(&control, "+memory").is_ok() {
            return Ok(());
        }
        let aside = self.dir.join(format!("versus-{}-main", std::process::id()));
        fs::create_dir(&aside).map_err(|error| named(&aside, error))?;
        let moved = fs::write(aside.join("cgroup.procs"), "0").and_then(|()| fs::write(&control, "+memory"));
        moved.map_err(|error| named(&control, error).into())
    }
}

fn named(path: &Path, error: io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// The root of the hierarchy, which root may use, and this process's own group, which may have been delegated
/// to the user.
fn candidates(mounts: &str, own_groups: &str) -> Vec<CgroupParent> {
    let mut found = Vec::new();
    for line in mounts.lines() {
        let columns: Vec<&str> = line.split(' ').collect();
        let [_, point, kind, options, ..] = columns.as_slice() else { continue };
        let version = match *kind {
            "cgroup" if options.split(',').any(|option| option == "memory") => CgroupVersion::V1,
            "cgroup2" => CgroupVersion::V2,
            _ => continue,
        };
        // The line is hierarchy:controllers:path. Version 2 has hierarchy 0 and no controllers.
        let own = own_groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (hierarchy, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let mine = match version {
                CgroupVersion::V1 => controllers.split(',').any(|name| name == "memory"),
                CgroupVersion::V2 => hierarchy == "0" && controllers.is_empty(),
            };
            mine.then(|| path.trim_start_matches('/').to_owned())
        });
        let own = own.filter(|path| !path.is_empty()).map(|path| Path::new(point).join(path));
        let dirs = std::iter::once(PathBuf::from(point)).chain(own);
        found.extend(dirs.map(|dir| CgroupParent { dir, version }));
    }
    // If both versions are mounted, one has the controller. `enable` checks whether it is version 2.
    found
}

/// Removes the groups of killed executions.
fn remove_stale(home: &Path) {
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix("versus-"));
        let pid = pid.map(|pid| pid.trim_end_matches("-main")).and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            fs::remove_dir(entry.path()).ok();
        }
    }
}

impl Cgroup {
    /// Moves this process into the group. Memory that the process already holds is not charged to it.
    pub fn join(&self) -> Result<()> {
        self.write("cgroup.procs", std::process::id().into())
    }

    /// The counters.
    pub fn usage(&self) -> Result<CgroupUsage> {
        let one = |file: &str| -> Result<u64> {
            let path = self.dir.join(file);
            let text = fs::read_to_string(&path).map_err(|error| named(&path, error))?;
            Ok(text.trim().parse().unwrap_or(u64::MAX)) // The file says "max".
        };
        let text = |file: &str| fs::read_to_string(self.dir.join(file)).unwrap_or_default();
        let stat = text("memory.stat");
        Ok(match self.version {
            CgroupVersion::V1 => CgroupUsage {
                limit_bytes: one("memory.limit_in_bytes")?,
                usage_bytes: one("memory.usage_in_bytes")?,
                peak_bytes: one("memory.max_usage_in_bytes")?,
                page_cache_bytes: word(&stat, "cache"),
                own_bytes: word(&stat, "rss"),
                killed: word(&text("memory.oom_control"), "oom_kill"),
            },
            CgroupVersion::V2 => {
                let usage_bytes = one("memory.current")?;
                CgroupUsage {
                    limit_bytes: one("memory.max")?,
                    usage_bytes,
                    peak_bytes: one("memory.peak").unwrap_or(usage_bytes), // Since Linux 5.19.
                    page_cache_bytes: word(&stat, "file"),
                    own_bytes: word(&stat, "anon"),
                    killed: word(&text("memory.events"), "oom_kill"),
                }
            }
        })
    }

    /// Removes the group, if no process is left in it.
    pub fn remove(&self) {
        fs::remove_dir(&self.dir).ok();
    }

    fn write(&self, file: &str, number: u64) -> Result<()> {
        let path = self.dir.join(file);
        fs::write(&path, number.to_string()).map_err(|error| named(&path, error).into())
    }
}

/// The number after a name at the start of a line; 0 if there is none.
fn word(text: &str, name: &str) -> u64 {
    let found = text.lines().filter_map(|line| line.split_once(' ')).find(|(first, _)| *first == name);
    found.and_then(|(_, number)| number.trim().parse().ok()).unwrap_or(0)
}

impl CgroupUsage {
    /// Why the limit of `wanted` bytes had no effect on a store of `store_bytes`; `None` if it had.
    pub fn why_not_in_force(&self, wanted: u64, store_bytes: u64) -> Option<String> {
        let show = |bytes: u64| crate::format::bytes(bytes as f64);
        // The kernel rounds to pages, and charges a few pages at a time.
        let slack = 1 << 20;
        if self.limit_bytes.abs_diff(wanted) > slack {
            Some(format!("the limit is {} instead of {}", show(self.limit_bytes), show(wanted)))
        } else if self.usage_bytes > wanted + slack {
            Some(format!("{} in use, above the limit of {}", show(self.usage_bytes), show(wanted)))
        } else if store_bytes <= wanted {
            Some(format!("the store of {} fits in the limit of {}", show(store_bytes), show(wanted)))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("versus-limit-{name}-{}", std::process::id()));
        fs::remove_dir_all(&dir).ok();
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn candidates_are_the_root_of_the_hierarchy_and_the_own_group() {
        let v1 = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /cg/cpu cgroup rw,cpu 0 0\ncgroup /cg/memory cgroup rw,memory 0 0\n";
        let dirs = |mounts, own| -> Vec<_> {
            candidates(mounts, own).into_iter().map(|home| (home.version, home.dir)).collect()
        };
        assert_eq!(
            dirs(v1, "4:memory:/jobs/7\n0::/\n"),
            [(CgroupVersion::V1, "/cg/memory".into()), (CgroupVersion::V1, "/cg/memory/jobs/7".into())]
        );
        let v2 = "cgroup2 /cg cgroup2 rw,nosuid 0 0\n";
        assert_eq!(
            dirs(v2, "0::/user.slice/run.scope\n"),
            [(CgroupVersion::V2, "/cg".into()), (CgroupVersion::V2, "/cg/user.slice/run.scope".into())]
        );
        assert_eq!(dirs(v2, "0::/\n").len(), 1);
        assert_eq!(dirs("ext4 / ext4 rw 0 0\n", "").len(), 0);
    }

    #[test]
    fn version_2_reads_and_writes_its_own_files() {
        // Plain files stand in for the kernel's.
        let dir = scratch("v2");
        let home = CgroupParent { dir: dir.clone(), version: CgroupVersion::V2 };
        assert!(home.enable().is_err(), "no memory controller");
        fs::write(dir.join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        fs::write(dir.join("cgroup.subtree_control"), "\n").unwrap();
        home.enable().unwrap();
        assert_eq!(fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap(), "+memory");
        let group = home.group(32 << 20).unwrap();
        let put = |file: &str, text: &str| fs::write(group.dir.join(file), text).unwrap();
        assert_eq!(fs::read_to_string(group.dir.join("memory.max")).unwrap(), (32 << 20).to_string());
        put("memory.current", "1000\n");
        put("memory.stat", "anon 600\nfile 300\nfile_mapped 7\n");
        put("memory.events", "low 0\nmax 5\noom 1\noom_kill 2\n");
        let usage = CgroupUsage {
            limit_bytes: 32 << 20,
            usage_bytes: 1000,
            peak_bytes: 1000,
            page_cache_bytes: 300,
            own_bytes: 600,
            killed: 2,
        };
        assert_eq!(group.usage().unwrap(), usage);
        group.join().unwrap();
        assert_eq!(
            fs::read_to_string(group.dir.join("cgroup.procs")).unwrap(),
            std::process::id().to_string()
        );
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_limit_without_effect_is_reported() {
        const MIB: u64 = 1 << 20;
        let usage = CgroupUsage { limit_bytes: 32 * MIB, usage_bytes: 32 * MIB, ..CgroupUsage::default() };
        assert_eq!(usage.why_not_in_force(32 * MIB, 100 * MIB), None);
        assert!(usage.why_not_in_force(32 * MIB, 20 * MIB).is_some_and(|why| why.contains("fits")));
        assert!(usage.why_not_in_force(16 * MIB, 100 * MIB).is_some_and(|why| why.contains("instead of")));
        let above = CgroupUsage { usage_bytes: 40 * MIB, ..usage };
        assert!(above.why_not_in_force(32 * MIB, 100 * MIB).is_some_and(|why| why.contains("in use")));
    }

    #[test]
    fn a_process_cannot_keep_more_pages_than_the_limit_of_its_group() {
        let Ok(home) = CgroupParent::find() else {
            return eprintln!("skipped: {}", CgroupParent::find().unwrap_err());
        };
        let (file, group) = (scratch("real").join("file"), home.group(8 << 20).unwrap());
        fs::write(&file, vec![1; 24 << 20]).unwrap();
        crate::kernel::drop_page_cache(std::slice::from_ref(&file)).unwrap();
        let procs = group.dir.join("cgroup.procs");
        let script = format!("echo $$ > {} && exec cat {}", procs.display(), file.display());
        let read = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        let usage = group.usage().unwrap();
        group.remove();
        assert_eq!(read.stdout.len(), 24 << 20);
        // The file went through the group, and what did not fit was evicted.
        assert!(usage.peak_bytes > 7 << 20 && usage.peak_bytes <= 8 << 20, "{usage:?}");
        assert!(usage.page_cache_bytes > 4 << 20, "{usage:?}");
        assert!(!group.dir.exists());
        fs::remove_dir_all(file.parent().unwrap()).unwrap();
    }
}
