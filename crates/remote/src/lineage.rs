//! Which published generation a store's directory descends from, in a small file beside the store's own.

use crate::error::{Error, Result};
use crate::generation::{Generation, sha256};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The name of the file.
const NAME: &str = "PUBLISHED";

/// What this directory has published to, or was cloned from, by URL.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Lineages(BTreeMap<String, Lineage>);

/// What a directory has to do with one URL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lineage {
    /// The last generation that the directory descends from; 0 if there was none.
    pub generation: u64,
    /// SHA-256 of each next generation that it was about to create, in hex. A process that died before it heard of its success has left one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<String>,
}

impl Lineage {
    /// Whether the directory descends from this generation.
    pub fn has(&self, newest: &Generation) -> bool {
        newest.number == self.generation || self.attempts.contains(&sha256(&newest.encode()))
    }
}

fn path(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

fn read_all(dir: &Path) -> Result<Lineages> {
    match std::fs::read(path(dir)) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| {
            let what = format!("{e}; remove the file, and take over with the next publication");
            Error::damaged(path(dir).display().to_string(), e.column() as u64, what)
        }),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Lineages::default()),
        Err(e) => Err(Error::file("read", path(dir))(e)),
    }
}

/// What the directory has to do with `url`.
pub(crate) fn read(dir: &Path, url: &str) -> Result<Lineage> {
    Ok(read_all(dir)?.0.remove(url).unwrap_or_default())
}

/// Notes durably that the directory descends from this generation.
pub(crate) fn note(dir: &Path, url: &str, generation: u64) -> Result<()> {
    change(dir, url, |lineage| *lineage = Lineage { generation, attempts: Vec::new() })
}

/// Notes durably, before it is created, that the next generation is the directory's own.
pub(crate) fn note_attempt(dir: &Path, url: &str, next: &Generation) -> Result<()> {
    change(dir, url, |lineage| lineage.attempts.push(sha256(&next.encode())))
}

fn change(dir: &Path, url: &str, change: impl FnOnce(&mut Lineage)) -> Result<()> {
    let mut lineages = read_all(dir).unwrap_or_default();
    change(lineages.0.entry(url.to_owned()).or_default());
    let temporary = dir.join(format!("{NAME}.tmp"));
    let bytes = serde_json::to_vec(&lineages).unwrap_or_default(); // Strings and numbers: cannot fail.
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path(dir))?;
        File::open(dir)?.sync_all()
    };
    write().map_err(Error::file("write", path(dir)))
}
