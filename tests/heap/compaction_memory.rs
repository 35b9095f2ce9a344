//! The memory of a manual compaction, counted by the allocator.

use crate::allocator::{exclusive, live_bytes, peak_bytes};
use crate::support::{Rng, fast_dir};
use sidebloom::{Compression, Options};

/// Peak memory of `compact`, in bytes, for a store with this many segments of 256 KiB below a level that
/// overlaps all of them.
fn peak_of_compact(segments: u64) -> usize {
    let dir = fast_dir();
    let options = Options::new().compression(Compression::None).segment_bytes(256 << 10).block_cache_bytes(0);
    let db = options.memtable_bytes(1 << 20).open(dir.path().join("db")).unwrap();
    let rows = segments * 256;
    let value = |i: u64| i.to_be_bytes().repeat(128);
    db.ingest((0..rows).map(|i| Ok((i.to_be_bytes(), value(i))))).unwrap();
    let mut rng = Rng::new(segments);
    (0..segments * 4).for_each(|_| db.put(rng.below(rows).to_be_bytes(), b"new").unwrap());
    db.flush().unwrap();
    let before = live_bytes();
    let (peak, ()) = peak_bytes(|| db.compact().unwrap());
    let levels = db.stats().levels;
    assert!(levels.iter().map(|level| level.segments).sum::<usize>() as u64 >= segments, "{levels:?}");
    peak - before
}

/// A compaction of many segments takes no more memory than one of few.
#[test]
fn i12_compacting_many_segments_takes_no_more_memory_than_a_few() {
    let _exclusive = exclusive();
    let (few, many) = (peak_of_compact(24), peak_of_compact(144));
    println!("{few} bytes for 24 segments, {many} for 144");
    // One cursor per segment would take 256 KiB each: 36 MiB.
    assert!(many < 2 * few && many < 8 << 20, "{few} bytes for 24 segments, {many} for 144");
}
