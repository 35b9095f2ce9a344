//! Renumbers the rows of a store whose sequence numbers are near their maximum, so it takes writes again.
//!
//! 1. The store is opened as a writer would open it. The contents of its logs become a segment.
//! 2. All segments are merged into one run, in which every row has number 1: each key exists once, and
//!    nothing is left to hide.
//! 3. In a new manifest, sequence numbers start after that, and no log counts any more.
//!
//! A crash before step 3 leaves a store with high numbers. The next repair starts again.

use crate::engine::open::{OldFiles, open_writable};
use crate::error::Result;
use crate::fs::Fs;
use crate::key::{MAX_SEQ, Seq};
use crate::manifest::ManifestState;
use crate::options::Options;
use crate::sync::WallClock;
use std::path::Path;
use std::sync::Arc;

/// The largest next number that stays: half of all numbers are left then.
pub(super) const NEXT_SEQ_KEPT_MAX: Seq = MAX_SEQ / 2;

/// Renumbers the rows of an intact store, and returns its state. The caller has locked it.
pub(super) fn renumber(fs: Arc<dyn Fs>, path: &Path, clock: Arc<dyn WallClock>) -> Result<ManifestState> {
    let engine = open_writable(path, Options { fs, clock, ..Options::new() }, OldFiles::Keep)?;
    engine.writer.flush_all()?;
    engine.compactor.merge_renumbered()?;
    engine.publisher.restart_numbers()
}
