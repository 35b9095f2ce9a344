//! The search for blocks that no index lists.

use super::*;
use crate::support::SimFs;

/// What a salvage of these bytes as segment `id` finds: the keys, and how many bytes it looked at in vain.
fn salvaged(bytes: Vec<u8>, id: FileId, search_bytes: u64) -> (Vec<Vec<u8>>, u64) {
    let (fs, mut left, mut keys) = (SimFs::new(), search_bytes, Vec::new());
    fs.write("segment", bytes);
    let file = crate::fs::Fs::open(&fs, Path::new("segment")).unwrap();
    salvage(&file, id, None, &mut left, &mut |key, _, _, _| {
        keys.push(key.to_vec());
        Ok(())
    })
    .unwrap();
    (keys, search_bytes - left)
}

/// A segment of this many rows. A third of each value is noise.
fn segment(rows: u32, value: usize, block_bytes: usize, compression: Compression) -> (Model, Vec<u8>) {
    let of = |row: u32| [noise(value / 3, row.into()), vec![b'v'; value - value / 3]].concat();
    let model: Model = (0..rows)
        .map(|row| (format!("song:{row:06}").into_bytes(), put(u64::from(row) * 300 + 1, of(row))))
        .collect();
    let fixture = fixture_with(&model, small_ranges(), WriterOptions { block_bytes, compression });
    (model, std::fs::read(&fixture.path).unwrap())
}

fn small_ranges() -> RangeTombstones {
    ranges(&[("song:000003", "song:000009", 50)])
}

#[test]
fn a_file_that_is_no_segment_costs_a_salvage_a_few_times_its_length() {
    let len = 200_000;
    let small_numbers: Vec<u8> = (0..len as u32 / 4).flat_map(|n| (n % 3).to_le_bytes()).collect();
    let (_, own) = segment(2_000, 60, 4096, Compression::None);
    let (_, packed) = segment(2_000, 60, 4096, Compression::Lz4);
    let files = [noise(len, 1), vec![1; len], vec![2; len], vec![0xff; len], vec![0; len], own, packed];
    for (at, file) in files.into_iter().enumerate() {
        let len = file.len() as u64;
        let (keys, spent) = salvaged(file, FileId(101), SEARCH_BYTES_REPAIR);
        assert!(keys.is_empty() && spent <= 24 * len, "file {at}: {spent} bytes for {len}");
    }
    let (keys, spent) = salvaged(small_numbers, FileId(101), SEARCH_BYTES_REPAIR);
    assert!(keys.is_empty() && spent <= 16 * len as u64 + (4 << 20), "{spent}");
}

#[test]
fn a_file_full_of_plausible_blocks_costs_a_salvage_a_bounded_effort() {
    // Each is a header of a data block nearly as long as the file.
    let header: Vec<u8> = [1u32, 0, 10, 900_000, 0, 0, 0].into_iter().flat_map(u32::to_le_bytes).collect();
    let file = header.repeat((1 << 20) / header.len());
    let most = 16 * file.len() as u64 + (4 << 20);
    let (_, spent) = salvaged(file.clone(), ID, SEARCH_BYTES_REPAIR);
    assert!((most / 2..=most).contains(&spent), "{spent} bytes");
    let (_, spent) = salvaged(file, ID, 1 << 20);
    assert_eq!(spent, 1 << 20, "all segments of a repair share their effort");
}

#[test]
fn blocks_of_every_form_and_size_are_found_without_an_index() {
    for &compression in COMPRESSIONS {
        for (rows, value, block_bytes) in
            [(3_000, 40, 4096), (300, 40, 120), (40, 3_000, 16 << 10), (5, 3 << 20, 4096)]
        {
            let (model, bytes) = segment(rows, value, block_bytes, compression);
            // The footer and what it locates are gone.
            let (keys, spent) = salvaged(bytes[..bytes.len() - 100].to_vec(), ID, SEARCH_BYTES_REPAIR);
            let what = format!("{compression:?}, {rows} rows of {value}: {spent} bytes of effort");
            assert!(keys.iter().eq(model.keys()), "{what}");
            assert!(spent < bytes.len() as u64, "{what}");
            // Damage in the middle as well costs a block of rows.
            let mut torn = bytes[..bytes.len() - 100].to_vec();
            let middle = torn.len() / 2;
            torn[middle] ^= 1;
            let (keys, spent) = salvaged(torn, ID, SEARCH_BYTES_REPAIR);
            let lost = model.len() - keys.len();
            let in_a_block = (2 * block_bytes).div_ceil(value / 3).max(1);
            assert!(
                lost <= in_a_block && spent < 16 * bytes.len() as u64,
                "{what}, then {spent}, {lost} rows lost"
            );
        }
    }
}

#[test]
fn no_cut_hides_that_a_segment_had_range_tombstones() {
    let model: Model = (0..30).map(|n| (format!("song:{n:06}").into_bytes(), put(n, vec![7]))).collect();
    let all = [("song:000003", "song:000009", 50), ("song:000010", "song:000012", 50)];
    let options = WriterOptions { block_bytes: 4096, compression: Compression::None };
    let bytes = std::fs::read(&fixture_with(&model, ranges(&all), options).path).unwrap();
    for len in 0..bytes.len() {
        let fs = SimFs::new();
        fs.write("segment", bytes[..len].to_vec());
        let file = crate::fs::Fs::open(&fs, Path::new("segment")).unwrap();
        let found = salvage(&file, ID, None, &mut SEARCH_BYTES_REPAIR.clone(), &mut |_, _, _, _| Ok(()));
        let found = found.unwrap().ranges;
        assert!(found.is_none_or(|found| !found.is_empty()), "cut to {len} of {} bytes", bytes.len());
    }
}
