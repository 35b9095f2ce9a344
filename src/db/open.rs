//! Opening a store: lock, manifest, segments, logs, and then the background threads. `recover.rs` has the steps between.

use super::background;
use super::close::OpenStore;
use super::follow::{Followed, start_following};
use super::handle::Db;
use super::inner::{Inner, Writable};
use super::names::{LOCK, has_manifest, is_unfinished, next_free_id, refuse_unfinished_copy, unusual_number};
use super::options::Options;
use super::recover::Recovery;
use super::storage::{Storage, open_files};
use super::versions::Versions;
use super::view::View;
use crate::error::{Error, Result};
use crate::fs::{Fs, LockMode, LockedFs, create_dir_durably, has_no_reader_locks, open_dir, with_mode_of};
use crate::hash::{KeyHash, KeyHasher, random_u64};
use crate::id::{FileId, FileKind};
use crate::manifest::{MANIFEST, Manifest, ManifestState, check_levels, read_state};
use crate::memtable::Memtable;
use crate::segment::StoreIdentity;
use crate::sync::{Condvar, lock};
use std::path::Path;
use std::sync::Arc;

impl Options {
    /// Opens the store in directory `path`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a setting out of range; [`Error::FeatureMissing`] for a compression that this
    /// build lacks; [`Error::NotAStore`] if the path is something else; [`Error::Locked`] while the store is open
    /// elsewhere; [`Error::Corruption`] for a damaged log or manifest, and for a segment file that is missing.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Db> {
        self.validate()?;
        open(path.as_ref(), self)
    }
}

fn open(path: &Path, mut options: Options) -> Result<Db> {
    // The working directory may change, and the directory may be moved: from here on, paths are for messages.
    let path = &*options.fs.absolute(path)?;
    let named = options.named_fs();
    let exists = is_store(&*named, path)?;
    if !exists && (options.read_only || options.follow || !options.create_if_missing) {
        return Err(Error::NotAStore {
            path: path.to_path_buf(),
            what: "nothing has been created there yet".into(),
        });
    }
    if !exists {
        create_dir_durably(&*named, path)?;
    }
    options.fs = open_dir(&named, path)?;
    if options.follow {
        options.read_only = true;
        if let Some(locks) = reader_locks(&options.fs, named, path)? {
            let inner = Arc::new(open_following(path, options, locks)?);
            inner.catch_up()?; // The store may have changed while it was read.
            let mut store = OpenStore::new(inner, None);
            background::spawn(&store.inner, &mut store.threads)?;
            store.inner.queue_unverified();
            return Ok(Db::new(store));
        }
    }
    let mode = if options.read_only { LockMode::Shared } else { LockMode::Exclusive };
    let lock_file = options.fs.lock(&path.join(LOCK), mode)?;
    if mode == LockMode::Exclusive {
        if exists && options.mode.is_none() {
            options.fs = with_mode_of(options.fs, &*lock_file);
        }
        options.fs = LockedFs::wrap(options.fs, path, LOCK, &*lock_file);
    }
    let fs = Arc::clone(&options.fs);
    if !is_store(&*fs, path)? {
        fs.sync_dir(path)?; // After a power cut, a manifest without the lock file would be a store that cannot be opened read-only.
        create(&fs, path, options.key_hash)?;
    }
    let inner = Arc::new(match options.read_only {
        true => open_read_only(path, options)?,
        false => open_writable(path, options)?,
    });
    let mut store = OpenStore::new(inner, Some(lock_file));
    background::spawn(&store.inner, &mut store.threads)?; // On an error, those that were started end as the store is closed.
    store.inner.queue_unverified();
    store.inner.try_suspects_later();
    Ok(Db::new(store))
}

/// Decides what the directory is before anything is changed: `true` for a store, `false` for a place where one can be created.
fn is_store(fs: &dyn Fs, path: &Path) -> Result<bool> {
    let not_a_store = |what: String| Err(Error::NotAStore { path: path.to_path_buf(), what });
    if fs.file_len(path)?.is_none() {
        return Ok(false);
    }
    let names = match fs.list(path) {
        Ok(names) => names,
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotADirectory => {
            return not_a_store("it is a file, not a directory".into());
        }
        Err(error) => return Err(error),
    };
    if has_manifest(fs, path, &names)? {
        return Ok(true);
    }
    refuse_unfinished_copy(fs, path, &names)?;
    if names.iter().any(|name| FileKind::parse(name).is_some()) {
        return not_a_store("it has store files but no MANIFEST: `sidebloom repair` rebuilds it".into());
    }
    match names.iter().find(|name| *name != LOCK && !is_unfinished(name)) {
        Some(foreign) => not_a_store(format!("the directory holds other files ({foreign})")),
        None => Ok(false),
    }
}

