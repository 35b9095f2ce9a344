//! Builds the demo's store.

use super::catalogue::{Songs, generated};
use super::measure::BLOCK_CACHE_BYTES;
use crate::context::Failure;
use crate::progress;
use serde::Serialize;
use sidebloom::{Batch, Options};
use std::path::Path;
use std::time::Instant;

/// Rows per write.
const BATCH_ROWS: u64 = 1000;

/// The store that was built.
#[derive(Serialize)]
pub struct BuiltStore {
    /// Rows in the store.
    pub rows: u64,
    /// Real songs among them.
    pub songs: u64,
    /// Seconds to write them.
    pub load_seconds: f64,
    /// Seconds from the last write until compaction was done.
    pub settle_seconds: f64,
    /// Size of the segments.
    pub data_bytes: u64,
    /// Size of the filters.
    pub filter_bytes: u64,
    /// Segments that a lookup may have to read: all of level 0, and one of each other level.
    pub runs: u64,
}

/// Writes the songs and `titles` generated titles.
pub fn build(dir: &Path, songs: &Songs, titles: u64) -> Result<BuiltStore, Failure> {
    let db = Options::new().block_cache_bytes(BLOCK_CACHE_BYTES).open(dir)?;
    let bar = progress::bar("building the store", titles);
    let start = Instant::now();
    let mut batch = Batch::new();
    songs.present.iter().for_each(|song| batch.put(song.key().as_bytes(), song.value().as_bytes()));
    db.write(batch)?;
    for first in (0..titles).step_by(BATCH_ROWS as usize) {
        let mut batch = Batch::new();
        let range = first..(first + BATCH_ROWS).min(titles);
        for i in range.clone() {
            let song = generated(i);
            batch.put(song.key().as_bytes(), song.value().as_bytes());
        }
        db.write(batch)?;
        bar.inc(range.end - range.start);
    }
    let load_seconds = start.elapsed().as_secs_f64();
    bar.set_message("compacting");
    let compacting = Instant::now();
    db.flush()?;
    db.wait_for_compaction()?;
    bar.finish_and_clear();
    let stats = db.stats();
    Ok(BuiltStore {
        rows: titles + songs.present.len() as u64,
        songs: songs.present.len() as u64,
        load_seconds,
        settle_seconds: compacting.elapsed().as_secs_f64(),
        data_bytes: stats.levels.iter().map(|level| level.data_bytes).sum(),
        filter_bytes: stats.levels.iter().map(|level| level.filter_bytes).sum(),
        runs: stats.levels.iter().map(|level| level.runs as u64).sum(),
    })
}
