//! Runs, their fences, and counts by level.

use super::*;
use crate::id::FileId;
use crate::live::LiveSet;
use crate::manifest::{Place, SegmentMeta};
use crate::segment::{Facts, OpenFiles, SegmentFile, SegmentSummary};
use crate::support::SimFs;
use proptest::collection::vec;
use proptest::prelude::*;
use std::path::Path;

fn segment(files: &Arc<OpenFiles>, id: u64, level: u8, smallest: &[u8], largest: &[u8]) -> LiveSegment {
    let (smallest, largest) = (smallest.to_vec(), largest.to_vec().into());
    let facts = Facts { smallest, largest, entries: 1, min_seq: 1, max_seq: id, ..Facts::default() };
    let (id, version, digest, file_bytes, data_bytes) = (FileId(id), 0, 0, 1, 1);
    let summary = SegmentSummary { id, version, digest, file_bytes, data_bytes, facts };
    let file = Arc::new(SegmentFile::new(Arc::clone(files), id, digest));
    LiveSegment { meta: Arc::new(SegmentMeta { place: Place::Level(level), summary }), file, sidecar: None }
}

/// A key of one of a few keyspaces, perhaps of the default one with a head of its own.
fn stored_key() -> impl Strategy<Value = Vec<u8>> {
    let space = prop_oneof![Just(Space::DEFAULT), (0u32..8).prop_map(Space::new)];
    (space, vec(prop_oneof![Just(0u8), Just(1), Just(0xff)], 0..4))
        .prop_map(|(space, key)| space.stored(&key))
}

