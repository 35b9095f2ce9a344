//! The payload of one data block in an otherwise intact segment. The first byte selects how it is stored.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidebloom::Compression;
use sidebloom::internal::FileId;
use sidebloom::internal::fuzz::segment_format::{BlockHandle, Footer, WRITES, block_crc};
use sidebloom::internal::fuzz::{
    Access, Direction, Encode, Facts, FactsBuilder, Properties, RangeTombstones, StoreIdentity, digest,
};
use sidebloom_fuzz::segment;
use std::ops::Bound;

const ID: FileId = FileId(1);

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, payload)) = bytes.split_first() else { return };
    let store = StoreIdentity { store_id: 1, hasher: 2.into() };
    let open = |store, facts| {
        let properties =
            Properties { store, compression: Compression::None, symbols: None, facts, keyspace: None };
        assemble(kind % 2, payload, &properties).and_then(|file| segment::open(&file))
    };
    let facts = Facts { entries: 1, largest: vec![0xff; 8].into(), ..Facts::default() };
    let Some(first) = open(store, facts) else { return };
    segment::interrogate(&first);
    // Properties and index are derived from the block's contents.
    let Some(entries) = segment::walk(&first, Direction::Forward, Bound::Unbounded, Access::Scan) else {
        return;
    };
    let Some((largest, _)) = entries.last() else { return };
    let mut counted = FactsBuilder::default();
    entries.iter().for_each(|(key, entry)| counted.count(key, entry.seq, entry.kind, entry.value.len()));
    let facts = counted.finish(&RangeTombstones::default(), largest.clone());
    if let Some(open) = open(first.store(), facts) {
        segment::interrogate(&open);
    }
});

fn assemble(kind: u8, payload: &[u8], properties: &Properties) -> Option<Vec<u8>> {
    let mut file = Vec::new();
    let data = append(&mut file, kind, payload);
    let partition = append(&mut file, 0, &index(data, &properties.facts.largest));
    let top = append(&mut file, 0, &index(partition, &properties.facts.largest));
    let mut encoded = Vec::new();
    properties.encode(&mut encoded).ok()?;
    let properties = append(&mut file, 0, &encoded);
    let digest = digest(&file);
    file.extend(Footer { id: ID, version: WRITES, number: 0, top, properties, digest }.encode().ok()?);
    Some(file)
}

fn append(file: &mut Vec<u8>, kind: u8, payload: &[u8]) -> BlockHandle {
    let at = file.len();
    file.extend_from_slice(payload);
    file.push(kind);
    let crc = block_crc(ID, at as u64, &file[at..]);
    file.put_u32(crc);
    BlockHandle { offset: at as u64, len: (file.len() - at) as u32 }
}

/// An index of one block.
fn index(block: BlockHandle, separator: &[u8]) -> Vec<u8> {
    let mut index = Vec::new();
    index.put_u64(block.offset);
    index.put_u32(1);
    index.put_varint(0);
    index.put_varint(separator.len() as u64);
    index.put_varint(u64::from(block.len));
    index.extend_from_slice(separator);
    index
}
