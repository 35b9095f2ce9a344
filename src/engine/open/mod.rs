//! Opening a store: lock, manifest, segments, logs, background threads. `recover.rs` has the recovery.

pub(crate) mod close;
pub(crate) mod recover;
pub(crate) mod replay;
mod set_options;

use self::close::OpenStore;
use self::recover::Recovery;
use crate::direction::Direction;
use crate::engine::follow::versions::Versions;
use crate::engine::follow::{Followed, start_following};
use crate::engine::keyspaces::read_catalog::{load, load_recovered};
use crate::engine::read::view::View;
use crate::engine::shared::Shared;
use crate::engine::storage::names::{
    LOCK, has_manifest, is_unfinished, next_free_id, refuse_unfinished_copy, unusual_number,
};
use crate::engine::storage::{Storage, open_files};
use crate::engine::tasks;
use crate::engine::{Engine, Writable};
use crate::error::{Error, Result};
use crate::fs::{Fs, LockMode, LockedFs, create_dir_durably, has_no_reader_locks, open_dir, with_mode_of};
use crate::hash::{KeyHash, KeyHasher, random_u64};
use crate::id::{FileId, FileKind};
use crate::key::{AsOf, HEADS_START, Seq};
use crate::manifest::{HEADS_SINCE, MANIFEST, Manifest, ManifestState, check_levels, read_state};
use crate::memtable::Memtable;
use crate::options::Options;
use crate::segment::{Access, StoreIdentity};
use crate::sync::Condvar;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

/// Opens or creates the store in a directory.
pub(crate) fn open(path: &Path, mut options: Options) -> Result<OpenStore> {
    options.validate()?;
    // The working directory may change, and the directory may be moved: paths are only for messages now.
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
            let engine = open_following(path, options, locks)?;
            load(&engine.shared);
            if let Some(follower) = &engine.follower {
                follower.catch_up()?; // The store may have changed while it was read.
            }
            let mut store = OpenStore::new(engine, None);
            store.events_thread = tasks::spawn_events(&store.engine)?;
            store.start_threads()?;
            store.engine.filters.queue_unverified();
            return Ok(store);
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
        // After a power cut, a manifest without the lock file would be a store that cannot open read-only.
        fs.sync_dir(path)?;
        create(&fs, path, options.key_hash)?;
    }
    let engine = if options.read_only {
        open_read_only(path, options)?
    } else {
        open_writable(path, options, OldFiles::Remove)?
    };
    load(&engine.shared);
    engine.filters.report_missing();
    let mut store = OpenStore::new(engine, Some(lock_file));
    // On an error, closing the store ends the threads already started.
    store.events_thread = tasks::spawn_events(&store.engine)?;
    store.start_threads()?;
    store.engine.filters.queue_unverified();
    store.engine.publisher.try_suspects_later();
    Ok(store)
}

/// Decides what the directory is before changing anything: `true` for a store, `false` for a place where one
/// can be created.
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

/// What an opening does with the files that the store no longer needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OldFiles {
    Remove,
    /// A repair may have damaged files among them. The next opening removes them.
    Keep,
}

/// The store as a writer has it, without background threads. The caller has locked it.
pub(crate) fn open_writable(path: &Path, mut options: Options, old_files: OldFiles) -> Result<Engine> {
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
    let live = Arc::new(recovery.open_segments(&state)?);
    let replayed = recovery.replay_logs(&state, &live)?;
    let is_settled = recovery.is_settled(&state, &live, &replayed);
    let whole = replayed.view(&storage, &live);
    let mut logs = recovery.inherit(&state, &live, replayed);
    if old_files == OldFiles::Keep {
        logs.obsolete.clear();
    }
    let view =
        View::new(Arc::clone(&logs.memtable), live, false, storage.filter_use(), storage.prefixes.clone());
    note_heads(&state, &whole, &storage)?;
    if !is_settled {
        load_recovered(&storage, &whole);
    }
    let visible = logs.next_seq - 1;
    let shared = Shared::new(storage, work, view, visible);
    let engine = Engine::new(shared, Some(Writable { logs, manifest, state }), None);
    if !is_settled {
        engine.writer.start()?;
    }
    Ok(engine)
}

/// Notes whether stored keys of a view have heads.
///
/// # Errors
/// [`Error::AmbiguousKeys`] for such keys in a store of format version 5: there, they are keys as they are.
fn note_heads(state: &ManifestState, view: &View, storage: &Storage) -> Result<()> {
    if !view.may_have_heads() {
        return Ok(());
    }
    storage.keyspaces.note_head();
    let Some(found) = state.earlier_version.filter(|version| *version < HEADS_SINCE) else { return Ok(()) };
    let from = Bound::Included(HEADS_START);
    let mut rows = view.merge(AsOf::seq(Seq::MAX), Direction::Forward, from, Bound::Unbounded, Access::Keys);
    if rows.advance_visible()? {
        let file = storage.dir.join(MANIFEST);
        return Err(Error::AmbiguousKeys { file, found });
    }
    Ok(())
}

/// `None` if the system or the file system has no such locks. Then a lock against writers protects the files.
/// `named` finds the directory by its path.
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

/// Changes no file and follows the writer.
fn open_following(path: &Path, mut options: Options, versions: Arc<Versions>) -> Result<Engine> {
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
    // The writer may store some at any time.
    storage.keyspaces.note_head();
    note_heads(&state, &view, &storage)?;
    Ok(Engine::new(Shared::new(storage, work, view, visible), None, Some(following)))
}

/// Reads the logs into memory and changes no file.
fn open_read_only(path: &Path, mut options: Options) -> Result<Engine> {
    let files = open_files(path, &mut options);
    let names = options.fs.list(path)?;
    let state = read_state(&*options.fs, path)?;
    check_levels(&state, path)?;
    let work = Arc::new(Condvar::new());
    let storage = Storage::new(path, options, state.header, files, FileId(1), &work);
    let recovery = Recovery { storage: &storage, names: &names };
    let live = Arc::new(recovery.open_segments(&state)?);
    let replayed = recovery.replay_logs(&state, &live)?;
    let visible = (replayed.outcome.next_seq - 1).max(live.max_seq());
    let logs_reach_back = replayed.reach_back(&live);
    let (used, prefixes) = (storage.filter_use(), storage.prefixes.clone());
    let view = View::new(replayed.table, live, logs_reach_back, used, prefixes);
    note_heads(&state, &view, &storage)?;
    Ok(Engine::new(Shared::new(storage, work, view, visible), None, None))
}
