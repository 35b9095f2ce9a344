//! Maintenance of sidecars: verified in the background after opening, rebuilt if unusable (I2), retuned on request (I3).

pub(crate) mod plan;
pub(crate) mod queue;
pub(crate) mod retunes;
pub(crate) mod warm;

use self::plan::LevelSizes;
use crate::engine::shared::Inner;
use crate::engine::storage::segment_builder::SegmentBuilder;
use crate::engine::tasks::id_queue::IdQueue;
use crate::error::{Error, Result};
use crate::filter::FilterSpec;
use crate::id::FileId;
use crate::live::{LiveSegment, LiveSet};
use crate::manifest::SegmentMeta;
use crate::options::FilterPolicy;
use crate::segment::{Access, Direction};
use crate::sidecar::{LiveSidecar, Members, Sidecar, Unusable};
use crate::sync::{Instant, assert_unlocked, lock};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::Duration;

/// The first wait before segments without a sidecar are checked again. It doubles each time.
const RECHECK_MIN: Duration = Duration::from_millis(500);
const RECHECK_MAX: Duration = Duration::from_secs(60);

/// The longest wait for readers of the previous view after sidecars were unmapped, and the pause when snapshots hold every map.
const UNMAP_WAIT: Duration = Duration::from_millis(20);

/// How often a rebuild of all filters plans the rest anew, besides the first few times.
const PLANS_MAX: u64 = 64;

/// The progress or result of [`Db::rebuild_filters`](crate::Db::rebuild_filters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RebuildReport {
    /// Segments that got a new sidecar.
    pub segments: u64,
    /// Segments whose filter already is what the policy asks for.
    pub kept: u64,
    /// Segments in quarantine, which are skipped: part of them cannot be read.
    pub quarantined: u64,
    /// All segments. The three numbers above add up to less if the rebuild was stopped or compactions removed segments.
    pub total: u64,
    /// Keys in the rebuilt segments, tombstones included.
    pub keys: u64,
    /// Size of the new filters, in bytes.
    pub filter_bytes: u64,
}

impl Inner {
    /// Queues every sidecar that was not verified yet, and every segment without a sidecar.
    pub fn queue_unverified(&self) {
        if self.storage.filters_on() {
            self.queue(|s| s.sidecar.as_ref().is_none_or(|sidecar| !sidecar.is_verified()));
        }
    }

    /// Queues the sidecars that readers found damaged, or whose maps faulted.
    pub fn queue_bad(&self) {
        self.queue(|s| s.sidecar.as_ref().is_some_and(|sidecar| sidecar.is_bad()));
    }

    /// Queues the segments without a sidecar.
    pub fn queue_missing_sidecars(&self) {
        self.queue(|s| s.sidecar.is_none() && !s.is_quarantined());
    }

    /// Queues some segments for a check of their sidecars.
    fn queue(&self, wanted: impl Fn(&LiveSegment) -> bool) {
        assert_unlocked();
        let live = self.live();
        let wanted: IdQueue = live.segments().filter(|s| wanted(s)).map(|s| s.meta.id).collect();
        self.control.lock().sidecars_to_check.append(wanted);
        self.work.notify_all();
    }

    /// Makes room for maps: replaces sidecars that were not probed since the last call with unmapped ones, and others if that is not enough.
    pub fn unmap_cold(&self) {
        let live = self.live();
        let mapped: Vec<&LiveSegment> = live
            .segments()
            .filter(|s| s.sidecar.as_ref().is_some_and(|sidecar| sidecar.is_mapped()))
            .collect();
        let (asked, cold): (Vec<_>, Vec<_>) =
            mapped.into_iter().partition(|s| s.sidecar.as_ref().is_some_and(|sidecar| sidecar.was_asked()));
        // Deepest levels first: upper levels are probed for more keys.
        let victims = cold.into_iter().rev().chain(asked.into_iter().rev());
        let victims: Vec<&LiveSegment> = victims.take(self.storage.maps.excess()).collect();
        if victims.is_empty() {
            self.control.lock().unmap_from = Some(Instant::now() + UNMAP_WAIT);
            return;
        }
        let before = self.view.load_full();
        let mut unchecked = IdQueue::default();
        let unmap = |live: &Arc<LiveSet>| {
            let unmapped = |then: &&LiveSegment| {
                let s = live.now(&then.meta)?;
                let (now, then) = (s.sidecar.as_ref()?, then.sidecar.as_ref()?);
                let sidecar = now.is(then).then(|| LiveSidecar::new(now.unmapped()))?;
                Some(LiveSegment { sidecar: Some(sidecar), ..s.clone() })
            };
            let renewed: Vec<LiveSegment> = victims.iter().filter_map(unmapped).collect();
            // A verification in progress only covers the previous sidecar.
            let unverified = renewed.iter().filter(|s| s.waits_for_verification());
            unchecked = unverified.map(|s| s.meta.id).collect();
            Some(live.replaced(renewed))
        };
        self.change_live(unmap, |_| {});
        self.control.lock().sidecars_to_check.append(unchecked);
        // Unmapping many files takes a while. Do it here rather than in the last reader of the old view, unless a snapshot keeps that.
        let since = Instant::now();
        while Arc::strong_count(&before) > 1 && since.elapsed() < UNMAP_WAIT {
            crate::sync::sleep(Duration::from_millis(1));
        }
    }

