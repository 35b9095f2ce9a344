//! What only a newer version can have written is reported as such, not as damage.

use super::damage::forge;
use super::*;
use crate::segment::facts::FactsBuilder;
use format::{BlockHandle, Location, TRAILER_BYTES};

/// The error for one changed byte of a block, under the right checksum. Reading ends at the first error.
fn error_of(path: &Path, sound: &[u8], block: BlockHandle, at: usize, code: u8) -> Error {
    std::fs::write(path, forge(sound, block, at, code)).unwrap();
    let segment = match open(path, 0) {
        Ok(segment) => segment,
        Err(error) => return error,
    };
    let found = get(&segment, b"song:000000").map(drop);
    let walked = collect(&segment, Direction::Forward, Bound::Unbounded, Access::Scan).map(drop);
    let verified = segment.verify(&mut |_, _, _| Ok(()));
    let [found, walked, verified] = [found, walked, verified].map(Result::unwrap_err);
    assert_eq!([found.to_string(), walked.to_string()], [(); 2].map(|()| verified.to_string()));
    found
}

/// A codec, entry kinds, a hash or a compression of a newer version is not damage.
#[test]
fn i6_codes_of_a_newer_version_in_a_segment_are_not_damage() {
    let options = WriterOptions { block_bytes: 1000, compression: Compression::None };
    let Fixture { path, segment, .. } = &fixture(&songs(64), options);
    let sound = std::fs::read(path).unwrap();
    let data = segment.partition(0, true).unwrap().handle(0);
    let (top, properties) = (segment.tail.footer.top, segment.tail.footer.properties);
    let type_of = |block: BlockHandle| block.end() as usize - TRAILER_BYTES;
    let (entry_kinds, hash) = (data.offset as usize + 19, properties.offset as usize + 16);
    let name = hash + 1 + 16 + 1;
    assert_eq!((&sound[name..name + 4], sound[hash]), (&b"none"[..], 4), "the test knows the offsets");
    let cases = [
        (data, type_of(data), 9, "a block of codec 9"),
        (data, type_of(data), 0x80 | 9, "a block of codec 9"),
        (top, type_of(top), 4, "a block of codec 4"),
        (properties, type_of(properties), 127, "a block of codec 127"),
        (data, entry_kinds, 14, "entries of kinds 14"),
        (properties, hash, 5, "hash code 5 in its properties"),
        (properties, name, b'z', "compression \"zone\" in its properties"),
    ];
    for (block, at, code, what) in cases {
        let error = error_of(path, &sound, block, at, code);
        let offset = block.offset;
        let text = format!(
            "{} has {what} at offset {offset}, which this version does not know: it was written by a newer version of sidebloom",
            path.display()
        );
        assert!(error.to_string().starts_with(&text), "{error}");
        assert!(
            matches!(&error, Error::UnknownCode { file, offset: at, .. } if file == path && *at == offset)
        );
        // Nor is it lost where another part is damaged.
        let mut damaged = forge(&sound, block, at, code);
        let other = if block == top { data } else { top };
        damaged[other.offset as usize] ^= 1;
        std::fs::write(path, damaged).unwrap();
        let file = crate::fs::Fs::open(&RealFs, path).unwrap();
        let salvaged = salvage(&file, ID, None, &mut (1 << 20), &mut |_, _, _, _| Ok(()));
        assert!(matches!(&salvaged, Err(Error::UnknownCode { offset: at, .. }) if *at == offset), "{what}");
        // Without the right checksum it is damage.
        let mut damaged = sound.clone();
        damaged[at] = code;
        std::fs::write(path, damaged).unwrap();
        let read = open(path, 0).and_then(|segment| get(&segment, b"song:000000"));
        assert!(matches!(read, Err(Error::Corruption { .. })), "{what}");
    }
}

/// What may come after the last property that this version knows. Code 0 belongs to no version.
#[test]
fn i14_a_property_of_a_newer_version_is_named_and_is_no_damage() {
    let mut counted = FactsBuilder::default();
    counted.count(b"a", 1, EntryKind::PUT, 1);
    let facts = counted.finish(&RangeTombstones::default(), b"a".to_vec());
    let (properties, mut bytes) = (
        Properties { store: STORE, compression: Compression::None, symbols: None, facts, keyspace: None },
        Vec::new(),
    );
    properties.encode(&mut bytes).unwrap();
    let location = Location { path: Path::new("s"), id: ID, offset: 9 };
    let with = |more: &[u8]| Properties::decode(location, &[&bytes[..], more].concat());
    assert_eq!(with(&[]).unwrap(), properties);
    for more in [&[7][..], &[7, 0, 1], &[255; 300]] {
        let error = with(more).unwrap_err();
        let what = format!("field {} in its properties", more[0]);
        assert!(matches!(&error, Error::UnknownCode { what: said, .. } if *said == what), "{error}");
    }
    for more in [&[0][..], &[0, 7]] {
        assert!(matches!(with(more), Err(Error::Corruption { .. })));
    }
}
