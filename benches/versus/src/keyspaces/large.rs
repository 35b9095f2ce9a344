//! Three large keyspaces, each with filters of its own.

use super::kind::{StoreKind, wrong};
use super::record::{BatchFigures, CheckFigures, LoadFigures, LookupFigures};
use super::rows::{AskedKey, BATCH, SpaceRow, has_header};
use super::store::{KeyspaceStore, SpaceFilter, SpaceSpec};
use super::task::SpaceTask;
use crate::error::Result;
use crate::kernel;
use crate::keys::KeyPresence;
use std::time::Instant;

/// Their names and filters.
pub const SPACES: [(&str, SpaceFilter); 3] =
    [("hits", SpaceFilter::Off), ("misses", SpaceFilter::Bits(15.0)), ("mixed", SpaceFilter::Bits(10.0))];
/// One get for this many bytes of the cache: two for each block of 4 KiB.
const WARM_BYTES_PER_GET: u64 = 2048;
/// Batches that are generated at once.
const CHUNK: u64 = 1000;
/// Keys that are checked at once.
const CHECKED: u64 = 10_000;

fn specs() -> Vec<SpaceSpec> {
    SPACES.iter().map(|(name, filter)| SpaceSpec { name: (*name).to_owned(), filter: *filter }).collect()
}

fn open(task: &SpaceTask) -> Result<Box<dyn KeyspaceStore>> {
    let settings = &task.settings;
    let each = settings.num + settings.rounds * settings.batches;
    task.open(&specs(), None, each * SPACES.len() as u64)
}

/// Loads all keyspaces, in batches of each in turn.
pub fn load(task: &SpaceTask) -> Result<LoadFigures> {
    let (mut store, rows, num) = (open(task)?, task.rows(SPACES.len()), task.settings.num);
    let mut batch = vec![SpaceRow::default(); BATCH as usize];
    let mut put_ns = 0;
    for first in (0..num).step_by(BATCH as usize) {
        batch.truncate((num - first) as usize);
        for space in 0..SPACES.len() {
            (first..).zip(&mut batch).for_each(|(index, row)| rows.fill(space, index, row));
            let begin = Instant::now();
            store.put_all(&batch)?;
            put_ns += begin.elapsed().as_nanos() as u64;
        }
    }
    let begin = Instant::now();
    store.finish()?;
    let settle_ns = begin.elapsed().as_nanos() as u64;
    if task.settings.compact {
        store.compact()?;
    }
    let filter_bytes = store.filter_bytes()?;
    drop(store);
    kernel::write_back(&kernel::files(&task.dir))?;
    Ok(LoadFigures { put_ns, settle_ns, filter_bytes, disk_bytes: kernel::disk_bytes(&task.dir) })
}

/// Counts answers. A row that is missing or wrong, and a key that must be missing, are errors.
pub fn check(task: &SpaceTask) -> Result<CheckFigures> {
    let (store, rows, num) = (open(task)?, task.rows(SPACES.len()), task.settings.num);
    let mut figures = CheckFigures::default();
    for space in 0..SPACES.len() {
        let other = (space + 1) % SPACES.len();
        for first in (0..num).step_by(CHECKED as usize) {
            let indexes = first..num.min(first + CHECKED);
            let of = |space, presence| -> Vec<AskedKey> {
                indexes.clone().map(|index| rows.asked(space, index, presence)).collect()
            };
            store.get_each(space, &of(space, KeyPresence::Present), &mut |asked, value| {
                let is_right = value.is_some_and(|value| rows.is_value(space, asked.index, value));
                figures.found += u64::from(is_right);
            })?;
            // Keys of another keyspace are missing in this one.
            for missing in [of(space, KeyPresence::Missing), of(other, KeyPresence::Present)] {
                store.get_each(space, &missing, &mut |_, value| {
                    figures.missing += u64::from(value.is_none());
                })?;
            }
        }
    }
    let all = num * SPACES.len() as u64;
    if figures.found != all || figures.missing != 2 * all {
        let CheckFigures { found, missing } = figures;
        let what = format!("found {found} of {all} rows, and {missing} of {} keys missing", 2 * all);
        return Err(wrong(task.store, &what));
    }
    Ok(figures)
}

