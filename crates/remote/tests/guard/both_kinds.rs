//! Stores and guards are published by one protocol: what holds for one holds for the other.

use crate::support::{Fault, Watched, by_hand, options};
use sidebloom::guard::Guard;
use sidebloom::{Db, Options};
use sidebloom_remote::guard::{GuardPublisher, RemoteGuard};
use sidebloom_remote::{Error, Publisher, Reader, TakeOver};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Store,
    Guard,
}
use Kind::{Guard as OfGuard, Store as OfStore};

const KINDS: [Kind; 2] = [OfStore, OfGuard];

/// Something to publish.
enum Thing {
    Store(Db),
    Guard(Guard),
}

/// Its publisher.
enum Any {
    Store(Publisher),
    Guard(GuardPublisher),
}

impl Kind {
    /// The place of its generations.
    fn folder(self) -> &'static str {
        if self == OfStore { "songs/gen" } else { "songs/guard/gen" }
    }

    fn object(self, number: u64) -> String {
        format!("{}/{number:020}", self.folder())
    }

    fn build(self, dir: &Path) -> Thing {
        match self {
            OfStore => self.open(dir),
            OfGuard => Thing::Guard(options().build(dir, ["a key"]).unwrap()),
        }
    }

    fn open(self, dir: &Path) -> Thing {
        match self {
            OfStore => Thing::Store(Options::new().open(dir).unwrap()),
            OfGuard => Thing::Guard(options().open(dir).unwrap()),
        }
    }

    /// The number of the generation that a new reader finds.
    fn read(self, store: &Arc<Watched>) -> Result<u64, Error> {
        let cache = tempfile::tempdir().unwrap();
        match self {
            OfStore => Reader::open(store.place(), cache.path()).map(|reader| reader.generation()),
            OfGuard => {
                RemoteGuard::open(store.place(), cache.path(), by_hand()).map(|guard| guard.stats().state)
            }
        }
    }
}

impl Thing {
    fn publisher(&self, store: &Arc<Watched>, take_over: TakeOver) -> Result<Any, Error> {
        match self {
            Thing::Store(db) => Publisher::new(db, store.place(), take_over).map(Any::Store),
            Thing::Guard(guard) => GuardPublisher::new(guard, store.place(), take_over).map(Any::Guard),
        }
    }

    fn change(&self, key: &str) {
        match self {
            Thing::Store(db) => db.put(key, "1").unwrap(),
            Thing::Guard(guard) => guard.insert(key).unwrap(),
        }
    }
}

impl Any {
    fn publish(&mut self) -> Result<u64, Error> {
        match self {
            Any::Store(publisher) => publisher.publish().map(|done| done.generation),
            Any::Guard(publisher) => publisher.publish().map(|done| done.number),
        }
    }

    fn collect(&mut self) -> Result<u64, Error> {
        match self {
            Any::Store(publisher) => publisher.collect(Duration::ZERO),
            Any::Guard(publisher) => publisher.collect(Duration::ZERO),
        }
    }
}

/// Copies a closed store or guard.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A store or a guard and a copy of it.
fn twins(kind: Kind, dir: &Path) -> [Thing; 2] {
    let paths = [dir.join("one"), dir.join("other")];
    drop(kind.build(&paths[0]));
    copy(&paths[0], &paths[1]);
    paths.map(|path| kind.open(&path))
}

#[test]
fn what_exists_and_is_gone_is_not_taken_for_ones_own() {
    for kind in KINDS {
        let (dir, store) = (tempfile::tempdir().unwrap(), Watched::new());
        let thing = kind.build(&dir.path().join("thing"));
        let mut publisher = thing.publisher(&store, TakeOver::No).unwrap();
        publisher.publish().unwrap();
        thing.change("Freebird");
        store.fail(Fault::ExistsThenGone);
        let error = publisher.publish().unwrap_err();
        assert!(error.to_string().contains("is gone"), "{kind:?}: {error}");
        assert_eq!(kind.read(&store).unwrap(), 1, "{kind:?}: there is no such generation");
        store.fail(Fault::None);
        assert_eq!(publisher.publish().unwrap(), 2, "{kind:?}");
        assert_eq!(kind.read(&store).unwrap(), 2, "{kind:?}");
    }
}

