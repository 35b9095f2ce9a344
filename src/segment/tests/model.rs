//! A segment returns exactly what was written to it: checked against a map.

use super::*;
use crate::direction::Direction;
use crate::key::MAX_SEQ;
use crate::support::sized;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

/// Keys of few letters, so that they share prefixes, are prefixes of one another, and differ by one byte from
/// the key looked up.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => vec(prop_oneof![Just(0u8), Just(b'a'), Just(b'b'), Just(0xff)], 0..10),
        2 => vec(any::<u8>(), 0..20),
        1 => (any::<u8>(), 0usize..300).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn entry() -> impl Strategy<Value = Entry> {
    let seq = prop_oneof![0u64..1000, 0..=MAX_SEQ];
    let value = prop_oneof![6 => vec(any::<u8>(), 0..30), 1 => (any::<u8>(), 0usize..3000).prop_map(|(b, n)| vec![b; n])];
    let late = Time::MAX.millis();
    let expiry =
        prop_oneof![3 => Just(None), 1 => (1000u64..1400).prop_map(Some), 1 => (1..=late).prop_map(Some)];
    (seq, proptest::option::weighted(0.8, value), expiry).prop_map(|(seq, value, expiry)| {
        match (value, expiry) {
            (Some(value), None) => put(seq, value),
            (Some(value), Some(millis)) => put_until(seq, millis, value),
            (None, _) => tombstone(seq),
        }
    })
}

fn options() -> impl Strategy<Value = WriterOptions> {
    let sizes = prop_oneof![Just(64usize), Just(200), Just(1000), Just(4096)];
    (sizes, proptest::sample::select(COMPRESSIONS))
        .prop_map(|(block_bytes, compression)| WriterOptions { block_bytes, compression })
}

fn expected(model: &Model, direction: Direction, start: Bound<&[u8]>) -> Vec<(Vec<u8>, Entry)> {
    let owned = |(key, entry): (&Vec<u8>, &Entry)| (key.clone(), entry.clone());
    match direction {
        Direction::Forward => model.range::<[u8], _>((start, Bound::Unbounded)).map(owned).collect(),
        Direction::Reverse => model.range::<[u8], _>((Bound::Unbounded, start)).rev().map(owned).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sized(60, 150)))]
    #[test]
    fn segment_answers_as_the_map_it_was_written_from(
        model in btree_map(key(), entry(), 1..150),
        options in options(),
        others in vec(key(), 0..20),
        cache_bytes in prop_oneof![Just(0u64), Just(2000), Just(1 << 20)],
        may_map: bool,
    ) {
        let Fixture { path, summary, .. } = &fixture(&model, options);
        let segment = open_with(path, cache_bytes, may_map).unwrap();
        let is_in_place = matches!(options.compression, Compression::None | Compression::Fsst);
        prop_assert_eq!(segment.reads_in_place(), may_map && is_in_place);
        for key in model.keys().chain(&others) {
            prop_assert_eq!(get(&segment, key).unwrap(), model.get(key).cloned());
        }
        for direction in [Direction::Forward, Direction::Reverse] {
            for access in [Access::Scan, Access::Range] {
                let all = collect(&segment, direction, Bound::Unbounded, access).unwrap();
                prop_assert_eq!(all, expected(&model, direction, Bound::Unbounded));
            }
            for key in others.iter().chain(model.keys().step_by(7)) {
                for start in [Bound::Included(&key[..]), Bound::Excluded(&key[..])] {
                    let access = if key.len() % 2 == 0 { Access::Scan } else { Access::Range };
                    let found = collect(&segment, direction, start, access).unwrap();
                    prop_assert_eq!(found, expected(&model, direction, start));
                }
            }
        }
        let mut seen = Vec::new();
        segment.verify(&mut |key, seq, kind| { seen.push((key.to_vec(), seq, kind)); Ok(()) }).unwrap();
        let entries = model.iter().map(|(key, entry)| (key.clone(), entry.seq, entry.kind));
        prop_assert_eq!(seen, entries.collect::<Vec<_>>());
        prop_assert_eq!(segment.summary(), summary);
    }

    /// Looks up every string of up to five letters: neighbours of every kind around every key, mostly absent.
    #[test]
    fn get_finds_exactly_the_keys_that_are_there(chosen in proptest::sample::subsequence(words(), 1..63)) {
        let model: Model = chosen.iter().enumerate().map(|(i, word)| (word.clone(), put(i as u64, word.clone()))).collect();
        let fixture = fixture(&model, WriterOptions::default());
        for word in words() {
            prop_assert_eq!(get(&fixture.segment, &word).unwrap(), model.get(&word).cloned());
        }
    }
}

/// All strings of a and b of up to five letters.
fn words() -> Vec<Vec<u8>> {
    let of_length =
        |len: u32| (0..1u32 << len).map(move |bits| (0..len).map(|i| b'a' + (bits >> i & 1) as u8).collect());
    (0..=5).flat_map(of_length).collect()
}

