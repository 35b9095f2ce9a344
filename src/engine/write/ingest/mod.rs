//! Bulk loading: sorted rows bypass the log and the memtable and become segments directly.
//!
//! 1. The segments are built without any lock: the rows come from the caller's code, which may use the store.
//!    They have no sequence number yet (`unnumbered.rs`).
//! 2. The publication holds the log, so other writers wait. It flushes what is in memory. Then all rows get
//!    the next sequence number, so they are newer than everything else in the store, including rows written
//!    or ingested during the load. So compactions need not know about them.
//! 3. The log skips that number, and a new log begins after it. So a manifest that has lost the rows
//!    contradicts that log, as it would after a flush, and the loss is noticed (I4). If the publication
//!    fails, the log stays and the next attempt uses both again.
//! 4. Each segment goes to the deepest level that the order of ages allows (`destination.rs`). One manifest
//!    edit adds them all.
//! 5. A new memtable accepts the writes after that. So a reader that loads the view before the publication,
//!    and the visible number after it, sees no later write without the rows.

pub(crate) mod destination;
pub(crate) mod unnumbered;
pub(crate) mod unsorted;

use self::destination::Placed;
use self::unnumbered::UnnumberedSegments;
use crate::engine::backoff::TaskKind;
use crate::engine::filters::plans::Coming;
use crate::engine::publish::{FlushedMemtable, LiveSetChange};
use crate::engine::storage::buckets::bucket_of;
use crate::engine::storage::segment_builder::SegmentBuilder;
use crate::engine::write::Writer;
use crate::engine::write::log::{ActiveLog, Log};
use crate::error::{Error, Result};
use crate::key::{EntryKind, KeyspaceId, Seq, Space, check_seq, without_head};
use crate::live::LiveSegment;
use crate::progress::Tracker;
use crate::sync::lock;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The level that segments are built for. They move once their number and the other segments are known.
const LEVEL: u8 = 1;
/// The sequence number of rows that have none yet.
const UNNUMBERED: Seq = 0;

