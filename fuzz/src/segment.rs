//! Reads a segment in every way and compares the results.

use crate::disk::SimFs;
use crate::{assert_named, named};
use sidebloom::internal::FileId;
use sidebloom::internal::fuzz::{Access, BlockCache, Direction, Entry, Segment};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

/// Entries with their keys, in scan order.
pub type Entries = Vec<(Vec<u8>, Entry)>;

/// Maximum number of keys looked up one by one.
const KEYS: usize = 40;

/// Opens a file as the segment that its footer names.
pub fn open(file: &[u8]) -> Option<Arc<Segment>> {
    let id = file.len().checked_sub(56).and_then(|at| file[at..].first_chunk::<8>());
    let id = FileId(id.map_or(0, |id| u64::from_le_bytes(*id)));
    let (fs, path) = (SimFs::new(), Path::new("segment"));
    fs.write(path, file);
    named(Segment::open(&fs, path, id, Arc::new(BlockCache::new(1 << 16)), Arc::default(), true))
        .map(Arc::new)
}

/// A scan up to its end or the first error.
pub fn walk(
    segment: &Arc<Segment>,
    direction: Direction,
    start: Bound<&[u8]>,
    access: Access,
) -> Option<Entries> {
    let mut found = Vec::new();
    let mut cursor = named(segment.cursor(direction, start, access))?;
    loop {
        match cursor.advance() {
            Ok(true) => {
                let entry = Entry { seq: cursor.seq(), kind: cursor.kind(), value: cursor.to_value() };
                found.push((cursor.key().to_vec(), entry));
            }
            Ok(false) => return Some(found),
            Err(error) => {
                assert_named(&error);
                assert!(matches!(cursor.advance(), Ok(false)), "after an error the walk is at its end");
                return None;
            }
        }
    }
}

/// Reads a segment in all ways. If `verify` finds no problem, all must succeed and agree.
pub fn interrogate(segment: &Arc<Segment>) {
    let mut verified = Vec::new();
    let sound = named(segment.verify(&mut |key, seq, kind| {
        verified.push((key.to_vec(), seq, kind));
        Ok(())
    }))
    .is_some();
    let forward = walk(segment, Direction::Forward, Bound::Unbounded, Access::Scan);
    let others = [(Direction::Forward, Access::Range), (Direction::Reverse, Access::Scan)]
        .map(|(direction, access)| walk(segment, direction, Bound::Unbounded, access));
    let keys: Vec<Vec<u8>> = verified.iter().map(|(key, ..)| key.clone()).take(KEYS).collect();
    let beside = keys.iter().map(|key| [key.as_slice(), b"\0"].concat());
    let asked: Vec<Vec<u8>> = keys.iter().cloned().chain(beside).chain([Vec::new(), vec![0xff; 9]]).collect();
    let answers: Vec<_> =
        asked.iter().map(|key| named(segment.get(key, segment.store().hasher.hash(key)))).collect();
    let bounds = asked.iter().flat_map(|key| [Bound::Included(&**key), Bound::Excluded(&**key)]);
    let directions = [Direction::Forward, Direction::Reverse];
    let tails: Vec<_> = bounds
        .flat_map(|start| directions.map(|direction| (direction, start)))
        .step_by(5)
        .map(|(direction, start)| (direction, start, walk(segment, direction, start, Access::Range)))
        .collect();
    if !sound {
        return;
    }
    let forward = forward.expect("verified, and yet a walk fails");
    let [again, mut backward] = others.map(|entries| entries.expect("verified, and yet a walk fails"));
    backward.reverse();
    assert_eq!(again, forward);
    assert_eq!(backward, forward);
    assert!(forward.is_sorted_by(|a, b| a.0 < b.0), "keys out of order");
    assert_eq!(forward.len() as u64, segment.summary().entries);
    assert!(
        forward
            .iter()
            .map(|(key, entry)| (key, entry.seq, entry.kind))
            .eq(verified.iter().map(|(key, seq, kind)| (key, *seq, *kind)))
    );
    for (key, answer) in asked.iter().zip(answers) {
        let expected = forward.iter().find(|(found, _)| found == key).map(|(_, entry)| entry);
        assert_eq!(answer.expect("verified, and yet a get fails").as_ref(), expected);
    }
    for (direction, start, tail) in tails {
        let inside = |key: &[u8]| match (direction, start) {
            (_, Bound::Unbounded) => true,
            (Direction::Forward, Bound::Included(bound)) => key >= bound,
            (Direction::Forward, Bound::Excluded(bound)) => key > bound,
            (Direction::Reverse, Bound::Included(bound)) => key <= bound,
            (Direction::Reverse, Bound::Excluded(bound)) => key < bound,
        };
        let mut expected: Entries = forward.iter().filter(|(key, _)| inside(key)).cloned().collect();
        if direction == Direction::Reverse {
            expected.reverse();
        }
        assert_eq!(tail.expect("verified, and yet a walk fails"), expected);
    }
}
