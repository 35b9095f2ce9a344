//! Which published generation a store's directory descends from, in a small file beside the store's own.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The name of the file.
const NAME: &str = "PUBLISHED";

/// The last generation that this directory has published to, or was cloned from, each URL.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Lineages(BTreeMap<String, u64>);

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

/// The generation of `url` that the directory descends from.
pub(crate) fn read(dir: &Path, url: &str) -> Result<Option<u64>> {
    Ok(read_all(dir)?.0.get(url).copied())
}

/// Notes it durably.
pub(crate) fn write(dir: &Path, url: &str, generation: u64) -> Result<()> {
    let mut lineages = read_all(dir).unwrap_or_default();
    lineages.0.insert(url.to_owned(), generation);
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
