//! The cost of reads: block reads, the cache, the counters.

use super::*;
use crate::direction::Direction;
use crate::error::IoOp;

fn counts(counters: &ReadCounters) -> (u64, u64, u64) {
    let Reads { blocks, cache_hits, bytes } = counters.sum();
    (blocks, cache_hits, bytes)
}

fn open_counted(path: &Path, cache_bytes: u64) -> (Arc<Segment>, Arc<ReadCounters>) {
    let counters = Arc::new(ReadCounters::default());
    let cache = Arc::new(BlockCache::new(cache_bytes));
    (Arc::new(Segment::open(&RealFs, path, ID, cache, counters.clone(), true).unwrap()), counters)
}

#[test]
fn get_reads_one_partition_and_one_block_then_none() {
    let Fixture { path, .. } = &fixture(&songs(20_000), WriterOptions::default());
    let (segment, counters) = open_counted(path, 64 << 20);
    assert_eq!(counts(&counters), (0, 0, 0));
    get(&segment, b"song:000100").unwrap().unwrap();
    let (reads, hits, bytes) = counts(&counters);
    assert_eq!((reads, hits), (2, 0));
    assert!(bytes > 1000 && bytes < 4096 + index_bytes(&segment), "{bytes}");
    get(&segment, b"song:000101").unwrap().unwrap();
    assert_eq!(counts(&counters), (2, 1, bytes), "the partition is pinned, the block is in the cache");
    get(&segment, b"zzz").unwrap();
    assert_eq!(counts(&counters), (2, 1, bytes), "a key beyond the last one reads nothing");
}

/// A block in a map counts as read once, when it is verified, and takes no room in the cache.
#[test]
fn a_mapped_block_is_verified_once_and_never_cached() {
    let options = WriterOptions { compression: Compression::None, ..Default::default() };
    let Fixture { path, .. } = &fixture(&songs(20_000), options);
    let (segment, counters) = open_counted(path, 64 << 20);
    segment.warm_index().unwrap();
    let (warm, cached) = (counts(&counters), segment.cache.weight());
    let get_one = || get(&segment, b"song:000100").unwrap().unwrap();
    let first = get_one();
    let read = counts(&counters);
    assert_eq!((read.0, read.1), (warm.0 + 1, warm.1));
    assert_eq!((get_one(), counts(&counters)), (first, (read.0, read.1 + 1, read.2)));
    let all = collect(&segment, Direction::Forward, Bound::Unbounded, Access::Range).unwrap();
    let verified = counts(&counters).0;
    assert_eq!(collect(&segment, Direction::Forward, Bound::Unbounded, Access::Range).unwrap(), all);
    assert_eq!((counts(&counters).0, segment.cache.weight()), (verified, cached));
}

#[test]
fn warm_index_leaves_one_read_to_each_get() {
    let Fixture { path, .. } =
        &fixture(&songs(20_000), WriterOptions { block_bytes: 256, ..Default::default() });
    let (segment, counters) = open_counted(path, 64 << 20);
    segment.warm_index().unwrap();
    let (warm, _, _) = counts(&counters);
    assert!(warm < segment.top.len() as u64 / 4, "{warm} reads for {} partitions", segment.top.len());
    for key in ["song:000000", "song:010000", "song:019999"] {
        let (before, _, _) = counts(&counters);
        assert!(get(&segment, key.as_bytes()).unwrap().is_some());
        assert_eq!(counts(&counters).0, before + 1);
    }
}

#[test]
fn scan_reads_little_at_first_and_much_later_and_leaves_the_cache_alone() {
    let Fixture { path, summary, .. } = &fixture(&songs(60_000), WriterOptions::default());
    for direction in [Direction::Forward, Direction::Reverse] {
        let (segment, counters) = open_counted(path, 64 << 20);
        let mut cursor = segment.cursor(direction, Bound::Included(b"song:030000"), Access::Scan).unwrap();
        assert!(cursor.advance().unwrap());
        let (reads, _, bytes) = counts(&counters);
        assert!(reads == 2 && bytes < 16 << 10, "a first entry cost {bytes} bytes in {reads} reads");
        while cursor.advance().unwrap() {}
        let (reads, hits, bytes) = counts(&counters);
        let most = 20 + summary.data_bytes / (128 << 10);
        assert!(reads <= most && bytes < summary.file_bytes, "{reads} reads, {bytes} bytes");
        assert_eq!(hits, 0);
        collect(&segment, direction, Bound::Included(b"song:030000"), Access::Scan).unwrap();
        assert_eq!(counts(&counters).0, 2 * reads, "a scan must not fill the cache");
    }
}

#[test]
fn scan_takes_cached_blocks_from_the_cache() {
    let Fixture { path, .. } = &fixture(&songs(5_000), WriterOptions::default());
    let (segment, counters) = open_counted(path, 64 << 20);
    let cached = collect(&segment, Direction::Forward, Bound::Unbounded, Access::Range).unwrap();
    let (reads, ..) = counts(&counters);
    assert_eq!(collect(&segment, Direction::Forward, Bound::Unbounded, Access::Scan).unwrap(), cached);
    assert_eq!(counts(&counters).0, reads);
}

