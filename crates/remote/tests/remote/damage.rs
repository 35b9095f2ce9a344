//! Bad input: named errors, and no wrong answer.

use super::{Bench, contents, fill, small};
use crate::support::counting::damage;
use object_store::path::Path;
use sidebloom_remote::{Error, Publisher, Reader, ReaderOptions, Remote, TakeOver};
use std::time::Duration;

fn published(bench: &Bench) -> sidebloom::Db {
    let db = bench.open("store");
    fill(&db, 0..5000, "value");
    db.compact().unwrap();
    Publisher::new(&db, bench.remote(), TakeOver::No).unwrap().publish().unwrap();
    db
}

type Damage = fn(&mut Vec<u8>);

fn filters(bench: &Bench) -> Vec<String> {
    bench.objects().into_iter().filter(|name| name.contains("filter/")).collect()
}

#[test]
fn an_empty_bucket_a_foreign_one_and_bad_urls_are_named() {
    let bench = Bench::on_disk();
    let error = Reader::open(bench.remote(), bench.path("cache")).err().unwrap();
    assert!(matches!(&error, Error::NotPublished { .. }), "{error}");
    let error = sidebloom_remote::clone(&bench.remote(), bench.path("clone"), &mut |_, _| ()).unwrap_err();
    assert!(matches!(&error, Error::NotPublished { .. }) && !bench.path("clone").exists(), "{error}");
    for url in ["", "songs", "nothing://songs", "s3:"] {
        assert!(matches!(Remote::open(url), Err(Error::InvalidUrl { .. })), "{url}");
    }
    let _db = published(&bench);
    let other = small().open(bench.path("other")).unwrap();
    let error = Publisher::new(&other, bench.remote(), TakeOver::Yes).err().unwrap();
    assert!(matches!(&error, Error::Foreign { what, .. } if what.contains("another store")), "{error}");
}

#[test]
fn i6_a_damaged_object_is_an_error_that_names_it() {
    for folder in ["gen/", "manifest/", "segment/", "latest"] {
        let bench = Bench::new();
        let db = published(&bench);
        let object = bench.object(folder);
        damage(&*bench.store.inner, &object, |bytes| {
            let at = if folder == "segment/" { bytes.len() - 100 } else { bytes.len() / 2 };
            bytes[at] ^= 0x55;
        });
        match Reader::open(bench.remote(), bench.path("cache")) {
            Err(Error::Damaged { object: named, .. }) => assert!(named.contains(object.as_ref()), "{named}"),
            Err(error) => panic!("{folder}: {error}"),
            Ok(reader) => {
                assert_eq!(folder, "latest");
                assert_eq!(contents(reader.db()), contents(&db));
            }
        }
    }
}

#[test]
fn i6_damaged_data_blocks_are_errors_and_the_others_stay_readable() {
    let bench = Bench::new();
    let db = published(&bench);
    damage(&*bench.store.inner, &bench.object("segment/"), |bytes| bytes[2000] ^= 1);
    let reader = Reader::open(bench.remote(), bench.path("cache")).unwrap();
    let expected = contents(&db);
    let mut errors = 0;
    for (key, value) in &expected {
        match reader.db().get(key) {
            Ok(found) => assert_eq!(found.as_deref(), Some(&**value)),
            Err(error) => {
                assert!(matches!(error, sidebloom::Error::Corruption { .. }), "{error}");
                errors += 1;
            }
        }
    }
    assert!(errors > 0 && errors < expected.len() / 10, "{errors}");
}

#[test]
fn a_generation_that_was_cut_short_and_one_of_a_later_format_are_named() {
    let bench = Bench::new();
    let _db = published(&bench);
    let object = bench.object("gen/");
    let mut whole = Vec::new();
    damage(&*bench.store.inner, &object, |bytes| whole = bytes.clone());
    for len in (0..whole.len()).step_by(97) {
        damage(&*bench.store.inner, &object, |bytes| *bytes = whole[..len].to_vec());
        let error = Reader::open(bench.remote(), bench.path("cache")).err().unwrap();
        assert!(matches!(&error, Error::Damaged { object, .. } if object.contains("gen/")), "{len}: {error}");
    }
    damage(&*bench.store.inner, &object, |bytes| {
        *bytes = String::from_utf8(whole.clone())
            .unwrap()
            .replacen("generation 2 ", "generation 3 ", 1)
            .into_bytes();
    });
    let error = Reader::open(bench.remote(), bench.path("cache")).err().unwrap();
    assert!(matches!(error, Error::UnsupportedVersion { found: 3, .. }), "{error}");
}