proptest! {
    #[test]
    fn the_rest_of_a_key_is_what_follows_the_prefix(
        prefix in vec(0u8..2, 0..12),
        key in vec(0u8..2, 0..22),
        longer: bool,
    ) {
        let key = if longer { [&prefix[..], &key].concat() } else { key };
        let rest = key.strip_prefix(&prefix[..]);
        prop_assert_eq!(SharedPrefix::new(&prefix).rest_of(&key), rest);
        prop_assert_eq!(SharedPrefix::new(&prefix).fence(&key), rest.map(prefix8));
    }

    #[test]
    fn runs_find_the_segments_that_a_linear_search_finds(
        common in "a{0,10}",
        level0 in vec((vec(0u8..3, 0..11), vec(0u8..3, 0..11)), 0..5),
        sorted in proptest::collection::btree_set(vec(0u8..3, 0..11), 0..10),
        sought in vec(vec(0u8..3, 0..11), 1..20),
    ) {
        let whole = |rest: &[u8]| [common.as_bytes(), rest].concat();
        let files = Arc::new(OpenFiles::new(Arc::new(SimFs::new()), Path::new("/"), 0, 8, false));
        let of_level0 = level0.iter().enumerate().map(|(i, (a, b))| {
            segment(&files, i as u64, 0, &whole(a.min(b)), &whole(a.max(b)))
        });
        let ends: Vec<_> = sorted.iter().map(|key| whole(key)).collect();
        let of_level1 = ends.chunks_exact(2).enumerate().map(|(i, ends)| {
            segment(&files, 100 + i as u64, 1, &ends[0], &ends[1])
        });
        let live = LiveSet::new(of_level0.chain(of_level1));
        for prefix in sought.iter().map(|key| whole(key)).chain(sought.clone()).chain(ends.clone()) {
            let holds = |s: &&LiveSegment| {
                let end = crate::key::prefix_end(&prefix);
                s.meta.largest >= prefix && end.is_none_or(|end| s.meta.smallest < end)
            };
            let found: Vec<FileId> = live
                .run_groups()
                .iter()
                .filter_map(|group| Some((group, group.fences(&prefix)?)))
                .flat_map(|(group, fences)| group.runs().iter().flat_map(move |run| run.within(fences)))
                .map(|fenced| fenced.meta.id)
                .collect();
            for needed in live.segments().filter(holds) {
                prop_assert!(found.contains(&needed.meta.id), "{:?}", prefix);
            }
        }
        for key in sought.iter().map(|key| whole(key)).chain(sought.clone()).chain(ends.clone()) {
            let linear: Vec<FileId> =
                live.segments().filter(|s| s.overlaps(&key, &key)).map(|s| s.meta.id).collect();
            let mut found = Vec::new();
            for group in live.run_groups().iter() {
                let Some(fence) = group.fence(&key) else { continue };
                for run in group.runs() {
                    let at = run.position(fence, &key);
                    let segment = at.map(|at| live.levels()[run.level()].segments().get(at).unwrap().meta.id);
                    let fenced = run.find(fence, &key);
                    prop_assert_eq!(fenced.map(|fenced| fenced.meta.id), segment);
                    match run.seek(fence) {
                        Sought::In(sought) => prop_assert_eq!(Some(sought.meta.id), segment),
                        Sought::Nowhere => prop_assert_eq!(None, segment),
                        Sought::Unclear => {}
                    }
                    prop_assert_eq!(fenced.and_then(|fenced| run.position_of(fenced, fence, &key)), at);
                    found.extend(segment);
                }
            }
            prop_assert_eq!(found, linear);
        }
    }

    #[test]
    fn the_groups_of_a_keys_keyspace_are_all_that_can_have_it(
        level0 in vec((stored_key(), stored_key(), any::<bool>()), 0..40),
        deeper in (stored_key(), stored_key()),
        sought in vec(stored_key(), 1..20),
        from in 0usize..10,
    ) {
        let files = Arc::new(OpenFiles::new(Arc::new(SimFs::new()), Path::new("/"), 0, 8, false));
        let segments = level0.iter().enumerate().map(|(i, (a, b, spans))| {
            let head = &a[..Space::head_bytes(a)];
            let b = if *spans { b.clone() } else { [head, &b[Space::head_bytes(b)..]].concat() };
            segment(&files, i as u64, 0, a.min(&b), a.max(&b))
        });
        let (a, b) = &deeper;
        let live = LiveSet::new(segments.chain([segment(&files, 100, 1, a.min(b), a.max(b))]));
        let groups = live.run_groups();
        let can_have = |key: &[u8]| Vec::from_iter((0..groups.len()).filter(|&i| groups[i].fence(key).is_some()));
        for key in &sought {
            let mut asked: Vec<usize> = groups.of(key, from).map(|(number, _)| number).collect();
            prop_assert!(asked.is_sorted() && asked.iter().all(|&number| number >= from));
            let of_others = |number: usize| groups[number].keyspace().is_some_and(|space| !space.contains(key));
            prop_assert!(!asked.iter().any(|&number| of_others(number)), "{asked:?}");
            asked.retain(|&number| groups[number].fence(key).is_some());
            prop_assert_eq!(asked, Vec::from_iter(can_have(key).into_iter().filter(|&number| number >= from)));
        }
        for keys in [&sought[..], &sought[..1]] {
            let asked: Vec<usize> =
                groups.of_any(keys.iter().map(Vec::as_slice)).map(|(number, _)| number).collect();
            prop_assert!(asked.is_sorted());
            prop_assert!(keys.iter().flat_map(|key| can_have(key)).all(|number| asked.contains(&number)));
        }
    }

    #[test]
    fn counts_add_up_level_by_level_until_one_is_full(
        counts in proptest::array::uniform7([0..=LevelCounts::MAX as u64, 0..=LevelCounts::MAX as u64]),
    ) {
        let [mut a, mut b] = [LevelCounts::default(); 2];
        for (level, [x, y]) in counts.iter().enumerate() {
            (0..*x).for_each(|_| a += LevelCounts::one(level));
            (0..*y).for_each(|_| b += LevelCounts::one(level));
        }
        prop_assert!(!a.is_full() && !b.is_full());
        let sum = LevelCounts::from_bits((a + b).to_bits());
        for (level, [x, y]) in counts.iter().enumerate() {
            prop_assert_eq!(sum.of(level), x + y);
        }
        prop_assert_eq!(sum.is_full(), counts.iter().any(|[x, y]| x + y > LevelCounts::MAX as u64));
    }
}
