//! Edits, and the state they add up to.

use super::place::Place;
use crate::id::FileId;
use crate::key::{Seq, Time};
use crate::ranges::last_key;
use crate::segment::{SegmentSummary, StoreIdentity};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

/// A segment as the manifest lists it. Dereferences to the segment's own summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentMeta {
    /// Where it is.
    pub place: Place,
    /// What the segment says about itself.
    pub summary: SegmentSummary,
}

impl SegmentMeta {
    /// Whether it is kept in level 0, in a time bucket of a windowed keyspace.
    pub fn is_in_bucket(&self) -> bool {
        self.place == Place::Level(0) && self.bucket > Time::START
    }

    /// Whether its time bucket has ended, so that rows which live as long as the window have expired.
    pub fn has_bucket_ended(&self, now: Time) -> bool {
        self.is_in_bucket() && self.bucket <= now
    }
}

impl Deref for SegmentMeta {
    type Target = SegmentSummary;
    #[inline]
    fn deref(&self) -> &SegmentSummary {
        &self.summary
    }
}

/// How much of the logs is known to be durable. Logs with lower numbers are fully durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogMark {
    /// The log, which must exist.
    pub log: FileId,
    /// The number of its synced bytes.
    pub bytes: u64,
    /// The sequence number after the last operation in these bytes.
    pub next_seq: Seq,
}

/// One atomic change of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edit {
    /// Segments to remove. A segment that changes its level is both removed and added.
    pub removed: Vec<FileId>,
    /// Segments to add.
    pub added: Vec<SegmentMeta>,
    /// Logs with lower numbers are obsolete: segments hold all their operations.
    pub log_floor: Option<FileId>,
    /// New files have at least this number.
    pub next_id: Option<FileId>,
    /// The number before the first operation that a log may hold; no segment has a greater one.
    pub last_seq: Option<Seq>,
    /// How much of the logs is known to be durable. Ignored if less than the state's mark.
    pub log_mark: Option<LogMark>,
    /// The moment that the store's clock has reached. Ignored if before the state's.
    pub time: Option<Time>,
}

/// The state of a store after a series of edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestState {
    /// The store's identity.
    pub header: StoreIdentity,
    /// The format version of the file that it was read from, if that is an earlier one.
    pub earlier_version: Option<u32>,
    /// The segments of the store.
    pub segments: BTreeMap<FileId, SegmentMeta>,
    /// Logs with lower numbers are obsolete.
    pub log_floor: FileId,
    /// The smallest number that no file had when the last edit was written. Logs take numbers without an
    /// edit, so opening a store also checks its directory.
    pub next_id: FileId,
    /// The number before the first operation that a log may hold; no segment has a greater one.
    pub last_seq: Seq,
    /// How much of the logs is known to be durable; `None` before the first log.
    pub log_mark: Option<LogMark>,
    /// The latest moment that the store's clock is known to have reached.
    pub time: Time,
}

/// What an edit has replaced in a state.
#[derive(Debug)]
pub struct Undo {
    removed: Vec<SegmentMeta>,
    log_floor: FileId,
    next_id: FileId,
    last_seq: Seq,
    log_mark: Option<LogMark>,
    time: Time,
}

impl ManifestState {
    /// A store without segments. File numbers start at 1.
    pub fn new(header: StoreIdentity) -> Self {
        ManifestState {
            header,
            earlier_version: None,
            segments: BTreeMap::new(),
            log_floor: FileId(0),
            next_id: FileId(1),
            last_seq: 0,
            log_mark: None,
            time: Time::START,
        }
    }

    /// The greatest sequence number in any segment; 0 without segments.
    pub fn newest_in_segments(&self) -> Seq {
        self.segments.values().map(|meta| meta.max_seq).max().unwrap_or(0)
    }

    /// Applies `edit`, removals first. `next_id` never decreases and stays above every added segment. Returns
    /// what [`take_back`](Self::take_back) needs.
    ///
    /// # Errors
    /// The errors of [`check`](Self::check), with the state unchanged.
    pub fn apply(&mut self, edit: &Edit) -> Result<Undo, String> {
        self.check(edit)?;
        let undo = Undo {
            removed: edit.removed.iter().filter_map(|id| self.segments.remove(id)).collect(),
            log_floor: self.log_floor,
            next_id: self.next_id,
            last_seq: self.last_seq,
            log_mark: self.log_mark,
            time: self.time,
        };
        for meta in &edit.added {
            self.segments.insert(meta.id, meta.clone());
            self.next_id = self.next_id.max(FileId(meta.id.0.saturating_add(1)));
        }
        self.log_floor = edit.log_floor.unwrap_or(self.log_floor);
        self.next_id = self.next_id.max(edit.next_id.unwrap_or(self.next_id));
        self.last_seq = edit.last_seq.unwrap_or(self.last_seq);
        self.log_mark = self.log_mark.max(edit.log_mark);
        self.time = self.time.max(edit.time.unwrap_or_default());
        Ok(undo)
    }

