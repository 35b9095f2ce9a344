//! Tests of the segment as a whole: against a model, under damage, and against the golden file.

use super::*;
use crate::direction::Direction;
use crate::error::{Error, Result};
use crate::fs::RealFs;
use crate::hash::KeyHasher;
use crate::id::FileId;
use crate::key::{Entry, EntryKind, Seq, Time, Value};
use crate::ranges::RangeTombstones;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

mod block;
mod block_hash;
mod compression;
mod damage;
mod golden;
mod model;
mod newer;
mod numbered;
mod reads;
mod refused;
mod resized;
mod search;

const ID: FileId = FileId(7);
const STORE: StoreIdentity =
    StoreIdentity { store_id: 0x5349_4445, hasher: KeyHasher::siphash13([0xb100, 0xb101]) };

/// The compressions that this build supports.
const COMPRESSIONS: &[Compression] = &[
    Compression::None,
    Compression::Lz4,
    Compression::Fsst,
    #[cfg(feature = "zstd")]
    Compression::Zstd,
];

/// The expected contents of a segment.
type Model = BTreeMap<Vec<u8>, Entry>;

fn put(seq: Seq, value: impl Into<Vec<u8>>) -> Entry {
    Entry { seq, kind: EntryKind::PUT, value: Value::new(value.into().into()) }
}

/// A put that expires, so many milliseconds after 1970.
fn put_until(seq: Seq, millis: u64, value: impl Into<Vec<u8>>) -> Entry {
    Entry { kind: EntryKind::put_until(Time::of_millis(millis)), ..put(seq, value) }
}

fn tombstone(seq: Seq) -> Entry {
    Entry { seq, kind: EntryKind::TOMBSTONE, value: Value::default() }
}

fn write(
    path: &Path,
    model: &Model,
    ranges: RangeTombstones,
    options: WriterOptions,
) -> Result<SegmentSummary> {
    let mut writer = SegmentWriter::create(&RealFs, path, ID, STORE, options)?;
    for (key, entry) in model {
        writer.append(key, entry.seq, entry.kind, &entry.value)?;
    }
    writer.set_ranges(ranges);
    writer.finish()
}

/// The range tombstones of these ranges; an empty end means none.
fn ranges(of: &[(&'static str, &'static str, Seq)]) -> RangeTombstones {
    let end = |end: &'static str| (!end.is_empty()).then(|| end.as_bytes().into());
    let each = of.iter().map(|(from, to, seq)| RangeTombstones::of(from.as_bytes().into(), end(to), *seq));
    RangeTombstones::all(&each.collect::<Vec<_>>())
}

fn open(path: &Path, cache_bytes: u64) -> Result<Arc<Segment>> {
    open_with(path, cache_bytes, true)
}

fn open_with(path: &Path, cache_bytes: u64, may_map: bool) -> Result<Arc<Segment>> {
    let cache = Arc::new(BlockCache::new(cache_bytes));
    Segment::open(&RealFs, path, ID, cache, Arc::default(), may_map).map(Arc::new)
}

/// A segment in its own directory.
struct Fixture {
    _dir: tempfile::TempDir,
    path: PathBuf,
    summary: SegmentSummary,
    segment: Arc<Segment>,
}

fn fixture(model: &Model, options: WriterOptions) -> Fixture {
    fixture_with(model, RangeTombstones::default(), options)
}

fn fixture_with(model: &Model, ranges: RangeTombstones, options: WriterOptions) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("000007.segment");
    let summary = write(&path, model, ranges, options).unwrap();
    let segment = open(&path, 1 << 20).unwrap();
    Fixture { _dir: dir, path, summary, segment }
}

fn get(segment: &Segment, key: &[u8]) -> Result<Option<Entry>> {
    segment.get(key, STORE.hasher.hash(key))
}

/// Length of the index blocks as stored.
fn index_bytes(segment: &Segment) -> u64 {
    segment.tail.footer.properties.offset - segment.summary().data_bytes
}

/// Bytes that do not compress.
fn noise(len: usize, mut state: u64) -> Vec<u8> {
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// `count` entries that compress, every ninth a tombstone.
fn songs(count: u64) -> Model {
    let entry =
        |i| if i % 9 == 4 { tombstone(100 + i) } else { put(100 + i, format!("value {i} ").repeat(3)) };
    (0..count).map(|i| (format!("song:{i:06}").into_bytes(), entry(i))).collect()
}

/// Everything that a cursor returns, in its order.
fn collect(
    segment: &Arc<Segment>,
    direction: Direction,
    start: Bound<&[u8]>,
    access: Access,
) -> Result<Vec<(Vec<u8>, Entry)>> {
    let mut cursor = segment.cursor(direction, start, access)?;
    let mut found = Vec::new();
    while cursor.advance()? {
        let entry = Entry { seq: cursor.seq(), kind: cursor.kind(), value: cursor.to_value() };
        assert_eq!(cursor.value(), &*entry.value);
        found.push((cursor.key().to_vec(), entry));
    }
    assert!(!cursor.advance()? && cursor.key() == b""[..] && cursor.value().is_empty(), "the end is the end");
    Ok(found)
}
