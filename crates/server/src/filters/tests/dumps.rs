//! Moving filters.

use super::*;
use crate::filters::dump::{ROWS, ROWS_MAX, mark_of, seal};
use crate::filters::record::ITEMS_MAX;
use sidebloom_filter::codec::Encode;

/// Dumps a filter and loads it under another name, possibly elsewhere. Returns the number of chunks.
fn move_filter(from: &Filters, filter: &Filter, to: &Filters, name: &[u8]) -> usize {
    let (mut position, mut chunks) = (0, 0);
    loop {
        let (next, chunk) = from.dump(filter, position).unwrap();
        if next == 0 {
            assert!(chunk.is_empty());
            return chunks;
        }
        if position == 0 {
            assert_eq!(next, 1);
            to.load_head(0, name, filter.kind(), &chunk).unwrap();
        } else {
            to.load_rows(&to.find(0, name).unwrap(), &chunk).unwrap();
            to.load_rows(&to.find(0, name).unwrap(), &chunk).unwrap(); // Twice is as good as once.
        }
        (position, chunks) = (next, chunks + 1);
    }
}

#[test]
fn a_loaded_filter_has_the_same_items() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (open(dir.path(), &Hand::at(1)), open(other.path(), &Hand::at(1)));
    let items: Vec<String> = (0..40_000).map(|n| format!("item {n}")).collect();
    let songs = from.create(3, b"songs", bloom()).unwrap().filter();
    from.add(&songs, &items).unwrap();
    assert_eq!(move_filter(&from, &songs, &to, b"moved"), 1 + 3);
    let moved = to.find(0, b"moved").unwrap();
    assert_eq!((moved.items(), moved.parameters()), (40_000, songs.parameters()));
    assert!(to.contains(&moved, &items).unwrap().iter().all(|is_there| *is_there));
    assert_eq!(to.contains(&moved, &["x"]).unwrap(), [false]);

    let counted = from.create(0, b"counted", cuckoo()).unwrap().filter();
    for _ in 0..3 {
        apply(&from, &counted, ItemOp::Add, &["a", "b"]).unwrap();
    }
    apply(&from, &counted, ItemOp::Remove, &["b", "b"]).unwrap();
    move_filter(&from, &counted, &from, b"beside");
    let beside = from.find(0, b"beside").unwrap();
    assert_eq!((counts(&from, &beside, &["a", "b"]), beside.items()), (vec![3, 1], 4));
}

#[test]
fn any_position_may_be_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let filters = open(dir.path(), &Hand::at(1));
    let filter = filters.create(0, b"f", bloom()).unwrap().filter();
    filters.add(&filter, &["a", "b", "c"]).unwrap();
    for position in [1, 2, 1 << 61, (1 << 62) - 1, 1 << 62, (1 << 62) + 1, u64::MAX] {
        let (next, chunk) = filters.dump(&filter, position).unwrap();
        assert!(next == 0 && chunk.is_empty() || next > position && next <= (1 << 62) + 1);
    }
}

#[test]
fn damaged_chunks_are_refused_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let filters = open(dir.path(), &Hand::at(1));
    let filter = filters.create(0, b"f", bloom()).unwrap().filter();
    filters.add(&filter, &["a", "b"]).unwrap();
    let (head, rows) = (filters.dump(&filter, 0).unwrap().1, filters.dump(&filter, 1).unwrap().1);
    let target = filters.create(0, b"target", bloom()).unwrap().filter();
    for chunk in [&head, &rows] {
        for at in 0..chunk.len() {
            let mut damaged = chunk.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(matches!(filters.load_head(0, b"new", Kind::Bloom, &damaged), Err(Refusal::BadChunk)));
            assert!(matches!(filters.load_rows(&target, &damaged), Err(Refusal::BadChunk)));
            assert!(matches!(filters.load_rows(&target, &chunk[..at]), Err(Refusal::BadChunk)));
        }
    }
    assert!(matches!(filters.load_head(0, b"new", Kind::Bloom, &rows), Err(Refusal::BadChunk)));
    assert!(matches!(filters.load_head(0, b"new", Kind::Cuckoo, &head), Err(Refusal::BadChunk)));
    assert!(matches!(filters.load_rows(&target, &head), Err(Refusal::BadChunk)));
    assert!(matches!(filters.load_head(0, b"f", Kind::Bloom, &head), Err(Refusal::Exists)));
    assert!(filters.find(0, b"new").is_none());
    assert_eq!((target.items(), filter.items()), (0, 2));
    assert!(matches!(filters.load_rows(&target, &rows), Err(Refusal::BadChunk)), "rows of another filter");
    filters.delete(0, &[b"f"]).unwrap();
    assert!(matches!(filters.load_rows(&filter, &rows), Err(Refusal::NotFound)));
}

