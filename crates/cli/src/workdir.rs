//! Working directories, removed when a command ends or is interrupted with Ctrl-C.

use crate::context::Failure;
use crate::notice::notice;
use crate::system;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

pub struct WorkDir {
    path: PathBuf,
    temporary: bool,
}

/// Number of the next temporary directory of this process.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Directories to remove on a signal.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

impl WorkDir {
    /// A new directory on disk, removed on drop.
    pub fn temporary(name: &str) -> Result<Self, Failure> {
        Self::create_temporary(Self::temporary_path(name))
    }

    /// A path for a temporary directory. If the default directory for temporary files is in memory, it is in
    /// /var/tmp, which survives reboots and so is on disk.
    pub fn temporary_path(name: &str) -> PathBuf {
        let places = [std::env::temp_dir(), PathBuf::from("/var/tmp")];
        let place =
            places.iter().find(|place| place.is_dir() && !system::is_memory(place)).unwrap_or(&places[0]);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        place.join(format!("sidebloom-{name}-{}-{number}", std::process::id()))
    }

    /// Creates a directory at a [`temporary_path`](Self::temporary_path), removed on drop.
    pub fn create_temporary(path: PathBuf) -> Result<Self, Failure> {
        fs::create_dir(&path).map_err(|e| Failure::file("create", &path, e))?;
        remove_on_signal(&path)?;
        Ok(WorkDir { path, temporary: true })
    }

    /// A directory that is kept. It must be missing or empty.
    pub fn kept(path: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(path).map_err(|e| Failure::file("create", path, e))?;
        let mut entries = fs::read_dir(path).map_err(|e| Failure::file("read", path, e))?;
        if entries.next().is_some() {
            return Err(Failure::message(format!("{} is not empty: choose a new directory", path.display())));
        }
        Ok(WorkDir { path: path.to_path_buf(), temporary: false })
    }

    /// An existing directory, which is kept.
    pub fn existing(path: &Path) -> Self {
        WorkDir { path: path.to_path_buf(), temporary: false }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        if self.temporary {
            remove(&self.path);
        }
    }
}

/// Removes a directory. The store may still be writing when a signal arrives; a retry removes new files.
fn remove(path: &Path) {
    for _ in 0..20 {
        if fs::remove_dir_all(path).is_ok() || !path.exists() {
            return;
        }
    }
    notice(format_args!("cannot remove {}", path.display()));
}

fn remove_on_signal(path: &Path) -> Result<(), Failure> {
    let Ok(mut paths) = TEMPORARY.lock() else { return Ok(()) };
    paths.push(path.to_path_buf());
    if paths.len() > 1 {
        return Ok(()); // The thread below is already running.
    }
    let mut signals =
        signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM])
            .map_err(|e| Failure::message(format!("cannot watch for signals: {e}")))?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            TEMPORARY.lock().iter().flat_map(|paths| paths.iter()).for_each(|path| remove(path));
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}