#[test]
fn cache_stays_within_its_budget_and_refuses_blocks_of_an_eighth() {
    let capacity = 1 << 20;
    let mut model = songs(30_000);
    model.insert(b"huge".to_vec(), put(1, vec![1; capacity / 8]));
    let Fixture { path, .. } =
        &fixture(&model, WriterOptions { compression: Compression::None, ..Default::default() });
    let cache = Arc::new(BlockCache::new(capacity as u64));
    let segment = Segment::open(&RealFs, path, ID, cache.clone(), Arc::default(), false).unwrap();
    get(&segment, b"huge").unwrap().unwrap();
    assert!(cache.weight() < capacity as u64 / 16);
    model.keys().step_by(20).for_each(|key| assert!(get(&segment, key).unwrap().is_some()));
    assert!(cache.weight() > capacity as u64 / 4 && cache.weight() <= capacity as u64, "{}", cache.weight());
}

#[test]
fn i12_pinned_partitions_take_a_quarter_of_the_cache_and_give_it_back() {
    let Fixture { path, .. } =
        &fixture(&songs(20_000), WriterOptions { block_bytes: 128, compression: Compression::Lz4 });
    let capacity = 20 << 10;
    let cache = Arc::new(BlockCache::new(capacity));
    let read_all = || {
        let segment = Segment::open(&RealFs, path, ID, cache.clone(), Arc::default(), true).unwrap();
        for at in 0..segment.top.len() {
            segment.partition(at, true).unwrap();
        }
        let at_once = (0..segment.top.len()).map(|at| segment.top.handle(at).len as u64).sum::<u64>();
        assert!(at_once > 2 * capacity, "{at_once} bytes of partitions");
        songs(20_000).keys().step_by(50).for_each(|key| assert!(get(&segment, key).unwrap().is_some()));
        assert!(cache.pinned() > capacity / 8 && cache.pinned() <= capacity / 4, "{}", cache.pinned());
        assert!(cache.weight() <= capacity, "{}", cache.weight());
    };
    (0..3).for_each(|_| {
        read_all();
        assert_eq!(cache.pinned(), 0, "a closed segment pins nothing");
    });
}

#[test]
fn a_long_range_fills_the_free_part_of_the_cache_and_no_more() {
    let Fixture { path, .. } = &fixture(&songs(60_000), WriterOptions::default());
    let (segment, counters) = open_counted(path, 64 << 20);
    let all = collect(&segment, Direction::Forward, Bound::Unbounded, Access::Range).unwrap();
    let (reads, ..) = counts(&counters);
    assert_eq!(collect(&segment, Direction::Forward, Bound::Unbounded, Access::Range).unwrap(), all);
    assert_eq!(counts(&counters).0, reads, "everything fits");
    let (segment, counters) = open_counted(path, 300 << 10);
    let cached = |key: &str| {
        let before = counts(&counters).0;
        get(&segment, key.as_bytes()).unwrap();
        counts(&counters).0 == before
    };
    (0..3).for_each(|_| _ = cached("song:000007"));
    collect(&segment, Direction::Reverse, Bound::Unbounded, Access::Range).unwrap();
    assert!(cached("song:000007"), "a long walk must not evict what is used");
    assert!(cached("song:059999"), "the first 256 KiB are kept");
    assert!(!cached("song:030000"));
}

#[test]
fn i5_after_a_failed_write_the_file_is_not_touched_again() {
    #[derive(Debug)]
    struct Full(Arc<std::sync::atomic::AtomicU64>);
    impl crate::fs::AppendFile for Full {
        fn append(&mut self, _: &[u8]) -> Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Err(Error::io(IoOp::Write, "s", std::io::ErrorKind::StorageFull.into()))
        }
        fn sync(&mut self) -> Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }
    let calls = Arc::default();
    let mut sink = appender::SegmentAppender::new(Box::new(Full(Arc::clone(&calls))));
    sink.pending().extend_from_slice(&[0; 3 << 20]);
    assert!(sink.flush_when_large().is_err());
    assert!(sink.flush_when_large().is_err());
    assert!(sink.finish(b"footer").is_err());
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

/// Otherwise the page cache would keep a file that is just written on small pages.
#[test]
fn appends_begin_at_multiples_of_a_huge_page() {
    #[derive(Debug)]
    struct Ends(Arc<std::sync::Mutex<Vec<usize>>>);
    impl crate::fs::AppendFile for Ends {
        fn append(&mut self, bytes: &[u8]) -> Result<()> {
            let mut ends = self.0.lock().unwrap();
            let end = ends.last().unwrap_or(&0) + bytes.len();
            ends.push(end);
            Ok(())
        }
        fn sync(&mut self) -> Result<()> {
            Ok(())
        }
    }
    let ends = Arc::default();
    let mut sink = appender::SegmentAppender::new(Box::new(Ends(Arc::clone(&ends))));
    for bytes in [1, 2 << 20, 5000, (2 << 20) - 5002, 1, 7 << 20, 3] {
        sink.pending().extend((0..bytes).map(|at| at as u8));
        sink.flush_when_large().unwrap();
    }
    let mib = |n: usize| n << 20;
    assert_eq!(sink.finish(b"footer").unwrap(), mib(11) as u64 + 9);
    assert_eq!(*ends.lock().unwrap(), [mib(2), mib(4), mib(10), mib(11) + 9]);
}