/// The rows of a chunk that a client has made up.
fn made_up(filter: &Filter, rows: impl IntoIterator<Item = (u128, u64)>) -> Vec<u8> {
    let mut payload = mark_of(filter).to_le_bytes().to_vec();
    for (hash, count) in rows {
        payload.extend(hash.to_be_bytes());
        payload.put_varint(count);
    }
    seal(ROWS, &payload)
}

#[test]
fn no_made_up_chunk_makes_a_filter_have_more_than_it_can() {
    let dir = tempfile::tempdir().unwrap();
    let filters = open(dir.path(), &Hand::at(1));
    let counted = filters.create(0, b"counted", cuckoo()).unwrap().filter();
    let load = |filter: &Arc<Filter>, rows: &[(u128, u64)]| {
        filters.load_rows(filter, &made_up(filter, rows.iter().copied()))
    };
    assert!(matches!(load(&counted, &[(1, u64::MAX)]), Err(Refusal::BadChunk)));
    assert!(matches!(load(&counted, &[(1, ITEMS_MAX), (2, 1)]), Err(Refusal::BadChunk)));
    assert!(matches!(load(&counted, &[(1, u64::MAX), (2, u64::MAX)]), Err(Refusal::BadChunk)));
    assert_eq!(counted.items(), 0);
    let fixed = Parameters::Cuckoo(Cuckoo::new(4, 2, 20, 0).unwrap());
    let fixed = filters.create(0, b"fixed", fixed).unwrap().filter();
    assert!(matches!(load(&fixed, &[(1, 4), (2, 1)]), Err(Refusal::Full)));
    load(&fixed, &[(1, 4)]).unwrap();
    load(&fixed, &[(1, 1), (2, 3)]).unwrap();
    assert_eq!(fixed.items(), 4);
    // As many as there can be, of which no addition makes more.
    let growing = Parameters::Cuckoo(Cuckoo::new(1 << 30, 255, 20, 1 << 15).unwrap());
    let growing = filters.create(0, b"growing", growing).unwrap().filter();
    load(&growing, &[(1, ITEMS_MAX)]).unwrap();
    assert_eq!(apply(&filters, &growing, ItemOp::Add, &["a"]).unwrap(), [ItemOutcome::Full]);
    drop(filters);
    let filters = open(dir.path(), &Hand::at(1));
    assert_eq!(filters.find(0, b"growing").unwrap().items(), ITEMS_MAX);
}

#[test]
fn a_dump_has_no_chunk_without_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let filters = open(dir.path(), &Hand::at(1));
    let filter = filters.create(0, b"f", bloom()).unwrap().filter();
    let alike = (0..ROWS_MAX as u128).map(|n| (n, 1));
    filters.load_rows(&filter, &made_up(&filter, alike)).unwrap();
    assert_eq!(filters.dump(&filter, 1).unwrap().1.len(), 13 + 8 + 17 * ROWS_MAX);
    filters.load_rows(&filter, &made_up(&filter, [(1 << 60, 1)])).unwrap();
    assert!(matches!(filters.dump(&filter, 1), Err(Refusal::NoDump)));
    assert_eq!(filters.dump(&filter, 2).unwrap(), (0, Vec::new()), "none of them is elsewhere");
}
