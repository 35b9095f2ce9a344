//! Low sequence numbers for a store whose numbers have come near the largest one, so that it takes writes again.
//!
//! 1. The store is opened as a writer would open it. What its logs hold becomes a segment.
//! 2. All segments are merged into one run, in which every row has the number 1: each key is there once, and nothing is left to hide.
//! 3. A new manifest lets the numbers begin behind that, and no log counts any more.
//!
//! A crash before step 3 leaves a store with high numbers. The next repair starts again.

use crate::engine::open::open_writable;
use crate::engine::shared::Inner;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::key::{MAX_SEQ, Seq};
use crate::manifest::ManifestState;
use crate::options::Options;
use crate::sync::lock;
use std::path::Path;
use std::sync::Arc;

/// The largest next number that stays: half of all numbers are left then.
pub(super) const NEXT_SEQ_KEPT_MAX: Seq = MAX_SEQ / 2;

/// Numbers the rows of a sound store anew, and returns its state. The caller has locked it.
pub(super) fn renumber(fs: Arc<dyn Fs>, path: &Path) -> Result<ManifestState> {
    let inner = open_writable(path, Options { fs, ..Options::new() })?;
    flush_all(&inner)?;
    inner.merge_renumbered()?;
    let mut manifest = lock(&inner.manifest);
    let (log, state) = manifest.as_mut().ok_or(Error::ReadOnly)?;
    let next_id = inner.storage.take_version();
    let last_seq = state.newest_in_segments();
    let later = ManifestState { next_id, last_seq, log_floor: next_id, log_mark: None, ..state.clone() };
    log.rewrite(&later)?;
    *state = later;
    Ok(state.clone())
}

/// Writes what is in memory to segments, in this thread.
fn flush_all(inner: &Inner) -> Result<()> {
    let mut log = lock(&inner.log);
    let log = inner.active_log(&mut log)?;
    if !log.memtable.is_empty() {
        inner.rotate(log)?;
    }
    loop {
        let next = inner.control.lock().to_flush.pop_front();
        let Some((table, next_log)) = next else { return Ok(()) };
        inner.flush_one(&table, next_log)?;
    }
}
