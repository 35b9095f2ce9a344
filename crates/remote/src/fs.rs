//! Presents a published store as a directory: local files hold what the engine needs of it, and data blocks
//! are fetched individually.

use crate::disk_cache::DiskCache;
use crate::error::Error;
use crate::generation::{File, Generation};
use crate::local_files::LocalFiles;
use crate::remote::Remote;
use sidebloom::IoOp;
use sidebloom::Result;
use sidebloom::fs::{AppendFile, Fs, LockGuard, LockMode, Map, ReadFile, ReaderLocks, RealFs, Stamp};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const MANIFEST: &str = sidebloom::FileSet::MANIFEST;
const LOCK: &str = "LOCK";

/// The file system of a reader. Clones share their state.
#[derive(Clone)]
pub(crate) struct RemoteFs(Arc<Shared>);

struct Shared {
    remote: Remote,
    local: LocalFiles,
    cache: Option<DiskCache>,
    state: Mutex<State>,
    gets: AtomicU64,
    /// A read found that its object is gone.
    expired: AtomicBool,
}

struct State {
    generation: Arc<Generation>,
    /// The files of this generation, and of earlier ones that may still be read.
    files: BTreeMap<String, Known>,
    /// The generations in use, by the engine's version number.
    held: BTreeMap<u64, u64>,
    /// The last generations, each with its version.
    recent: VecDeque<(u64, u64)>,
}

/// How many generations the engine may lag.
const RECENT_MAX: usize = 64;

struct Known {
    file: File,
    /// The first generation without the file.
    gone_since: Option<u64>,
}

