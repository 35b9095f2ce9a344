//! Invariant I6: damage gives an error that names the file and the offset; never a wrong value or a panic.

use super::*;
use crate::codec::crc32;
use crate::direction::Direction;
use crate::support::sized;
use format::{BlockHandle, FOOTER_BYTES, Location, block_crc};
use std::os::unix::fs::FileExt;

/// A file of two partitions, with tombstones; about 4 KB.
fn small(compression: Compression) -> (Model, Fixture) {
    let mut model = songs(64);
    model.extend((0..30).map(|i| (format!("t{i:02}").into_bytes(), tombstone(i))));
    let is_coded = matches!(compression, Compression::Fsst | Compression::Auto);
    let block_bytes = if is_coded { 64 } else { 120 };
    let fixture = fixture_with(&model, small_ranges(), WriterOptions { block_bytes, compression });
    let (partitions, bytes) = (fixture.segment.top.len(), fixture.summary.file_bytes);
    assert!(partitions >= 2 && bytes < 6000, "{partitions} partitions, {bytes} bytes");
    (model, fixture)
}

fn small_ranges() -> RangeTombstones {
    ranges(&[("song:000003", "song:000009", 50), ("t1", "t2", 7)])
}

fn must_name(path: &Path, file_bytes: u64, error: &Error) {
    match error {
        Error::Corruption { file, offset, .. } => assert!(file == path && *offset <= file_bytes, "{error}"),
        Error::UnsupportedVersion { file, .. } | Error::UnknownCode { file, .. } => assert_eq!(file, path),
        other => panic!("neither corruption nor a version: {other}"),
    }
}

/// Reads everything from `segment` in every way. Checks all answers against the model and returns the errors.
fn interrogate(segment: &Arc<Segment>, model: &Model) -> Vec<Error> {
    let mut errors = Vec::new();
    for (key, entry) in model {
        match get(segment, key) {
            Ok(found) => assert_eq!(found.as_ref(), Some(entry)),
            Err(error) => errors.push(error),
        }
    }
    let walk = |direction, access| -> Result<()> {
        let expected: Vec<_> = match direction {
            Direction::Forward => model.iter().collect(),
            Direction::Reverse => model.iter().rev().collect(),
        };
        let mut cursor = segment.cursor(direction, Bound::Unbounded, access)?;
        for (key, entry) in expected {
            assert!(cursor.advance()?, "a walk must not end early without an error");
            assert!(cursor.key() == key[..]);
            assert_eq!((cursor.seq(), cursor.kind()), (entry.seq, entry.kind));
            assert_eq!(cursor.value(), &*entry.value);
        }
        assert!(!cursor.advance()?);
        Ok(())
    };
    match segment.read_ranges() {
        Ok(ranges) => assert_eq!(ranges, small_ranges()),
        Err(error) => errors.push(error),
    }
    for direction in [Direction::Forward, Direction::Reverse] {
        errors.extend(
            [Access::Range, Access::Scan].into_iter().filter_map(|access| walk(direction, access).err()),
        );
    }
    errors
}

fn verify(segment: &Segment) -> Result<()> {
    segment.verify(&mut |_, _, _| Ok(()))
}

/// Any flipped byte gives the right answer or an error that names the file, and a verification finds it.
#[test]
fn i6_a_flipped_byte_gives_the_right_answer_or_a_named_error() {
    for &compression in COMPRESSIONS {
        let (model, Fixture { path, summary, .. }) = &small(compression);
        // A block in a map is verified once, so later damage to it stays unseen.
        let opened_before = open_with(path, 0, false).unwrap();
        let sound = std::fs::read(path).unwrap();
        let file = std::fs::File::options().write(true).open(path).unwrap();
        for (at, byte) in sound.iter().enumerate().step_by(sized(11, 1)) {
            file.write_all_at(&[byte ^ (1 << (at % 8))], at as u64).unwrap();
            let mut errors = match open(path, 0) {
                Ok(segment) => interrogate(&segment, model),
                Err(error) => vec![error],
            };
            errors.extend(interrogate(&opened_before, model));
            errors.push(verify(&opened_before).expect_err("verify must find what happened since the open"));
            file.write_all_at(&[!byte], at as u64).unwrap();
            let verified = open(path, 0).and_then(|segment| verify(&segment));
            errors.push(verified.expect_err("open or verify must find it"));
            errors.iter().for_each(|error| must_name(path, summary.file_bytes, error));
            file.write_all_at(&[*byte], at as u64).unwrap();
        }
        verify(&opened_before).unwrap();
    }
}

#[test]
fn i6_a_file_of_any_other_length_is_refused() {
    let (_, Fixture { path, .. }) = &small(Compression::default());
    let sound = std::fs::read(path).unwrap();
    let longer = [&sound[..], &[0]].concat();
    let twice = [&sound[..], &sound].concat();
    for bytes in (0..sound.len()).map(|len| &sound[..len]).chain([&longer[..], &twice]) {
        std::fs::write(path, bytes).unwrap();
        let error = open(path, 0).map(|_| ()).expect_err("not the length it was written with");
        must_name(path, bytes.len() as u64, &error);
    }
}

