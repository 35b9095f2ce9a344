//! The time buckets of a windowed keyspace: which rows of a memtable share a segment, and so expire together.
//!
//! 1. Rows that live as long as the window expire in the order in which they are written, except for those of
//!    threads that write at the same time. So a bucket is cut off by sequence number: it begins at the first
//!    row that expires in it, and has all later ones up to the next bucket's first. Segments of later buckets
//!    have only newer rows, as level 0 has to be ordered.
//! 2. Other rows, which live shorter or longer than the window, go with their neighbours.
//! 3. Buckets that have ended are one with the first that has not. So a window has at most 14.
//! 4. A keyspace with few bytes in the memtable is not cut: all of them are in the last bucket. Otherwise
//!    many such keyspaces would get a dozen tiny segments each.

use super::Storage;
use super::output_segments::own_bytes_min;
use crate::key::{EntryKind, Seq, Space, Time};
use crate::memtable::Memtable;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

/// Buckets in a window.
const BUCKETS: u64 = 12;

/// How a memtable's rows of a keyspace are cut into buckets.
pub(super) struct Buckets {
    width: u64,
    now: Time,
    /// When a row expires that is written now.
    latest: Time,
    /// The keys and values of the rows.
    bytes: u64,
    /// The end of each bucket, in milliseconds, and the sequence number of its first row.
    first: BTreeMap<u64, Seq>,
    /// The ends by the sequence numbers from which on they hold. Both increase.
    borders: Vec<(Seq, Time)>,
}

impl Buckets {
    fn new(window: Duration, now: Time) -> Self {
        let window = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        let width = (window / BUCKETS).max(1);
        let latest = Time::of_millis(now.millis().saturating_add(window));
        Buckets { width, now, latest, bytes: 0, first: BTreeMap::new(), borders: Vec::new() }
    }

    /// When the bucket ends in which a row expires, in milliseconds.
    fn end_of(&self, expiry: Time) -> u64 {
        let end = expiry.max(self.now).millis().div_ceil(self.width).saturating_mul(self.width);
        end.min(Time::MAX.millis())
    }

    fn note(&mut self, kind: EntryKind, seq: Seq) {
        if let Some(expiry) = kind.expiry().filter(|expiry| *expiry <= self.latest) {
            let first = self.first.entry(self.end_of(expiry)).or_insert(seq);
            *first = seq.min(*first);
        }
    }

    fn set_borders(&mut self) {
        let mut by_seq: Vec<(Seq, Time)> =
            self.first.iter().map(|(end, seq)| (*seq, Time::of_millis(*end))).collect();
        by_seq.sort_unstable();
        let mut last = Time::START;
        by_seq.retain(|(_, end)| {
            let is_later = *end > last;
            last = last.max(*end);
            is_later
        });
        self.borders = by_seq;
    }

    /// Makes all rows those of the last bucket. Returns when it ends.
    pub fn unite(&mut self) -> Time {
        let last = self.of(Seq::MAX);
        self.borders = vec![(0, last)];
        last
    }

    /// When the bucket of a row ends.
    pub fn of(&self, seq: Seq) -> Time {
        let next = self.borders.partition_point(|(first, _)| *first <= seq);
        let border = self.borders.get(next.saturating_sub(1));
        border.map_or_else(|| Time::of_millis(self.end_of(self.latest)), |(_, end)| *end)
    }
}

/// When the bucket ends of rows that are written at once, and all expire as `kind` says. `None` if their
/// keyspace has no window.
pub(crate) fn bucket_of(storage: &Storage, space: Space, kind: EntryKind) -> Option<Time> {
    let window = *storage.keyspaces.windows().get(&space)?;
    let mut buckets = Buckets::new(window, storage.clock.moment());
    buckets.note(kind, 0);
    buckets.set_borders();
    Some(buckets.of(0))
}

/// The buckets of the windowed keyspaces that a memtable has rows of.
pub(super) fn buckets_in(storage: &Storage, table: &Memtable, now: Time) -> BTreeMap<Space, Buckets> {
    let windows = storage.keyspaces.windows();
    if windows.is_empty() {
        return BTreeMap::new();
    }
    let mut all: BTreeMap<Space, Buckets> =
        windows.into_iter().map(|(space, window)| (space, Buckets::new(window, now))).collect();
    let Ok(()) = table.for_each_newest::<Infallible>(|key, seq, kind, value| {
        if let Some(buckets) = Space::of(key).and_then(|space| all.get_mut(&space)) {
            buckets.note(kind, seq);
            buckets.bytes += (key.len() + value.len()) as u64;
        }
        Ok(())
    });
    for buckets in all.values_mut() {
        buckets.set_borders();
        if buckets.bytes < own_bytes_min(storage) {
            buckets.unite();
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(rows: &[(Seq, u64)]) -> Buckets {
        let mut buckets = Buckets::new(Duration::from_millis(1200), Time::of_millis(10_000));
        for (seq, millis) in rows {
            buckets.note(EntryKind::put_until(Time::of_millis(*millis)), *seq);
        }
        buckets.set_borders();
        buckets
    }

    #[test]
    fn a_bucket_has_what_was_written_since_its_first_row() {
        let found = buckets(&[(1, 10_250), (2, 10_300), (3, 10_301), (4, 10_299), (5, 10_500)]);
        let ends: Vec<u64> = (0..7).map(|seq| found.of(seq).millis()).collect();
        assert_eq!(ends, [10_300, 10_300, 10_300, 10_400, 10_400, 10_500, 10_500]);
    }

    #[test]
    fn rows_that_do_not_live_as_long_as_the_window_open_no_bucket() {
        let found = buckets(&[(1, 10_700), (2, 99_999), (3, 10_050), (4, 10_710), (5, u64::MAX)]);
        let ends: Vec<u64> = (1..6).map(|seq| found.of(seq).millis()).collect();
        assert_eq!(ends, [10_700, 10_700, 10_700, 10_800, 10_800]);
    }

    #[test]
    fn all_that_has_expired_is_in_one_bucket() {
        let rows: Vec<_> = (1..500).map(|seq| (seq, seq * 20)).collect();
        let found = buckets(&rows);
        assert!((1..500).all(|seq| found.of(seq).millis() == 10_000));
        assert_eq!(buckets(&[]).of(7).millis(), 11_200);
    }
}
