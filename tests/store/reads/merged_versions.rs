//! Walks over versions that hide one another equal a plain map of all versions: over several runs and
//! memtables, with tombstones of keys and of ranges, at several moments, in both directions, with seeks,
//! skips and counts in between.

use crate::support::{fast_dir, sized};
use fastrand::Rng;
use sidebloom::{Batch, Compression, Cursor, Db, Options, Range, Snapshot};
use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};

const KEYS: u32 = 900;
const MOMENTS: usize = 7;

type Row = (Vec<u8>, Vec<u8>);

/// The moment of a write, and its value. `None` is a deletion.
type Version = (usize, Option<Vec<u8>>);

/// Every version of every key, oldest first.
#[derive(Default)]
struct Versions(BTreeMap<Vec<u8>, Vec<Version>>);

impl Versions {
    fn write(&mut self, moment: usize, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.0.entry(key).or_default().push((moment, value));
    }

    fn delete_range(&mut self, moment: usize, from: &[u8], to: &[u8]) {
        let within = self.0.range_mut::<[u8], _>((Bound::Included(from), Bound::Excluded(to)));
        within.for_each(|(_, versions)| versions.push((moment, None)));
    }

    /// The newest version of each key at a moment, unless that is a deletion.
    fn rows(&self, moment: usize) -> Vec<Row> {
        let newest = |versions: &[Version]| {
            versions.iter().rev().find(|(written, _)| *written <= moment).and_then(|(_, value)| value.clone())
        };
        self.0.iter().filter_map(|(key, versions)| Some((key.clone(), newest(versions)?))).collect()
    }
}

/// Keys whose order the first 16 bytes decide, or the first 32, or only later ones; also of several lengths,
/// with zeros, which pad a front.
fn key(form: usize, n: u32) -> Vec<u8> {
    match form {
        0 => format!("k{n:07}").into_bytes(),
        1 => format!("a shared prefix {:07}", n / 2 * 10 + n % 2).into_bytes(),
        2 => format!("{:030}{n:010}", n / 300).into_bytes(),
        _ => [vec![b'x'; 13 + n as usize / 300], (n / 3).to_be_bytes().to_vec(), vec![0; n as usize % 3]]
            .concat(),
    }
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let words = [0, 3, 90][[0, 1, 2, 2, 2, 2][rng.usize(0..6)]];
    (0..words).flat_map(|at| if at % 2 == 0 { rng.u32(..) } else { 0 }.to_be_bytes()).collect()
}

/// One batch of each moment, most of them flushed, and a snapshot after each.
fn write(db: &Db, form: usize, has_ranges: bool, rng: &mut Rng) -> (Versions, Vec<Snapshot>) {
    let (mut versions, mut snapshots) = (Versions::default(), Vec::new());
    for moment in 0..MOMENTS {
        let mut batch = Batch::new();
        let share = if moment == 0 { 1 } else { 1 + rng.u32(0..4) };
        // Stretches without tombstones may be passed without looking at each row.
        let deleted = rng.u32(0..KEYS)..rng.u32(0..KEYS);
        for n in (0..KEYS).filter(|_| rng.u32(0..share) == 0).collect::<Vec<_>>() {
            let is_deleted = moment > 0 && deleted.contains(&n) && rng.bool();
            let value = (!is_deleted).then(|| value(rng));
            match &value {
                Some(value) => batch.put(key(form, n), value),
                None => batch.delete(key(form, n)),
            }
            versions.write(moment, key(form, n), value);
        }
        if has_ranges && moment > 0 {
            let from = rng.u32(0..KEYS);
            let (from, to) = (key(form, from), key(form, from + rng.u32(0..90)));
            if from < to {
                versions.delete_range(moment, &from, &to);
                batch.delete_range(from..to);
            }
        }
        db.write(batch).unwrap();
        snapshots.push(db.snapshot());
        match (moment, rng.u32(0..4)) {
            (0, 0 | 1) => db.compact().unwrap(),
            (_, 0) | (6, _) => {}
            _ => db.flush().unwrap(),
        }
    }
    (versions, snapshots)
}

