//! A bucket's claims of sizes and counts cost nothing until they are true.

use super::{Bench, contents, fill, forged};
use crate::support::counting::damage;
use crate::support::hostile::{Hostile, Lie};
use object_store::path::Path;
use sidebloom_remote::{Error, Publisher, Reader, Remote, TakeOver};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

fn published() -> (Bench, sidebloom::Db) {
    let bench = Bench::new();
    let db = bench.open("store");
    fill(&db, 0..2000, "value");
    Publisher::new(&db, bench.remote(), TakeOver::No).unwrap().publish().unwrap();
    (bench, db)
}

fn clone(remote: &Remote, bench: &Bench, to: &str) -> Error {
    sidebloom_remote::clone(remote, bench.path(to), &mut |_, _| ()).unwrap_err()
}

#[test]
fn an_object_without_an_end_costs_no_more_than_what_belongs_there() {
    let (bench, _db) = published();
    let largest = 1 << 20; // Among the objects of this generation.
    for (n, folder) in ["latest", "gen/", "manifest/", "filter/", "segment/"].into_iter().enumerate() {
        for lie in [Lie::Endless { said: 40 << 30 }, Lie::Endless { said: 10 }, Lie::LongerThanSaid] {
            let bytes_sent = Arc::new(AtomicU64::new(0));
            let hostile = Hostile {
                inner: Arc::clone(&bench.store.inner),
                of: folder.into(),
                lie,
                bytes_sent: Arc::clone(&bytes_sent),
            };
            let remote = Remote::new(Arc::new(hostile), Path::from("songs")).unwrap();
            let opened = Reader::open(remote.clone(), bench.path(&format!("cache {n}")));
            let to = format!("clone {n} {lie:?}");
            if folder == "filter/" {
                assert!(opened.unwrap().db().stats().filters_unavailable > 0, "{lie:?}"); // I2
                sidebloom_remote::clone(&remote, bench.path(&to), &mut |_, _| ()).unwrap();
            } else {
                let error = opened.err().unwrap();
                assert!(
                    matches!(&error, Error::Damaged { object, .. } if object.contains(folder)),
                    "{lie:?}: {error}"
                );
                let error = clone(&remote, &bench, &to);
                assert!(matches!(error, Error::Damaged { .. }), "{folder}, {lie:?}: {error}");
            }
            // A generation may have 128 MiB.
            let allowed = if folder == "gen/" { 2 * (129 << 20) } else { 2 * largest };
            assert!(bytes_sent.load(Relaxed) <= allowed, "{folder}, {lie:?}: {bytes_sent:?}");
        }
    }
}

#[test]
fn sizes_that_a_generation_claims_are_refused_before_anything_is_fetched() {
    let (bench, _db) = published();
    let object = bench.object("gen/");
    let mut whole = Vec::new();
    damage(&*bench.store.inner, &object, |bytes| whole = bytes.clone());
    let claim = |sizes: &[u64]| {
        damage(&*bench.store.inner, &object, |bytes| {
            *bytes = forged(&whole, |body| {
                let files = body["files"].as_array_mut().unwrap();
                files.iter_mut().zip(sizes).for_each(|(file, size)| file["bytes"] = (*size).into());
            });
        });
        bench.store.reset();
    };
    claim(&[u64::MAX, u64::MAX]);
    for error in [
        Reader::open(bench.remote(), bench.path("cache")).err().unwrap(),
        clone(&bench.remote(), &bench, "clone 1"),
    ] {
        assert!(error.to_string().contains("add up to more than 2^64"), "{error}");
    }
    claim(&[1 << 60, 1 << 60]);
    for error in [
        Reader::open(bench.remote(), bench.path("cache")).err().unwrap(),
        clone(&bench.remote(), &bench, "clone 2"),
    ] {
        assert!(error.to_string().contains("are free"), "{error}");
    }
    assert!(bench.store.requests().keys().all(|of| !of.contains("filter") && !of.contains("segment")));
}

#[test]
fn a_bucket_that_always_has_a_next_generation_holds_nobody_for_ever() {
    let (bench, db) = published();
    let reader = Reader::open(bench.remote(), bench.path("cache")).unwrap();
    let object = bench.object("gen/");
    let mut whole = Vec::new();
    damage(&*bench.store.inner, &object, |bytes| whole = bytes.clone());
    let put = |number: u64| {
        let bytes = forged(&whole, |body| body["number"] = number.into());
        bench.put(&format!("songs/gen/{number:020}"), bytes);
    };
    (2..=1100).for_each(put);
    let named = |error: &Error| matches!(error, Error::Endless { .. });
    let errors = [
        reader.refresh().unwrap_err(),
        Reader::open(bench.remote(), bench.path("fresh")).err().unwrap(),
        clone(&bench.remote(), &bench, "clone"),
        Publisher::new(&db, bench.remote(), TakeOver::Yes).err().unwrap(),
    ];
    assert!(errors.iter().all(named), "{errors:?}");
    assert_eq!(contents(reader.db()), contents(&db));
    // Nobody looks at all of them if the hint gives the newest.
    bench.put("songs/latest", b"1098".to_vec());
    bench.store.reset();
    assert_eq!(Reader::open(bench.remote(), bench.path("fresh")).unwrap().generation(), 1100);
    assert!(reader.refresh().unwrap() && reader.generation() == 1100);
    assert!(bench.store.requests()["get gen"] < 60, "{:?}", bench.store.requests());
    put(u64::MAX);
    bench.put("songs/latest", u64::MAX.to_string().into_bytes());
    assert_eq!(Reader::open(bench.remote(), bench.path("last")).unwrap().generation(), u64::MAX);
    let mut last = Publisher::new(&db, bench.remote(), TakeOver::Yes).unwrap();
    assert!(matches!(last.publish(), Err(Error::Endless { .. })));
}

#[test]
fn generations_under_ones_own_name_hold_a_publisher_not_for_ever() {
    let (bench, db) = published();
    let mut publisher = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap();
    publisher.publish().unwrap();
    let mut whole = Vec::new();
    damage(&*bench.store.inner, &Path::from("songs/gen/00000000000000000002"), |bytes| whole = bytes.clone());
    for number in 3..100u64 {
        let bytes = forged(&whole, |body| body["number"] = number.into());
        bench.put(&format!("songs/gen/{number:020}"), bytes);
    }
    assert!(matches!(publisher.publish(), Err(Error::Endless { .. })));
}
