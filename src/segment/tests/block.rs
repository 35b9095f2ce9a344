//! Data blocks by themselves: searches agree with the plain list of entries, and `parse` accepts no nonsense.

use super::*;
use crate::key::{MAX_STORED_KEY_BYTES, common_prefix};
use crate::segment::block::{Block, Rows};
use crate::support::sized;
use block_builder::BlockBuilder;
use block_layout::{BlockHeader, HEADER_BYTES};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;

/// The hash of a key of a test: few values, so that fingerprints collide.
fn hash(key: &[u8]) -> u64 {
    key.iter().map(|&byte| u64::from(byte & 1)).sum()
}

fn build(model: &Model) -> Vec<u8> {
    let (mut builder, mut payload, mut before) = (BlockBuilder::default(), Vec::new(), Vec::new());
    for (key, entry) in model {
        let shared = common_prefix(&before, key);
        let bytes = builder.grown(key, shared, entry.seq, entry.kind, &entry.value).bytes;
        builder.append(key, shared, hash(key) as u8, entry.seq, entry.kind, &entry.value);
        assert_eq!(builder.bytes(), bytes);
        before.clone_from(key);
    }
    let bytes = builder.bytes();
    builder.finish_into(&mut payload);
    assert_eq!((payload.len(), builder.bytes()), (bytes, 0));
    payload
}

fn rows(model: &Model) -> Rows {
    Block::parse(build(model).into()).unwrap().rows()
}

fn entry() -> impl Strategy<Value = Entry> {
    let value = proptest::option::weighted(0.9, vec(any::<u8>(), 0..3));
    let seq = prop_oneof![Just(7u64), 0u64..300, any::<u64>()];
    let late = crate::key::Time::MAX.millis();
    let expiry =
        prop_oneof![4 => Just(None), 2 => (7u64..300).prop_map(Some), 1 => (1..=late).prop_map(Some)];
    (seq, value, expiry).prop_map(|(seq, value, expiry)| match (value, expiry) {
        (None, _) => tombstone(seq),
        (Some(value), None) => put(seq, value),
        (Some(value), Some(millis)) => put_until(seq, millis, value),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sized(100, 1000)))]
    /// Up to 700 entries: more than the fingerprints that one search compares.
    #[test]
    fn every_row_is_read_in_place_and_found_also_among_equal_fingerprints(
        common in vec(select(&[0u8, 0xff]), 0..12),
        model in btree_map(vec(0u8..5, 0..7), entry(), 1..700),
        others in vec(vec(0u8..6, 0..8), 30),
    ) {
        let model: Model = model.into_iter().map(|(key, entry)| ([&common[..], &key].concat(), entry)).collect();
        let read = rows(&model);
        prop_assert_eq!(read.len(), model.len());
        for (at, (key, entry)) in model.iter().enumerate() {
            prop_assert!(read.key(at) == key[..]);
            prop_assert_eq!((read.seq(at), read.kind(at)), (entry.seq, entry.kind));
            prop_assert_eq!(read.value(at), &*entry.value);
            prop_assert_eq!(read.to_value(at), entry.value.clone());
        }
        let block = Block::parse(build(&model).into()).unwrap();
        let others = others.into_iter().flat_map(|key| [[&common[..], &key].concat(), key]);
        for key in model.keys().cloned().chain(others) {
            prop_assert_eq!(block.clone().rows().get(&key, hash(&key)), model.get(&key).cloned());
            prop_assert_eq!(read.count_before(&key, false), model.range(..key.clone()).count());
            prop_assert_eq!(read.count_before(&key, true), model.range(..=key.clone()).count());
        }
    }
}

#[test]
fn keys_and_values_of_one_length_need_no_arrays() {
    let model: Model = (10..50).map(|i| (format!("song:{i}").into_bytes(), put(5, [1; 9]))).collect();
    let header = BlockHeader::decode(&build(&model)).unwrap();
    assert_eq!((header.key_width, header.value_width, header.seq_width, header.kinds), (0, 0, 0, 0));
    assert_eq!(build(&model).len(), HEADER_BYTES + 40 + "song:".len() + 40 * (2 + 9));
}

#[test]
fn i6_blocks_of_any_other_length_or_with_absurd_fields_are_refused() {
    let mixed: Model = [(b"ab".to_vec(), put(1, "xy")), (b"abc".to_vec(), tombstone(2))].into();
    let payload = build(&mixed);
    let header = BlockHeader::decode(&payload).unwrap();
    assert!(Block::parse(payload.clone().into()).is_ok());
    (0..payload.len()).for_each(|len| assert!(Block::parse(payload[..len].into()).is_err(), "cut to {len}"));
    assert!(Block::parse([&payload[..], &[0]].concat().into()).is_err());
    let with = |changed: BlockHeader| {
        let mut bytes = Vec::new();
        changed.encode_into(&mut bytes);
        bytes.extend_from_slice(&payload[HEADER_BYTES..]);
        Block::parse(bytes.into()).map(drop)
    };
    assert!(with(header).is_ok());
    for changed in [
        BlockHeader { count: 0, ..header },
        BlockHeader { count: u32::MAX, ..header },
        BlockHeader { prefix: u32::MAX, keys: u32::MAX, values: u32::MAX, ..header },
        BlockHeader { key_width: 255, ..header },
        BlockHeader { value_width: 5, ..header },
        BlockHeader { seq_width: 9, ..header },
        BlockHeader { kinds: BlockHeader::kinds_of(false, 1), ..header },
        BlockHeader { keys: header.keys + 1, values: header.values - 1, ..header },
    ] {
        assert!(with(changed).is_err(), "{changed:?}");
    }
}

/// All entries share one prefix, stored once: without a limit, a small block could ask for gigabytes of keys.
#[test]
fn i6_a_block_with_keys_over_the_size_limit_is_refused() {
    let block = |key: usize| {
        let model: Model = [0, 1].map(|last| ([vec![b'k'; key - 1], vec![last]].concat(), put(1, ""))).into();
        Block::parse(build(&model).into()).map(drop)
    };
    assert!(block(MAX_STORED_KEY_BYTES).is_ok());
    assert!(block(MAX_STORED_KEY_BYTES + 1).unwrap_err().contains("size limit"));
}

/// A key may be 64 KiB, and a block may have very many that differ in their last bytes.
#[test]
fn i12_a_builder_holds_no_more_than_its_block() {
    let (mut builder, mut payload, mut key) = (BlockBuilder::default(), Vec::new(), vec![b'k'; 60 << 10]);
    let shared = key.len() - 2;
    for at in 0..10_000u16 {
        key.truncate(shared);
        key.extend_from_slice(&at.to_be_bytes());
        builder.append(&key, if at % 256 == 0 { shared } else { shared + 1 }, 0, 1, EntryKind::PUT, b"");
    }
    assert!(builder.held() < 2 * builder.bytes(), "{} for {}", builder.held(), builder.bytes());
    builder.finish_into(&mut payload);
    let rows = Block::parse(payload.into()).unwrap().rows();
    assert!(rows.key(9_999) == key[..] && rows.len() == 10_000);
    assert!(rows.is_as_written(None, &mut builder, &mut Vec::new()));
}
