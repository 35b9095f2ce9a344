//! Repair: a store whose manifest is lost, or names segments that are lost, becomes openable again with all that is readable.
//!
//! 1. A readable manifest is kept, less the segments that cannot be opened; if the segments of a sorted level overlap, all go to level 0. One that names files which are not there, or that ends
//!    before the logs begin, has lost its last edits, and with them the names of segments: it counts as unreadable.
//! 2. Without one, every segment that opens goes to level 0. Their ages may interleave, so each entry's own sequence number decides:
//!    reads and compaction compare them, and the next compaction sorts level 0 out.
//! 3. Logs stay: the next opening replays them. Of a damaged one, the batches before the damage are written anew; the logs after it
//!    would leave a gap and are set aside.
//! 4. What is set aside is renamed to `*.damaged`, never removed.

use super::options::Options;
use super::recover::{LOCK, TEMPORARY, next_free_id};
use crate::error::{Error, Result};
use crate::fs::{Fs, LockMode};
use crate::hash::random_u64;
use crate::id::{FileId, FileKind};
use crate::key::Seq;
use crate::manifest::{MANIFEST, Manifest, SegmentMeta, State, StoreHeader, check_levels, read_state};
use crate::segment::{BlockCache, Counters, Segment};
use crate::wal;
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;

/// What [`repair`] found and did.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// Whether a new manifest was written; otherwise the store needed none.
    pub rebuilt: bool,
    /// Segments that the store has now.
    pub segments: u64,
    /// Entries in them.
    pub entries: u64,
    /// What could not be kept, and why; the files are still there as `*.damaged`.
    pub set_aside: Vec<Error>,
}

/// Repairs the store in directory `path`. Nothing readable is lost, nothing is removed; nobody may have the store open.
///
/// # Errors
/// [`Error::NotAStore`] when there is no file of a store, [`Error::Locked`], [`Error::Io`].
pub fn repair(path: impl AsRef<Path>) -> Result<RepairReport> {
    let (path, fs) = (path.as_ref(), Options::new().fs);
    let names = match fs.file_len(path)? {
        Some(_) => fs.list(path)?,
        None => Vec::new(),
    };
    if !names.iter().any(|name| name == MANIFEST || FileKind::parse(name).is_some()) {
        let what = "there is no file of a store".to_owned();
        return Err(Error::NotAStore { path: path.to_path_buf(), what });
    }
    let _lock = fs.lock(&path.join(LOCK), LockMode::Exclusive)?;
    Repair { fs, path, names, report: RepairReport::default() }.run()
}

struct Repair<'a> {
    fs: Arc<dyn Fs>,
    path: &'a Path,
    names: Vec<String>,
    report: RepairReport,
}

