//! The compression that [`Compression::Auto`] takes.

use super::*;

/// What a segment takes whose values these are, by row, and its length.
fn taken(compression: Compression, value: impl Fn(u32) -> Vec<u8>) -> (Compression, u64) {
    let key = |row: u32| format!("{row:08} {:08x}", row.wrapping_mul(0x9e37_79b9));
    let model: Model = (0..4_000).map(|row| (key(row).into_bytes(), put(1, value(row)))).collect();
    let fixture = fixture(&model, WriterOptions { compression, ..WriterOptions::default() });
    for (key, entry) in &model {
        assert_eq!(get(&fixture.segment, key).unwrap().as_ref(), Some(entry));
    }
    (fixture.segment.tail.compression, fixture.summary.file_bytes)
}

#[test]
fn auto_takes_the_smallest_and_nothing_that_saves_less_than_an_eighth() {
    let names = ["nina simone", "bill evans", "ella fitzgerald", "sarah vaughan", "chet baker"];
    let text = |row: u32| {
        let words = noise(6, row.into()).into_iter().map(|byte| names[usize::from(byte) % names.len()]);
        words.collect::<Vec<_>>().join(" ").into_bytes()
    };
    let random = |row: u32| noise(100, row.into());
    // All rows of a block repeat the same noise, which symbols of up to eight bytes do not cover.
    let repeated = |row: u32| noise(400, u64::from(row) / 16);
    let a_twelfth = |row: u32| [noise(110, row.into()), vec![b'v'; 10]].concat();
    let none = |_: u32| Vec::new();
    let few = |row: u32| if row == 7 { vec![7; 1_000] } else { Vec::new() };
    assert_eq!(taken(Compression::Auto, text).0, Compression::Fsst);
    assert_eq!(taken(Compression::Auto, random).0, Compression::None);
    assert_eq!(taken(Compression::Auto, repeated).0, Compression::Lz4);
    assert_eq!(taken(Compression::Auto, a_twelfth).0, Compression::None);
    assert_eq!(taken(Compression::Auto, none).0, Compression::None);
    assert_eq!(taken(Compression::Auto, few).0, Compression::None, "too few values to code");
    let values: [&dyn Fn(u32) -> Vec<u8>; 6] = [&text, &random, &repeated, &a_twelfth, &none, &few];
    for value in values {
        let (auto, bytes) = taken(Compression::Auto, value);
        let (same, same_bytes) = taken(auto, value);
        assert_eq!((auto, bytes), (same, same_bytes));
        let least = [Compression::None, Compression::Lz4, Compression::Fsst].map(|one| taken(one, value).1);
        let least = least.into_iter().min().unwrap_or_default();
        assert!(bytes <= least + least / 7, "{bytes} bytes, at least {least}");
    }
}
