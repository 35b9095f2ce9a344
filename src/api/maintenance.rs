//! The methods of [`Db`] and [`Keyspace`] for compaction, filters, copies and verification.

use super::handle::Db;
use super::keyspace::Keyspace;
use crate::bounds::{KeyBounds, is_empty};
use crate::engine::copies::file_set::FileSet;
use crate::engine::filters::RebuildReport;
use crate::engine::follow::Follower;
use crate::engine::verify::{VerifyReport, verify};
use crate::error::Result;
use crate::options::FilterPolicy;
use crate::progress::{Progress, unstoppable, untold};
use std::ops::{Bound, ControlFlow};
use std::path::Path;

impl Keyspace {
    /// [`Db::compact`], but only for segments with keys of this keyspace.
    ///
    /// # Errors
    /// The errors of [`Db::compact`].
    pub fn compact(&self) -> Result<()> {
        self.compact_range(..)
    }

    /// Like [`compact`](Self::compact), but only for segments with keys in this range. An empty range does
    /// nothing.
    ///
    /// # Errors
    /// The errors of [`Db::compact`].
    pub fn compact_range(&self, range: impl KeyBounds) -> Result<()> {
        self.compact_range_with(range, untold)
    }

    /// Like [`compact_range`](Self::compact_range), and calls `progress` as [`Db::compact_with`] does.
    ///
    /// # Errors
    /// The errors of [`Db::compact`].
    pub fn compact_range_with(
        &self,
        range: impl KeyBounds,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<()> {
        let (engine, range) = (self.own()?, range.into_bounds());
        self.check()?;
        if is_empty(&range) {
            return engine.shared.check_writable();
        }
        engine.compact_range(self.space.stored_range(range), &mut progress)
    }

    /// Gives its segments the filters that its [options](crate::KeyspaceOptions) ask for: after they were
    /// changed. If they ask for none, its filters are removed. Segments that it shares with other keyspaces
    /// keep the filters of the store's policy. Otherwise like [`Db::rebuild_filters`].
    ///
    /// # Errors
    /// The errors of [`Db::rebuild_filters`].
    pub fn rebuild_filters(&self) -> Result<RebuildReport> {
        self.rebuild_filters_with(|_| ControlFlow::Continue(()))
    }

    /// Like [`rebuild_filters`](Self::rebuild_filters), but calls `progress` before each segment and stops
    /// once that returns `Break`.
    ///
    /// # Errors
    /// The errors of [`Db::rebuild_filters`].
    pub fn rebuild_filters_with(
        &self,
        mut progress: impl FnMut(&RebuildReport) -> ControlFlow<()>,
    ) -> Result<RebuildReport> {
        self.check()?;
        self.own()?.filters.rebuild_filters_of(self.space, &mut progress)
    }
}

impl Db {
    /// Flushes, then merges everything written before this call into one sorted run without tombstones. The
    /// store stays writable. The merge proceeds in small steps, and no writer waits for it. Finished steps
    /// persist: after a crash, the next call continues where this one stopped. Needs free disk space for a
    /// few segments. Tombstones stay where a quarantined segment has keys.
    ///
    /// # Errors
    /// The errors of [`sync`](Keyspace::sync). [`Error::Corruption`](crate::Error::Corruption) if a segment
    /// is damaged: it goes to quarantine, and the next call skips it.
    pub fn compact(&self) -> Result<()> {
        self.compact_with(untold)
    }

    /// Like [`compact`](Self::compact), but calls `progress` after each step, and stops there without an
    /// error once that returns `Break`. The bytes that are left are an estimate.
    ///
    /// # Errors
    /// The errors of [`compact`](Self::compact).
    pub fn compact_with(&self, mut progress: impl FnMut(&Progress) -> ControlFlow<()>) -> Result<()> {
        self.own()?.compact_range((Bound::Unbounded, Bound::Unbounded), &mut progress)
    }

    /// Waits until the background threads have nothing left to flush or compact.
    ///
    /// # Errors
    /// The error of failed background work; [`Error::Poisoned`](crate::Error::Poisoned) once it is read-only.
    pub fn wait_for_compaction(&self) -> Result<()> {
        self.own()?.compactor.wait_for_compaction()
    }