#[test]
fn a_generation_whose_answer_was_lost_is_known_as_ones_own() {
    for kind in KINDS {
        let (dir, store) = (tempfile::tempdir().unwrap(), Watched::new());
        let thing = kind.build(&dir.path().join("thing"));
        let mut publisher = thing.publisher(&store, TakeOver::No).unwrap();
        publisher.publish().unwrap();
        store.fail(Fault::LosesAnswer);
        assert_eq!(publisher.publish().unwrap(), 2, "{kind:?}: it is there");
        assert_eq!(publisher.publish().unwrap(), 3, "{kind:?}");
        // A created object cannot be looked for either.
        store.fail(Fault::LosesAnswerAndBreaks);
        assert!(matches!(publisher.publish(), Err(Error::Bucket { .. })), "{kind:?}");
        store.fail(Fault::None);
        assert_eq!(kind.read(&store).unwrap(), 4, "{kind:?}");
        assert_eq!(publisher.publish().unwrap(), 5, "{kind:?}: after its own that it had not heard of");
    }
}

#[test]
fn a_new_publisher_goes_on_after_one_that_died_between_two_attempts() {
    for kind in KINDS {
        let (dir, store) = (tempfile::tempdir().unwrap(), Watched::new());
        let thing = kind.build(&dir.path().join("thing"));
        let mut publisher = thing.publisher(&store, TakeOver::No).unwrap();
        publisher.publish().unwrap();
        store.fail(Fault::LosesAnswerAndBreaks);
        assert!(publisher.publish().is_err(), "{kind:?}");
        // It finds its own generation 2, is about to create 3, and dies before it does.
        store.fail(Fault::NoNewGeneration);
        assert!(publisher.publish().is_err(), "{kind:?}");
        drop(publisher);
        store.fail(Fault::None);
        assert_eq!(kind.read(&store).unwrap(), 2, "{kind:?}");
        let next = thing.publisher(&store, TakeOver::No).and_then(|mut next| next.publish());
        assert_eq!(next.unwrap(), 3, "{kind:?}: no other directory has published");
    }
}

#[test]
fn i5_one_that_never_published_is_superseded_though_the_first_is_gone() {
    for kind in KINDS {
        let (dir, store) = (tempfile::tempdir().unwrap(), Watched::new());
        let [late, other] = twins(kind, dir.path());
        let mut publisher = late.publisher(&store, TakeOver::No).unwrap();
        let mut first = other.publisher(&store, TakeOver::No).unwrap();
        for n in 0..3 {
            other.change(&format!("theirs {n}"));
            first.publish().unwrap();
        }
        first.collect().unwrap();
        for _ in 0..2 {
            let outcome = publisher.publish();
            let is_poisoned = matches!(outcome, Err(Error::Store(_))) && kind == OfStore;
            let is_superseded = matches!(outcome, Err(Error::Superseded { generation: 3, .. }));
            assert!(is_superseded || is_poisoned, "{kind:?}: {outcome:?}");
            assert!(matches!(publisher.collect(), Err(Error::Superseded { .. })), "{kind:?}");
        }
        assert_eq!(kind.read(&store).unwrap(), 3, "{kind:?}");
    }
}

#[test]
fn a_number_alone_makes_no_generation_ones_own() {
    for kind in KINDS {
        let (dir, store) = (tempfile::tempdir().unwrap(), Watched::new());
        let [one, other] = twins(kind, dir.path());
        one.publisher(&store, TakeOver::No).unwrap().publish().unwrap();
        let names: Vec<_> = store.names();
        names.iter().for_each(|name| store.remove(name));
        assert_eq!(other.publisher(&store, TakeOver::No).unwrap().publish().unwrap(), 1, "{kind:?}");
        let error = one.publisher(&store, TakeOver::No).err().unwrap();
        assert!(
            matches!(&error, Error::Foreign { what, .. } if what.contains("generation 1 ")),
            "{kind:?}: {error}"
        );
    }
}