impl Repair<'_> {
    fn run(mut self) -> Result<RepairReport> {
        let known = match read_state(&*self.fs, self.path) {
            Ok(state) => self.keep_if_complete(state)?,
            Err(Error::NotAStore { .. }) => None,
            Err(error) => {
                self.set_aside(MANIFEST, error)?;
                None
            }
        };
        let (state, changed) = match known {
            Some(mut state) => {
                let before = state.segments.len();
                let mut kept = std::mem::take(&mut state.segments);
                let mut lost = Vec::new();
                kept.retain(|id, meta| match self.open(*id) {
                    Ok((found, _)) if found.digest == meta.digest => true,
                    Ok(_) => {
                        let file = self.path.join(id.file_name(FileKind::Segment));
                        lost.push((
                            *id,
                            Error::corruption(file, 0, "not the segment that the manifest means"),
                        ));
                        false
                    }
                    Err(error) => {
                        lost.push((*id, error));
                        false
                    }
                });
                for (id, error) in lost {
                    self.set_aside(&id.file_name(FileKind::Segment), error)?;
                }
                let mut changed = kept.len() != before;
                let mut state = State { segments: kept, ..state };
                if let Err(error) = check_levels(&state, self.path) {
                    tracing::warn!(%error, "every segment goes to level 0, which may overlap");
                    state.segments.values_mut().for_each(|meta| meta.level = 0);
                    changed = true;
                }
                (state, changed)
            }
            None => (self.gather()?, true),
        };
        self.report.segments = state.segments.len() as u64;
        self.report.entries = state.segments.values().map(|meta| meta.entries).sum();
        self.report.rebuilt = changed;
        if changed {
            let next_id = FileId(next_free_id(&state, &self.names));
            let state = State { next_id, ..state.clone() };
            Manifest::create(Arc::clone(&self.fs), self.path, &state)?;
        }
        self.mend_logs(&state)?;
        self.fs.sync_dir(self.path)?;
        Ok(self.report)
    }

    /// Sets a manifest aside that has lost its last edits.
    fn keep_if_complete(&mut self, state: State) -> Result<Option<State>> {
        let manifest = self.path.join(MANIFEST);
        for id in state.segments.keys() {
            if self.fs.file_len(&self.path.join(id.file_name(FileKind::Segment)))?.is_none() {
                self.set_aside(
                    MANIFEST,
                    Error::corruption(&manifest, 0, format!("it names segment {id}, which is missing")),
                )?;
                return Ok(None);
            }
        }
        let needed = self.files(FileKind::Wal).into_iter().find(|id| *id >= state.log_floor);
        let first_log =
            needed.map(|id| wal::identify(&*self.fs, &self.path.join(id.file_name(FileKind::Wal))));
        match first_log {
            Some(Ok(Some(log))) if log.first_seq > state.last_seq + 1 => {
                let what = format!(
                    "it ends at operation {}, but the first log begins at {}",
                    state.last_seq, log.first_seq
                );
                self.set_aside(MANIFEST, Error::corruption(&manifest, 0, what))?;
                Ok(None)
            }
            _ => Ok(Some(state)),
        }
    }

    /// The numbers of all files of a kind, in order.
    fn files(&self, wanted: FileKind) -> Vec<FileId> {
        let mut ids: Vec<_> = self.names.iter().filter_map(|name| FileKind::parse(name)).collect();
        ids.retain(|(_, kind)| *kind == wanted);
        ids.sort();
        ids.into_iter().map(|(id, _)| id).collect()
    }

    /// Makes the logs replayable up to the first damage.
    fn mend_logs(&mut self, state: &State) -> Result<()> {
        let mut next_seq = state.last_seq + 1;
        let mut damaged = false;
        for id in self.files(FileKind::Wal).into_iter().filter(|id| *id >= state.log_floor) {
            let (name, path) = (id.file_name(FileKind::Wal), self.path.join(id.file_name(FileKind::Wal)));
            if damaged {
                self.set_aside(
                    &name,
                    Error::corruption(&path, 0, "the log before it is damaged: it would leave a gap"),
                )?;
                continue;
            }
            match wal::replay(&*self.fs, &path, id, state.header.store_id, next_seq, &mut |_, _, _| Ok(())) {
                Ok(replay) => next_seq = replay.next_seq,
                Err(error @ Error::Corruption { .. }) => {
                    damaged = true;
                    let sound = self.path.join(format!("{name}{TEMPORARY}"));
                    self.copy_sound_part(&path, &sound, id, state.header.store_id, next_seq)?;
                    self.set_aside(&name, error)?;
                    self.fs.rename(&sound, &path)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes the batches before the damage as a log of the same number.
    fn copy_sound_part(
        &self,
        from: &Path,
        to: &Path,
        id: FileId,
        store_id: u64,
        next_seq: Seq,
    ) -> Result<()> {
        if self.fs.file_len(to)?.is_some() {
            self.fs.remove(to)?;
        }
        let mut writer = wal::Writer::create(&*self.fs, to, id, store_id, next_seq)?;
        let mut copy = |first_seq, payload: Bytes, count| {
            writer.append_group(&[wal::Record { first_seq, count, payload: &payload }])
        };
        match wal::replay(&*self.fs, from, id, store_id, next_seq, &mut copy) {
            Ok(_) | Err(Error::Corruption { .. }) => writer.sync(),
            Err(error) => Err(error),
        }
    }

    /// A state from the segments alone.
    fn gather(&mut self) -> Result<State> {
        let logs = self.files(FileKind::Wal);
        let identify = |id: &FileId| wal::identify(&*self.fs, &self.path.join(id.file_name(FileKind::Wal)));
        let first_log = logs.iter().find_map(|id| identify(id).ok().flatten());
        let mut header = None;
        let mut metas = Vec::new();
        for id in self.files(FileKind::Segment) {
            match self.open(id) {
                Ok((meta, origin)) if *header.get_or_insert(origin) == origin => metas.push(meta),
                Ok(_) => {
                    let file = self.path.join(id.file_name(FileKind::Segment));
                    self.set_aside(
                        &id.file_name(FileKind::Segment),
                        Error::corruption(file, 0, "a segment of another store"),
                    )?;
                }
                Err(error) => self.set_aside(&id.file_name(FileKind::Segment), error)?,
            }
        }
        let header = match (header, &first_log) {
            (Some(header), _) => header,
            (None, Some(log)) => StoreHeader { store_id: log.store_id, hash_seed: random_u64() },
            (None, None) => StoreHeader { store_id: random_u64(), hash_seed: random_u64() },
        };
        let newest: Seq = metas.iter().map(|meta| meta.max_seq).max().unwrap_or(0);
        let mut state = State::new(header);
        state.segments = metas.into_iter().map(|meta| (meta.id, meta)).collect();
        // A log may repeat what a segment has already: the same operations under the same numbers.
        state.last_seq = first_log.map_or(newest, |log| log.first_seq.saturating_sub(1));
        Ok(state)
    }

    fn open(&self, id: FileId) -> Result<(SegmentMeta, StoreHeader)> {
        let path = self.path.join(id.file_name(FileKind::Segment));
        let (cache, counters) = (Arc::new(BlockCache::new(0)), Arc::new(Counters::default()));
        let segment = Segment::open(&*self.fs, &path, id, cache, counters)?;
        let origin = segment.origin();
        let header = StoreHeader { store_id: origin.store_id, hash_seed: origin.hash_seed };
        Ok((SegmentMeta::of(0, segment.summary()), header))
    }

    fn set_aside(&mut self, name: &str, why: Error) -> Result<()> {
        tracing::warn!(%why, name, "set aside");
        let file = self.path.join(name);
        if self.fs.file_len(&file)?.is_some() {
            self.fs.rename(&file, &self.path.join(format!("{name}.damaged")))?;
        }
        self.report.set_aside.push(why);
        Ok(())
    }
}
