//! Snapshots taken one after the other beside a writer of a few rows. A snapshot that takes its view before
//! rows are ingested, and its sequence number after a later write, must not have that write without them. The
//! moment between the two is short, so nothing else runs here.

use super::model::key;
use crate::support::{Rng, STORE, SimFs, tiny_on};

const ROWS: u64 = 6;
/// So many that most steps are theirs, and a scheduler often stops one of them in between.
const SNAPSHOTS: usize = 300;

/// Each snapshot has the first rows that were written, and a later one has no fewer.
pub fn schedule(seed: u64) {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    let (writing, mut rng) = (db.clone(), Rng::new(seed));
    let writer = shuttle::thread::spawn(move || {
        for n in 0..ROWS {
            if n.is_multiple_of(2) {
                writing.ingest([Ok((key(n), "ingested"))]).unwrap();
            } else {
                writing.put(key(n), "put").unwrap();
            }
            if rng.percent(50) {
                writing.flush().unwrap();
            }
        }
    });
    let snapshots: Vec<_> = (0..SNAPSHOTS).map(|_| db.snapshot()).collect();
    writer.join().unwrap();
    let mut least = 0;
    for snapshot in &snapshots {
        let found: Vec<Vec<u8>> = snapshot.iter().map(|row| row.unwrap().0).collect();
        let rows = found.len() as u64;
        assert!(rows >= least && found == (0..rows).map(key).collect::<Vec<_>>(), "{found:?}, after {least}");
        least = rows;
    }
}
