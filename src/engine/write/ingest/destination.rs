//! Where ingested segments go: each into the deepest level that keeps entries ordered by age.
//!
//! Ingested rows are newer than everything else in the store. So their segment may lie in a level if nothing
//! overlaps it there or above. In addition:
//! 1. No level is used that is deeper than the data and the rows together need.
//! 2. A running compaction owns its range on its output level (I10). Segments being placed own theirs until
//!    they are published.
//! 3. A quarantined segment returns above older entries. [`Quarantine`] records how deep newer ones may be,
//!    so rows of its range stay within that.
//! 4. Few rows go to level 0, like a flush, and are merged with others. Otherwise many small ingests would
//!    leave as many segments.

use crate::engine::compact::pick::deepest_bytes_max;
use crate::engine::compact::reservation::Reservation;
use crate::engine::control::Control;
use crate::engine::shared::Shared;
use crate::live::{LiveSegment, LiveSet};
use crate::manifest::LEVELS;
use crate::options::Options;

/// The segments, which overlap nothing in their levels or above.
fn place(
    live: &LiveSet,
    built: &[LiveSegment],
    options: &Options,
    running: &[Reservation],
) -> Vec<LiveSegment> {
    let deepest = deepest_level(live, built, options);
    built.iter().map(|segment| segment.at_level(level_for(live, segment, deepest, running))).collect()
}

/// The deepest level for any of the segments.
fn deepest_level(live: &LiveSet, built: &[LiveSegment], options: &Options) -> usize {
    let rows: u64 = built.iter().map(|segment| segment.meta.file_bytes).sum();
    let in_levels: u64 = live.levels().iter().map(|level| level.file_bytes()).sum();
    let store = in_levels + live.quarantined().iter().map(|segment| segment.meta.file_bytes).sum::<u64>();
    if store > 0 && rows < options.segment_bytes / 4 {
        return 0;
    }
    let fits = |level: &usize| deepest_bytes_max(*level, options.segment_bytes) >= store + rows;
    let fitting = (1..LEVELS).find(fits).unwrap_or(LEVELS - 1);
    fitting.max(live.deepest())
}

fn level_for(live: &LiveSet, segment: &LiveSegment, deepest: usize, running: &[Reservation]) -> u8 {
    let (smallest, largest) = (segment.meta.smallest.as_slice(), &*segment.meta.largest);
    let overlaps = |level: usize| {
        let Some(others) = live.levels().get(level).map(|level| level.segments()) else { return false };
        match level {
            // Level 0 is ordered by age, every other level by key.
            0 => others.iter().any(|other| other.overlaps(smallest, largest)),
            _ => !others.overlapping(smallest, largest).is_empty(),
        }
    };
    let mut level =
        if overlaps(0) { 0 } else { (1..=deepest).take_while(|level| !overlaps(*level)).last().unwrap_or(0) };
    for suspect in live.quarantined().iter().filter(|suspect| suspect.overlaps(smallest, largest)) {
        level = level.min(suspect.meta.place.quarantine().map_or(0, |q| usize::from(q.overtaken)));
    }
    let mut level = u8::try_from(level).unwrap_or(0);
    while level > 0 && running.iter().any(|other| other.writes(level) && other.reaches(smallest, largest)) {
        level -= 1;
    }
    level
}

/// What segments need in their levels. Level 0 needs nothing: its segments may overlap.
fn owned(segments: &[LiveSegment]) -> Vec<Reservation> {
    let levels = (1..LEVELS).filter_map(|level| u8::try_from(level).ok());
    let of_level = |level| Reservation::of(segments.iter().filter(move |s| s.level() == Some(level)), level);
    levels.filter_map(of_level).collect()
}

/// Keeps compactions off the ranges of the segments until it is dropped.
pub(crate) struct Placed<'a> {
    shared: &'a Shared,
    owned: Vec<Reservation>,
}

