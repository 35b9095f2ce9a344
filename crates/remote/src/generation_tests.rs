//! Tests of the format of generations.

use super::*;

fn generation() -> Generation {
    let object = |name: &str| Object { object: name.into(), bytes: 7, sha256: sha256(b"contents") };
    let tail = Some(Tail { at: 3, sha256: sha256(b"tail") });
    Generation {
        number: 12,
        id: "1f".into(),
        writer: "2f".into(),
        as_of_ms: 1_700_000_000_000,
        holds: Holds::Store { version: 9 },
        manifest: object("manifest/x"),
        files: vec![File {
            name: "000001.segment".into(),
            object: object("segment/x"),
            mark: "m".into(),
            tail,
        }],
    }
}

/// A generation of this number.
pub(crate) fn numbered(number: u64) -> Generation {
    Generation { number, ..generation() }
}

fn of_a_guard() -> Generation {
    let mut generation = generation();
    generation.holds = Holds::Guard { suspended: true, settings: vec![7, 255], unfiltered: vec![u64::MAX] };
    let object = Object { object: "filter/x".into(), ..generation.manifest.clone() };
    generation.files = vec![File { name: "000001.filter".into(), object, mark: "m".into(), tail: None }];
    generation
}

#[test]
fn a_generation_of_each_kind_is_decoded_to_what_was_encoded() {
    for generation in [generation(), of_a_guard()] {
        assert_eq!(Generation::decode(&generation.encode(), "o", 12).unwrap(), generation);
    }
    assert_eq!(Generation::number_in(&Generation::name_of(u64::MAX)), Some(u64::MAX));
    for name in ["gen/12", "gen/+0000000000000000012", "other/00000000000000000012", "gen/"] {
        assert_eq!(Generation::number_in(name), None, "{name}");
    }
}

#[test]
fn the_bytes_of_generations_are_these() {
    let sha256 = sha256(b"contents");
    let object = |name: &str| format!(r#""object":"{name}","bytes":7,"sha256":"{sha256}""#);
    let (manifest, segment, filter) = (object("manifest/x"), object("segment/x"), object("filter/x"));
    let common = r#""number":12,"id":"1f","writer":"2f","as_of_ms":1700000000000"#;
    let tail = format!(r#""tail":{{"at":3,"sha256":"{}"}}"#, self::sha256(b"tail"));
    let of_a_store = format!(
        r#"{{{common},"kind":"store","version":9,"manifest":{{{manifest}}},"files":[{{"name":"000001.segment",{segment},"mark":"m",{tail}}}]}}"#
    );
    let guards = r#""kind":"guard","suspended":true,"settings":[7,255],"unfiltered":[18446744073709551615]"#;
    let of_guard = format!(
        r#"{{{common},{guards},"manifest":{{{manifest}}},"files":[{{"name":"000001.filter",{filter},"mark":"m"}}]}}"#
    );
    for (generation, body) in [(generation(), of_a_store), (of_a_guard(), of_guard)] {
        let expected =
            format!("sidebloom generation 2 {} {:08x}\n{body}", body.len(), crc32(&[body.as_bytes()]));
        assert_eq!(String::from_utf8(generation.encode()).unwrap(), expected);
    }
}

#[test]
fn other_versions_are_refused_by_name() {
    for (found, words) in [(1, "an older sidebloom"), (3, "a newer sidebloom")] {
        let bytes = String::from_utf8(generation().encode()).unwrap();
        let other = bytes.replacen("generation 2", &format!("generation {found}"), 1);
        let error = Generation::decode(other.as_bytes(), "o", 12).unwrap_err();
        assert!(matches!(error, Error::UnsupportedVersion { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn i6_every_cut_every_changed_byte_and_another_number_is_a_named_error() {
    let bytes = generation().encode();
    for len in 0..bytes.len() {
        assert!(Generation::decode(&bytes[..len], "o", 12).is_err(), "cut to {len} bytes");
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let error = Generation::decode(&changed, "o", 12).unwrap_err().to_string();
        assert!(error.starts_with("o "), "{error}");
    }
    assert!(Generation::decode(&bytes, "o", 13).is_err());
}

/// Whether reader and writer refuse a generation after this change.
fn refuses(change: impl FnOnce(&mut Generation)) -> bool {
    let mut changed = generation();
    change(&mut changed);
    let read = Generation::decode(&changed.encode(), "o", 12);
    assert_eq!(read.is_err(), changed.check().is_err(), "the writer refuses what the reader does");
    matches!(read, Err(Error::Damaged { .. }))
}

#[test]
fn i11_names_hashes_and_sizes_from_a_bucket_are_checked() {
    for name in [
        "../000001.segment",
        "/etc/passwd",
        "LOCK",
        "MANIFEST",
        "PUBLISHED",
        "authorized_keys",
        "000001.wal",
        "000001.obsolete",
        "1.segment",
        "000001.segment\0",
        "000001.segment\n",
        "",
        ".",
        "..",
    ] {
        assert!(refuses(|changed| changed.files[0].name = name.into()), "{name:?}");
    }
    for name in [
        "authorized_keys",
        "segment/../../x",
        "segment//x",
        "segment/",
        "/segment/x",
        "segment/x/y",
        "segment/.x",
        "segment/..",
        "segment/a\0",
        "segment/\u{1b}[2J",
        "gen/1",
        "latest",
        "segment/CON ",
        "segment\\x",
    ] {
        assert!(refuses(|changed| changed.files[0].object.object = name.into()), "{name:?}");
        assert!(refuses(|changed| changed.manifest.object = name.into()), "{name:?}");
    }
    assert!(refuses(|changed| changed.manifest.object = format!("manifest/{}", "x".repeat(129))));
    for hash in ["", "..", "0", &"A".repeat(64), &"/".repeat(64), &"0".repeat(63)] {
        assert!(refuses(|changed| changed.files[0].object.sha256 = hash.into()), "{hash:?}");
        assert!(refuses(|changed| changed.files[0].tail.as_mut().unwrap().sha256 = hash.into()), "{hash:?}");
    }
    assert!(refuses(|changed| changed.files[0].tail.as_mut().unwrap().at = 8));
    assert!(refuses(|changed| changed.files[0].object.bytes = u64::MAX));
    assert!(refuses(|changed| changed.manifest.bytes = MANIFEST_BYTES_MAX + 1));
    assert!(refuses(|changed| changed.files.push(changed.files[0].clone())));
    assert!(refuses(|changed| changed.files[0].name = "000001.filter".into()), "a filter with a tail");
    for digits in ["", "x", "\u{1b}[2J", "00000000000000000"] {
        assert!(refuses(|changed| changed.id = digits.into()), "{digits:?}");
    }
    assert!(refuses(|changed| changed.writer = "\n".into()));
    assert!(!refuses(|_| ()));
    assert!(!refuses(|changed| *changed = of_a_guard()));
    assert!(refuses(|changed| changed.holds = of_a_guard().holds), "a guard with a segment");
    assert!(refuses(|changed| {
        let settings = vec![0; SETTINGS_BYTES_MAX + 1];
        changed.files.clear();
        changed.holds = Holds::Guard { suspended: false, settings, unfiltered: Vec::new() };
    }));
}
