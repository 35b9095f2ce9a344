//! Many small keyspaces.

use super::kind::wrong;
use super::record::{CreateFigures, OpenFigures, SmallFigures};
use super::rows::{BATCH, SpaceRow};
use super::store::{KeyspaceStore, SpaceSpec};
use super::task::SpaceTask;
use crate::error::Result;
use crate::kernel;
use crate::keys::KeyPresence;
use std::time::Instant;

/// Rows of each.
pub const ROWS: u64 = 100;

fn specs(task: &SpaceTask) -> Vec<SpaceSpec> {
    (0..task.settings.small).map(|number| SpaceSpec::plain(format!("tenant-{number:05}"))).collect()
}

fn open_with(task: &SpaceTask, specs: &[SpaceSpec]) -> Result<Box<dyn KeyspaceStore>> {
    task.open(specs, Some(task.settings.small), task.settings.small * ROWS)
}

/// Creates all keyspaces one by one, and writes their rows in turn.
pub fn fill(task: &SpaceTask) -> Result<SmallFigures> {
    let (mut store, specs) = (open_with(task, &[])?, specs(task));
    let begin = Instant::now();
    specs.iter().try_for_each(|spec| store.create(spec))?;
    let create_ns = begin.elapsed().as_nanos() as u64;
    let rows = task.rows(specs.len());
    let mut batch = vec![SpaceRow::default(); BATCH as usize];
    let mut put_ns = 0;
    for index in 0..ROWS {
        for first in (0..specs.len()).step_by(BATCH as usize) {
            let spaces = first..specs.len().min(first + BATCH as usize);
            batch.resize(spaces.len(), SpaceRow::default());
            spaces.zip(&mut batch).for_each(|(space, row)| rows.fill(space, index, row));
            let begin = Instant::now();
            store.put_all(&batch)?;
            put_ns += begin.elapsed().as_nanos() as u64;
        }
    }
    let begin = Instant::now();
    store.finish()?;
    let settle_ns = begin.elapsed().as_nanos() as u64;
    let (memory_bytes, _) = kernel::resident_memory();
    let begin = Instant::now();
    drop(store);
    let close_ns = begin.elapsed().as_nanos() as u64;
    let files = kernel::files(&task.dir);
    kernel::write_back(&files)?;
    Ok(SmallFigures {
        create_ns,
        put_ns,
        settle_ns,
        close_ns,
        memory_bytes,
        files: files.len() as u64,
        disk_bytes: kernel::disk_bytes(&task.dir),
    })
}

/// Creates all keyspaces with one call, if the store has one.
pub fn create_together(task: &SpaceTask) -> Result<CreateFigures> {
    drop(open_with(task, &[])?);
    let specs = specs(task);
    let begin = Instant::now();
    let _store = open_with(task, &specs)?;
    Ok(CreateFigures { create_ns: begin.elapsed().as_nanos() as u64 })
}

/// Opens the store with all keyspaces, and checks every row of every one.
pub fn open(task: &SpaceTask) -> Result<OpenFigures> {
    let specs = specs(task);
    kernel::fill_page_cache(&kernel::files(&task.dir))?;
    let (own_before, mapped_before) = kernel::resident_memory();
    let begin = Instant::now();
    let store = open_with(task, &specs)?;
    let open_ns = begin.elapsed().as_nanos() as u64;
    store.warm()?;
    let (own, mapped) = kernel::resident_memory();
    let rows = task.rows(specs.len());
    let (mut found, mut missing) = (0, 0);
    for space in 0..specs.len() {
        let of = |presence| -> Vec<_> { (0..ROWS).map(|index| rows.asked(space, index, presence)).collect() };
        store.get_each(space, &of(KeyPresence::Present), &mut |asked, value| {
            let is_right = value.is_some_and(|value| rows.is_value(space, asked.index, value));
            found += u64::from(is_right);
        })?;
        store.get_each(space, &of(KeyPresence::Missing), &mut |_, value| {
            missing += u64::from(value.is_none());
        })?;
    }
    let all = task.settings.small * ROWS;
    if (found, missing) != (all, all) {
        let what = format!("small keyspaces: found {found} of {all} rows, {missing} of {all} missing keys");
        return Err(wrong(task.store, &what));
    }
    Ok(OpenFigures {
        open_ns,
        memory_bytes: own.saturating_sub(own_before),
        mapped_bytes: mapped.saturating_sub(mapped_before),
    })
}
