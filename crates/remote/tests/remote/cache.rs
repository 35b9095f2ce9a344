//! A reader trusts kept files only by their contents, and keeps them private.

use super::{Bench, contents, files_of, fill, forged};
use sha2::{Digest, Sha256};
use sidebloom_remote::{Error, Publisher, Reader, TakeOver};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

fn published(bench: &Bench) -> sidebloom::Db {
    let db = bench.open("store");
    fill(&db, 0..2000, "value");
    Publisher::new(&db, bench.remote(), TakeOver::No).unwrap().publish().unwrap();
    db
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Replaces what the newest generation names by zeros of the same lengths under the same names, with correct
/// hashes. Returns the original contents.
fn tamper(bench: &Bench) -> Vec<(String, Vec<u8>)> {
    let before: Vec<_> = bench.objects().into_iter().map(|name| (name.clone(), bench.bytes(&name))).collect();
    let generation = bench.object("gen/");
    let changed = forged(&bench.bytes(generation.as_ref()), |body| {
        let zeros = |len: u64| vec![0; len as usize];
        let replace = |object: &mut serde_json::Value| {
            let bytes = zeros(object["bytes"].as_u64().unwrap());
            object["sha256"] = sha256(&bytes).into();
            bench.put(&format!("songs/{}", object["object"].as_str().unwrap()), bytes);
        };
        replace(&mut body["manifest"]);
        for file in body["files"].as_array_mut().unwrap() {
            replace(file);
            if let Some(at) = file["tail"]["at"].as_u64() {
                let len = file["bytes"].as_u64().unwrap() - at;
                file["tail"]["sha256"] = sha256(&zeros(len)).into();
            }
        }
    });
    bench.put(generation.as_ref(), changed);
    before
}

#[test]
fn a_hostile_bucket_with_the_same_cache_changes_nothing_for_another_one() {
    // Both have one URL here, so even the directory is the same.
    let (hostile, genuine) = (Bench::new(), Bench::new());
    let _other = published(&hostile);
    let db = published(&genuine);
    tamper(&hostile);
    let cache = genuine.path("cache");
    assert!(Reader::open(hostile.remote(), &cache).is_err());
    assert!(files_of(&cache).len() > 3, "what it sent is there");
    let reader = Reader::open(genuine.remote(), &cache).unwrap();
    assert_eq!(contents(reader.db()), contents(&db));
    let elsewhere = Reader::open(Bench::on_disk().remote(), &cache).err().unwrap();
    assert!(matches!(elsewhere, Error::NotPublished { .. }));
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 2, "each URL has its directory");
}

#[test]
fn a_bucket_that_was_tampered_with_and_restored_is_read_as_it_is() {
    let bench = Bench::new();
    let db = published(&bench);
    let before = tamper(&bench);
    assert!(Reader::open(bench.remote(), bench.path("cache")).is_err());
    before.into_iter().for_each(|(name, bytes)| bench.put(&name, bytes));
    let reader = Reader::open(bench.remote(), bench.path("cache")).unwrap();
    assert_eq!(contents(reader.db()), contents(&db));
}

#[test]
fn a_wrong_file_of_the_right_name_and_length_is_not_believed() {
    let bench = Bench::new();
    let db = published(&bench);
    let open = || Reader::open(bench.remote(), bench.path("cache")).unwrap();
    let reader = open();
    for reopen in [true, false] {
        let kept: Vec<_> = files_of(&bench.path("cache"))
            .into_iter()
            .filter(|file| file.file_name().unwrap().len() == 64)
            .collect();
        assert!(kept.len() >= 3);
        for file in &kept {
            let len = fs::metadata(file).unwrap().len() as usize;
            // Another file: the reader has mapped this one, and to cut it short would raise SIGBUS.
            let wrong = file.with_extension("wrong");
            fs::write(&wrong, vec![0; if reopen { len } else { len / 2 }]).unwrap();
            fs::rename(wrong, file).unwrap();
        }
        let fresh = open();
        assert_eq!(contents(fresh.db()), contents(&db));
        for file in kept {
            assert_eq!(sha256(&fs::read(&file).unwrap()), file.file_name().unwrap().to_str().unwrap());
        }
    }
    drop(reader);
}

#[test]
fn i11_an_object_name_from_a_bucket_leads_to_no_file() {
    let bench = Bench::new();
    let _db = published(&bench);
    let keys = bench.path("cache").join("authorized_keys");
    fs::create_dir(bench.path("cache")).unwrap();
    fs::write(&keys, "a key").unwrap();
    let generation = bench.object("gen/");
    let whole = bench.bytes(generation.as_ref());
    for name in
        ["authorized_keys", "../authorized_keys", "segment/../../authorized_keys", "segment/\x1b[2J\x07"]
    {
        let contents = b"another key".to_vec();
        bench.put("songs/authorized_keys", contents.clone());
        bench.put(generation.as_ref(), forged(&whole, |body| {
            body["manifest"] = serde_json::json!({ "object": name, "bytes": contents.len(), "sha256": sha256(&contents) });
        }));
        for error in [
            Reader::open(bench.remote(), bench.path("cache")).err().unwrap(),
            sidebloom_remote::clone(&bench.remote(), bench.path("clone"), &mut |_, _| ()).unwrap_err(),
        ] {
            let shown = error.to_string();
            assert!(matches!(&error, Error::Damaged { object, .. } if object.contains("gen/")), "{shown}");
            assert!(!shown.chars().any(char::is_control), "{shown:?} drives a terminal");
        }
        assert_eq!(fs::read_to_string(&keys).unwrap(), "a key");
    }
}