#[test]
fn i2_a_published_store_without_its_filters_answers_the_same() {
    let bench = Bench::new();
    let db = published(&bench);
    let expected = contents(&db);
    let filters: Vec<_> = filters(&bench).into_iter().map(|name| (bench.bytes(&name), name)).collect();
    let damages: [(&str, Damage); 3] = [
        ("changed", |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }),
        ("cut", |bytes| bytes.truncate(bytes.len() / 2)),
        ("too long", |bytes| bytes.push(0)),
    ];
    let gone = filters.len() as u64;
    for (damages, lost) in
        [(None, 1), (None, gone)].into_iter().chain(damages.into_iter().map(|damage| (Some(damage), gone)))
    {
        let what = format!("{lost} {}", damages.map_or("gone", |(name, _)| name));
        for (n, (whole, name)) in filters.iter().enumerate() {
            let mut bytes = whole.clone();
            match damages {
                _ if n as u64 >= lost => bench.put(name, bytes),
                None => bench.remove(name),
                Some((_, damage)) => {
                    damage(&mut bytes);
                    bench.put(name, bytes);
                }
            }
        }
        let reader = Reader::open(bench.remote(), bench.path(&format!("cache {what}"))).unwrap();
        assert_eq!(contents(reader.db()), expected, "{what}");
        for (key, value) in expected.iter().step_by(97) {
            assert_eq!(reader.db().get(key).unwrap().as_deref(), Some(&**value), "{what}");
            assert_eq!(reader.db().get([key, &b"x"[..]].concat()).unwrap(), None, "{what}");
        }
        assert!(reader.db().verify().unwrap().is_ok(), "{what}");
        assert_eq!(reader.db().stats().filters_unavailable, lost, "{what}");
        let dir = bench.path(&format!("clone {what}"));
        let mut last = (0, 0);
        sidebloom_remote::clone(&bench.remote(), &dir, &mut |done, all| last = (done, all)).unwrap();
        assert!(last.0 == last.1, "{what}: {last:?}");
        let copied = std::fs::read_dir(&dir).unwrap().filter(|file| {
            file.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "filter")
        });
        assert_eq!(copied.count() as u64, gone - lost, "{what}");
        assert_eq!(contents(&small().open(dir).unwrap()), expected, "{what}");
    }
}

#[test]
fn i2_a_reader_goes_on_to_a_generation_whose_new_filter_is_gone() {
    let bench = Bench::new();
    let db = published(&bench);
    let reader = Reader::open(bench.remote(), bench.path("cache")).unwrap();
    let before = filters(&bench);
    fill(&db, 4000..6000, "second");
    Publisher::new(&db, bench.remote(), TakeOver::No).unwrap().publish().unwrap();
    let fresh: Vec<_> = filters(&bench).into_iter().filter(|name| !before.contains(name)).collect();
    assert!(!fresh.is_empty());
    fresh.iter().for_each(|name| bench.remove(name));
    assert!(reader.refresh().unwrap());
    assert_eq!(contents(reader.db()), contents(&db));
    assert_eq!(reader.generation(), 2);
}

#[test]
fn i1_a_foreign_sidecar_is_not_asked() {
    let bench = Bench::new();
    let db = published(&bench);
    let filters = filters(&bench);
    assert!(filters.len() > 1);
    let mut other = Vec::new();
    damage(&*bench.store.inner, &Path::from(filters[1].as_str()), |bytes| other = bytes.clone());
    damage(&*bench.store.inner, &Path::from(filters[0].as_str()), |bytes| *bytes = other);
    let reader = Reader::open(bench.remote(), bench.path("cache")).unwrap();
    assert_eq!(reader.db().stats().filters_unavailable, 1);
    for (key, value) in contents(&db) {
        assert_eq!(reader.db().get(key).unwrap().as_deref(), Some(&*value));
    }
}

/// Clock skew is reported, and the generation is published all the same.
#[test]
fn clocks_that_differ_are_named_and_the_generation_is_still_published() {
    let bench = Bench::new();
    let db = bench.open("store");
    let publisher = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap();
    let mut strict = publisher.clock_tolerance(Duration::ZERO);
    assert!(matches!(strict.publish(), Err(Error::ClockSkew { .. })));
    assert_eq!(strict.generation(), 1);
    let options = ReaderOptions::new().clock_tolerance(Duration::ZERO);
    let reader = options.open(bench.remote(), bench.path("cache")).unwrap();
    assert_eq!(reader.generation(), 1);
}
