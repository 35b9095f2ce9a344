//! Moving filters.

use super::*;

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
    filters.delete(0, &[b"target"]).unwrap();
    assert!(matches!(filters.load_rows(&target, &rows), Err(Refusal::NotFound)));
}