#[test]
fn i6_a_file_that_shrinks_while_open_gives_errors() {
    let (model, Fixture { path, summary, .. }) = &small(Compression::default());
    // A map of a file that shrinks within a page reads zeros: see `Residency::Mapped`.
    let segment = open_with(path, 0, false).unwrap();
    let file = std::fs::File::options().write(true).open(path).unwrap();
    for len in (0..summary.file_bytes).rev().step_by(50) {
        file.set_len(len).unwrap();
        interrogate(&segment, model).iter().for_each(|error| must_name(path, summary.file_bytes, error));
        assert!(verify(&segment).is_err());
    }
}

/// Blocks of one length, so that only their location distinguishes them.
#[test]
fn i6_a_sound_block_in_the_wrong_place_is_refused() {
    let model: Model = (0..40u8).map(|i| (vec![i; 3], put(1, [i; 50]))).collect();
    let options = WriterOptions { block_bytes: 200, compression: Compression::None };
    let Fixture { path, segment, .. } = &fixture(&model, options);
    let partition = segment.partition(0, true).unwrap();
    let (first, second) = (partition.handle(0), partition.handle(1));
    assert_eq!(first.len, second.len);
    let mut bytes = std::fs::read(path).unwrap();
    bytes.copy_within(first.offset as usize..first.end() as usize, second.offset as usize);
    std::fs::write(path, bytes).unwrap();
    let segment = open(path, 0).unwrap();
    let in_second = model.keys().find(|key| &key[..] > partition.separator(0)).unwrap();
    let error = get(&segment, in_second).unwrap_err();
    assert!(matches!(error, Error::Corruption { offset, .. } if offset == second.offset), "{error}");
}

#[test]
fn i6_a_renamed_segment_is_refused() {
    let Fixture { path, .. } = &fixture(&songs(3), WriterOptions::default());
    let error = Segment::open(&RealFs, path, FileId(8), Arc::new(BlockCache::new(0)), Arc::default(), true)
        .map(|_| ());
    assert!(error.unwrap_err().to_string().contains("segment 000007"));
}

#[test]
fn i6_a_newer_version_is_named() {
    let Fixture { path, .. } = &fixture(&songs(3), WriterOptions::default());
    let mut bytes = std::fs::read(path).unwrap();
    let (footer, crc) = (bytes.len() - FOOTER_BYTES, bytes.len() - 4);
    bytes[footer + 40] = 8;
    std::fs::write(path, &bytes).unwrap();
    let error = open(path, 0).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Corruption { .. }), "a damaged version is damage: {error}");
    let sealed = crc32(&[&bytes[footer..crc]]).to_le_bytes();
    bytes[crc..].copy_from_slice(&sealed);
    std::fs::write(path, bytes).unwrap();
    let error = open(path, 0).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::UnsupportedVersion { found: 8, .. }), "{error}");
}

#[test]
fn i6_decompression_is_never_sized_by_an_unchecked_length() {
    let location = Location { path: Path::new("s"), id: ID, offset: 9 };
    for kind in [Compression::Lz4, Compression::Zstd] {
        for len in [u32::MAX, 129 << 20, 100] {
            let payload = [&len.to_le_bytes()[..], &[0; 7]].concat();
            assert!(compress::unpack(location, kind, &payload).is_err());
        }
        assert!(compress::unpack(location, kind, &[1, 2]).is_err());
    }
}

/// `sound` with one byte of a block changed and the block's CRC updated.
pub(super) fn forge(
    sound: &[u8],
    BlockHandle { offset, len }: BlockHandle,
    at: usize,
    changed: u8,
) -> Vec<u8> {
    let (start, crc_at) = (offset as usize, (offset + u64::from(len)) as usize - 4);
    assert!((start..crc_at).contains(&at));
    let mut bytes = sound.to_vec();
    bytes[at] = changed;
    let crc = block_crc(ID, offset, &bytes[start..crc_at]);
    bytes[crc_at..crc_at + 4].copy_from_slice(&crc.to_le_bytes());
    bytes
}

