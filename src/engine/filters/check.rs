//! Keeps a trustworthy filter for each segment: verifies filters, and rebuilds missing or damaged ones (I2).

use super::FilterKeeper;
use crate::direction::Direction;
use crate::engine::tasks::queue::Queue;
use crate::error::Result;
use crate::event::Event;
use crate::filter::FilterSpec;
use crate::id::FileKind;
use crate::key::HEADS_START;
use crate::live::{LiveSegment, LiveSet};
use crate::manifest::SegmentMeta;
use crate::segment::Access;
use crate::sidecar::{LiveSidecar, Members, Sidecar, Unusable};
use crate::sync::{Instant, assert_unlocked};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

impl FilterKeeper {
    /// Queues every unverified sidecar, and every segment without a sidecar.
    pub fn queue_unverified(&self) {
        if self.shared.storage.filters_on() {
            let is_unverified = |s: &LiveSegment| match &s.sidecar {
                Some(sidecar) => !sidecar.is_verified(),
                None => self.wants_filter(&s.meta),
            };
            self.queue(is_unverified);
        }
    }

    /// Reports segments without a sidecar that only the catalog of keyspaces tells to have one. Recovery has
    /// reported the others.
    pub fn report_missing(&self) {
        let live = self.shared.live();
        let is_missing = |s: &&LiveSegment| s.sidecar.is_none() && *s.meta.largest >= *HEADS_START;
        for segment in live.segments().filter(is_missing).filter(|s| self.wants_filter(&s.meta)) {
            self.shared.storage.report_unusable(segment.meta.id, &Unusable::Missing);
        }
    }

    /// Queues the sidecars that readers found damaged, or whose maps faulted.
    pub fn queue_bad(&self) {
        self.queue(|s| s.sidecar.as_ref().is_some_and(|sidecar| sidecar.is_bad()));
    }

    /// Queues the segments without a sidecar.
    pub fn queue_missing_sidecars(&self) {
        self.queue(|s| s.sidecar.is_none() && !s.is_quarantined() && self.wants_filter(&s.meta));
    }

    /// Queues some segments for a check of their sidecars.
    fn queue(&self, wanted: impl Fn(&LiveSegment) -> bool) {
        assert_unlocked();
        let live = self.shared.live();
        let wanted: Queue<_> = live.segments().filter(|s| wanted(s)).map(|s| Arc::clone(&s.meta)).collect();
        self.shared.control.lock().sidecars.to_check.append(wanted);
        self.shared.wake_workers();
    }

    /// Queues a segment if it has no sidecar.
    pub fn queue_if_without_sidecar(&self, meta: &Arc<SegmentMeta>) {
        let is_without = self.shared.live().now(meta).is_some_and(|s| s.sidecar.is_none());
        if self.wants_filter(meta) && is_without {
            self.shared.control.lock().sidecars.to_check.push(Arc::clone(meta));
            self.shared.wake_workers();
        }
    }

