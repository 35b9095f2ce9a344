//! Where a store is: on a simulated disk, or in an in-memory directory, whose files are really mapped.

use crate::support::{self, Rng, SimFs};
use sidebloom::fs::{Fs, RealFs};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The contents of foreign files.
const THEIRS: &[u8] = b"theirs";

pub enum StoreLocation {
    Simulated(SimFs),
    Real(tempfile::TempDir),
}

impl fmt::Debug for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StoreLocation::Simulated(_) => "simulated disk",
            StoreLocation::Real(_) => "real directory",
        })
    }
}

impl StoreLocation {
    pub fn random(rng: &mut Rng) -> Self {
        if rng.percent(20) {
            StoreLocation::Real(support::fast_dir())
        } else {
            StoreLocation::Simulated(SimFs::new())
        }
    }

    pub fn fs(&self) -> Arc<dyn Fs> {
        match self {
            StoreLocation::Simulated(fs) => Arc::new(fs.clone()),
            StoreLocation::Real(_) => Arc::new(RealFs),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        match self {
            StoreLocation::Simulated(_) => PathBuf::from(format!("disk/{name}")),
            StoreLocation::Real(dir) => dir.path().join(name),
        }
    }

    pub fn store(&self) -> PathBuf {
        self.path("store")
    }

    /// The number of manifest edits so far. In a real directory, nobody counts them.
    pub fn publications(&self) -> u64 {
        match self {
            StoreLocation::Simulated(fs) => fs.publications(),
            StoreLocation::Real(_) => 0,
        }
    }

    /// Moves a directory to a name that is free.
    pub fn move_dir(&self, from: &str, to: &str) {
        let (from, to) = (self.path(from), self.path(to));
        match self {
            StoreLocation::Simulated(fs) => fs.move_dir(from, to),
            StoreLocation::Real(_) => std::fs::rename(from, to).unwrap(),
        }
    }

    /// Removes the lock file of the store, whoever has locked it.
    pub fn remove_lock(&self) {
        self.fs().remove(&self.store().join("LOCK")).unwrap();
    }

    /// Puts foreign files where the store's next files should be.
    pub fn take_names(&self) -> Vec<PathBuf> {
        let (fs, dir) = (self.fs(), self.store());
        let numbers =
            fs.list(&dir).unwrap().into_iter().filter_map(|name| name.split('.').next()?.parse().ok());
        let last: u64 = numbers.max().unwrap_or(0);
        let names =
            (last + 1..last + 40).flat_map(|n| [".wal", ".segment"].map(|kind| format!("{n:06}{kind}")));
        let taken: Vec<_> = names.map(|name| dir.join(name)).collect();
        taken.iter().for_each(|path| fs.create(path).unwrap().append(THEIRS).unwrap());
        taken
    }

    /// Checks that these files are unchanged, and removes them.
    pub fn give_back(&self, taken: &[PathBuf]) {
        for path in taken {
            let is_there = self.fs().file_len(path).unwrap().is_some();
            assert!(is_there && self.read(path) == THEIRS, "{} is somebody else's", path.display());
            self.fs().remove(path).unwrap();
        }
    }

    /// Removes the manifest of the closed store.
    pub fn remove_manifest(&self) {
        self.fs().remove(&self.store().join("MANIFEST")).unwrap();
    }

    /// Removes a closed store that is no longer needed.
    pub fn remove_store(&self, name: &str) {
        let (fs, dir) = (self.fs(), self.path(name));
        for file in fs.list(&dir).unwrap() {
            fs.remove(&dir.join(file)).unwrap();
        }
        fs.remove_dir(&dir).unwrap();
    }

    /// Removes, cuts, changes and swaps sidecars of the closed store (I2). Returns how many.
    pub fn damage_sidecars(&self, rng: &mut Rng) -> u64 {
        let (fs, dir) = (self.fs(), self.store());
        let mut sidecars = fs.list(&dir).unwrap();
        sidecars.retain(|name| name.ends_with(".filter"));
        sidecars.sort_unstable();
        let before: Vec<_> = sidecars.iter().map(|name| self.read(&dir.join(name))).collect();
        let percent = *rng.pick(&[10, 50, 100]);
        let mut damaged = 0;
        for (name, bytes) in sidecars.iter().zip(&before) {
            if !rng.percent(percent) {
                continue;
            }
            let (path, mut bytes) = (dir.join(name), bytes.clone());
            match rng.below(6) {
                0 => bytes.clear(),
                1 => bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize),
                2 | 3 if !bytes.is_empty() => {
                    let at = rng.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << rng.below(8);
                }
                4 => bytes.clone_from(rng.pick(&before)),
                _ => bytes.extend([0; 100]),
            }
            // A new file under the name, since a checkpoint may share the old one.
            fs.remove(&path).unwrap();
            if rng.percent(80) {
                fs.create(&path).unwrap().append(&bytes).unwrap();
            }
            damaged += 1;
        }
        damaged
    }

    fn read(&self, path: &std::path::Path) -> Vec<u8> {
        match self {
            StoreLocation::Simulated(fs) => fs.read(path).unwrap(),
            StoreLocation::Real(_) => std::fs::read(path).unwrap(),
        }
    }
}
