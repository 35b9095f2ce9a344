//! The parts of a store below its API: `cargo bench -p micro --bench parts`.

#![expect(clippy::expect_used, reason = "a benchmark: a failure ends it")]

use bytes::Bytes;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sidebloom::internal::bench::{Block, BlockBuilder, EntryKind, MemKind, Memtable, Seq, hash_key};
use sidebloom::{KeyHash, KeyHasher};
use std::hint::black_box;

/// The hash seed of the store.
const SEED: u64 = 7;
const VALUE: [u8; 100] = [7; 100];
/// As many keys as fit in a memtable of 64 MiB.
const MEMTABLE_KEYS: u64 = 260_000;
/// About as many keys as fit in a block of 4 KiB.
const BLOCK_KEYS: u64 = 32;

/// Present keys end in `+`, missing keys in `-`, of the same length and between present keys.
fn key(rank: u64, present: bool) -> Vec<u8> {
    format!("user{rank:020}{}", if present { '+' } else { '-' }).into_bytes()
}

fn spread(index: u64) -> u64 {
    index.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn hash(c: &mut Criterion) {
    let mut group = c.benchmark_group("hash");
    for bytes in [8, 24, 100, 1000] {
        let key = vec![b'k'; bytes];
        group.throughput(Throughput::Bytes(bytes as u64));
        for function in [KeyHash::Xxh3, KeyHash::SipHash13] {
            let hasher = KeyHasher::random(function).expect("random numbers");
            let name = |bits| BenchmarkId::new(format!("{}, {bits} bits", function.name()), bytes);
            group.bench_with_input(name(64), &key, |b, key| b.iter(|| hasher.hash(black_box(key))));
            group.bench_with_input(name(128), &key, |b, key| b.iter(|| hasher.hash_128(black_box(key))));
        }
    }
    group.finish();
}

/// An entry as the memtable takes it: the key's hash, the key's length, and key and value concatenated.
fn entry(index: u64) -> (u64, usize, Bytes) {
    let key = key(spread(index), true);
    (hash_key(&key, SEED), key.len(), [key.as_slice(), &VALUE].concat().into())
}

fn filled(keys: u64) -> Memtable {
    let table = Memtable::new(64 << 20).expect("a memtable");
    for index in 0..keys {
        let (hash, key_len, data) = entry(index);
        table.insert(hash, index + 1, MemKind::Put, key_len, data);
    }
    table
}

fn memtable(c: &mut Criterion) {
    let table = filled(MEMTABLE_KEYS);
    let mut group = c.benchmark_group(format!("memtable, {MEMTABLE_KEYS} keys"));
    for (name, present) in [("get hit", true), ("get miss", false)] {
        let keys: Vec<_> = (0..MEMTABLE_KEYS).step_by(7).map(|index| key(spread(index), present)).collect();
        let hashed: Vec<_> = keys.into_iter().map(|key| (hash_key(&key, SEED), key)).collect();
        assert!(hashed.iter().all(|(hash, key)| table.get(key, *hash, Seq::MAX).is_some() == present));
        let mut next = hashed.iter().cycle();
        group.bench_function(name, |b| {
            b.iter(|| {
                let (hash, key) = next.next().expect("a key");
                black_box(table.get(key, *hash, Seq::MAX))
            })
        });
    }
    // All samples insert into the same table. An insert costs only the logarithm of its size.
    let mut index = MEMTABLE_KEYS;
    group.bench_function("insert", |b| {
        b.iter_batched(
            || {
                index += 1;
                (index, entry(index))
            },
            |(seq, (hash, key_len, data))| table.insert(hash, seq, MemKind::Put, key_len, data),
            BatchSize::SmallInput,
        )
    });
    group.finish();
}

/// A block of neighboring keys, at every second rank.
fn block() -> Block {
    let (mut builder, mut bytes, mut before) = (BlockBuilder::default(), Vec::new(), Vec::new());
    for rank in 0..BLOCK_KEYS {
        let key = key(spread(1) + 2 * rank, true);
        let shared = key.iter().zip(&before).take_while(|(a, b)| a == b).count();
        builder.append(&key, shared, hash_key(&key, SEED) as u8, rank + 1, EntryKind::PUT, &VALUE);
        before = key;
    }
    builder.finish_into(&mut bytes);
    Block::parse(bytes.into()).expect("a block")
}

fn block_search(c: &mut Criterion) {
    let block = block();
    let mut group = c.benchmark_group(format!("block search, {BLOCK_KEYS} keys"));
    for (name, present) in [("hit", true), ("miss", false)] {
        let keys = (0..BLOCK_KEYS).map(|i| key(spread(1) + 2 * (i * 13 % BLOCK_KEYS), present));
        let keys: Vec<_> = keys.map(|key| (hash_key(&key, SEED), key)).collect();
        assert!(keys.iter().all(|(hash, key)| block.clone().rows().get(key, *hash).is_some() == present));
        let mut next = keys.iter().cycle();
        group.bench_function(name, |b| {
            b.iter(|| {
                let (hash, key) = next.next().expect("a key");
                black_box(block.clone().rows().get(key, *hash))
            })
        });
    }
    group.finish();
}

criterion_group!(benches, hash, memtable, block_search);
criterion_main!(benches);