impl Writer {
    /// All rows become visible at once. `rows` is the caller's code and may use the store, so it runs without
    /// a lock.
    /// They are rows of `keyspace`, or of the default one.
    pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        keyspace: Option<&KeyspaceId>,
        rows: &mut dyn Iterator<Item = Result<(K, V)>>,
        progress: &mut Tracker<'_>,
    ) -> Result<()> {
        self.check_keyspace(keyspace)?;
        let mut rows = rows.peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        self.wait_for_level0()?;
        self.start_writing()?;
        let expiry = keyspace.and_then(KeyspaceId::expiry);
        let kind = expiry.map_or(Ok(EntryKind::PUT), |expiry| self.shared.storage.clock.kind_of(expiry))?;
        let built = self.build_sorted(&mut rows, kind, progress)?;
        self.publish_ingested(keyspace, built)
    }

    /// Fails if the store takes no writes, or the keyspace was dropped.
    fn check_keyspace(&self, keyspace: Option<&KeyspaceId>) -> Result<()> {
        self.shared.check_writable()?;
        keyspace.map_or(Ok(()), |id| self.shared.storage.keyspaces.check(id))
    }

    /// Numbers the rows and makes the segments visible.
    fn publish_ingested(&self, keyspace: Option<&KeyspaceId>, built: UnnumberedSegments<'_>) -> Result<()> {
        self.flush()?; // Most of what is in memory, while other writers continue.
        let mut log = lock(&self.log);
        let log = self.sound_log(&mut log)?;
        // As long as the log is held, it is not dropped.
        self.check_keyspace(keyspace)?;
        if !log.memtable.is_empty() {
            self.rotate(log)?;
        }
        self.shared.wait_for_work(|control| (control.flushes.memtables() > 0).then_some(TaskKind::Flush))?;
        let is_free = self.begins_behind_a_free_number(log)?;
        let seq = if is_free { log.next_seq - 1 } else { log.next_seq };
        check_seq(seq)?;
        let built = built.number(seq).inspect_err(|e| self.shared.count_shortage(e))?;
        if !is_free {
            self.skip_to(log, seq)?;
        }
        if built.segments.iter().any(|segment| Space::head_bytes(&segment.meta.largest) > 0) {
            self.shared.storage.keyspaces.note_head();
        }
        let bytes = |of: fn(&LiveSegment) -> u64| built.segments.iter().map(of).sum();
        self.shared.storage.metrics.flush_bytes.fetch_add(bytes(|segment| segment.meta.file_bytes), Relaxed);
        self.shared.storage.metrics.user_bytes.fetch_add(bytes(|segment| segment.meta.raw_bytes), Relaxed);
        let next = Arc::new(log.memtable.after_others(self.shared.storage.options.memtable_bytes)?);
        let before = FlushedMemtable {
            table: Arc::clone(&log.memtable), // It is empty.
            last_seq: Some(log.next_seq - 1),
            next_log: log.id,
            next: Some(Arc::clone(&next)),
        };
        let mut placed = None;
        let published = self.publisher.publish_if(|live| {
            let (added, owned) = Placed::place(&self.shared, live, &built.take());
            placed = Some(owned);
            Some(LiveSetChange { added, flushed: Some(before), ..LiveSetChange::default() })
        });
        drop(placed);
        published?;
        log.memtable = next;
        log.recent.clear();
        self.shared.begin_epoch();
        Ok(())
    }

    /// Makes the log skip number `seq`, and starts a new log after it.
    fn skip_to(&self, log: &mut ActiveLog, seq: Seq) -> Result<()> {
        log.writer.append_gap(seq + 1).map_err(|e| self.fail_log(log, e))?;
        log.memtable.skip(seq);
        log.next_seq = seq + 1;
        self.shared.show(seq);
        self.start_log(log)
    }

    /// Makes a new store durable. A crash must not leave other files without a manifest.
    pub fn start_writing(&self) -> Result<()> {
        self.sound_log(&mut lock(&self.log)).map(|_| ())
    }

    /// The locked log, if the store takes writes. It may have failed while this thread waited for the lock.
    fn sound_log<'a>(&self, log: &'a mut Log) -> Result<&'a mut ActiveLog> {
        self.shared.check_writable()?;
        let log = self.active_log(log)?;
        self.in_flight.wait_for_all(&self.shared)?;
        self.resume(log)?;
        Ok(log)
    }

    /// Whether nothing is in memory and the log begins after a number that the manifest does not know: that
    /// of rows whose publication failed.
    fn begins_behind_a_free_number(&self, log: &ActiveLog) -> Result<bool> {
        let is_flushed = log.writer.is_empty() && self.shared.view().immutable.is_empty();
        Ok(is_flushed && self.publisher.with_state(|state| state.last_seq + 1 < log.next_seq)?)
    }

    fn build_sorted<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: &mut dyn Iterator<Item = Result<(K, V)>>,
        kind: EntryKind,
        progress: &mut Tracker<'_>,
    ) -> Result<UnnumberedSegments<'_>> {
        let mut built = UnnumberedSegments::new(&self.filters);
        let mut rows = rows.peekable();
        let mut plans = None;
        while let Some(row) = rows.peek() {
            let first = row.as_ref().ok().and_then(|(key, _)| Space::of(key.as_ref()));
            let plans = plans.get_or_insert_with(|| {
                // The number does not matter: all keys are on one level. A keyspace with a policy of its own
                // counts what each segment has.
                let coming = [Coming { level: LEVEL, owner: None, entries: 1 << 20 }];
                Arc::new(self.filters.plans(&self.shared.live(), std::iter::empty(), &coming))
            });
            let mut builder = SegmentBuilder::unnumbered(&self.shared.storage, LEVEL, first, plans)?;
            if let Some(end) = first.and_then(|space| bucket_of(&self.shared.storage, space, kind)) {
                builder.set_bucket(end); // If it stays in level 0.
            }
            let mut counted = rows.by_ref().inspect(|row| {
                let bytes = |(key, value): &(K, V)| key.as_ref().len() + value.as_ref().len();
                progress.add(row.as_ref().map_or(0, bytes) as u64);
            });
            self.fill(&mut builder, &mut counted, kind, built.last_key())?;
            built.push(builder)?;
        }
        Ok(built)
    }

    /// Appends rows until the segment is full. The segment's writer checks their order; this checks its first
    /// key against `before`.
    fn fill<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        builder: &mut SegmentBuilder<'_>,
        rows: &mut dyn Iterator<Item = Result<(K, V)>>,
        kind: EntryKind,
        mut before: Option<&[u8]>,
    ) -> Result<()> {
        while builder.file_bytes() < self.shared.storage.options.segment_bytes {
            let Some(row) = rows.next() else { break };
            let (key, value) = row?;
            let key = key.as_ref();
            if let Some(last) = before.take().filter(|last| *last >= key) {
                return Err(Error::key_out_of_order(without_head(key), without_head(last)));
            }
            builder.append(key, UNNUMBERED, kind, value.as_ref())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::key::AsOf;
    use crate::options::Options;
    use crate::support::fast_dir;

    /// A reader may load the visible number long after the view.
    #[test]
    fn a_view_from_before_an_ingest_shows_no_later_write() {
        let dir = fast_dir();
        let db = Options::new().open(dir.path()).unwrap();
        db.put("a", "1").unwrap();
        db.flush().unwrap();
        let view = db.engine().shared.current_view();
        db.ingest([Ok(("b", "2"))]).unwrap();
        db.put("c", "3").unwrap();
        let seq = db.engine().shared.visible();
        let found =
            ["a", "b", "c"].map(|key| db.reader().get_in(&view, AsOf::seq(seq), key.as_bytes()).unwrap());
        assert_eq!(found.map(|value| value.is_some()), [true, false, false]);
        assert_eq!(db.iter().count().unwrap(), 3);
    }
}
