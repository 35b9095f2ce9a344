//! Flush: the oldest full memtable becomes a level-0 segment and its log goes.

use super::build::SegmentBuilder;
use super::core::{Core, lock};
use super::failure::Job;
use super::metrics::add;
use super::policy::Shape;
use super::publish::Change;
use crate::error::{Error, Result};
use crate::id::FileId;
use crate::manifest::LiveSegment;
use crate::memtable::Memtable;
use std::sync::Arc;

impl Core {
    /// Flushes one memtable; the caller has set `flushing`. `next_log` is the first log needed afterwards.
    pub fn flush_one(&self, table: &Arc<Memtable>, next_log: FileId) -> Result<()> {
        self.check_writable()?;
        let added: Vec<LiveSegment> =
            self.build_level0(table).map_err(|e| self.fail(e))?.into_iter().collect();
        // A log that failed goes with its memtable, be that empty.
        let last_seq = (!table.is_empty()).then(|| table.last_seq());
        let flushed = Some((Arc::clone(table), last_seq, next_log));
        self.publish(Change { added, removed: Vec::new(), flushed })
    }

    /// Writes a memtable as a segment of level 0; `None` when it is empty.
    pub fn build_level0(&self, table: &Memtable) -> Result<Option<LiveSegment>> {
        if table.is_empty() {
            return Ok(None);
        }
        let mut shape = Shape::of(&self.live(), []);
        shape.add(0, table.len() as u64);
        let plan = lock(&self.filter_policy).plan(&shape);
        let mut builder = SegmentBuilder::new(self, 0, plan.as_ref())?;
        table.for_each_newest(|key, seq, kind, value| builder.append(key, seq, kind, value))?;
        let built = builder.finish()?;
        add(&self.metrics.flush_bytes, built.meta.file_bytes);
        Ok(Some(built))
    }

    /// Flushes everything written so far and waits for it.
    pub fn flush(&self) -> Result<()> {
        self.check_writable()?;
        let last = {
            let mut log = lock(&self.log);
            let log = log.as_mut().ok_or(Error::ReadOnly)?;
            self.resume(log)?;
            if !log.active.is_empty() {
                self.rotate(log)?;
            }
            log.id
        };
        self.wait_for_jobs(|control| {
            let mut unflushed = control.to_flush.iter().map(|(_, next)| *next).chain(control.flushing);
            unflushed.any(|next| next <= last).then_some(Job::Flush)
        })
    }
}
