//! Images of a guard: copied, damaged, and opened elsewhere.

use crate::guard_support::fine;
use sidebloom::filter::Verdict;
use sidebloom::fs::ReadFile;
use sidebloom::guard::{Changes, Guard, GuardImage, GuardOptions};
use sidebloom::{Durability, Error};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn bytes_of(file: &dyn ReadFile) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// An image, with its files copied to a directory.
struct Copied {
    settings: Vec<u8>,
    manifest: Vec<u8>,
    filters: BTreeMap<u64, Option<PathBuf>>,
}

fn copy(image: &GuardImage, dir: &Path) -> Copied {
    let copy_one = |number: u64| {
        let path = dir.join(format!("{number}.copy"));
        image.open_filter(number).unwrap().map(|file| {
            std::fs::write(&path, bytes_of(&*file)).unwrap();
            path
        })
    };
    let filters = image.filters().map(|number| (number, copy_one(number))).collect();
    Copied { settings: image.settings().to_vec(), manifest: image.manifest().to_vec(), filters }
}

impl Copied {
    fn open(&self) -> sidebloom::Result<Guard> {
        let Copied { settings, manifest, filters } = self;
        let image = GuardImage::from_parts(settings.clone(), manifest.clone(), filters.clone());
        GuardOptions::new().open_image(&image)
    }

    fn first_filter(&self) -> PathBuf {
        self.filters.values().flatten().next().unwrap().clone()
    }
}

fn strings(prefix: &str, numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(|n| format!("{prefix} {n}")).collect()
}

/// A guard with several segments, and its keys.
fn guard(dir: &TempDir, options: GuardOptions) -> (Guard, Vec<String>) {
    let options = options.durability(Durability::Os).memtable_bytes(64 << 10);
    let guard = options.build(dir.path().join("guard"), strings("key", 0..20_000)).unwrap();
    insert(&guard, &strings("key", 20_000..30_000));
    (guard, strings("key", 0..30_000))
}

fn insert(guard: &Guard, keys: &[String]) {
    for keys in keys.chunks(1000) {
        let mut changes = Changes::new();
        keys.iter().for_each(|key| _ = changes.insert(key));
        guard.write(&changes).unwrap();
    }
}

fn all_maybe(guard: &Guard, keys: &[String]) -> bool {
    keys.iter().all(|key| guard.may_contain(key) == Verdict::Maybe)
        && guard.may_contain_many(keys).iter().all(|verdict| *verdict == Verdict::Maybe)
}

#[test]
fn i1_an_image_answers_as_the_guard_did_when_it_was_taken() {
    let dir = tempfile::tempdir().unwrap();
    let (guard, keys) = guard(&dir, GuardOptions::new().known_absent(10));
    let absent = strings("absent", 0..20_000);
    guard.image().unwrap(); // Memtables and segments let different keys pass.
    let passed = absent.iter().find(|key| guard.may_contain(key) == Verdict::Maybe).unwrap();
    let before = guard.may_contain_many(&absent);
    assert!(guard.confirm_absent(passed).unwrap());
    let copied = copy(&guard.image().unwrap(), dir.path());
    let late = strings("late", 0..20_000);
    insert(&guard, &late);
    drop(guard);
    std::fs::remove_dir_all(dir.path().join("guard")).unwrap();
    let opened = copied.open().unwrap();
    assert!(all_maybe(&opened, &keys));
    assert!(opened.may_contain_many(&absent) == before, "what was remembered as absent is not in it");
    let passing = late.iter().filter(|key| opened.may_contain(key) == Verdict::Maybe).count();
    assert!((1..400).contains(&passing), "{passing} of the keys that came later pass by chance");
    let stats = opened.stats();
    assert_eq!((stats.rows, stats.filters_unavailable), (0, 0));
    assert!(stats.filters > 1 && stats.absent > 0);
    assert!(matches!(opened.insert("x"), Err(Error::ReadOnly)));
    assert!(matches!(opened.image(), Err(Error::ReadOnly)));
    let error = opened.contains("key 1").unwrap_err().to_string();
    assert!(error.contains("left where it is"), "{error}");
}

/// Images of an unchanged guard are equal; images of a refreshed one belong to its next generation.
#[test]
fn images_of_an_unchanged_guard_are_equal_and_a_refresh_makes_new_ones() {
    let dir = tempfile::tempdir().unwrap();
    let (guard, mut keys) = guard(&dir, fine());
    let (first, second) = (guard.image().unwrap(), guard.image().unwrap());
    assert_eq!((first.manifest(), first.settings()), (second.manifest(), second.settings()));
    keys.truncate(5);
    let mut source = Rows(keys.clone());
    guard.refresh(&mut source).unwrap();
    let refreshed = guard.image().unwrap();
    assert_eq!(refreshed.guard_id().unwrap(), first.guard_id().unwrap());
    assert_eq!((first.generation().unwrap(), refreshed.generation().unwrap()), (1, 2));
    let opened = GuardOptions::new().open_image(&refreshed).unwrap();
    assert!(all_maybe(&opened, &keys));
    assert_eq!(opened.may_contain("key 29999"), Verdict::Absent);
    let (_, other) = (guard, tempfile::tempdir().unwrap());
    let other = GuardOptions::new().build(other.path().join("other"), ["a"]).unwrap().image().unwrap();
    assert_ne!(other.guard_id().unwrap(), first.guard_id().unwrap());
}