#[test]
fn i6_padding_is_zero_and_covered_by_the_checksum() {
    let options = WriterOptions { block_bytes: 1000, compression: Compression::None };
    let Fixture { path, segment, .. } = &fixture(&songs(1000), options);
    let sound = std::fs::read(path).unwrap();
    let partition = segment.partition(0, true).unwrap();
    let kind = |block: &BlockHandle| sound[block.end() as usize - format::TRAILER_BYTES];
    let padded = (0..partition.len()).map(|at| partition.handle(at)).find(|block| kind(block) & 0x80 != 0);
    let padded = padded.expect("a block that ends just before a page does");
    assert_eq!(padded.end() % 4096, 0);
    let (end, zeros_at) = (padded.end() as usize, padded.end() as usize - format::TRAILER_BYTES - 2);
    let zeros = usize::from(sound[zeros_at]);
    assert!(zeros > 0 && sound[zeros_at - zeros..zeros_at].iter().all(|&byte| byte == 0));
    let decode = |bytes: &[u8]| segment.decode_block(padded, &bytes[padded.offset as usize..end]).map(drop);
    decode(&sound).unwrap();
    let forged = forge(&sound, padded, zeros_at - zeros, 1);
    assert!(decode(&forged).unwrap_err().to_string().contains("padding"));
    assert!(decode(&forge(&sound, padded, zeros_at + 1, 0xff)).unwrap_err().to_string().contains("padding"));
    assert!(decode(&forge(&sound, padded, zeros_at, sound[zeros_at] + 1)).is_err(), "a byte of the payload");
    let mut flipped = sound.clone();
    flipped[zeros_at - 1] = 1;
    assert!(decode(&flipped).unwrap_err().to_string().contains("checksum"));
}

#[test]
fn i6_verify_finds_by_the_digest_what_every_block_checksum_allows() {
    let model: Model = [(b"k".to_vec(), put(1, "value"))].into();
    let Fixture { path, segment, .. } = &fixture(&model, WriterOptions::default());
    let block = segment.partition(0, true).unwrap().handle(0);
    let last_of_value = block.end() as usize - format::TRAILER_BYTES - 1;
    std::fs::write(path, forge(&std::fs::read(path).unwrap(), block, last_of_value, b'X')).unwrap();
    let segment = open(path, 0).unwrap();
    assert_eq!(get(&segment, b"k").unwrap(), Some(put(1, "valuX")));
    assert!(verify(&segment).unwrap_err().to_string().contains("digest"));
}

/// What a broken writer could leave: every byte of every block is changed in turn, with valid checksums.
/// Answers may be wrong, but the parsers must not panic and iterations must end.
#[test]
fn i6_nonsense_under_sound_checksums_never_panics() {
    let (model, Fixture { path, segment, .. }) = &small(Compression::None);
    let sound = std::fs::read(path).unwrap();
    let (mut blocks, footer) =
        (vec![segment.tail.footer.top, segment.tail.footer.properties], segment.tail.footer);
    for at in 0..segment.top.len() {
        blocks.push(segment.top.handle(at));
        let partition = segment.partition(at, true).unwrap();
        blocks.extend((0..partition.len()).map(|at| partition.handle(at)));
    }
    let (mut found, step) = (0, sized(13, 1));
    for block in blocks {
        let (start, crc_at) = (block.offset as usize, block.end() as usize - 4);
        let changes = (start..crc_at).flat_map(|at| [0u8, 1, 0x7f, 0xff].map(|changed| (at, changed)));
        for (at, changed) in changes.step_by(step) {
            let mut bytes = forge(&sound, block, at, changed);
            let footer_at = bytes.len() - FOOTER_BYTES;
            let digest = crate::hash::digest(&bytes[..footer_at]);
            bytes[footer_at..].copy_from_slice(&format::Footer { digest, ..footer }.encode().unwrap());
            std::fs::write(path, &bytes).unwrap();
            let Ok(segment) = open(path, 0) else { continue };
            model.keys().for_each(|key| drop(get(&segment, key)));
            for direction in [Direction::Forward, Direction::Reverse] {
                for start in [Bound::Unbounded, Bound::Included(&b"song:000020"[..])] {
                    let Ok(mut cursor) = segment.cursor(direction, start, Access::Scan) else { continue };
                    while cursor.advance().is_ok_and(|more| more) {}
                }
            }
            found += u32::from(verify(&segment).is_err());
        }
    }
    assert!(found > 1000 / step as u32, "verify found only {found} of the changes");
}

#[test]
fn i6_a_footer_that_claims_gigabytes_is_refused_unread() {
    let dir = crate::support::fast_dir();
    for (top, properties) in [(u32::MAX, 500), (500, u32::MAX), (u32::MAX, u32::MAX), (200 << 20, 500)] {
        let path = dir.path().join("segment");
        let top = BlockHandle { offset: 16, len: top };
        let properties = BlockHandle { offset: top.end(), len: properties };
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(properties.end()).unwrap();
        let version = format::WRITES;
        let footer = format::Footer { id: ID, version, number: 0, top, properties, digest: 1 };
        file.write_all_at(&footer.bytes(), properties.end()).unwrap();
        let cache = Arc::new(BlockCache::new(0));
        let opened = Segment::open(&RealFs, &path, ID, cache, Arc::default(), true);
        let error = opened.map(drop).unwrap_err().to_string();
        assert!(error.contains("too long for this file"), "{error}");
    }
}
