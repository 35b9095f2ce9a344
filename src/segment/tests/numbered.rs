//! Segments whose footer has the number of all rows.

use super::*;
use crate::codec::crc32;
use crate::direction::Direction;
use crate::segment::format::FOOTER_BYTES;

const KEYS: u8 = 200;

/// The bytes of a segment with this many rows, all with this number.
fn bytes_with(number: Seq) -> (Vec<u8>, SegmentSummary) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("000007.segment");
    let options = WriterOptions { block_bytes: 256, compression: Compression::None };
    let mut writer = SegmentWriter::create(&RealFs, &path, ID, STORE, options).unwrap();
    for key in 0..KEYS {
        writer.append(&[key], 0, EntryKind::PUT, &[key; 10]).unwrap();
    }
    let unnumbered = writer.finish_unnumbered().unwrap();
    let bytes = [std::fs::read(&path).unwrap(), unnumbered.footer(number).unwrap()].concat();
    (bytes, unnumbered.numbered(number))
}

fn with_file<T>(bytes: &[u8], work: impl FnOnce(&Path) -> T) -> T {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("000007.segment");
    std::fs::write(&path, bytes).unwrap();
    work(&path)
}

#[test]
fn every_row_of_a_segment_has_the_number_of_its_footer() {
    for number in [1, 77, crate::key::MAX_SEQ] {
        let (bytes, summary) = bytes_with(number);
        with_file(&bytes, |path| {
            let segment = open(path, 0).unwrap();
            assert_eq!(*segment.summary(), summary);
            assert_eq!((summary.min_seq, summary.max_seq), (number, number));
            for key in 0..KEYS {
                let entry = segment.get(&[key], STORE.hasher.hash(&[key])).unwrap().unwrap();
                assert_eq!((entry.seq, &*entry.value), (number, &[key; 10][..]));
            }
            for direction in [Direction::Forward, Direction::Reverse] {
                let rows = collect(&segment, direction, Bound::Unbounded, Access::Scan).unwrap();
                assert_eq!(rows.len(), usize::from(KEYS));
                assert!(rows.iter().all(|(_, entry)| entry.seq == number));
            }
            let mut seen = 0;
            segment
                .verify(&mut |_, seq, _| {
                    assert_eq!(seq, number);
                    seen += 1;
                    Ok(())
                })
                .unwrap();
            assert_eq!(seen, KEYS);
        });
    }
}

#[test]
fn rows_of_a_damaged_segment_keep_their_number() {
    let (good, summary) = bytes_with(77);
    let rows = |bytes: &[u8], known: Option<&SegmentSummary>| {
        with_file(bytes, |path| {
            let (file, mut seqs) = (crate::fs::Fs::open(&RealFs, path).unwrap(), Vec::new());
            let found = salvage(&file, ID, known, &mut SEARCH_BYTES_REPAIR.clone(), &mut |_, seq, _, _| {
                seqs.push(seq);
                Ok(())
            });
            (seqs, found.unwrap().has_lost_number)
        })
    };
    let mut damaged = good.clone();
    damaged[300] ^= 1;
    let (seqs, is_lost) = rows(&damaged, None);
    assert!(seqs.len() > 100 && seqs.iter().all(|seq| *seq == 77) && !is_lost, "the footer knows it");
    let mut damaged = good.clone();
    let end = damaged.len();
    damaged[end - 30] ^= 1;
    let (seqs, is_lost) = rows(&damaged, Some(&summary));
    assert!(
        seqs.len() == usize::from(KEYS) && seqs.iter().all(|seq| *seq == 77) && !is_lost,
        "the manifest does"
    );
    let (seqs, is_lost) = rows(&damaged, None);
    assert!(seqs.len() == usize::from(KEYS) && seqs.iter().all(|seq| *seq == 1) && is_lost, "nobody does");
}

/// A footer is refused if it numbers rows that have a number, or if its number is too large.
#[test]
fn i6_a_footer_with_a_second_or_too_large_a_number_is_refused() {
    let with_number = |mut bytes: Vec<u8>, number: u64| {
        let footer = bytes.len() - FOOTER_BYTES;
        bytes[footer + 8..footer + 16].copy_from_slice(&number.to_le_bytes());
        let crc = crc32(&[&bytes[footer..footer + 52]]);
        bytes[footer + 52..].copy_from_slice(&crc.to_le_bytes());
        with_file(&bytes, |path| open(path, 0).map(|_| ()))
    };
    let (numbered, _) = bytes_with(77);
    with_number(numbered.clone(), 5).unwrap();
    assert!(matches!(with_number(numbered, 1 << 63), Err(Error::Corruption { .. })));
    let model: Model = [(b"a".to_vec(), put(3, "x"))].into();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("000007.segment");
    write(&path, &model, RangeTombstones::default(), WriterOptions::default()).unwrap();
    let own = std::fs::read(&path).unwrap();
    with_number(own.clone(), 0).unwrap();
    assert!(matches!(with_number(own, 5), Err(Error::Corruption { .. })));
}