#[test]
fn files_of_the_user_in_a_cache_directory_stay() {
    let bench = Bench::new();
    let db = published(&bench);
    let open = || Reader::open(bench.remote(), bench.path("cache")).unwrap();
    drop(open());
    let dir = files_of(&bench.path("cache"))[0].parent().unwrap().to_path_buf();
    let hash = "0".repeat(64);
    let names = [
        "manifest-2026.json",
        "segment-report.pdf",
        "filter-coffee.md",
        "blocks-of-flats.cache",
        "2026-11.tmp.bak",
        "notes.tmp",
        &format!("{hash}-report.pdf"),
        &hash.to_uppercase().replace('0', "A"),
        "2026-11-26.tmp",
        "blocks-1-2-3.cache",
    ];
    let theirs: Vec<_> =
        names.iter().flat_map(|name| [bench.path("cache").join(name), dir.join(name)]).collect();
    theirs.iter().for_each(|file| fs::write(file, "mine").unwrap());
    let ours = [dir.join(hash), dir.join("1-2.tmp"), dir.join("blocks-1-2.cache")];
    ours.iter().for_each(|file| fs::write(file, "left by a crash").unwrap());
    fill(&db, 0..10, "new");
    Publisher::new(&db, bench.remote(), TakeOver::No).unwrap().publish().unwrap();
    drop(open());
    let gone: Vec<_> = theirs.iter().filter(|file| !file.exists()).collect();
    assert!(gone.is_empty(), "{gone:?}");
    assert!(ours.iter().all(|file| !file.exists()), "what a crash has left");
}

#[test]
fn links_in_a_cache_directory_lead_nowhere() {
    let bench = Bench::new();
    let db = published(&bench);
    let (cache, victim) = (bench.path("cache"), bench.path("authorized_keys"));
    fs::write(&victim, "a key").unwrap();
    drop(Reader::open(bench.remote(), &cache).unwrap());
    let files = files_of(&cache);
    let dir = files[0].parent().unwrap().to_path_buf();
    for file in &files {
        let whole = fs::read(file).unwrap();
        fs::remove_file(file).unwrap();
        symlink(&victim, file).unwrap();
        let outcome = Reader::open(bench.remote(), &cache);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "a key", "{}", file.display());
        assert!(outcome.is_err(), "{}", file.display());
        fs::remove_file(file).unwrap();
        fs::write(file, whole).unwrap();
    }
    assert_eq!(contents(Reader::open(bench.remote(), &cache).unwrap().db()), contents(&db));
    let elsewhere = bench.path("elsewhere");
    fs::rename(&dir, &elsewhere).unwrap();
    symlink(&elsewhere, &dir).unwrap();
    let error = Reader::open(bench.remote(), &cache).err().unwrap();
    assert!(error.to_string().contains("not a directory of this user"), "{error}");
}

#[test]
fn what_is_kept_of_a_private_bucket_is_private() {
    let bench = Bench::new();
    let _db = published(&bench);
    let options = sidebloom_remote::ReaderOptions::new().disk_cache_bytes(1 << 20);
    let _reader = options.open(bench.remote(), bench.path("new/cache")).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let files = files_of(&bench.path("new/cache"));
    assert!(files.iter().any(|file| file.extension().is_some_and(|is| is == "cache")), "{files:?}");
    for file in &files {
        assert_eq!(mode(file), 0o600, "{}", file.display());
    }
    for dir in [files[0].parent().unwrap(), &bench.path("new/cache"), &bench.path("new")] {
        assert_eq!(mode(dir), 0o700, "{}", dir.display());
    }
}

#[test]
fn a_bucket_that_goes_back_is_named_also_after_a_restart() {
    let bench = Bench::new();
    let db = published(&bench);
    let mut publisher = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap();
    publisher.publish().unwrap();
    let second: Vec<_> = bench.objects().into_iter().map(|name| (name.clone(), bench.bytes(&name))).collect();
    fill(&db, 0..2000, "third");
    db.compact().unwrap();
    publisher.publish().unwrap();
    let reader = Reader::open(bench.remote(), bench.path("cache")).unwrap();
    bench.objects().iter().for_each(|name| bench.remove(name));
    second.into_iter().for_each(|(name, bytes)| bench.put(&name, bytes));
    let is_named = |error: &Error| {
        let (shown, back) = (error.to_string(), matches!(error, Error::WentBack { seen: 3, found: 2, .. }));
        back && shown.contains("generation 3 to 2") && shown.contains("cache")
    };
    // The reader finds that its objects are gone.
    assert!(reader.db().get("key00000000").is_err());
    let error = reader.refresh().unwrap_err();
    assert!(is_named(&error), "{error}");
    assert_eq!(reader.generation(), 3);
    drop(reader);
    let error = Reader::open(bench.remote(), bench.path("cache")).err().unwrap();
    assert!(is_named(&error), "{error}");
    assert_eq!(Reader::open(bench.remote(), bench.path("fresh")).unwrap().generation(), 2);
    bench.put("songs/latest", b"1".to_vec());
    publisher = Publisher::new(&db, bench.remote(), TakeOver::Yes).unwrap();
    publisher.publish().unwrap();
    assert_eq!(Reader::open(bench.remote(), bench.path("cache")).unwrap().generation(), 3);
}
