//! Rule I14: what a release has published can be read, cloned and published further.
//! `SIDEBLOOM_RELEASE=0.1.0 cargo test -p sidebloom-remote --test remote i14_what_this_build` makes the file
//! of this build in `fixtures/releases`.

use super::{contents, fill, small};
use crate::archive::{pack, unpack};
use sidebloom::filter::Verdict;
use sidebloom::guard::GuardOptions;
use sidebloom_remote::guard::{GuardPublisher, RemoteGuard, RemoteGuardOptions};
use sidebloom_remote::{Publisher, Reader, Remote, TakeOver, clone};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const RELEASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/releases");
const NAME: &str = "published.tar.gz";
const ROWS: u32 = 500;
const GUARDED: u32 = 300;

fn remote(bucket: &Path) -> Remote {
    Remote::open(&format!("file://{}/songs", bucket.display())).unwrap()
}

fn expected() -> BTreeMap<Vec<u8>, Vec<u8>> {
    let value = |i| if i < ROWS / 2 { format!("old {i}") } else { format!("new {i}") };
    (0..ROWS).map(|i| (format!("key{i:08}").into_bytes(), value(i).into_bytes())).collect()
}

/// Two generations of a store and one of a guard.
fn make(archive: &Path) {
    let dir = tempfile::tempdir().unwrap();
    let bucket = dir.path().join("kept/bucket");
    std::fs::create_dir_all(&bucket).unwrap();
    let db = small().open(dir.path().join("store")).unwrap();
    let mut publisher = Publisher::new(&db, remote(&bucket), TakeOver::No).unwrap();
    fill(&db, 0..ROWS, "old");
    publisher.publish().unwrap();
    fill(&db, ROWS / 2..ROWS, "new");
    publisher.publish().unwrap();
    let keys = (0..GUARDED).map(|i| format!("guarded{i}"));
    let guard = GuardOptions::new().build(dir.path().join("guard"), keys).unwrap();
    GuardPublisher::new(&guard, remote(&bucket), TakeOver::No).unwrap().publish().unwrap();
    pack(&dir.path().join("kept"), archive);
}

fn check(archive: &Path) {
    let dir = tempfile::tempdir().unwrap();
    unpack(archive, dir.path());
    let (bucket, cache) = (dir.path().join("bucket"), dir.path().join("cache"));
    let reader = Reader::open(remote(&bucket), &cache).unwrap();
    assert!(contents(reader.db()) == expected(), "{}", archive.display());
    let gets = reader.data_gets();
    let absent = (0..1000).filter(|i| reader.db().get(format!("key{i:08}x")).unwrap().is_none()).count();
    assert_eq!(absent, 1000);
    assert!(reader.data_gets() < gets + 50, "the filters of the release are used");

    let options = RemoteGuardOptions::new(); // No limit of age.
    let guard = RemoteGuard::open(remote(&bucket), dir.path().join("guards"), options).unwrap();
    assert!((0..GUARDED).all(|i| guard.may_contain(format!("guarded{i}")) == Verdict::Maybe));
    let absent = (0..100).filter(|i| guard.may_contain(format!("absent{i}")) == Verdict::Absent).count();
    assert!(absent > 85, "{absent}");

    let copy: PathBuf = dir.path().join("copy");
    clone(&remote(&bucket), &copy, &mut |_, _| ()).unwrap();
    let db = small().open(&copy).unwrap();
    assert!(contents(&db) == expected() && db.verify().unwrap().is_ok());
    db.put("one more", "1").unwrap();
    Publisher::new(&db, remote(&bucket), TakeOver::No).unwrap().publish().unwrap();
    let reader = Reader::open(remote(&bucket), dir.path().join("another cache")).unwrap();
    assert!(contents(reader.db()).len() == expected().len() + 1);
}

#[test]
fn i14_what_releases_have_published_is_read_cloned_and_published_further() {
    for release in Path::new(RELEASES).read_dir().unwrap() {
        check(&release.unwrap().path().join(NAME));
    }
}

/// So that it can become a release's.
#[test]
fn i14_what_this_build_publishes_passes_what_releases_must() {
    let dir = tempfile::tempdir().unwrap();
    let release = match std::env::var("SIDEBLOOM_RELEASE") {
        Ok(version) => Path::new(RELEASES).join(version),
        Err(_) => dir.path().to_path_buf(),
    };
    std::fs::create_dir_all(&release).unwrap();
    make(&release.join(NAME));
    check(&release.join(NAME));
}
