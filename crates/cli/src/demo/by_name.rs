//! Looks up a few songs by name.

use super::catalogue::{Song, Songs};
use super::measure::BLOCK_CACHE_BYTES;
use crate::context::Failure;
use crate::human;
use serde::Serialize;
use sidebloom::{Db, Options};
use std::path::Path;
use std::time::Instant;

/// Songs of each kind.
const SHOWN: usize = 4;

/// One lookup.
#[derive(Serialize)]
pub struct LookedUp {
    key: String,
    year: Option<u64>,
    ns: u64,
    block_reads: u64,
}

/// Looks up present songs, and songs left out, spread over the alphabet.
pub fn look_up(dir: &Path, songs: &Songs) -> Result<Vec<LookedUp>, Failure> {
    let db = Options::new().block_cache_bytes(BLOCK_CACHE_BYTES).read_only(true).open(dir)?;
    db.warm()?;
    let some = |songs: &[Song]| {
        songs.iter().step_by((songs.len() / SHOWN).max(1)).skip(1).cloned().collect::<Vec<_>>()
    };
    let mut asked = some(&songs.present);
    asked.truncate(SHOWN);
    asked.extend(some(&songs.left_out).into_iter().take(SHOWN));
    asked.iter().map(|song| LookedUp::new(&db, song)).collect()
}

impl LookedUp {
    fn new(db: &Db, song: &Song) -> Result<Self, Failure> {
        let key = song.key();
        let blocks = db.stats().block_reads;
        let start = Instant::now();
        let value = db.get(key.as_bytes())?;
        let ns = start.elapsed().as_nanos() as u64;
        let row: Option<serde_json::Value> = value.and_then(|value| serde_json::from_slice(&value).ok());
        let year = row.and_then(|row| row.get("year")?.as_u64());
        Ok(LookedUp { key, year, ns, block_reads: db.stats().block_reads - blocks })
    }

    pub fn cells(&self) -> [String; 4] {
        let (mark, what) = match self.year {
            Some(year) => ('✓', year.to_string()),
            None => ('✗', "not found".to_owned()),
        };
        let reads = match self.block_reads {
            0 => "no block read".to_owned(),
            1 => "1 block read".to_owned(),
            n => format!("{n} blocks read"),
        };
        [format!("{mark} {}", self.key), what, human::nanos(self.ns as f64), reads]
    }
}
