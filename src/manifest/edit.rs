//! Edits, and the state that they fold into.

use super::level::LEVELS;
use crate::id::FileId;
use crate::key::Seq;
use crate::segment::{SegmentSummary, StoreIdentity};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

/// A segment as the manifest lists it. Dereferences to the segment's own summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentMeta {
    /// Its level, or its [`Quarantine`](super::Quarantine) code.
    pub level: u8,
    /// What the segment says of itself.
    pub summary: SegmentSummary,
}

impl Deref for SegmentMeta {
    type Target = SegmentSummary;
    #[inline]
    fn deref(&self) -> &SegmentSummary {
        &self.summary
    }
}

/// How much of the logs is known to be durable. Logs with lower numbers are durable as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogMark {
    /// The log, which must be there.
    pub log: FileId,
    /// So many bytes of it were synced.
    pub bytes: u64,
    /// The sequence number after the last operation in them.
    pub next_seq: Seq,
}

/// One atomic change of a store: all of it is durable, or none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edit {
    /// Segments that leave. A segment that changes its level is both removed and added.
    pub removed: Vec<FileId>,
    /// Segments that join.
    pub added: Vec<SegmentMeta>,
    /// Logs with lower numbers are obsolete: all that they held stands in segments.
    pub log_floor: Option<FileId>,
    /// Files created from now on have this number or a greater one.
    pub next_id: Option<FileId>,
    /// The greatest sequence number that stands in segments.
    pub last_seq: Option<Seq>,
    /// How much of the logs is known to be durable; less than was known before changes nothing.
    pub log_mark: Option<LogMark>,
}

/// The sum of all edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestState {
    /// Drawn at creation.
    pub header: StoreIdentity,
    /// The segments of the store.
    pub segments: BTreeMap<FileId, SegmentMeta>,
    /// Logs with lower numbers are obsolete.
    pub log_floor: FileId,
    /// The least number that no file had yet when the last edit was written. Logs take numbers without an edit: a store that is
    /// opened looks at its directory too.
    pub next_id: FileId,
    /// The greatest sequence number that stands in segments.
    pub last_seq: Seq,
    /// How much of the logs is known to be durable. `None` in a store that has had none yet.
    pub log_mark: Option<LogMark>,
}

impl ManifestState {
    /// A store without segments. File numbers begin with 1.
    pub fn new(header: StoreIdentity) -> Self {
        ManifestState {
            header,
            segments: BTreeMap::new(),
            log_floor: FileId(0),
            next_id: FileId(1),
            last_seq: 0,
            log_mark: None,
        }
    }

    /// Adds `edit`, removals first. `next_id` never goes down, and moves beyond every segment that joins.
    ///
    /// # Errors
    /// In words, with the state unchanged: the edit removes a segment that is not there, adds one that is, or lowers the log floor or the
    /// last sequence number.
    pub fn apply(&mut self, edit: &Edit) -> Result<(), String> {
        self.check(edit)?;
        for id in &edit.removed {
            self.segments.remove(id);
        }
        for meta in &edit.added {
            self.segments.insert(meta.id, meta.clone());
            self.next_id = self.next_id.max(FileId(meta.id.0.saturating_add(1)));
        }
        self.log_floor = edit.log_floor.unwrap_or(self.log_floor);
        self.next_id = self.next_id.max(edit.next_id.unwrap_or(self.next_id));
        self.last_seq = edit.last_seq.unwrap_or(self.last_seq);
        self.log_mark = self.log_mark.max(edit.log_mark);
        Ok(())
    }

    fn check(&self, edit: &Edit) -> Result<(), String> {
        let mut removed = BTreeSet::new();
        for id in &edit.removed {
            if !self.segments.contains_key(id) || !removed.insert(*id) {
                return Err(format!("the edit removes segment {id}, which is not there"));
            }
        }
        let mut added = BTreeSet::new();
        for id in edit.added.iter().map(|meta| meta.id) {
            if (self.segments.contains_key(&id) && !removed.contains(&id)) || !added.insert(id) {
                return Err(format!("the edit adds segment {id}, which is there already"));
            }
        }
        if edit.log_floor.is_some_and(|floor| floor < self.log_floor)
            || edit.last_seq.is_some_and(|seq| seq < self.last_seq)
        {
            return Err("the edit lowers the log floor or the last sequence number".into());
        }
        Ok(())
    }

    /// Whether the levels below 0 are sorted runs (I10): no two segments of one of them share a key.
    ///
    /// # Errors
    /// The two segments that do, in words.
    pub fn check_levels(&self) -> Result<(), String> {
        let is_sorted = |meta: &&SegmentMeta| meta.level > 0 && usize::from(meta.level) < LEVELS;
        let mut sorted: Vec<&SegmentMeta> = self.segments.values().filter(is_sorted).collect();
        sorted.sort_unstable_by(|a, b| (a.level, &a.smallest).cmp(&(b.level, &b.smallest)));
        let overlapping = sorted.windows(2).find_map(|pair| match pair {
            [a, b] if a.level == b.level && a.largest >= b.smallest => Some((a, b)),
            _ => None,
        });
        match overlapping {
            None => Ok(()),
            Some((a, b)) => Err(format!(
                "segments {} and {} of level {} overlap: the first ends at key \"{}\", the second starts at \"{}\"",
                a.id,
                b.id,
                a.level,
                a.largest.escape_ascii(),
                b.smallest.escape_ascii()
            )),
        }
    }

    /// One edit that leads from an empty store to this state.
    pub fn snapshot(&self) -> Edit {
        Edit {
            removed: Vec::new(),
            added: self.segments.values().cloned().collect(),
            log_floor: Some(self.log_floor),
            next_id: Some(self.next_id),
            last_seq: Some(self.last_seq),
            log_mark: self.log_mark,
        }
    }
}
