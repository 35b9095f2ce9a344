//! The sources of a merge: memtables and sorted runs behind one interface.

use super::run_cursor::{RunCursor, RunPosition};
use crate::direction::Direction;
use crate::error::Result;
use crate::key::{EntryKind, LONG_FRONT_BYTES, LongFront, Seq, SplitKey, Value};
use crate::memtable::MemtableCursor;
use std::ops::Bound;

/// A sorted source of entries, with each key at most once.
#[expect(clippy::large_enum_variant, reason = "a few for each walk, mostly the large one")]
pub enum MergeSource {
    /// A memtable, as of a sequence number.
    Memtable(MemtableCursor),
    /// The segments of a sorted run, in sequence; or a single segment.
    Run(RunCursor),
}

macro_rules! each {
    ($source:expr, $cursor:ident => $call:expr) => {
        match $source {
            MergeSource::Memtable($cursor) => $call,
            MergeSource::Run(RunCursor { at: RunPosition::Within($cursor), .. }) => $call,
            MergeSource::Run(_) => Default::default(),
        }
    };
}

impl MergeSource {
    pub(super) fn seek(&mut self, direction: Direction, start: Bound<&[u8]>) {
        match self {
            MergeSource::Memtable(cursor) => cursor.seek(direction, start),
            MergeSource::Run(cursor) => cursor.seek(direction, start),
        }
    }

    /// Sets whether the walk wants keys only. Values mean nothing then.
    pub(super) fn want_keys(&mut self, keys_only: bool) -> Result<()> {
        match self {
            MergeSource::Memtable(_) => Ok(()),
            MergeSource::Run(cursor) => cursor.want_keys(keys_only),
        }
    }

    /// Sets whether the walk calls [`load_value`](Self::load_value) before it uses a value.
    pub(super) fn defer_values(&mut self, defers: bool) {
        if let MergeSource::Run(cursor) = self {
            cursor.defer_values(defers);
        }
    }

    /// Makes the current value available.
    #[inline]
    pub(super) fn load_value(&mut self) -> Result<()> {
        match self {
            MergeSource::Run(RunCursor { at: RunPosition::Within(cursor), .. }) => cursor.load_values(),
            _ => Ok(()),
        }
    }

    /// Whether the values of all entries at hand are available.
    pub(super) fn has_values(&self) -> bool {
        match self {
            MergeSource::Run(RunCursor { at: RunPosition::Within(cursor), .. }) => cursor.has_values(),
            _ => true,
        }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        match self {
            MergeSource::Memtable(cursor) => Ok(cursor.advance()),
            MergeSource::Run(cursor) => cursor.advance(),
        }
    }

    /// Bytes of blocks that it has read from files.
    pub(super) fn read_bytes(&self) -> u64 {
        match self {
            MergeSource::Memtable(_) => 0,
            MergeSource::Run(cursor) => cursor.read_bytes(),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        !matches!(self, MergeSource::Run(RunCursor { at: RunPosition::Before(_), .. }))
    }

    #[inline]
    pub(super) fn key(&self) -> SplitKey<'_> {
        match self {
            MergeSource::Run(RunCursor { at: RunPosition::Before(_), first, .. }) => first.as_slice().into(),
            source => each!(source, cursor => cursor.key()),
        }
    }

    /// The [front](SplitKey::front) of the key.
    #[inline]
    pub(super) fn front(&self) -> u128 {
        match self {
            MergeSource::Run(RunCursor { at: RunPosition::Before(_), first, .. }) => {
                SplitKey::from(first.as_slice()).front()
            }
            source => each!(source, cursor => cursor.front()),
        }
    }

    /// Moves to the next entry if it is in the same block or chunk, and returns its front.
    #[inline]
    pub(super) fn step_to(&mut self) -> Option<u128> {
        each!(self, cursor => (cursor.ahead() > 0).then(|| {
            cursor.step();
            cursor.front()
        }))
    }

    /// Appends the fronts of the current entry and those [ahead](Self::ahead), of a forward walk. Returns the
    /// length of all of these keys; `None` if that or the fronts are not enough to pass them.
    pub(super) fn list_fronts(&self, out: &mut Vec<LongFront>) -> Option<usize> {
        each!(self, cursor => cursor.list_fronts(out)).filter(|len| *len <= LONG_FRONT_BYTES)
    }

    #[inline]
    pub(super) fn ahead(&self) -> usize {
        each!(self, cursor => cursor.ahead())
    }

    #[inline]
    pub(super) fn key_ahead(&self, n: usize) -> SplitKey<'_> {
        each!(self, cursor => cursor.key_ahead(n))
    }

    #[inline]
    pub(super) fn step(&mut self) {
        each!(self, cursor => cursor.step())
    }

    #[inline]
    pub(super) fn puts_ahead(&self, most: usize) -> usize {
        each!(self, cursor => cursor.puts_ahead(most))
    }

    #[inline]
    pub(super) fn step_over(&mut self, n: usize) {
        each!(self, cursor => cursor.step_over(n))
    }

    #[inline]
    pub(super) fn seq(&self) -> Seq {
        each!(self, cursor => cursor.seq())
    }

    #[inline]
    pub(super) fn kind(&self) -> EntryKind {
        match self {
            MergeSource::Memtable(cursor) => cursor.kind(),
            MergeSource::Run(RunCursor { at: RunPosition::Within(cursor), .. }) => cursor.kind(),
            MergeSource::Run(_) => EntryKind::TOMBSTONE,
        }
    }

    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        each!(self, cursor => cursor.value())
    }

    #[inline]
    pub(super) fn to_value(&self) -> Value {
        each!(self, cursor => cursor.to_value())
    }
}