#[test]
fn summary_counts_what_was_written() {
    let model = songs(500);
    for &compression in COMPRESSIONS {
        let Fixture { path, summary, segment, .. } =
            &fixture(&model, WriterOptions { block_bytes: 512, compression });
        assert_eq!((summary.entries, summary.tombstones), (500, 56));
        assert_eq!((&summary.smallest[..], &summary.largest[..]), (&b"song:000000"[..], &b"song:000499"[..]));
        assert_eq!((summary.min_seq, summary.max_seq), (100, 599));
        let raw: usize = model.iter().map(|(key, entry)| key.len() + entry.value.len()).sum();
        assert_eq!(summary.raw_bytes, raw as u64);
        let file = std::fs::read(path).unwrap();
        assert_eq!(summary.file_bytes, file.len() as u64);
        assert_eq!(summary.digest, crate::hash::digest(&file[..file.len() - format::FOOTER_BYTES]));
        let index_bytes = index_bytes(segment);
        assert!(summary.data_bytes + index_bytes < summary.file_bytes);
        assert!(index_bytes > 0 && index_bytes < summary.data_bytes / 2);
        assert_eq!((segment.store(), segment.tail.compression, segment.id()), (STORE, compression, ID));
        assert!(compression == Compression::None || summary.data_bytes < summary.raw_bytes * 3 / 4);
    }
}

#[test]
fn largest_keys_and_values_come_back() {
    let long = |last: u8| [vec![b'k'; crate::key::MAX_STORED_KEY_BYTES - 1], vec![last]].concat();
    let noise = |n: usize| -> Vec<u8> {
        let mut state = n as u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..n).map(|_| next()).collect()
    };
    let mut model: Model = (0..40).map(|i| (long(i), put(u64::from(i), [i]))).collect();
    model.insert(Vec::new(), put(MAX_SEQ, "empty key"));
    model.insert(b"large".to_vec(), put(1, noise(3_000_000)));
    model.insert(b"largest".to_vec(), put(2, vec![7; crate::MAX_VALUE_BYTES]));
    model.insert(b"largf".to_vec(), put(3, "after it"));
    for &compression in COMPRESSIONS {
        let Fixture { segment, .. } = &fixture(&model, WriterOptions { compression, ..Default::default() });
        for (key, entry) in &model {
            assert!(get(segment, key).unwrap().as_ref() == Some(entry));
        }
        for direction in [Direction::Forward, Direction::Reverse] {
            let all = collect(segment, direction, Bound::Unbounded, Access::Scan).unwrap();
            assert!(all == expected(&model, direction, Bound::Unbounded));
        }
        segment.verify(&mut |_, _, _| Ok(())).unwrap();
    }
}

#[test]
fn values_of_zeros_end_a_block_that_would_decode_to_too_much() {
    let zeros = vec![0; 14 << 20];
    let row = |i: u8| (vec![i], put(i.into(), zeros.clone()));
    let model: Model = (0..5).map(row).chain([(vec![5], put(5, "x"))]).collect();
    let options = WriterOptions { block_bytes: 1 << 20, compression: Compression::Fsst };
    let segment = fixture(&model, options).segment;
    for access in [Access::Scan, Access::Range] {
        let all = collect(&segment, Direction::Forward, Bound::Unbounded, access).unwrap();
        assert!(all == expected(&model, Direction::Forward, Bound::Unbounded));
    }
    segment.verify(&mut |_, _, _| Ok(())).unwrap();
}

#[test]
fn entries_that_break_the_rules_are_refused_and_leave_the_segment_sound() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let mut writer = SegmentWriter::create(&RealFs, &path, ID, STORE, WriterOptions::default()).unwrap();
    let mut append = |key: &[u8], kind, value: &[u8]| writer.append(key, 1, kind, value);
    append(b"b", EntryKind::PUT, b"1").unwrap();
    for key in [&b"a"[..], b"b", b""] {
        assert!(matches!(append(key, EntryKind::PUT, b""), Err(Error::KeyOutOfOrder { .. })));
    }
    assert!(matches!(append(b"c", EntryKind::TOMBSTONE, b"x"), Err(Error::Internal(_))));
    let huge_key = vec![b'c'; crate::key::MAX_STORED_KEY_BYTES + 1];
    assert!(matches!(append(&huge_key, EntryKind::PUT, b""), Err(Error::KeyTooLarge { .. })));
    let huge_value = vec![0; crate::MAX_VALUE_BYTES + 1];
    assert!(matches!(append(b"c", EntryKind::PUT, &huge_value), Err(Error::ValueTooLarge { .. })));
    append(b"b\0", EntryKind::TOMBSTONE, b"").unwrap();
    assert_eq!(writer.finish().unwrap().entries, 2);
    open(&path, 0).unwrap().verify(&mut |_, _, _| Ok(())).unwrap();
}

#[test]
fn segments_without_entries_or_with_absurd_blocks_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let create = |name: &str, block_bytes| {
        let options = WriterOptions { block_bytes, ..Default::default() };
        SegmentWriter::create(&RealFs, &dir.path().join(name), ID, STORE, options)
    };
    assert!(matches!(create("empty", 4096).unwrap().finish(), Err(Error::Internal(_))));
    assert!(matches!(create("tiny", 63).map(|_| ()), Err(Error::InvalidArgument(_))));
    assert!(matches!(create("vast", (16 << 20) + 1).map(|_| ()), Err(Error::InvalidArgument(_))));
}

#[cfg(not(feature = "zstd"))]
#[test]
fn zstd_without_the_feature_is_a_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let options = WriterOptions { compression: Compression::Zstd, ..Default::default() };
    let create = SegmentWriter::create(&RealFs, &dir.path().join("s"), ID, STORE, options);
    let error = create.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("feature `zstd`"), "{error}");
}
