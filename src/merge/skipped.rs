//! What a range has skipped because it cannot be read.

use super::damage::{Damage, DamagedPart};
use crate::error::Error;
use crate::id::FileId;
use crate::segment::{count_blocks, describe};
use crate::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// What ranges have skipped because it cannot be read: see
/// [`Range::skip_damaged`](crate::Range::skip_damaged). Clones share their contents. It grows with the
/// damage; [`take_keys`](Self::take_keys) empties it, even during a range.
#[derive(Clone, Default)]
pub struct Skipped(Arc<Mutex<BTreeMap<Stretch, Damage>>>);

/// Keys that a range has skipped: consecutive blocks, or a whole segment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SkippedKeys {
    /// The reason, with the file, the offset and the keys.
    pub error: Error,
    /// The keys that may be missing from the range. There may be none. Pass them to
    /// [`Db::range`](crate::Keyspace::range), or to [`Db::delete_range`](crate::Keyspace::delete_range)
    /// before you write them again.
    pub keys: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// How many blocks cannot be read; `None` if unknown.
    pub blocks: Option<u64>,
}

/// The segment, whether its range tombstones are meant, and the last of the keys. So neighbours in a segment
/// are neighbours in this order.
type Stretch = (FileId, bool, Vec<u8>);

impl Skipped {
    /// Empty.
    pub fn new() -> Self {
        Skipped::default()
    }

    /// Whether nothing was skipped since the last [`take_keys`](Self::take_keys).
    pub fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    /// What was skipped, by file and then by key. Consecutive blocks count once, even if both ends of a range
    /// have met them.
    pub fn keys(&self) -> Vec<SkippedKeys> {
        lock(&self.0).values().cloned().map(SkippedKeys::from).collect()
    }

    /// Returns [`keys`](Self::keys) and clears them.
    pub fn take_keys(&self) -> Vec<SkippedKeys> {
        std::mem::take(&mut *lock(&self.0)).into_values().map(SkippedKeys::from).collect()
    }

    /// Adds to what was skipped, unless already there.
    pub(crate) fn add(&self, mut damage: Damage) {
        let place =
            |damage: &Damage| (damage.segment, damage.part == DamagedPart::Ranges, damage.up_to.clone());
        let mut all = lock(&self.0);
        if let Some((next, found)) = all.range(place(&damage)..).next()
            && (next.0, next.1) == (damage.segment, damage.part == DamagedPart::Ranges)
        {
            if start_of(&found.from) <= start_of(&damage.from) {
                return;
            }
            if found.from == Bound::Excluded(damage.up_to.clone()) && found.joins(&damage) {
                let next = next.clone();
                if let Some(found) = all.remove(&next) {
                    damage = joined(damage, found);
                }
            }
        }
        if let Bound::Excluded(after) = &damage.from
            && let before = (damage.segment, damage.part == DamagedPart::Ranges, after.clone())
            && all.get(&before).is_some_and(|found| found.joins(&damage))
            && let Some(found) = all.remove(&before)
        {
            damage = joined(found, damage);
        }
        all.insert(place(&damage), damage);
    }
}

impl Damage {
    /// Whether both are blocks.
    fn joins(&self, other: &Damage) -> bool {
        let is_blocks = |damage: &Damage| matches!(damage.part, DamagedPart::Blocks(_));
        is_blocks(self) && is_blocks(other)
    }
}

/// Blocks, and the ones that follow them.
fn joined(first: Damage, behind: Damage) -> Damage {
    let part = match (first.part, behind.part) {
        (DamagedPart::Blocks(a), DamagedPart::Blocks(b)) => DamagedPart::Blocks(a.zip(b).map(|(a, b)| a + b)),
        (part, _) => part,
    };
    Damage { part, up_to: behind.up_to, ..first }
}

/// The key of a lower bound, and whether it is excluded.
fn start_of(from: &Bound<Vec<u8>>) -> (&[u8], bool) {
    match from {
        Bound::Included(key) => (key, false),
        Bound::Excluded(key) => (key, true),
        Bound::Unbounded => (&[], false),
    }
}

impl From<Damage> for SkippedKeys {
    fn from(damage: Damage) -> Self {
        let Damage { error, offset, part, from, up_to, .. } = damage;
        let (what, blocks) = match part {
            DamagedPart::Blocks(blocks) => (count_blocks(blocks), blocks),
            DamagedPart::Segment => ("the segment".to_owned(), None),
            DamagedPart::Ranges => ("the range tombstones".to_owned(), None),
        };
        let begin = match &from {
            Bound::Included(from) => format!("from \"{}\" ", from.escape_ascii()),
            Bound::Excluded(after) => format!("greater than \"{}\" and ", after.escape_ascii()),
            Bound::Unbounded => String::new(),
        };
        let keys = format!("{begin}up to \"{}\"", up_to.escape_ascii());
        SkippedKeys {
            error: describe(error, offset, &what, &keys),
            keys: (from, Bound::Included(up_to)),
            blocks,
        }
    }
}

impl fmt::Debug for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Skipped").field(&*lock(&self.0)).finish()
    }
}
