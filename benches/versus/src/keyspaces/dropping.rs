//! Dropping a keyspace next to another one.

use super::kind::wrong;
use super::record::{CheckFigures, DropFigures, LoadFigures};
use super::rows::{BATCH, KEY_BYTES, RowGenerator, SpaceRow, VALUE_BYTES};
use super::store::{KeyspaceStore, SpaceSpec};
use super::task::SpaceTask;
use crate::error::Result;
use crate::kernel::{self, ResourceCounters};
use crate::keys::KeyPresence;
use std::time::{Duration, Instant};

/// The keyspace that stays, and its number.
const KEPT: usize = 0;
/// The keyspace that is dropped, the last one.
const DROPPED: usize = 1;
/// Batches of the dropped keyspace for each of the other.
const DROPPED_PER_KEPT: u64 = 10;
/// How long disk space has to stay the same.
const QUIET: Duration = Duration::from_secs(2);
/// How long to wait for that at most.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Every how many rows of the kept keyspace one is looked up after the drop.
const CHECK_EVERY: usize = 3;

fn dropped_rows(task: &SpaceTask) -> u64 {
    task.settings.drop_bytes / (KEY_BYTES + VALUE_BYTES) as u64
}

fn kept_rows(task: &SpaceTask) -> u64 {
    dropped_rows(task) / DROPPED_PER_KEPT
}

fn open(task: &SpaceTask, names: &[&str]) -> Result<Box<dyn KeyspaceStore>> {
    let specs: Vec<_> = names.iter().map(|name| SpaceSpec::plain(*name)).collect();
    task.open(&specs, None, dropped_rows(task) + kept_rows(task))
}

/// Loads both keyspaces, in turn.
pub fn load(task: &SpaceTask) -> Result<LoadFigures> {
    let (mut store, rows) = (open(task, &["kept", "dropped"])?, task.rows(2));
    let (kept, dropped) = (kept_rows(task), dropped_rows(task));
    let begin = Instant::now();
    let mut put = |space: usize, first: u64, end: u64| -> Result<()> {
        let mut batch = vec![SpaceRow::default(); (end - first) as usize];
        (first..).zip(&mut batch).for_each(|(index, row)| rows.fill(space, index, row));
        store.put_all(&batch)
    };
    for first in (0..dropped).step_by(BATCH as usize) {
        put(DROPPED, first, dropped.min(first + BATCH))?;
        let of_kept = |row: u64| kept.min(row / DROPPED_PER_KEPT);
        if of_kept(first) < of_kept(first + BATCH) {
            put(KEPT, of_kept(first), of_kept(first + BATCH))?;
        }
    }
    let put_ns = begin.elapsed().as_nanos() as u64;
    let begin = Instant::now();
    store.finish()?;
    let settle_ns = begin.elapsed().as_nanos() as u64;
    let filter_bytes = store.filter_bytes()?;
    drop(store);
    kernel::write_back(&kernel::files(&task.dir))?;
    Ok(LoadFigures { put_ns, settle_ns, filter_bytes, disk_bytes: kernel::disk_bytes(&task.dir) })
}

/// Drops the large keyspace with the store out of the page cache, waits until the disk space stays the same,
/// and checks what is left. A new keyspace with the old name must be empty.
pub fn drop_one(task: &SpaceTask) -> Result<DropFigures> {
    kernel::drop_page_cache(&kernel::files(&task.dir))?;
    let mut store = open(task, &["kept", "dropped"])?;
    store.warm()?;
    let disk_bytes_before = kernel::disk_bytes(&task.dir);
    let (before, begin) = (ResourceCounters::now(&task.dir), Instant::now());
    store.drop_last()?;
    let drop_ns = begin.elapsed().as_nanos() as u64;
    let during = ResourceCounters::now(&task.dir).since(before);
    let (disk_bytes_after, quiet_after) = wait_for_disk(task, disk_bytes_before);
    let whole = ResourceCounters::now(&task.dir).since(before);
    let rows = task.rows(2);
    check_kept(task, store.as_ref(), &rows)?;
    store.create(&SpaceSpec::plain("dropped"))?;
    check_gone(task, store.as_ref(), &rows)?;
    store.finish()?;
    Ok(DropFigures {
        drop_ns,
        read_bytes: during.read_bytes,
        read_call_bytes: during.read_call_bytes,
        write_bytes: during.write_bytes,
        disk_bytes_before,
        disk_bytes_after,
        freed_seconds: quiet_after.as_secs_f64(),
        read_bytes_until_freed: whole.read_bytes,
        write_bytes_until_freed: whole.write_bytes,
    })
}

/// Opens the store again, and checks what is left.
pub fn check(task: &SpaceTask) -> Result<CheckFigures> {
    let (store, rows) = (open(task, &["kept", "dropped"])?, task.rows(2));
    let found = check_kept(task, store.as_ref(), &rows)?;
    Ok(CheckFigures { found, missing: check_gone(task, store.as_ref(), &rows)? })
}

/// Waits until the disk space stays the same. Returns it, and when it changed last.
fn wait_for_disk(task: &SpaceTask, before: u64) -> (u64, Duration) {
    let (begin, mut bytes, mut changed) = (Instant::now(), before, Duration::ZERO);
    while begin.elapsed() < WAIT_MAX && begin.elapsed() - changed < QUIET {
        let now = kernel::disk_bytes(&task.dir);
        if now != bytes {
            (bytes, changed) = (now, begin.elapsed());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    (bytes, changed)
}

fn check_kept(task: &SpaceTask, store: &dyn KeyspaceStore, rows: &RowGenerator) -> Result<u64> {
    let indexes = (0..kept_rows(task)).step_by(CHECK_EVERY);
    let asked: Vec<_> = indexes.map(|index| rows.asked(KEPT, index, KeyPresence::Present)).collect();
    let mut found = 0;
    store.get_each(KEPT, &asked, &mut |asked, value| {
        found += u64::from(value.is_some_and(|value| rows.is_value(KEPT, asked.index, value)));
    })?;
    if found as usize == asked.len() {
        return Ok(found);
    }
    Err(wrong(task.store, &format!("{found} of {} rows left of the kept keyspace", asked.len())))
}

fn check_gone(task: &SpaceTask, store: &dyn KeyspaceStore, rows: &RowGenerator) -> Result<u64> {
    let indexes = (0..dropped_rows(task)).step_by(CHECK_EVERY);
    let asked: Vec<_> = indexes.map(|index| rows.asked(DROPPED, index, KeyPresence::Present)).collect();
    let mut missing = 0;
    store.get_each(DROPPED, &asked, &mut |_, value| missing += u64::from(value.is_none()))?;
    if missing as usize == asked.len() {
        return Ok(missing);
    }
    let back = asked.len() as u64 - missing;
    Err(wrong(task.store, &format!("a new keyspace has {back} rows of the dropped one")))
}
