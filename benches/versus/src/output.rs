//! A command's directories: for its results, and for the stores that it makes and removes.

use crate::engine::EngineKind;
use crate::error::Result;
use crate::format;
use crate::quiet;
use crate::results;
use crate::settings::BenchSettings;
use serde::Serialize;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where a command that compares engines writes.
#[derive(Debug, clap::Args)]
pub struct Output {
    /// Directory for the results
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Directory for the stores while measuring, on the disk to measure [default: DIR/stores]
    #[arg(long, value_name = "DIR")]
    stores: Option<PathBuf>,
}

impl Output {
    /// Creates the directories, checks that the disk has room for a store of each engine, and warns if the
    /// machine is busy. Returns the directory of the stores.
    pub fn prepare(&self, engines: &[EngineKind], settings: &BenchSettings) -> Result<PathBuf> {
        let stores = self.create()?;
        check_space(&stores, engines, settings)?;
        quiet::warn_of_others();
        Ok(stores)
    }

    /// Creates the directories. Returns the stores' directory.
    pub fn create(&self) -> Result<PathBuf> {
        let stores = self.stores.clone().unwrap_or_else(|| self.out.join("stores"));
        fs::create_dir_all(&self.out)?;
        fs::create_dir_all(&stores)?;
        Ok(stores)
    }

    /// Writes the results.
    pub fn write(&self, file: &str, results: &impl Serialize) -> Result<()> {
        results::write(&self.out.join(file), results)
    }

    /// Prints where the results are, and how long the measurement took.
    pub fn say_where(&self, file: &str, seconds: Option<f64>) -> Result<()> {
        let took = seconds.map_or(String::new(), |seconds| format!("{seconds:.0} s; "));
        let file = self.out.join(file);
        Ok(writeln!(std::io::stdout().lock(), "{took}all figures: {}", file.display())?)
    }

    /// Prints how to turn the results into a page.
    pub fn offer_page(&self) -> Result<()> {
        Ok(writeln!(std::io::stdout().lock(), "for an HTML page: versus report {}", self.out.display())?)
    }
}

/// Checks that the disk has room for the stores at their largest, as a multiple of their data: about six for
/// redb, which frees pages only at durable commits, and less than three for the others, sorted runs during
/// compaction included.
pub fn check_space(stores: &Path, engines: &[EngineKind], settings: &BenchSettings) -> Result<()> {
    fs::create_dir_all(stores)?;
    let times: u64 = engines.iter().map(|kind| if *kind == EngineKind::Redb { 6 } else { 3 }).sum();
    let loaded = settings.data_bytes() + settings.for_rows().data_bytes();
    // Of the stores that are just written, one at a time is there, with both versions of its rows.
    let need = times * loaded + 12 * settings.for_written().data_bytes() + (1 << 30);
    let disk = rustix::fs::statvfs(stores)?;
    let free = disk.f_bavail * disk.f_frsize;
    if free >= need {
        return Ok(());
    }
    let (need, free) = (format::bytes(need as f64), format::bytes(free as f64));
    Err(format!(
        "{} has {free} free, but the stores may need {need}: use --stores or fewer keys",
        stores.display()
    )
    .into())
}

/// The directories of the stores. They are removed at the end, also after an error.
pub struct StoreDirs {
    /// Their parent directory.
    pub root: PathBuf,
    names: Vec<String>,
}

impl StoreDirs {
    /// Directories with these names, which may exist.
    pub fn new(root: &Path, names: impl IntoIterator<Item = String>) -> Self {
        StoreDirs { root: root.to_owned(), names: names.into_iter().collect() }
    }

    /// Directories with these names. It is an error if one exists.
    pub fn none_there(root: &Path, names: impl IntoIterator<Item = String>) -> Result<Self> {
        let names: Vec<String> = names.into_iter().collect();
        refuse_existing(names.iter().map(|name| root.join(name)), "another directory to --stores")?;
        Ok(StoreDirs::new(root, names))
    }

    /// The directory of a name.
    pub fn dir(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

impl Drop for StoreDirs {
    fn drop(&mut self) {
        for name in &self.names {
            fs::remove_dir_all(self.dir(name)).ok();
        }
        fs::remove_dir(&self.root).ok();
    }
}

/// It is an error if one of the directories exists; `instead` says what to pass instead.
pub fn refuse_existing(mut dirs: impl Iterator<Item = PathBuf>, instead: &str) -> Result<()> {
    match dirs.find(|dir| dir.exists()) {
        Some(there) => Err(format!("{} already exists: pass {instead}", there.display()).into()),
        None => Ok(()),
    }
}