#[test]
fn an_emptied_bucket_gets_numbers_that_nobody_has_seen() {
    for kind in KINDS {
        let (dir, store) = (tempfile::tempdir().unwrap(), Watched::new());
        let thing = kind.build(&dir.path().join("thing"));
        let mut publisher = thing.publisher(&store, TakeOver::No).unwrap();
        (1..=3).for_each(|number| assert_eq!(publisher.publish().unwrap(), number, "{kind:?}"));
        drop(publisher);
        store.names().iter().for_each(|name| store.remove(name));
        assert_eq!(thing.publisher(&store, TakeOver::No).unwrap().publish().unwrap(), 4, "{kind:?}");
        assert_eq!(kind.read(&store).unwrap(), 4, "{kind:?}");
    }
}

#[test]
fn a_hint_that_is_no_number_misleads_nobody_and_is_named_where_nothing_is() {
    for kind in KINDS {
        let (dir, store) = (tempfile::tempdir().unwrap(), Watched::new());
        let thing = kind.build(&dir.path().join("thing"));
        let latest = kind.object(1).replace("gen/00000000000000000001", "latest");
        store.replace(&latest, b"the newest picture".to_vec());
        let error = kind.read(&store).unwrap_err();
        assert!(matches!(&error, Error::Damaged { object, .. } if object.ends_with("/latest")), "{error}");
        store.remove(&latest);
        thing.publisher(&store, TakeOver::No).unwrap().publish().unwrap();
        store.replace(&latest, b"the newest picture".to_vec());
        assert_eq!(kind.read(&store).unwrap(), 1, "{kind:?}");
    }
}

#[test]
fn other_versions_are_refused_by_name_and_never_called_damaged() {
    for kind in KINDS {
        let (dir, store) = (tempfile::tempdir().unwrap(), Watched::new());
        let thing = kind.build(&dir.path().join("thing"));
        thing.publisher(&store, TakeOver::No).unwrap().publish().unwrap();
        let first = kind.object(1);
        let bytes = String::from_utf8(store.bytes(&first)).unwrap();
        let named = |found: &str, words: &str| {
            for error in [kind.read(&store).err(), thing.publisher(&store, TakeOver::Yes).err()] {
                let error = error.unwrap();
                assert!(matches!(error, Error::UnsupportedVersion { .. }), "{kind:?} {found}: {error}");
                assert!(error.to_string().contains(words), "{kind:?} {found}: {error}");
            }
        };
        for (found, words) in [("1", "an older sidebloom"), ("3", "a newer sidebloom")] {
            let other = bytes.replacen("generation 2", &format!("generation {found}"), 1);
            store.replace(&first, other.into_bytes());
            named(found, words);
        }
        if kind == OfGuard {
            // Version 1 had guard states instead.
            store.names().iter().for_each(|name| store.remove(name));
            store.replace("songs/guard/state/00000000000000000001", b"SBLMSTA\n\x01\0\0\0".to_vec());
            store.replace("songs/guard/latest", b"00000000000000000001".to_vec());
            named("a state", "an older sidebloom");
        }
    }
}

#[test]
fn i11_a_generation_of_the_other_kind_is_named_and_not_opened() {
    let (dir, store) = (tempfile::tempdir().unwrap(), Watched::new());
    let things = KINDS.map(|kind| kind.build(&dir.path().join(format!("{kind:?}"))));
    for thing in &things {
        thing.publisher(&store, TakeOver::No).unwrap().publish().unwrap();
    }
    let bytes = KINDS.map(|kind| store.bytes(&kind.object(1)));
    KINDS
        .iter()
        .zip(bytes.iter().rev())
        .for_each(|(kind, bytes)| store.replace(&kind.object(1), bytes.clone()));
    for (kind, thing) in KINDS.iter().zip(&things) {
        for error in [kind.read(&store).err(), thing.publisher(&store, TakeOver::Yes).err()] {
            let error = error.unwrap();
            let what = if *kind == OfStore { "a guard, not a store" } else { "a store, not a guard" };
            assert!(
                matches!(&error, Error::Foreign { what: named, .. } if named == what),
                "{kind:?}: {error}"
            );
        }
    }
    let cloned = sidebloom_remote::clone(&store.place(), dir.path().join("clone"), &mut |_, _| ());
    assert!(matches!(cloned, Err(Error::Foreign { .. })), "{cloned:?}");
}
