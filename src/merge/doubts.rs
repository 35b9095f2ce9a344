//! What a walk that skips damage hides: rows that the unreadable parts may have overwritten or deleted (I6).
//!
//! 1. An unreadable part of a segment has keys between two bounds, and no entry newer than the segment's
//!    newest. It counts as a range tombstone with that sequence number, so every older row there is hidden. A
//!    newer row is certain.
//! 2. If the range tombstones of a segment cannot be read, the same applies to all keys from its smallest to
//!    its largest, including its own.
//! 3. A source meets damage when it moves to where the damage begins, in the direction of the walk. So no row
//!    that it makes doubtful was seen before.

use super::damage::{Damage, DamagedPart};
use super::skipped::Skipped;
use crate::direction::Direction;
use crate::error::{Error, Result};
use crate::id::FileId;
use crate::key::Seq;
use crate::live::{LiveSegment, LiveSet};
use crate::ranges::Span;
use crate::remedy::Remedy;
use std::collections::BTreeSet;
use std::ops::Bound;

/// The damage that a walk has met.
pub(crate) struct Doubts {
    skipped: Skipped,
    direction: Direction,
    /// The damage that the walk has not passed yet.
    zones: Vec<Zone>,
    /// The segments whose range tombstones are known to be unreadable.
    unranged: BTreeSet<FileId>,
}

/// Keys whose entries older than `seq` are doubtful.
#[derive(PartialEq, Eq)]
struct Zone {
    start: Vec<u8>,
    /// The key after the last one.
    end: Vec<u8>,
    seq: Seq,
}

/// Whether a walk may continue after the error: bytes cannot be read, and trying again would not help.
pub(crate) fn may_skip(error: &Error) -> bool {
    Remedy::of(error) == Remedy::Quarantine
}

impl Doubts {
    /// None yet.
    pub fn new(skipped: &Skipped, direction: Direction) -> Self {
        Doubts { skipped: skipped.clone(), direction, zones: Vec::new(), unranged: BTreeSet::new() }
    }

    /// Adds what a source could not read.
    pub fn add(&mut self, damage: Damage) {
        let start = match &damage.from {
            Bound::Included(key) => key.clone(),
            Bound::Excluded(key) => behind(key),
            Bound::Unbounded => Vec::new(),
        };
        let zone = Zone { start, end: behind(&damage.up_to), seq: damage.newest };
        if damage.part == DamagedPart::Segment {
            self.unranged.insert(damage.segment); // It is reported once.
        }
        if !self.zones.contains(&zone) {
            self.zones.push(zone);
        }
        self.skipped.add(damage);
    }

    /// Narrows a span around `key` to where the doubts and the range tombstones of segments stay the same,
    /// and adds them to it.
    pub fn narrow(&mut self, live: &LiveSet, key: &[u8], span: &mut Span) -> Result<()> {
        let direction = self.direction;
        self.zones.retain(|zone| match direction {
            Direction::Forward => key < zone.end.as_slice(),
            Direction::Reverse => key >= zone.start.as_slice(),
        });
        self.zones.iter().for_each(|zone| zone.narrow(key, span));
        live.ranged().narrow(key, span, |segment, span| self.ask(segment, key, span))
    }

    fn ask(&mut self, segment: &LiveSegment, key: &[u8], span: &mut Span) -> Result<()> {
        if !self.unranged.contains(&segment.meta.id) {
            match segment.file.ask_ranges(|ranges| ranges.narrow(key, span)) {
                Err(error) if may_skip(&error) => {
                    self.skipped.add(Damage::of_ranges(&segment.meta.summary, error));
                    self.unranged.insert(segment.meta.id);
                }
                asked => return asked,
            }
        }
        let (start, end) = (segment.meta.smallest.clone(), behind(&segment.meta.largest));
        Zone { start, end, seq: segment.meta.max_seq }.narrow(key, span);
        Ok(())
    }
}

impl Zone {
    /// As a range tombstone does.
    fn narrow(&self, key: &[u8], span: &mut Span) {
        if key < self.start.as_slice() {
            span.narrow(None, Some(&self.start));
        } else if key >= self.end.as_slice() {
            span.narrow(Some(&self.end), None);
        } else {
            span.narrow(Some(&self.start), Some(&self.end));
            span.seq = span.seq.max(self.seq);
        }
    }
}

/// The key after `key`, longer than any if `key` is as long as keys can be.
fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}
