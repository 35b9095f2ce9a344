//! The files of a store at one moment, from outside of its writer: in a store that follows another process,
//! or is open read-only. Changes nothing, and does not wait for the writer.
//!
//! 1. Hold all versions (`follow/versions.rs`), so that no segment is removed.
//! 2. Read the manifest, open the logs that it needs, and take their lengths.
//! 3. If the manifest is the same afterwards, logs and segments fit together: until then, nothing of the logs
//!    was flushed, and no rows were ingested. Otherwise repeat.
//! 4. Hold this version only. Replay the logs, as a recovery does, and encode one log for the copy.

use super::copied_log::{CopiedLog, OpenLogs};
use super::file_set::{FileSet, Kept, is_missing};
use crate::engine::follow::read_version;
use crate::engine::follow::versions::Versions;
use crate::engine::open::replay::needed_logs;
use crate::engine::storage::Storage;
use crate::engine::storage::names::unusual_number;
use crate::error::{Error, Result};
use crate::id::{FileId, FileKind};
use crate::manifest::{MANIFEST, ManifestState, ManifestTail, check_levels, read_state};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often to start over because the manifest changed.
const ATTEMPTS: usize = 200;
/// How often to start over because a log did not continue the one before: rows were just being ingested.
const ATTEMPTS_AT_GAP: usize = 5;

/// The files of everything that was written before the call. `versions` are those of a follower.
pub(crate) fn file_set_from_outside(storage: &Storage, versions: Option<&Arc<Versions>>) -> Result<FileSet> {
    storage.process.check()?;
    let everything = versions.map(|versions| versions.hold(0)).transpose()?;
    let mut attempt = 1;
    loop {
        let logs = look(storage, versions)?;
        let state = logs.state.clone();
        let version = versions.map(|versions| versions.hold(state.next_id.0)).transpose()?;
        // A new number: the original may have given it to another log, which the copy does not have.
        let (log, left_out) = CopiedLog::new(logs, state.next_id)?;
        if left_out && attempt < ATTEMPTS_AT_GAP {
            attempt += 1;
            continue;
        }
        drop(everything);
        return FileSet::new(storage, state, log, Kept::Version(version));
    }
}

/// The manifest's state and the logs that continue it.
fn look(storage: &Storage, versions: Option<&Arc<Versions>>) -> Result<OpenLogs> {
    let path = storage.dir.join(MANIFEST);
    for _ in 1..ATTEMPTS {
        let before = storage.fs.stamp(&path)?;
        let state = match versions {
            Some(versions) => read_version(storage, versions, &mut ManifestTail::default(), before),
            None => read_state(&*storage.fs, &storage.dir),
        };
        let looked = state.and_then(|state| {
            check_levels(&state, &storage.dir)?;
            Ok(OpenLogs { dir: storage.dir.clone(), files: open_logs(storage, &state)?, state })
        });
        if storage.fs.stamp(&path)? == before {
            return looked;
        }
        match looked {
            Err(error @ (Error::NotAStore { .. } | Error::UnsupportedVersion { .. })) => return Err(error),
            _ => continue,
        }
    }
    let what = "its writer changes the manifest faster than it can be read";
    Err(Error::io(crate::IoOp::Read, path, std::io::Error::other(what)))
}

type Opened = BTreeMap<FileId, (Arc<dyn crate::fs::ReadFile>, u64)>;

fn open_logs(storage: &Storage, state: &ManifestState) -> Result<Opened> {
    let ids = needed_logs(state, &storage.fs.list(&storage.dir)?);
    let mut files = BTreeMap::new();
    for id in ids {
        let path = storage.path_of(id, FileKind::Wal);
        if !id.is_usual() {
            return Err(unusual_number(path));
        }
        match storage.fs.open(&path) {
            // It was flushed, so the manifest has changed. Otherwise the replay reports what is missing.
            Err(error) if is_missing(&error) => {}
            opened => {
                let file = opened?;
                let len = file.len()?;
                files.insert(id, (file, len));
            }
        }
    }
    Ok(files)
}
