//! Backups of guards, from the process that has one open and beside it.

use crate::support::{Crash, Fault, SimFs, fast_dir};
use sidebloom::Error;
use sidebloom::backup::{Kind, Repository};
use sidebloom::filter::Verdict;
use sidebloom::guard::{Change, Guard, GuardOptions, Source};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// A database of the keys 0 to this.
struct UpTo(u64);

impl Source for UpTo {
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> sidebloom::Result<()>) -> sidebloom::Result<()> {
        (0..self.0).try_for_each(|n| visit(&n.to_be_bytes()))
    }
    fn count(&mut self, key: &[u8]) -> sidebloom::Result<u64> {
        Ok(u64::from(key < &self.0.to_be_bytes()[..]))
    }
    fn apply(&mut self, _changes: &[Change<'_>]) -> sidebloom::Result<()> {
        Ok(())
    }
}

#[test]
fn a_restored_guard_has_every_key_of_that_moment() {
    let dir = fast_dir();
    let [path, target] = ["guard", "backups"].map(|name| dir.path().join(name));
    let guard = Guard::build(&path, (0..500u64).map(u64::to_be_bytes)).unwrap();
    let repository = Repository::in_dir(&target).unwrap();
    let first = guard.backup(&repository).unwrap();
    guard.insert(500u64.to_be_bytes()).unwrap();
    guard.remove(7u64.to_be_bytes()).unwrap();
    let second = repository.back_up_guard(&path, GuardOptions::new(), |_| ()).unwrap();
    assert_eq!((first.kind, first.number, second.number), (Kind::Guard, 1, 2));
    assert!(second.new_bytes < second.bytes);
    guard.refresh(&mut UpTo(300)).unwrap(); // Another generation.
    repository.back_up_guard(&path, GuardOptions::new(), |_| ()).unwrap();
    for (number, rows, has) in
        [(1, 500, [true, true, false]), (2, 500, [false, true, true]), (3, 300, [true, false, false])]
    {
        let copy = dir.path().join(number.to_string());
        repository.restore(Some(number), &copy).unwrap();
        let copy = Guard::open(copy).unwrap();
        let found = [7u64, 400, 500].map(|n| copy.contains(n.to_be_bytes()).unwrap());
        assert_eq!((found, copy.stats().rows), (has, rows), "backup {number}");
        assert_eq!(copy.may_contain(1_000_000u64.to_be_bytes()), Verdict::Absent);
        copy.insert("new").unwrap();
    }
    let settings = std::fs::metadata(dir.path().join("1/GUARD")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&settings.permissions());
    assert_eq!(mode & 0o077, 0, "nobody else may read the key");
    let other = Guard::build(dir.path().join("other"), [b"k"]).unwrap();
    let error = other.backup(&repository).unwrap_err();
    assert!(error.to_string().contains("backups of another guard"), "{error}");
    let inside = Repository::in_dir(path.join("backups")).unwrap();
    assert!(guard.backup(&inside).unwrap_err().to_string().contains("inside of a store"));
    let image = GuardOptions::new().open_image(&guard.image().unwrap()).unwrap();
    assert!(matches!(image.backup(&repository), Err(Error::NotAGuard { .. })));
    assert!(matches!(
        repository.back_up_guard(&target, GuardOptions::new(), |_| ()),
        Err(Error::NotAGuard { .. })
    ));
}

/// Each has all keys that were inserted before it began, while inserts and refreshes go on.
#[test]
fn backups_beside_inserts_and_refreshes_lack_no_key() {
    let dir = fast_dir();
    let [path, target] = ["guard", "backups"].map(|name| dir.path().join(name));
    let guard = GuardOptions::new().memtable_bytes(4096).build(&path, [b""; 0]).unwrap();
    let repository = Repository::in_dir(&target).unwrap();
    let (inserted, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut made = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..2000u64 {
                guard.insert(n.to_be_bytes()).unwrap();
                inserted.store(n + 1, SeqCst);
                if n % 200 == 199 {
                    guard.refresh(&mut UpTo(n + 1)).unwrap();
                }
            }
            is_over.store(true, SeqCst);
        });
        while !is_over.load(SeqCst) {
            let before = inserted.load(SeqCst);
            let backup = match made.len() % 2 {
                0 => guard.backup(&repository).unwrap(),
                _ => repository.back_up_guard(&path, GuardOptions::new(), |_| ()).unwrap(),
            };
            made.push((backup.number, before));
        }
    });
    assert!(made.len() > 3, "{made:?}");
    for (number, before) in made {
        let copy = dir.path().join("copy");
        repository.restore(Some(number), &copy).unwrap();
        let guard = Guard::open(&copy).unwrap();
        assert!((0..before).all(|n| guard.contains(n.to_be_bytes()).unwrap()), "backup {number}");
        drop(guard);
        std::fs::remove_dir_all(copy).unwrap();
    }
}

#[test]
fn i4_a_restore_of_a_guard_cut_short_anywhere_is_no_guard() {
    for stop in 0.. {
        let fs = SimFs::new();
        let options = || GuardOptions::new().filesystem(Arc::new(fs.clone()));
        let guard = options().build("disk/guard", [b"a", b"b"]).unwrap();
        let repository = Repository::in_dir_on(Arc::new(fs.clone()), "disk/backups").unwrap();
        guard.backup(&repository).unwrap();
        fs.fail(Fault::stop(stop));
        let outcome = repository.restore(None, "disk/copy");
        for (seed, crash) in [Crash::Kill, Crash::PowerOrdered, Crash::Power].into_iter().enumerate() {
            let after = fs.crash(crash, stop << 2 ^ seed as u64);
            match GuardOptions::new().filesystem(Arc::new(after.clone())).open("disk/copy") {
                Ok(copy) => assert!(copy.contains("a").unwrap() && copy.contains("b").unwrap()),
                Err(error) => {
                    assert!(matches!(error, Error::NotAGuard { .. }) && outcome.is_err(), "{stop}: {error}");
                }
            }
        }
        if outcome.is_ok() {
            assert!(stop > 10);
            return;
        }
        fs.heal();
        assert!(!fs.files().iter().any(|path| path.starts_with("disk/copy")) || stop > 0, "{:?}", fs.files());
    }
}