/// Mean nanoseconds of a get. Each answer is copied, and a wrong one is an error.
fn time(
    kind: StoreKind,
    store: &dyn KeyspaceStore,
    space: usize,
    asked: &[AskedKey],
    found: bool,
) -> Result<f64> {
    let (mut right, mut copied) = (0, Vec::new());
    let begin = Instant::now();
    store.get_each(space, asked, &mut |asked, value| {
        copied.clear();
        copied.extend_from_slice(value.unwrap_or_default());
        right += usize::from(value.is_some() == found && (!found || has_header(space, asked.index, &copied)));
    })?;
    let ns = begin.elapsed().as_nanos() as f64 / asked.len() as f64;
    if right == asked.len() {
        return Ok(ns);
    }
    let (name, _) = SPACES[space];
    Err(wrong(kind, &format!("{right} right answers to {} lookups of {name}", asked.len())))
}

/// Times lookups of present and of missing keys in each keyspace, in memory.
pub fn look_up(task: &SpaceTask, round: u64) -> Result<LookupFigures> {
    let (rows, settings) = (task.rows(SPACES.len()), &task.settings);
    let asked = |space: usize, presence, count: u64, salt: u64| {
        rows.random(space, settings.num, presence, count, round << 32 ^ salt << 16 ^ space as u64)
    };
    let warming = (settings.bench.cache_bytes() / WARM_BYTES_PER_GET / SPACES.len() as u64).min(settings.num);
    let lists: Vec<_> = (0..SPACES.len())
        .map(|space| {
            let of = |presence, salt| asked(space, presence, settings.reads, salt);
            [
                asked(space, KeyPresence::Present, warming, 1),
                of(KeyPresence::Present, 2),
                of(KeyPresence::Missing, 3),
            ]
        })
        .collect();
    kernel::fill_page_cache(&kernel::files(&task.dir))?;
    let (before, _) = kernel::resident_memory();
    let begin = Instant::now();
    let store = open(task)?;
    let open_ns = begin.elapsed().as_nanos() as u64;
    store.warm()?;
    let mut figures = LookupFigures { open_ns, ..LookupFigures::default() };
    for (space, [warming, ..]) in lists.iter().enumerate() {
        time(task.store, store.as_ref(), space, warming, true)?;
    }
    for (space, [_, present, missing]) in lists.iter().enumerate() {
        figures.found_ns[space] = time(task.store, store.as_ref(), space, present, true)?;
        figures.missing_ns[space] = time(task.store, store.as_ref(), space, missing, false)?;
    }
    figures.memory_bytes = kernel::resident_memory().0.saturating_sub(before);
    figures.page_cache_bytes = kernel::cached_bytes(&kernel::files(&task.dir));
    Ok(figures)
}

/// Times batches of a new row for each keyspace, and checks what they wrote.
pub fn write_batches(task: &SpaceTask, round: u64) -> Result<BatchFigures> {
    let (mut store, rows, count) = (open(task)?, task.rows(SPACES.len()), task.settings.batches);
    let first = task.settings.num + round * count;
    let mut batches = vec![vec![SpaceRow::default(); SPACES.len()]; CHUNK as usize];
    let mut put_ns = 0;
    for chunk in (0..count).step_by(CHUNK as usize) {
        batches.truncate((count - chunk) as usize);
        for (index, batch) in (first + chunk..).zip(&mut batches) {
            batch.iter_mut().enumerate().for_each(|(space, row)| rows.fill(space, index, row));
        }
        let begin = Instant::now();
        batches.iter().try_for_each(|batch| store.put_all(batch))?;
        put_ns += begin.elapsed().as_nanos() as u64;
    }
    let begin = Instant::now();
    store.finish()?;
    let settle_ns = begin.elapsed().as_nanos() as u64;
    for space in 0..SPACES.len() {
        let indexes = first..first + count;
        let written: Vec<_> = indexes.map(|index| rows.asked(space, index, KeyPresence::Present)).collect();
        time(task.store, store.as_ref(), space, &written, true)?;
    }
    drop(store);
    kernel::write_back(&kernel::files(&task.dir))?;
    let each = SPACES.len() as f64 * count as f64 * 1e9;
    Ok(BatchFigures {
        rows_per_second: each / put_ns as f64,
        settled_per_second: each / (put_ns + settle_ns) as f64,
    })
}