    /// Restores the state before the last applied edit.
    pub fn take_back(&mut self, edit: &Edit, undo: Undo) {
        let Undo { removed, log_floor, next_id, last_seq, log_mark, time } = undo;
        edit.added.iter().for_each(|meta| drop(self.segments.remove(&meta.id)));
        self.segments.extend(removed.into_iter().map(|meta| (meta.id, meta)));
        (self.log_floor, self.next_id, self.last_seq, self.log_mark, self.time) =
            (log_floor, next_id, last_seq, log_mark, time);
    }

    /// Checks whether [`apply`](Self::apply) accepts an edit.
    ///
    /// # Errors
    /// A message if the edit removes a missing segment, adds one that exists, lowers the log floor or the
    /// last sequence number, or sets the log floor above the next file number.
    pub fn check(&self, edit: &Edit) -> Result<(), String> {
        let mut removed = BTreeSet::new();
        for id in &edit.removed {
            if !self.segments.contains_key(id) || !removed.insert(*id) {
                return Err(format!("the edit removes segment {id}, which does not exist"));
            }
        }
        let mut added = BTreeSet::new();
        for id in edit.added.iter().map(|meta| meta.id) {
            if (self.segments.contains_key(&id) && !removed.contains(&id)) || !added.insert(id) {
                return Err(format!("the edit adds segment {id}, which already exists"));
            }
        }
        if edit.log_floor.is_some_and(|floor| floor < self.log_floor)
            || edit.last_seq.is_some_and(|seq| seq < self.last_seq)
        {
            return Err("the edit lowers the log floor or the last sequence number".into());
        }
        let next_id = self.next_id.max(edit.next_id.unwrap_or(self.next_id));
        let next_id = added.last().map_or(next_id, |id| next_id.max(FileId(id.0.saturating_add(1))));
        if edit.log_floor.is_some_and(|floor| floor > next_id) {
            return Err("the log floor is above the next file number".into());
        }
        Ok(())
    }

    /// Checks that sums over all segments are far from overflow.
    ///
    /// # Errors
    /// A message that says what is impossible.
    pub fn check_totals(&self) -> Result<(), String> {
        const TOTAL_MAX: u64 = 1 << 56;
        type Number = fn(&SegmentMeta) -> u64;
        let numbers: [(&str, Number); 4] = [
            ("entries", |meta| meta.entries),
            ("ranges", |meta| meta.ranges),
            ("bytes", |meta| meta.file_bytes),
            ("bytes before compression", |meta| meta.raw_bytes),
        ];
        for (what, number) in numbers {
            let total = self.segments.values().map(number).fold(0, u64::saturating_add);
            if total > TOTAL_MAX {
                return Err(format!("its segments have {total} {what}, more than is possible"));
            }
        }
        Ok(())
    }

    /// Checks that the levels below 0 are sorted runs (I10): no two segments of such a level overlap.
    ///
    /// # Errors
    /// A message that names two overlapping segments.
    pub fn check_levels(&self) -> Result<(), String> {
        let sorted = self.segments.values().filter_map(|meta| Some((meta.place.level()?, meta)));
        let mut sorted: Vec<(u8, &SegmentMeta)> = sorted.filter(|(level, _)| *level > 0).collect();
        sorted.sort_unstable_by(|(a_level, a), (b_level, b)| {
            (a_level, &a.smallest).cmp(&(b_level, &b.smallest))
        });
        let overlapping = sorted.windows(2).find_map(|pair| match pair {
            [(a_level, a), (b_level, b)] if a_level == b_level && a.largest >= b.smallest => Some((a, b)),
            _ => None,
        });
        match overlapping {
            None => Ok(()),
            Some((a, b)) => Err(overlap(a, b)),
        }
    }

    /// The edit that turns an empty store into this state.
    pub fn snapshot(&self) -> Edit {
        Edit {
            removed: Vec::new(),
            added: self.segments.values().cloned().collect(),
            log_floor: Some(self.log_floor),
            next_id: Some(self.next_id),
            last_seq: Some(self.last_seq),
            log_mark: self.log_mark,
            time: Some(self.time).filter(|time| *time > Time::START),
        }
    }
}

/// The message that two segments of a sorted level overlap.
pub(crate) fn overlap(a: &SegmentMeta, b: &SegmentMeta) -> String {
    let (a, b) = if a.smallest <= b.smallest { (a, b) } else { (b, a) };
    let end = if a.largest == last_key() {
        "\\xff…".to_owned() // 64 KiB of it.
    } else {
        a.largest.escape_ascii().to_string()
    };
    format!(
        "segments {} and {} of level {} overlap: the first ends at key \"{}\", the second starts at \"{}\"",
        a.id,
        b.id,
        a.place.last_level(),
        end,
        b.smallest.escape_ascii()
    )
}
