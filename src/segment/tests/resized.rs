//! A block cache whose size changes while it is used.

use super::*;
use crate::segment::file::OpenFiles;
use crate::segment::{SegmentFile, cache::BlockCache};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const MIB: u64 = 1 << 20;

fn in_cache(path: &Path, cache: &Arc<BlockCache>) -> Arc<Segment> {
    Segment::open(&RealFs, path, ID, Arc::clone(cache), Arc::default(), false).map(Arc::new).unwrap()
}

fn walk(segment: &Arc<Segment>) {
    collect(segment, Direction::Forward, Bound::Unbounded, Access::Range).unwrap();
}

#[test]
fn i12_a_cache_that_shrinks_evicts_at_once_and_one_that_grows_keeps_more() {
    let options = WriterOptions { compression: Compression::None, ..Default::default() };
    let Fixture { path, .. } = &fixture(&songs(200_000), options);
    let cache = Arc::new(BlockCache::new(64 * MIB));
    let segment = in_cache(path, &cache);
    walk(&segment);
    let full = cache.cached_bytes();
    assert!(full > 8 * MIB, "{full} bytes");
    for capacity in [3 * MIB, 300 << 10, 5000] {
        cache.set_capacity(capacity);
        assert!(cache.cached_bytes() <= capacity, "{} of {capacity}", cache.cached_bytes());
        walk(&segment);
        assert!(cache.weight() <= capacity.max(cache.pinned()), "{} of {capacity}", cache.weight());
    }
    cache.set_capacity(64 * MIB);
    walk(&segment);
    assert!(cache.cached_bytes() > full / 10 * 9, "{} of {full}", cache.cached_bytes());
}

/// The largest block that may stay follows as well: a block larger than an eighth is not cached.
#[test]
fn the_largest_block_that_is_kept_follows_the_size_of_the_cache() {
    let model: Model = [(b"huge".to_vec(), put(1, vec![1; 100 << 10]))].into();
    let Fixture { path, .. } =
        &fixture(&model, WriterOptions { compression: Compression::None, ..Default::default() });
    let cache = Arc::new(BlockCache::new(0));
    let segment = in_cache(path, &cache);
    for (capacity, kept) in [(0, false), (512 << 10, false), (64 * MIB, true), (512 << 10, false)] {
        cache.set_capacity(0); // Nothing is left of the last one.
        cache.set_capacity(capacity);
        get(&segment, b"huge").unwrap().unwrap();
        assert_eq!(cache.cached_bytes() > 100 << 10, kept, "with a cache of {capacity} bytes");
    }
}

#[test]
fn a_cache_that_is_turned_off_keeps_nothing_even_from_readers_at_work() {
    let options = WriterOptions { compression: Compression::None, ..Default::default() };
    let Fixture { path, .. } = &fixture(&songs(20_000), options);
    let cache = Arc::new(BlockCache::new(8 * MIB));
    let segment = in_cache(path, &cache);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for first in 0..2 {
            let (segment, done) = (&segment, &done);
            scope.spawn(move || {
                for n in (first..20_000).step_by(37).cycle().take_while(|_| !done.load(Relaxed)) {
                    let key = format!("song:{n:06}");
                    assert!(get(segment, key.as_bytes()).unwrap().is_some());
                }
            });
        }
        for _ in 0..200 {
            cache.set_capacity(8 * MIB);
            std::thread::yield_now();
            cache.set_capacity(0);
        }
        done.store(true, Relaxed);
    });
    assert_eq!(cache.cached_bytes(), 0);
    assert!(!cache.has_room(), "a walk does not try");
    cache.set_capacity(8 * MIB);
    walk(&segment);
    assert!(cache.cached_bytes() > 0 && cache.has_room());
}

#[test]
fn i12_indexes_and_range_tombstones_shrink_with_the_cache() {
    let dir = tempfile::tempdir().unwrap();
    let options = WriterOptions { block_bytes: 128, compression: Compression::Lz4 };
    let tombstones = || {
        let key = |n: u32| bytes::Bytes::copy_from_slice(&n.to_be_bytes());
        let each = (0..30_000).map(|n| RangeTombstones::of(key(2 * n), Some(key(2 * n + 1)), 1));
        RangeTombstones::all(&each.collect::<Vec<_>>())
    };
    let files = Arc::new(OpenFiles::new(Arc::new(RealFs), dir.path(), 64 * MIB, 100, false));
    let path = dir.path().join(ID.file_name(crate::id::FileKind::Segment));
    let summary = write(&path, &songs(20_000), tombstones(), options).unwrap();
    let segment = SegmentFile::new(Arc::clone(&files), ID, summary.digest);
    let read = || {
        let open = segment.open().unwrap();
        (0..open.top.len()).for_each(|at| _ = open.partition(at, true).unwrap());
        segment.ask_ranges(|ranges| assert_eq!(ranges.seq_at(&[0; 4]), 1)).unwrap();
    };
    read();
    assert!(files.index_bytes() > 64 << 10 && files.open_now() == 1);
    let ranges = segment.ranges_in_memory().map(|ranges| ranges.bytes());
    assert!(ranges > Some(MIB), "{ranges:?} bytes of range tombstones");
    files.set_cache_bytes(64 << 10);
    assert_eq!((files.cache_capacity(), files.open_now()), (64 << 10, 0));
    assert!(files.index_bytes() == 0 && segment.ranges_in_memory().is_none());
    read();
    assert!(files.index_bytes() > 0, "it opens again, and pins less");
    files.set_cache_bytes(64 * MIB);
    assert_eq!(files.open_now(), 1, "what fits stays open");
}
