//! The machine that the figures were measured on.

use crate::format;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// A machine and its tools.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    /// The CPU's model name in /proc/cpuinfo.
    pub processor: String,
    /// CPUs that this process may use.
    pub cores: usize,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// Name and release of the operating system.
    pub kernel: String,
    /// The file system of the stores.
    pub file_system: String,
    /// Version of rustc.
    pub rustc: String,
    /// Load average over the minute before the measurement.
    pub load_average: String,
}

impl Machine {
    /// This machine, with the file system of `dir`.
    pub fn here(dir: &Path) -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let line = |text: &str, name: &str| -> String {
            let line = text.lines().find(|line| line.starts_with(name)).and_then(|line| line.split_once(':'));
            line.map_or("?".to_owned(), |(_, value)| value.trim().to_owned())
        };
        let kib = line(&text("/proc/meminfo"), "MemTotal");
        Machine {
            processor: line(&text("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: kib.trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024,
            kernel: format!(
                "{} {}",
                text("/proc/sys/kernel/ostype").trim(),
                text("/proc/sys/kernel/osrelease").trim()
            ),
            file_system: file_system(dir, &text("/proc/mounts")),
            rustc: env!("RUSTC_VERSION").to_owned(),
            load_average: text("/proc/loadavg").split(' ').next().unwrap_or("?").to_owned(),
        }
    }

    /// A one-line description.
    pub fn describe(&self) -> String {
        format!(
            "{}, {} cores, {}, {}, {}, {}",
            self.processor,
            self.cores,
            format::bytes(self.memory_bytes as f64),
            self.kernel,
            self.file_system,
            self.rustc
        )
    }
}

/// The type of the deepest mount point above `dir`.
fn file_system(dir: &Path, mounts: &str) -> String {
    let dir = dir.canonicalize().unwrap_or_default();
    let mounts = mounts.lines().filter_map(|line| {
        let mut columns = line.split(' ').skip(1);
        Some((columns.next()?, columns.next()?))
    });
    let above = mounts.filter(|(point, _)| dir.starts_with(point));
    above.max_by_key(|(point, _)| point.len()).map_or("?".to_owned(), |(_, kind)| kind.to_owned())
}
