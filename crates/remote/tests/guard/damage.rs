//! Damaged, missing or foreign objects: a named error or "maybe", never a wrong "absent".

use crate::support::{Published, Watched, all_maybe, by_hand, denied, files_of, guard, reader};
use sidebloom_remote::guard::{GuardPublisher, RemoteGuard};
use sidebloom_remote::{Error, TakeOver};
use std::sync::Arc;

fn open(store: &Arc<Watched>, published: &Published, cache: &str) -> Result<RemoteGuard, Error> {
    RemoteGuard::open(store.place(), published.dir.path().join(cache), by_hand())
}

const SECOND: &str = "songs/guard/gen/00000000000000000002";

/// Two generations, and a reader of the first.
fn two_states() -> (Published, Arc<Watched>, RemoteGuard) {
    let (published, store) = (guard(), Watched::new());
    let mut publisher = published.publisher(&store);
    publisher.publish().unwrap();
    let remote = reader(&store, &published.dir);
    published.guard.insert("Freebird").unwrap();
    publisher.publish().unwrap();
    (published, store, remote)
}

#[test]
fn i1_a_damaged_or_foreign_state_is_named_and_the_one_before_stays_in_use() {
    let (published, store, remote) = two_states();
    let sound = store.bytes(SECOND);
    let refused = |bytes: Vec<u8>, what: &str| {
        store.replace(SECOND, bytes);
        for error in [remote.refresh().unwrap_err(), open(&store, &published, "fresh").err().unwrap()] {
            let named = matches!(&error, Error::Damaged { object, .. } if object.ends_with("2"));
            assert!(named, "{what}: {error}");
        }
    };
    (0..sound.len()).for_each(|len| refused(sound[..len].to_vec(), &format!("cut to {len}")));
    for byte in 0..sound.len() {
        let mut bad = sound.clone();
        bad[byte] ^= 0x55;
        refused(bad, &format!("byte {byte}"));
    }
    refused(store.bytes("songs/guard/gen/00000000000000000001"), "the first state under the second's name");
    assert!(all_maybe(&remote, &published.keys) && denied(&remote, 100) > 97);

    let (other, elsewhere) = (guard(), Watched::new());
    let mut publisher = other.publisher(&elsewhere);
    publisher.publish().unwrap();
    publisher.publish().unwrap();
    store.replace(SECOND, elsewhere.bytes(SECOND));
    assert!(matches!(remote.refresh(), Err(Error::Foreign { .. })));
    assert!(matches!(
        GuardPublisher::new(&published.guard, store.place(), TakeOver::No),
        Err(Error::Foreign { .. })
    ));
    store.replace(SECOND, sound);
    assert!(remote.refresh().unwrap() && all_maybe(&remote, &["Freebird"]));
}

#[test]
fn i1_a_damaged_or_missing_filter_is_named_and_never_used() {
    let (published, store, remote) = two_states();
    for (at, name) in store.filters().into_iter().enumerate() {
        // A reader of its own, which has this filter only if it is fetched.
        let cache = format!("cache of {at}");
        let sound = store.bytes(&name);
        let mut flipped = sound.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        let others = store.filters().into_iter().find(|other| *other != name).unwrap();
        for bad in [
            flipped,
            sound[..middle].to_vec(),
            Vec::new(),
            [&sound[..], b"more"].concat(),
            store.bytes(&others),
        ] {
            store.replace(&name, bad);
            let error = open(&store, &published, &cache).err().unwrap();
            assert!(matches!(&error, Error::Damaged { object, .. } if object.ends_with(&name)), "{error}");
        }
        store.remove(&name);
        let error = open(&store, &published, &cache).err().unwrap();
        assert!(matches!(&error, Error::Expired { object } if object.ends_with(&name)), "{error}");
        store.replace(&name, sound);
    }
    assert!(all_maybe(&remote, &published.keys));
    let fresh = open(&store, &published, "fresh").unwrap();
    assert!(all_maybe(&fresh, &published.keys) && all_maybe(&fresh, &["Freebird"]));
}

#[test]
fn i1_damaged_local_files_are_fetched_again() {
    let (published, store, remote) = two_states();
    remote.refresh().unwrap();
    drop(remote);
    let cache = published.dir.path().join("cache");
    let files: Vec<_> =
        files_of(&cache).into_iter().filter(|file| file.file_name().unwrap().len() == 64).collect();
    assert_eq!(files.len(), 5, "two manifests and three filters");
    for (file, damage) in files.iter().zip([0usize, 4000, 5000, 40, 0]) {
        let mut bytes = std::fs::read(file).unwrap();
        bytes.truncate(damage);
        std::fs::write(file, bytes).unwrap();
    }
    let remote = reader(&store, &published.dir);
    assert!(remote.stats().bytes_fetched > 0);
    assert_eq!(remote.stats().filters_unavailable, 0);
    assert!(
        all_maybe(&remote, &published.keys) && all_maybe(&remote, &["Freebird"]) && denied(&remote, 100) > 97
    );
}

#[test]
fn a_hint_that_lies_or_is_gone_misleads_nobody() {
    let (published, store, remote) = two_states();
    for hint in ["", "x", "99999999999999999999999", "18446744073709551615", "00000000000000000007", "1"] {
        store.replace("songs/guard/latest", hint.into());
        assert_eq!(open(&store, &published, "fresh").unwrap().stats().state, 2, "{hint}");
    }
    assert!(remote.refresh().unwrap());
    store.remove("songs/guard/latest");
    assert_eq!(open(&store, &published, "fresh").unwrap().stats().state, 2);
    assert!(!remote.refresh().unwrap());
    let nothing = Watched::new();
    assert!(matches!(open(&nothing, &published, "fresh"), Err(Error::NotPublished { .. })));
}