impl<'a> Placed<'a> {
    /// Places the segments and owns what they need in their levels. The caller keeps others from publishing.
    pub fn place(shared: &'a Shared, live: &LiveSet, built: &[LiveSegment]) -> (Vec<LiveSegment>, Self) {
        loop {
            let running = shared.control.lock().compactions.running.clone();
            let placed = place(live, built, &shared.storage.options, &running);
            let owned = owned(&placed);
            let mut control = shared.control.lock();
            if control.compactions.running.iter().all(|now| running.contains(now)) {
                return (placed, Placed::reserve(shared, &mut control, owned));
            }
        }
    }

    fn reserve(shared: &'a Shared, control: &mut Control, owned: Vec<Reservation>) -> Self {
        control.compactions.running.extend(owned.iter().cloned());
        control.compactions.manual += owned.len(); // They use no background thread.
        Placed { shared, owned }
    }
}

impl Drop for Placed<'_> {
    fn drop(&mut self) {
        let mut control = self.shared.control.lock();
        control.compactions.running.retain(|running| !self.owned.contains(running));
        control.compactions.manual -= self.owned.len();
        control.finished += 1;
        drop(control);
        self.shared.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::compact::level_tests::{store_of, store_with};
    use crate::manifest::{Place, Quarantine};
    use crate::{Compression, Db, Result};
    use std::ops::Range;

    /// A segment whose range includes all rows from 1000 to 1899.
    const ENDS: &[(&str, &str)] = &[("key00000", "old"), ("key01050", "old"), ("key01900", "old")];

    fn options() -> Options {
        let options = Options::new().segment_bytes(4 << 10).compression(Compression::None);
        Options { level0_trigger: usize::MAX, ..options } // No limit on the size of level 0.
    }

    fn rows(keys: Range<u32>) -> impl Iterator<Item = Result<(String, [u8; 100])>> {
        keys.map(|key| Ok((format!("key{key:05}"), [b'x'; 100])))
    }

    fn levels(db: &Db) -> Vec<usize> {
        db.stats().levels.iter().map(|level| level.segments).collect()
    }

    /// Each segment goes to the deepest level where nothing overlaps it there or above.
    #[test]
    fn each_segment_goes_to_the_deepest_level_that_it_can_reach() {
        let dir = tempfile::tempdir().unwrap();
        let db = options().open(dir.path().join("db")).unwrap();
        db.ingest(rows(0..400)).unwrap();
        let first = levels(&db);
        assert!(first[0] == 0 && first[1] > 9, "an empty store takes them in level 1: {first:?}");
        // As if the only thread for compactions were busy elsewhere: nothing moves.
        let elsewhere = Reservation::of(db.engine().shared.live().levels()[1].segments().iter().take(1), 6);
        db.engine().shared.control.lock().compactions.running.extend(elsewhere);
        db.ingest(rows(1000..1400)).unwrap();
        let beside = levels(&db);
        assert!(beside[..2] == first[..2] && beside[2] > 9, "level 1 cannot hold all: {beside:?}");
        db.ingest(rows(300..600)).unwrap();
        let across = levels(&db);
        assert!(across[0] > 0 && across[1] == first[1], "above what they overlap: {across:?}");
        assert!(across[2] > beside[2], "the others below: {across:?}");
        db.ingest(rows(1300..1310).chain(rows(2000..2300))).unwrap();
        let over_level2 = levels(&db);
        assert!(over_level2[1] > across[1], "between level 0 and what they overlap: {over_level2:?}");
        db.put("key03050", "in memory").unwrap();
        db.ingest(rows(3000..3400)).unwrap();
        assert_eq!(levels(&db)[0], over_level2[0] + 2, "a flushed segment, and one above it");
        assert_eq!(&*db.get("key03050").unwrap().unwrap(), [b'x'; 100]);
        let few = levels(&db)[0];
        db.ingest(rows(9000..9001)).unwrap();
        assert_eq!(levels(&db)[0], few + 1, "few rows are merged with others first");
        assert!(db.verify().unwrap().is_ok());
        assert_eq!(db.iter().count().unwrap(), 400 + 400 + 200 + 300 + 400 + 1);
    }

    /// Two segments in one level whose gap a running compaction may span.
    #[test]
    fn i10_rows_stay_off_the_level_that_a_running_compaction_writes() {
        let (_dir, path) =
            store_of(&[(3, &[("key00000", "old")]), (2, &[("key01900", "old")]), (4, &[("zzz", "old")])]);
        let db = options().read_only(true).open(&path).unwrap(); // Nothing is compacted in this test.
        let shared = &db.engine().shared;
        let live = shared.live();
        let inputs = || live.levels()[2].segments().iter().chain(live.levels()[3].segments().iter());
        let running = |level| Reservation::of(inputs(), level).unwrap();
        // The segments to place, all within the gap.
        let other = tempfile::tempdir().unwrap();
        let source = options().open(other.path().join("db")).unwrap();
        source.ingest(rows(1000..1200)).unwrap();
        let built: Vec<LiveSegment> = source.engine().shared.live().segments().cloned().collect();
        assert!(built.len() > 2);
        for (running, expected) in
            [(vec![], 4), (vec![running(4)], 3), (vec![running(3)], 4), (vec![running(4), running(3)], 2)]
        {
            let placed = place(&live, &built, &shared.storage.options, &running);
            assert!(placed.iter().all(|s| s.level() == Some(expected)), "{expected}: {running:?}");
        }
        // While they are published, no compaction may write there.
        let placed = place(&live, &built, &shared.storage.options, &[]);
        let guard = Placed::reserve(shared, &mut shared.control.lock(), owned(&placed));
        let is_owned = |r: &Reservation, level| r.writes(level) && r.reaches(b"key01100", b"key01100");
        let blocked = |level| shared.control.lock().compactions.running.iter().any(|r| is_owned(r, level));
        assert_eq!([blocked(3), blocked(4)], [false, true]);
        drop(guard);
        assert_eq!([blocked(3), blocked(4)], [false, false]);
        assert_eq!(shared.control.lock().compactions.manual, 0);
    }

    #[test]
    fn rows_stay_above_where_a_segment_returns_to_from_quarantine() {
        let was = |left, overtaken| Place::Quarantine(Quarantine { left, overtaken });
        for (quarantined, expected) in [(was(0, 0), 0), (was(1, 1), 1), (was(2, 2), 2), (was(1, 3), 3)] {
            let (_dir, path) = store_of(&[(2, ENDS), (4, &[("zzz", "old")])]);
            let db = options().read_only(true).open(&path).unwrap(); // Nothing is compacted in this test.
            let other = tempfile::tempdir().unwrap();
            let source = options().open(other.path().join("db")).unwrap();
            source.ingest(rows(1000..1200)).unwrap();
            let built: Vec<LiveSegment> = source.engine().shared.live().segments().cloned().collect();
            let was_in = |segment: &LiveSegment| {
                segment.at(if segment.level() == Some(2) { quarantined } else { Place::Level(4) })
            };
            let live = LiveSet::new(db.engine().shared.live().segments().map(was_in));
            assert_eq!(live.quarantined().len(), 1);
            let placed = place(&live, &built, &db.engine().shared.storage.options, &[]);
            assert!(placed.iter().all(|s| s.level() == Some(expected)), "{expected}");
        }
    }

    #[test]
    fn rows_stay_newer_than_a_segment_that_returns_from_quarantine() {
        for left in 0..4 {
            let quarantined = Place::Quarantine(Quarantine { left, overtaken: left });
            let older: &[_] = &[("zzz", "old")];
            let (_dir, path) = store_with(&[(quarantined, ENDS), (Place::Level(4), older)], |_| ());
            let db = options().open(&path).unwrap();
            db.ingest(rows(1000..1200)).unwrap();
            let check =
                || assert_eq!(&*db.get("key01050").unwrap().unwrap(), [b'x'; 100], "left level {left}");
            check();
            db.compact().unwrap(); // Takes it back.
            assert_eq!(db.stats().segments_quarantined, 0);
            check();
            assert_eq!(&*db.get("key00000").unwrap().unwrap(), b"old");
        }
    }
}