/// Creates an empty store.
fn create(fs: &Arc<dyn Fs>, path: &Path, key_hash: KeyHash) -> Result<()> {
    let header = StoreIdentity { store_id: random_u64(), hasher: KeyHasher::random(key_hash)? };
    Manifest::create(Arc::clone(fs), path, &ManifestState::new(header)).map(|_| ())
}

/// The store as a writer has it, without background threads. The caller has locked it.
pub(crate) fn open_writable(path: &Path, mut options: Options) -> Result<Inner> {
    let files = open_files(path, &mut options);
    let names = options.fs.list(path)?;
    let (manifest, state) = Manifest::open(Arc::clone(&options.fs), path)?;
    let work = Arc::new(Condvar::new());
    let first_own_id = FileId(next_free_id(&state, &names));
    if !first_own_id.is_usual() {
        return Err(unusual_number(path.join(MANIFEST)));
    }
    let storage = Storage::new(path, options, state.header, files, first_own_id, &work);
    let recovery = Recovery { storage: &storage, names: &names };
    let live = recovery.open_segments(&state)?;
    let replayed = recovery.replay_logs(&state, &live)?;
    let is_settled = recovery.is_settled(&state, &live, &replayed);
    let logs = recovery.inherit(&state, &live, replayed);
    let view = View::new(
        Arc::clone(&logs.memtable),
        Arc::new(live),
        false,
        storage.filter_use(),
        storage.prefixes.clone(),
    );
    let visible = logs.next_seq - 1;
    let inner = Inner::new(storage, work, view, visible, Some(Writable { logs, manifest, state }));
    if !is_settled {
        inner.active_log(&mut lock(&inner.log))?;
    }
    Ok(inner)
}

/// `None` if the system or the file system has no such locks. Then a lock against writers protects the files. `named` finds the directory by its path.
fn reader_locks(fs: &Arc<dyn Fs>, named: Arc<dyn Fs>, path: &Path) -> Result<Option<Arc<Versions>>> {
    let path = path.join(LOCK);
    let file = fs.stamp(&path)?.map(|stamp| stamp.file);
    let Some(locks) = fs.reader_locks(&path)? else { return Ok(None) };
    let versions = Versions::new(locks, file, named, path);
    match versions.hold(0) {
        Err(Error::Locked { .. }) => Ok(None),
        Err(error) if has_no_reader_locks(&error) => Ok(None),
        held => held.map(|_| Some(versions)),
    }
}

/// Changes no file and follows those who do.
fn open_following(path: &Path, mut options: Options, versions: Arc<Versions>) -> Result<Inner> {
    let files = open_files(path, &mut options);
    let state = read_state(&*options.fs, path)?;
    let work = Arc::new(Condvar::new());
    let storage = Storage::new(path, options, state.header, files, FileId(1), &work);
    let Followed { following, live, memtables, logs_reach_back, visible } =
        start_following(&storage, versions)?;
    let mut memtables = memtables.into_iter();
    let active = match memtables.next() {
        Some(newest) => newest,
        None => Arc::new(Memtable::new(storage.options.memtable_bytes)?),
    };
    let (used, prefixes) = (storage.filter_use(), storage.prefixes.clone());
    let view = View::new(active, Arc::new(live), logs_reach_back, used, prefixes);
    let view = view.changed(|view| view.immutable = memtables.collect());
    let mut inner = Inner::new(storage, work, view, visible, None);
    inner.following = Some(following);
    Ok(inner)
}

/// Reads the logs into memory and changes no file.
fn open_read_only(path: &Path, mut options: Options) -> Result<Inner> {
    let files = open_files(path, &mut options);
    let names = options.fs.list(path)?;
    let state = read_state(&*options.fs, path)?;
    check_levels(&state, path)?;
    let work = Arc::new(Condvar::new());
    let storage = Storage::new(path, options, state.header, files, FileId(1), &work);
    let recovery = Recovery { storage: &storage, names: &names };
    let live = recovery.open_segments(&state)?;
    let replayed = recovery.replay_logs(&state, &live)?;
    let visible = (replayed.outcome.next_seq - 1).max(live.max_seq());
    let logs_reach_back = replayed.reach_back(&live);
    let view = View::new(
        Arc::new(replayed.table),
        Arc::new(live),
        logs_reach_back,
        storage.filter_use(),
        storage.prefixes.clone(),
    );
    Ok(Inner::new(storage, work, view, visible, None))
}