impl RemoteFs {
    /// Presents a generation, whose files must be in `local`.
    pub fn new(remote: Remote, local: LocalFiles, cache: Option<DiskCache>, generation: Generation) -> Self {
        let files = known(&generation);
        let recent = VecDeque::from([(generation.number, generation.holds.version())]);
        let state = State { generation: Arc::new(generation), files, held: BTreeMap::new(), recent };
        let (state, gets, expired) = (Mutex::new(state), AtomicU64::new(0), AtomicBool::new(false));
        RemoteFs(Arc::new(Shared { remote, local, cache, state, gets, expired }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn local(&self) -> &LocalFiles {
        &self.0.local
    }

    pub fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.state().generation)
    }

    /// Requests for parts of data so far.
    pub fn gets(&self) -> u64 {
        self.0.gets.load(Ordering::Relaxed)
    }

    /// Whether a read has failed since the last call because its object is gone.
    pub fn take_expired(&self) -> bool {
        self.0.expired.swap(false, Ordering::Relaxed)
    }

    /// Switches to another generation, whose files must be in `local`.
    pub fn advance(&self, generation: Generation) {
        let mut state = self.state();
        let mut files = known(&generation);
        let oldest = state.held.values().copied().min().unwrap_or(generation.number);
        state.recent.push_back((generation.number, generation.holds.version()));
        if state.recent.len() > RECENT_MAX {
            state.recent.pop_front();
        }
        for (name, old) in std::mem::take(&mut state.files) {
            let gone_since = old.gone_since.unwrap_or(generation.number);
            if !files.contains_key(&name) && oldest < gone_since {
                files.insert(name, Known { gone_since: Some(gone_since), ..old });
            }
        }
        state.files = files;
        state.generation = Arc::new(generation);
    }

    /// The local files that are still needed.
    pub fn local_files(&self) -> HashSet<PathBuf> {
        let state = self.state();
        let cache = self.0.cache.as_ref().map(|cache| cache.path().to_path_buf());
        let manifest = self.0.local.path(&state.generation.manifest_file());
        let files = state.files.values().map(|known| self.0.local.path(&known.file));
        files.chain([manifest]).chain(cache).collect()
    }

    fn name(path: &Path) -> &str {
        path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// A file of the store, and the place of the file or its tail.
    fn file(&self, op: IoOp, path: &Path) -> Result<(File, PathBuf)> {
        let name = Self::name(path);
        let state = self.state();
        let file = match state.files.get(name) {
            Some(known) => known.file.clone(),
            None if name == MANIFEST => state.generation.manifest_file(),
            None => return Err(missing(op, path)),
        };
        let local = self.0.local.path(&file);
        Ok((file, local))
    }
}

fn known(generation: &Generation) -> BTreeMap<String, Known> {
    let known = |file: &File| (file.name.clone(), Known { file: file.clone(), gone_since: None });
    generation.files.iter().map(known).collect()
}

fn missing(op: IoOp, path: &Path) -> sidebloom::Error {
    sidebloom::Error::io(op, path, io::Error::from(ErrorKind::NotFound))
}

fn refused<T>(op: IoOp, path: &Path) -> Result<T> {
    Err(sidebloom::Error::io(
        op,
        path,
        io::Error::new(ErrorKind::Unsupported, "a published store is read-only"),
    ))
}

impl Fs for RemoteFs {
    fn list(&self, _dir: &Path) -> Result<Vec<String>> {
        let state = self.state();
        let files = state.generation.files.iter().map(|file| file.name.clone());
        Ok(files.chain([MANIFEST.to_owned(), LOCK.to_owned()]).collect())
    }

    fn file_len(&self, path: &Path) -> Result<Option<u64>> {
        if path == self.0.local.store_dir() || Self::name(path) == LOCK {
            return Ok(Some(0));
        }
        Ok(self.file(IoOp::Inspect, path).ok().map(|(file, _)| file.object.bytes))
    }

    fn stamp(&self, path: &Path) -> Result<Option<Stamp>> {
        if path == self.0.local.store_dir() {
            return Ok(Some(Stamp { file: self.state().generation.number, len: 0, changed: 0 }));
        }
        let stamp = |(file, _): (File, PathBuf)| {
            let file_id = file.object.sha256.get(..16).and_then(|hex| u64::from_str_radix(hex, 16).ok());
            Stamp { file: file_id.unwrap_or(0), len: file.object.bytes, changed: 0 }
        };
        let mut found = self.file(IoOp::Inspect, path).ok().map(stamp);
        if let Some(found) = found.as_mut().filter(|_| Self::name(path) == MANIFEST) {
            found.changed = self.state().generation.number.into();
        }
        Ok(found)
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        let (file, local) = self.file(IoOp::Open, path)?;
        let local = RealFs.open(&local)?;
        Ok(match file.tail {
            Some(tail) => {
                let (fs, len) = (self.clone(), file.object.bytes);
                Arc::new(RemoteFile {
                    fs,
                    path: path.to_path_buf(),
                    object: file.object.object,
                    len,
                    tail_at: tail.at,
                    local,
                })
            }
            None => local,
        })
    }

    unsafe fn map(&self, path: &Path) -> Result<Map> {
        let (_, local) = self.file(IoOp::Map, path)?;
        // SAFETY: a local file appears whole and never changes; it is only unlinked.
        unsafe { RealFs.map(&local) }
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn LockGuard>> {
        match mode {
            LockMode::Shared => Ok(Box::new(Reads)),
            LockMode::Exclusive => refused(IoOp::Lock, path),
        }
    }

    fn reader_locks(&self, _path: &Path) -> Result<Option<Box<dyn ReaderLocks>>> {
        Ok(Some(Box::new(self.clone())))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        refused(IoOp::CreateDir, path)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        refused(IoOp::Create, path)
    }

    fn append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        refused(IoOp::Open, path)
    }

    fn rename(&self, from: &Path, _to: &Path) -> Result<()> {
        refused(IoOp::Rename, from)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        refused(IoOp::Remove, path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        refused(IoOp::RemoveDir, path)
    }

    fn hard_link(&self, _from: &Path, to: &Path) -> Result<()> {
        refused(IoOp::Link, to)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        refused(IoOp::SyncDir, dir)
    }
}

/// The engine's versions stand for generations here.
impl ReaderLocks for RemoteFs {
    fn hold(&self, version: u64) -> Result<()> {
        let mut state = self.state();
        // Generations share a version until segments leave the store. Version 0 is older than all.
        let first = state.recent.iter().find(|(_, its)| *its == version).map_or(0, |(number, _)| *number);
        state.held.entry(version).or_insert(first);
        Ok(())
    }

    fn release(&self, version: u64) {
        self.state().held.remove(&version);
    }

    fn lowest_held(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}

#[derive(Debug)]
struct Reads;
impl LockGuard for Reads {}

impl fmt::Debug for RemoteFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteFs").field(&self.0.remote).finish()
    }
}

/// A segment whose data blocks are in the bucket.
#[derive(Debug)]
struct RemoteFile {
    fs: RemoteFs,
    path: PathBuf,
    object: String,
    len: u64,
    tail_at: u64,
    /// The segment from `tail_at` on.
    local: Arc<dyn ReadFile>,
}

impl RemoteFile {
    /// One request, unless the part is in the disk cache.
    fn fetch(&self, buf: &mut [u8], range: Range<u64>) -> Result<()> {
        let shared = &self.fs.0;
        if shared.cache.as_ref().is_some_and(|cache| cache.get(&self.object, range.start, buf)) {
            return Ok(());
        }
        shared.gets.fetch_add(1, Ordering::Relaxed);
        let at = range.start;
        let bytes = shared.remote.get_range(&self.object, range).map_err(|error| self.error(error))?;
        buf.copy_from_slice(&bytes);
        if let Some(cache) = &shared.cache {
            cache.put(&self.object, at, buf);
        }
        Ok(())
    }

    /// A removed object never means that a key is missing.
    fn error(&self, error: Error) -> sidebloom::Error {
        let kind = match error {
            Error::Expired { .. } => {
                self.fs.0.expired.store(true, Ordering::Relaxed);
                ErrorKind::StaleNetworkFileHandle
            }
            Error::AccessDenied { .. } => ErrorKind::PermissionDenied,
            _ => ErrorKind::Other,
        };
        sidebloom::Error::io(sidebloom::IoOp::Read, &self.path, io::Error::new(kind, error))
    }
}

impl ReadFile for RemoteFile {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let end = offset.saturating_add(buf.len() as u64);
        if end > self.len {
            let what = format!("the file ends before the {} bytes expected here", buf.len());
            return Err(sidebloom::Error::corruption(&self.path, offset, what));
        }
        let of_data = self.tail_at.saturating_sub(offset).min(buf.len() as u64) as usize;
        let (data, tail) = buf.split_at_mut(of_data);
        if !tail.is_empty() {
            self.local.read_exact_at(tail, offset + of_data as u64 - self.tail_at)?;
        }
        if data.is_empty() { Ok(()) } else { self.fetch(data, offset..offset + of_data as u64) }
    }

    fn len(&self) -> Result<u64> {
        Ok(self.len)
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