fn borrowed(row: Option<&Row>) -> Option<(&[u8], &[u8])> {
    row.map(|(key, value)| (key.as_slice(), value.as_slice()))
}

/// Walks from both ends, in every way of moving.
fn check_range(mut range: Range, mut rows: &[Row], rng: &mut Rng) {
    let skips = [1, 3, 40, 200][rng.usize(0..4)];
    for _ in 0..rng.usize(1..120) {
        let (skipped, is_back) = (rng.usize(0..skips), rng.u32(0..8) == 0);
        let at = if is_back { rows.len().checked_sub(skipped + 1) } else { Some(skipped) };
        let expected = borrowed(at.and_then(|at| rows.get(at)));
        match (is_back, skipped) {
            (false, 0) => assert_eq!(range.next_row().unwrap(), expected),
            (true, 0) => assert_eq!(range.next_row_back().unwrap(), expected),
            _ => {
                let found = if is_back { range.nth_back(skipped) } else { range.nth(skipped) };
                let found = found.map(Result::unwrap);
                assert_eq!(found.as_ref().map(|(key, value)| (key.as_slice(), &**value)), expected);
            }
        }
        rows = match expected {
            None => &[],
            Some(_) if is_back => &rows[..rows.len() - skipped - 1],
            Some(_) => &rows[skipped + 1..],
        };
    }
    assert_eq!(range.count().unwrap(), rows.len() as u64);
}

/// Moves a cursor by seeks and steps.
fn check_cursor(mut cursor: Cursor, rows: &[Row], form: usize, rng: &mut Rng) {
    let mut at = None;
    for _ in 0..60 {
        let sought = key(form, rng.u32(0..KEYS));
        let before = rows.partition_point(|(key, _)| *key < sought);
        let (found, to) = match (rng.u32(0..8), at) {
            (0, _) => (cursor.seek(&sought), Some(before)),
            (1, _) => {
                let is_there = rows.get(before).is_some_and(|(key, _)| *key == sought);
                (cursor.seek_for_prev(&sought), if is_there { Some(before) } else { before.checked_sub(1) })
            }
            (2 | 3, Some(at)) => (cursor.prev(), usize::checked_sub(at, 1)),
            (_, Some(at)) => (cursor.next(), Some(at + 1)),
            (_, None) => continue,
        };
        at = to.filter(|to| *to < rows.len());
        assert_eq!(found.unwrap(), at.is_some());
        assert_eq!(cursor.key().zip(cursor.value()), borrowed(at.and_then(|at| rows.get(at))));
    }
}

#[test]
fn walks_over_hidden_versions_equal_a_map_of_versions() {
    for seed in 0..sized(16u64, 120) {
        let (dir, mut rng) = (fast_dir(), Rng::with_seed(seed));
        let (form, has_ranges) = (seed as usize % 4, seed / 4 % 2 == 1);
        let codecs = [Compression::Fsst, Compression::None, Compression::Lz4, Compression::Fsst];
        let options = Options::new()
            .block_bytes([512, 1024, 4096][rng.usize(0..3)])
            .segment_bytes([20 << 10, 4 << 20][rng.usize(0..2)])
            .block_cache_bytes([0, 64 << 10, 8 << 20][rng.usize(0..3)])
            .compression(codecs[(seed / 2) as usize % 4]);
        let db = options.open(dir.path()).unwrap();
        let (versions, snapshots) = write(&db, form, has_ranges, &mut rng);
        for _ in 0..40 {
            let moment = rng.usize(0..MOMENTS);
            let (rows, snapshot) = (versions.rows(moment), &snapshots[moment]);
            let bound = |rng: &mut Rng| match rng.u32(0..4) {
                0 => Bound::Included(key(form, rng.u32(0..KEYS))),
                1 => Bound::Excluded(key(form, rng.u32(0..KEYS))),
                _ => Bound::Unbounded,
            };
            let bounds = (bound(&mut rng), bound(&mut rng));
            let within = rows.iter().filter(|(key, _)| RangeBounds::contains(&bounds, key));
            let within: Vec<Row> = within.cloned().collect();
            check_range(snapshot.range(bounds), &within, &mut rng);
            check_cursor(snapshot.cursor(), &rows, form, &mut rng);
        }
    }
}