    /// Verifies one sidecar, and rebuilds it if it is missing or damaged.
    pub fn check_sidecar(&self, meta: &SegmentMeta) -> Result<()> {
        let live = self.shared.live();
        let Some(segment) = live.now(meta) else { return Ok(()) };
        match &segment.sidecar {
            Some(sidecar) => match sidecar.verify() {
                Ok(_) => return Ok(()),
                Err(reason) => {
                    self.drop_damaged(&segment.meta, sidecar, &reason);
                    if reason.is_passing() {
                        self.recheck_missing_later();
                        return Ok(());
                    }
                }
            },
            None => match self.shared.storage.open_verified(&segment.meta) {
                Ok(sidecar) => {
                    self.install(&segment.meta, Some(sidecar));
                    return Ok(());
                }
                // A shortage of memory does not mean that the file is damaged, so it is not rewritten.
                Err(reason) if reason.is_passing() => {
                    self.recheck_missing_later();
                    return Ok(());
                }
                Err(_) => {}
            },
        }
        if self.shared.check_writable().is_err() {
            return Ok(());
        }
        match self.plans(&live, std::iter::empty(), &[]).filter_for(&segment.meta) {
            Some(spec) => self.rebuild_sidecar(segment, spec).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Removes a damaged sidecar, or the unmapped copy that replaced it, from the view. Counts and logs it
    /// once, even if several threads detect it.
    fn drop_damaged(&self, meta: &SegmentMeta, bad: &Sidecar, reason: &Unusable) {
        let without = |live: &Arc<LiveSet>| {
            let now = live.now(meta)?;
            let is_bad = now.sidecar.as_ref().is_some_and(|sidecar| sidecar.is_same_opening(bad));
            is_bad.then(|| live.replaced(vec![LiveSegment { sidecar: None, ..now.clone() }]))
        };
        let is_news = self.shared.change_live(without, |_| {});
        if is_news {
            self.shared.storage.report_unusable(meta.id, reason);
        }
    }

    /// Writes and publishes a new sidecar for a segment, which is only read. `None` if the segment is gone.
    pub(super) fn rebuild_sidecar(
        &self,
        segment: &LiveSegment,
        spec: FilterSpec,
    ) -> Result<Option<LiveSidecar>> {
        let began = Instant::now();
        let members = self.hash_keys(segment);
        // Under the manifest lock, no compaction can remove the segment before the new file exists.
        let publishing = self.publisher.hold();
        if self.shared.live().now(&segment.meta).is_none() {
            return Ok(None); // The segment was removed, so a failed read of it does not matter.
        }
        let sidecar = self
            .shared
            .storage
            .create_sidecar(&segment.meta, &members?, spec)
            .map_err(|e| self.shared.fail(e))?;
        if sidecar.is_none() {
            self.recheck_missing_later();
        }
        self.shared.storage.fs.sync_dir(&self.shared.storage.dir).map_err(|e| self.shared.fail(e))?;
        self.install(&segment.meta, sidecar.clone());
        drop(publishing);
        if sidecar.is_some() {
            self.note_rebuilt(&segment.meta, began.elapsed());
        }
        Ok(sidecar)
    }

    fn note_rebuilt(&self, meta: &SegmentMeta, time: Duration) {
        let storage = &self.shared.storage;
        storage.metrics.filters_rebuilt.fetch_add(1, Relaxed);
        let file = storage.path_of(meta.id, FileKind::Filter).display().to_string();
        storage.events.emit(Event::FilterRebuilt { file, keys: meta.entries, seconds: time.as_secs_f64() });
    }

    /// If a new segment's sidecar could not be created, a background thread tries again later (I2).
    pub fn note_missing_sidecar(&self, segment: &LiveSegment) {
        if segment.sidecar.is_none() && self.wants_filter(&segment.meta) {
            self.recheck_missing_later();
        }
    }

    pub fn is_live(&self, meta: &SegmentMeta) -> bool {
        self.shared.live().now(meta).is_some()
    }

    /// Puts a sidecar into the view, unless the segment is gone.
    pub(super) fn install(&self, meta: &SegmentMeta, sidecar: Option<LiveSidecar>) {
        if sidecar.is_some() {
            self.shared.control.lock().sidecars.missing.forget_pauses();
        }
        let with_it = |live: &Arc<LiveSet>| {
            let now = live.now(meta)?;
            Some(live.replaced(vec![LiveSegment { sidecar: sidecar.clone(), ..now.clone() }]))
        };
        self.shared.change_live(with_it, |_| {});
    }

    /// Schedules a background check of segments without a sidecar, after a pause that grows each time.
    pub fn recheck_missing_later(&self) {
        if self.shared.control.lock().sidecars.missing.schedule() {
            self.shared.wake_workers();
        }
    }

    fn hash_keys(&self, segment: &LiveSegment) -> Result<Members> {
        let mut members = self.shared.storage.members(segment.meta.owner());
        members.expect(segment.meta.entries);
        let mut cursor = segment.file.cursor(Direction::Forward, Bound::Unbounded, Access::Scan)?;
        let mut key = Vec::new();
        while cursor.advance()? {
            cursor.key().copy_into(&mut key);
            members.add(&key, self.shared.storage.header.hasher.hash(&key));
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::support::{eventually, fast_dir};

    #[test]
    fn i2_a_damaged_sidecar_is_counted_once_also_if_it_was_unmapped_meanwhile() {
        let dir = fast_dir();
        let options = Options { level0_trigger: usize::MAX, ..Options::new().max_mapped_filters(8) };
        let db = options.open(dir.path()).unwrap();
        let key = |segment: u8| [b'a' + segment, b'1'];
        for segment in 0..8 {
            db.put(key(segment), "").unwrap();
            db.put([key(segment).as_slice(), b"2"].concat(), "").unwrap();
            db.flush().unwrap();
        }
        let (shared, keeper) = (&db.engine().shared, &db.engine().filters);
        let now =
            || shared.live().segments().next().map(|s| (Arc::clone(&s.meta), s.sidecar.clone())).unwrap();
        let (meta, Some(bad)) = now() else { panic!("no sidecar") };
        let get = |segment| assert!(db.get([key(segment).as_slice(), b"1"].concat()).unwrap().is_none());
        get(7);
        eventually("it was unmapped", || {
            (0..7).for_each(get); // The others stay in use.
            keeper.unmap_cold();
            now().1.is_some_and(|copy| !copy.is(&bad))
        });
        let drop_it = || keeper.drop_damaged(&meta, &bad, &Unusable::Faulted);
        drop_it();
        drop_it();
        assert_eq!(db.stats().filters_unavailable, 1);
        keeper.check_sidecar(&meta).unwrap();
        drop_it();
        assert!(now().1.is_some(), "another opening of the file stays");
    }
}