/// A database with these keys.
pub struct Rows(pub Vec<String>);

impl sidebloom::guard::Source for Rows {
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> sidebloom::Result<()>) -> sidebloom::Result<()> {
        self.0.iter().try_for_each(|key| visit(key.as_bytes()))
    }

    fn count(&mut self, key: &[u8]) -> sidebloom::Result<u64> {
        Ok(self.0.iter().filter(|row| row.as_bytes() == key).count() as u64)
    }

    fn apply(&mut self, _: &[sidebloom::guard::Change<'_>]) -> sidebloom::Result<()> {
        Err(Error::ReadOnly)
    }
}

/// An image keeps its files while the guard compacts, but not when it is refreshed.
#[test]
fn an_image_keeps_its_files_through_compactions_and_not_a_refresh() {
    let dir = tempfile::tempdir().unwrap();
    let (guard, keys) = guard(&dir, fine());
    let image = guard.image().unwrap();
    let numbers: Vec<u64> = image.filters().collect();
    for round in 0..8 {
        insert(&guard, &strings("more", round * 10_000..(round + 1) * 10_000));
    }
    let gone =
        numbers.iter().filter(|number| !guard.image().unwrap().filters().any(|now| now == **number)).count();
    assert!(gone > 0, "segments were compacted");
    let opened = copy(&image, dir.path()).open().unwrap();
    assert!(all_maybe(&opened, &keys));
    assert_eq!(opened.stats().filters_unavailable, 0);
    guard.refresh(&mut Rows(keys.clone())).unwrap();
    assert!(numbers.iter().all(|number| image.open_filter(*number).unwrap().is_none()));
}

#[test]
fn i1_a_damaged_missing_or_foreign_filter_denies_no_key() {
    let dir = tempfile::tempdir().unwrap();
    let (guard, keys) = guard(&dir, fine());
    let mut copied = copy(&guard.image().unwrap(), dir.path());
    let file = copied.first_filter();
    let sound = std::fs::read(&file).unwrap();
    let last = std::fs::read(copied.filters.values().flatten().last().unwrap()).unwrap();
    let damages = [
        ("zeroed lines", [&sound[..4096], &vec![0; sound.len() - 4096][..]].concat()),
        ("zeroed header", [&[0; 4096][..], &sound[4096..]].concat()),
        ("cut short", sound[..sound.len() / 2].to_vec()),
        ("empty", Vec::new()),
        ("another's", last),
    ];
    for (what, damaged) in damages {
        assert_ne!(damaged, sound, "{what}");
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, damaged).unwrap();
        let opened = copied.open().unwrap();
        assert!(all_maybe(&opened, &keys), "{what}");
    }
    *copied.filters.values_mut().next().unwrap() = None;
    let opened = copied.open().unwrap();
    assert!(all_maybe(&opened, &keys), "missing");
    assert_eq!(opened.stats().filters_unavailable, 1);
    copied.filters.pop_first();
    assert!(matches!(copied.open(), Err(Error::Corruption { .. })), "the manifest names more than there are");
}

#[test]
fn damaged_settings_and_manifests_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let guard = fine().build(dir.path().join("guard"), ["Zombie"]).unwrap();
    let sound = copy(&guard.image().unwrap(), dir.path());
    let refused = |settings: &[u8], manifest: &[u8]| {
        let copied = Copied {
            settings: settings.to_vec(),
            manifest: manifest.to_vec(),
            filters: sound.filters.clone(),
        };
        let error = copied.open().err().unwrap();
        let named = matches!(
            error,
            Error::Corruption { .. } | Error::UnsupportedVersion { .. } | Error::NotAStore { .. }
        );
        assert!(named, "{error}");
    };
    for (bytes, of_settings) in [(&sound.settings, true), (&sound.manifest, false)] {
        let refused = |bytes: &[u8]| {
            if of_settings { refused(bytes, &sound.manifest) } else { refused(&sound.settings, bytes) }
        };
        (0..bytes.len()).for_each(|len| refused(&bytes[..len]));
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            refused(&bad);
        }
    }
    assert_eq!(sound.open().unwrap().may_contain("Zombie"), Verdict::Maybe);
}