    /// Gives every segment the filter that `policy` asks for, and uses the policy for new segments from now
    /// on. Keyspaces with a [policy of their own](crate::KeyspaceOptions::filter_policy) keep that. The store
    /// stays usable. Segments are read, not written. Filters that already match are kept, so a new call
    /// continues an interrupted rebuild. Quarantined segments are skipped ([`RebuildReport::quarantined`]).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a policy out of range or without
    /// filters; the errors of [`sync`](Keyspace::sync). [`Error::Io`](crate::Error::Io) or
    /// [`Error::Corruption`](crate::Error::Corruption) if a segment cannot be read: it goes to quarantine,
    /// and the others still get their filters.
    pub fn rebuild_filters(&self, policy: FilterPolicy) -> Result<RebuildReport> {
        self.rebuild_filters_with(policy, |_| ControlFlow::Continue(()))
    }

    /// Like [`rebuild_filters`](Self::rebuild_filters), but calls `progress` before each segment and stops
    /// once that returns `Break`.
    ///
    /// # Errors
    /// The errors of [`rebuild_filters`](Self::rebuild_filters).
    pub fn rebuild_filters_with(
        &self,
        policy: FilterPolicy,
        mut progress: impl FnMut(&RebuildReport) -> ControlFlow<()>,
    ) -> Result<RebuildReport> {
        self.own()?.filters.rebuild_filters(policy, &mut progress)
    }

    /// Reads and verifies all filters and index partitions now. Otherwise a background thread does it.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io); [`Error::Corruption`](crate::Error::Corruption) for a damaged index.
    pub fn warm(&self) -> Result<()> {
        self.own()?.filters.warm()
    }

    /// In a store that [follows](crate::Options::follow) another process: makes everything visible that was
    /// written before this call. In any other store, it already is.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io); [`Error::Corruption`](crate::Error::Corruption) for a damaged
    /// manifest or log. What was visible stays visible.
    pub fn catch_up(&self) -> Result<()> {
        self.own()?.follower.as_ref().map_or(Ok(()), Follower::catch_up)
    }

    /// Creates a copy of the store in a new directory. Both stores share the segment files through hard
    /// links. On another file system, the files are copied and synced instead. The store stays writable.
    ///
    /// Also works in a store that [follows](crate::Options::follow) another process, or is open read-only:
    /// what is only in the logs is then copied into a log of the copy.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`](crate::Error::AlreadyExists) if the target exists.
    /// [`Error::Io`](crate::Error::Io), after which the target is removed. The errors of
    /// [`flush`](Keyspace::flush); [`Error::Corruption`](crate::Error::Corruption) for a damaged log.
    pub fn checkpoint(&self, target: impl AsRef<Path>) -> Result<()> {
        self.checkpoint_with(target, |_| ())
    }

    /// Like [`checkpoint`](Self::checkpoint), but calls `progress` after each segment.
    ///
    /// # Errors
    /// The errors of [`checkpoint`](Self::checkpoint).
    pub fn checkpoint_with(&self, target: impl AsRef<Path>, progress: impl FnMut(&Progress)) -> Result<()> {
        self.own()?.checkpoint(target.as_ref(), &mut unstoppable(progress))
    }

    /// Flushes everything written so far and returns the files that hold it, to copy elsewhere while the
    /// store stays in use.
    ///
    /// # Errors
    /// [`Error::ReadOnly`](crate::Error::ReadOnly), also in a store that follows another process; the errors
    /// of [`flush`](Keyspace::flush).
    pub fn file_set(&self) -> Result<FileSet> {
        self.own()?.file_set()
    }

    /// The files of everything written so far, for a copy: as [`file_set`](Self::file_set), but with a log if
    /// another process may write the store.
    pub(crate) fn files_to_copy(&self) -> Result<FileSet> {
        self.own()?.files_to_copy()
    }

    /// Makes the store read-only until it is opened again, as after a failed write: writes fail with
    /// [`Error::Poisoned`](crate::Error::Poisoned), which names the cause. For a writer that learns that
    /// another one has replaced it.
    pub fn stop_writing(&self, cause: impl Into<String>) {
        self.engine().shared.stop_writing(cause.into());
    }

    /// Reads the whole store: verifies every checksum, probes every key's filter, and compares the manifest
    /// with the files.
    ///
    /// # Errors
    /// Only if the check itself fails. Its findings are in the report.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.verify_with(untold)
    }

    /// Like [`verify`](Self::verify), but calls `progress` after each segment, and stops there once that
    /// returns `Break`: [`VerifyReport::stopped`].
    ///
    /// # Errors
    /// The errors of [`verify`](Self::verify).
    pub fn verify_with(
        &self,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<VerifyReport> {
        verify(&self.own()?.shared, &mut progress)
    }
}
