//! `sidebloom report`: what a request for help should contain.

use crate::context::{Context, Failure, Outcome};
use crate::holder;
use crate::progress;
use serde::Serialize;
use serde_json::Value;
use sidebloom::Db;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

/// Print what a request for help should contain, as JSON
///
/// Versions, the machine's limits, the store's files by kind, its statistics, and why it does not open if
/// it does not. No keys, no values, and no names of keyspaces. Changes nothing, and works beside the process
/// that writes the store.
#[derive(clap::Args)]
pub struct Args {
    /// Also read and check everything, as `verify` does
    #[arg(long)]
    verify: bool,
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    features: Vec<&'static str>,
    machine: Machine,
    /// The store's files: their number and bytes by extension, or by name if they have none.
    files: BTreeMap<String, Files>,
    /// The process that has the store open for writing, as far as the system tells.
    writer: Option<String>,
    /// Why the store does not open.
    error: Option<String>,
    stats: Option<Value>,
    /// Of each keyspace, without its name.
    keyspaces: Option<Value>,
    verified: Option<Verified>,
}

#[derive(Serialize)]
struct Machine {
    system: &'static str,
    architecture: &'static str,
    kernel: Option<String>,
    threads: Option<usize>,
    memory: Option<String>,
    /// Of the memory cgroup, in bytes, or `max`.
    memory_limit: Option<String>,
    max_map_count: Option<String>,
    open_files_limit: Option<u64>,
    /// The file system's type: `f_type` of statfs, in hex.
    file_system: Option<String>,
    file_system_bytes: Option<u64>,
    file_system_free_bytes: Option<u64>,
}

#[derive(Serialize, Default)]
struct Files {
    files: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Verified {
    problems: Vec<String>,
    unusable_filters: Vec<String>,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let dir = cx.local_db()?;
        let files = files(dir)?;
        let mut report = Report {
            version: env!("CARGO_PKG_VERSION"),
            features: features(),
            machine: Machine::of(dir),
            files,
            writer: holder::of(&dir.join("LOCK")),
            error: None,
            stats: None,
            keyspaces: None,
            verified: None,
        };
        match cx.options().follow(true).open(dir) {
            Ok(db) => report.look_into(&db, self.verify)?,
            Err(error) => report.error = Some(without_names(&error.to_string(), dir)),
        }
        if let Some(verified) = &mut report.verified {
            for text in verified.problems.iter_mut().chain(&mut verified.unusable_filters) {
                *text = without_names(text, dir);
            }
        }
        cx.report(&report, |out| {
            serde_json::to_writer_pretty(&mut *out, &report).map_err(std::io::Error::from)?;
            Ok(std::io::Write::write_all(out, b"\n")?)
        })?;
        Ok(Outcome::Found)
    }
}

impl Report {
    fn look_into(&mut self, db: &Db, verify: bool) -> Result<(), Failure> {
        let as_json = |error: serde_json::Error| Failure::message(format!("cannot write a report: {error}"));
        let warmed = db.warm();
        self.error = warmed.err().map(|error| error.to_string());
        self.stats = Some(serde_json::to_value(db.stats()).map_err(as_json)?);
        let of_keyspaces: Vec<_> = db.keyspace_stats().into_values().collect();
        self.keyspaces = Some(serde_json::to_value(of_keyspaces).map_err(as_json)?);
        if verify {
            let bar = progress::work_bar("verifying");
            let found = db.verify_with(|so_far| {
                progress::show(&bar, so_far);
                ControlFlow::Continue(())
            })?;
            bar.finish_and_clear();
            let problems = found.problems.iter().map(ToString::to_string).collect();
            self.verified = Some(Verified { problems, unusable_filters: found.unusable_filters });
        }
        Ok(())
    }
}

impl Machine {
    fn of(dir: &Path) -> Self {
        let line = |path: &str| Some(std::fs::read_to_string(path).ok()?.lines().next()?.trim().to_owned());
        let file_system = rustix::fs::statfs(dir).ok();
        let space = rustix::fs::statvfs(dir).ok().map(|found| {
            [found.f_blocks, found.f_bavail].map(|blocks| blocks.saturating_mul(found.f_frsize))
        });
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        Machine {
            system: std::env::consts::OS,
            architecture: std::env::consts::ARCH,
            kernel: line("/proc/sys/kernel/osrelease"),
            threads: std::thread::available_parallelism().ok().map(usize::from),
            memory: line("/proc/meminfo"),
            memory_limit: line("/sys/fs/cgroup/memory.max"),
            max_map_count: line("/proc/sys/vm/max_map_count"),
            open_files_limit: limit.current,
            file_system: file_system.map(|found| format!("{:#x}", found.f_type)),
            file_system_bytes: space.map(|[all, _]| all),
            file_system_free_bytes: space.map(|[_, free]| free),
        }
    }
}

fn features() -> Vec<&'static str> {
    let all = [
        ("zstd", cfg!(feature = "zstd")),
        ("sqlite", cfg!(feature = "sqlite")),
        ("postgres", cfg!(feature = "postgres")),
        ("remote", cfg!(feature = "remote")),
        ("slatedb", cfg!(feature = "slatedb")),
        ("tls", cfg!(feature = "tls")),
    ];
    all.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect()
}

/// The files of the directory by kind. Names that a store does not give count as `other`.
fn files(dir: &Path) -> Result<BTreeMap<String, Files>, Failure> {
    let failed = |error| Failure::file("read", dir, error);
    let mut kinds: BTreeMap<String, Files> = BTreeMap::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let kind = match name.to_str() {
            Some(name @ ("LOCK" | "MANIFEST" | "MANIFEST.copy")) => name,
            Some(name) => match name.split_once('.') {
                Some((_, end @ ("wal" | "segment" | "filter" | "obsolete"))) => end,
                Some((_, end)) if end.ends_with("damaged") => "damaged",
                _ => "other",
            },
            None => "other",
        };
        let files = kinds.entry(kind.to_owned()).or_default();
        files.files += 1;
        files.bytes += entry.metadata().map_or(0, |metadata| metadata.len());
    }
    Ok(kinds)
}

/// A message without the store's directory, and without what stands in quotes: keys and names.
fn without_names(message: &str, dir: &Path) -> String {
    let absolute = std::path::absolute(dir).unwrap_or_default();
    let mut message = message.to_owned();
    for dir in [absolute.as_path(), dir] {
        if let Some(dir) = dir.to_str().filter(|dir| !dir.is_empty() && *dir != ".") {
            message = message.replace(dir, "STORE");
        }
    }
    let quoted = |(n, part): (usize, &str)| if n % 2 == 1 { "…".to_owned() } else { part.to_owned() };
    message.split('"').enumerate().map(quoted).collect::<Vec<_>>().join("\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lose_directories_and_what_is_quoted() {
        let message = "/data/a.db/000007.segment is damaged at offset 5: key \"ann\" follows key \"bob\"";
        let expected = "STORE/000007.segment is damaged at offset 5: key \"…\" follows key \"…\"";
        assert_eq!(without_names(message, Path::new("/data/a.db")), expected);
    }
}