    /// Verifies one sidecar, and rebuilds it if it is missing or damaged.
    pub fn check_sidecar(&self, id: FileId) -> Result<()> {
        let live = self.live();
        let Some(segment) = live.segments().find(|s| s.meta.id == id) else { return Ok(()) };
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
            None => match self.storage.open_verified(&segment.meta) {
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
        if self.check_writable().is_err() {
            return Ok(());
        }
        let plan = lock(&self.filter_policy).plan(&self.level_sizes(&live));
        match plan {
            Some(plan) => self.rebuild_sidecar(segment, plan.choose(segment.meta.level, id)).map(|_| ()),
            None => Ok(()),
        }
    }

    /// The segment, among those written since opening, whose filter should be replaced first, with its new filter. `None` if the filters are as
    /// planned.
    pub fn segment_to_retune(&self) -> Option<(Arc<SegmentMeta>, FilterSpec)> {
        let live = self.live();
        let plan = lock(&self.filter_policy).plan(&self.level_sizes(&live))?;
        let is_own = |segment: &LiveSegment| segment.meta.id >= self.storage.first_own_id;
        let meta = Arc::clone(&lock(&self.retunes).next(&plan, &live, is_own)?.meta);
        let spec = plan.choose(meta.level, meta.id);
        Some((meta, spec))
    }

    /// Gives a segment another filter, unless the segment is gone or in quarantine.
    pub fn retune(&self, meta: &SegmentMeta, spec: FilterSpec) -> Result<()> {
        match self.live().now(meta).filter(|s| !s.is_quarantined()) {
            Some(segment) => self.rebuild_sidecar(segment, spec).map(drop),
            None => Ok(()),
        }
    }

    /// Removes a damaged sidecar, or the unmapped copy that has replaced it, from the view. Counts and logs it once, however many threads
    /// detect it.
    fn drop_damaged(&self, meta: &SegmentMeta, bad: &Sidecar, reason: &Unusable) {
        let without = |live: &Arc<LiveSet>| {
            let now = live.now(meta)?;
            let is_bad = now.sidecar.as_ref().is_some_and(|sidecar| sidecar.is_same_opening(bad));
            is_bad.then(|| live.replaced(vec![LiveSegment { sidecar: None, ..now.clone() }]))
        };
        let is_news = self.change_live(without, |_| {});
        if is_news {
            self.storage.report_unusable(meta.id, reason);
        }
    }

    /// Writes and publishes a new sidecar for a segment, which is only read. `None` if the segment is gone.
    fn rebuild_sidecar(&self, segment: &LiveSegment, spec: FilterSpec) -> Result<Option<LiveSidecar>> {
        let members = self.hash_keys(segment);
        // Under the manifest lock, no compaction can remove the segment before the new file exists.
        let _publishing = lock(&self.manifest);
        if self.live().now(&segment.meta).is_none() {
            return Ok(None); // Even a failed read of a removed segment no longer matters.
        }
        let sidecar =
            self.storage.create_sidecar(&segment.meta, &members?, spec).map_err(|e| self.fail(e))?;
        if sidecar.is_none() {
            self.recheck_missing_later();
        }
        self.storage.fs.sync_dir(&self.storage.dir).map_err(|e| self.fail(e))?;
        self.install(&segment.meta, sidecar.clone());
        Ok(sidecar)
    }

    /// Completes a segment that the caller publishes.
    pub fn finish_segment(&self, builder: SegmentBuilder<'_>) -> Result<LiveSegment> {
        let segment = builder.finish()?;
        self.note_missing_sidecar(&segment);
        Ok(segment)
    }

    /// If the sidecar of a new segment could not be created, a background thread tries again after a while (I2).
    pub fn note_missing_sidecar(&self, segment: &LiveSegment) {
        if segment.sidecar.is_none() && self.storage.filters_on() {
            self.recheck_missing_later();
        }
    }

    pub fn is_live(&self, id: FileId) -> bool {
        self.live().segments().any(|s| s.meta.id == id)
    }

    /// Puts a sidecar into the view, unless the segment is gone.
    fn install(&self, meta: &SegmentMeta, sidecar: Option<LiveSidecar>) {
        if sidecar.is_some() {
            self.control.lock().missing_sidecars_wait = Duration::ZERO;
        }
        let with_it = |live: &Arc<LiveSet>| {
            let now = live.now(meta)?;
            Some(live.replaced(vec![LiveSegment { sidecar: sidecar.clone(), ..now.clone() }]))
        };
        self.change_live(with_it, |_| {});
    }

    /// Has a background thread check segments without a sidecar after a pause, which grows each time.
    pub fn recheck_missing_later(&self) {
        let mut control = self.control.lock();
        if control.missing_sidecars_due.is_none() {
            let wait = (control.missing_sidecars_wait * 2).clamp(RECHECK_MIN, RECHECK_MAX);
            control.missing_sidecars_wait = wait;
            control.missing_sidecars_due = Some(Instant::now() + wait);
            self.work.notify_all();
        }
    }

    /// How much the filters of the live set have to hold.
    fn level_sizes(&self, live: &LiveSet) -> LevelSizes {
        LevelSizes::of(live, [], &self.storage.prefix_set())
    }

    fn hash_keys(&self, segment: &LiveSegment) -> Result<Members> {
        let mut members = self.storage.members();
        members.expect(segment.meta.entries);
        let mut cursor = segment.file.cursor(Direction::Forward, Bound::Unbounded, Access::Scan)?;
        let mut key = Vec::new();
        while cursor.advance()? {
            cursor.key().copy_into(&mut key);
            members.add(&key, self.storage.header.hasher.hash(&key));
        }
        Ok(members)
    }

    /// Gives every segment the sidecar that the policy asks for. Segments keep their bytes (I3).
    pub fn rebuild_filters(
        &self,
        policy: FilterPolicy,
        progress: &mut dyn FnMut(&RebuildReport) -> ControlFlow<()>,
    ) -> Result<RebuildReport> {
        self.check_writable()?;
        policy.validate()?;
        let live = self.live();
        let Some(mut plan) = policy.plan(&self.level_sizes(&live)) else {
            return Err(Error::InvalidArgument("the policy has no filters to rebuild".into()));
        };
        let prefixes = self.storage.prefix_set();
        if self.storage.filters_on() {
            *lock(&self.filter_policy) = policy;
        }
        let mut report = RebuildReport { total: live.segments().count() as u64, ..Default::default() };
        let replan_every = (report.total / PLANS_MAX).max(1);
        let mut unreadable = None;
        for segment in live.segments() {
            if progress(&report).is_break() {
                break;
            }
            self.check_writable()?;
            if segment.is_quarantined() {
                report.quarantined += 1;
                continue;
            }
            let has_prefixes = segment.verified_facts().is_some_and(|filter| *filter.prefixes() == prefixes);
            if has_prefixes && plan.suits(segment) {
                report.kept += 1;
                continue;
            }
            match self.rebuild_sidecar(segment, plan.choose(segment.meta.level, segment.meta.id)) {
                Ok(Some(sidecar)) => {
                    report.segments += 1;
                    report.keys += segment.meta.entries;
                    let bytes = sidecar.facts().map_or(0, |facts| facts.filter_bytes());
                    report.filter_bytes = report.filter_bytes.saturating_add(bytes);
                    // The new filters tell how many prefixes the others may get. Each plan looks at all segments.
                    let is_time =
                        report.segments.is_power_of_two() || report.segments.is_multiple_of(replan_every);
                    if !prefixes.is_empty() && is_time {
                        plan = policy.plan(&self.level_sizes(&self.live())).unwrap_or(plan);
                    }
                }
                Ok(None) => {}
                Err(error) if self.quarantine(&error) => unreadable = Some(error),
                Err(error) => return Err(error),
            }
        }
        if report.quarantined > 0 {
            tracing::warn!(segments = report.quarantined, "skipped the filters of segments in quarantine");
        }
        unreadable.map_or(Ok(report), Err)
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
        let inner = db.inner();
        let now =
            || inner.live().segments().next().map(|s| (Arc::clone(&s.meta), s.sidecar.clone())).unwrap();
        let (meta, Some(bad)) = now() else { panic!("no sidecar") };
        eventually("it was unmapped", || {
            (0..8).for_each(|segment| {
                assert!(db.get([key(segment).as_slice(), b"1"].concat()).unwrap().is_none())
            });
            inner.unmap_cold();
            now().1.is_some_and(|copy| !copy.is(&bad))
        });
        let drop_it = || inner.drop_damaged(&meta, &bad, &Unusable::Faulted);
        drop_it();
        drop_it();
        assert_eq!(db.stats().filters_unavailable, 1);
        inner.check_sidecar(meta.id).unwrap();
        drop_it();
        assert!(now().1.is_some(), "another opening of the file stays");
    }
}
