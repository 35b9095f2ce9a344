//! Each rule by itself.

use super::*;
use ItemOutcome::{Changed, Full, Unchanged};

#[test]
fn items_of_a_filter_are_added_once_and_found_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let filters = open(dir.path(), &Hand::at(1));
    let songs = filters.create(0, b"songs", bloom()).unwrap().filter();
    assert_eq!(filters.add(&songs, &["a", "b", "a"]).unwrap(), [true, true, false]);
    assert_eq!(filters.contains(&songs, &["a", "x", "b"]).unwrap(), [true, false, true]);
    assert_eq!(filters.contains(&songs, &["x"]).unwrap(), [false]);
    assert_eq!(songs.items(), 2);
    let other = filters.create(0, b"other", bloom()).unwrap().filter();
    assert_eq!(filters.contains(&other, &["a"]).unwrap(), [false]);
    assert_ne!(songs.hash(b"a"), other.hash(b"a"), "each filter has a key of its own");
}

#[test]
fn a_cuckoo_filter_counts_and_removes() {
    let dir = tempfile::tempdir().unwrap();
    let filters = open(dir.path(), &Hand::at(1));
    let filter = filters.create(0, b"f", cuckoo()).unwrap().filter();
    assert_eq!(apply(&filters, &filter, ItemOp::Add, &["a", "a", "b"]).unwrap(), [Changed; 3]);
    assert_eq!(apply(&filters, &filter, ItemOp::AddNew, &["a", "c"]).unwrap(), [Unchanged, Changed]);
    assert_eq!(counts(&filters, &filter, &["a", "b", "c", "d"]), [2, 1, 1, 0]);
    let removed = apply(&filters, &filter, ItemOp::Remove, &["a", "a", "a"]).unwrap();
    assert_eq!(removed, [Changed, Changed, Unchanged]);
    assert_eq!(counts(&filters, &filter, &["a", "b"]), [0, 1]);
    assert_eq!((filter.items(), filter.deletions()), (2, 2));
    filters.compact(&filter).unwrap();
    assert_eq!((filter.items(), filter.deletions()), (2, 0));
}

#[test]
fn a_full_filter_takes_nothing_more() {
    let dir = tempfile::tempdir().unwrap();
    let filters = open(dir.path(), &Hand::at(1));
    let fixed = Parameters::Bloom(Bloom::new(0.01, 3, None).unwrap());
    let filter = filters.create(0, b"b", fixed).unwrap().filter();
    let outcomes = apply(&filters, &filter, ItemOp::AddNew, &["a", "b", "a", "c", "d", "a"]).unwrap();
    assert_eq!(outcomes, [Changed, Changed, Unchanged, Changed, Full], "the command ends there");
    assert!(matches!(filters.add(&filter, &["e"]), Err(Refusal::Full)));
    assert_eq!(filters.add(&filter, &["a"]).unwrap(), [false]);
    let fixed = Parameters::Cuckoo(Cuckoo::new(4, 2, 20, 0).unwrap());
    let filter = filters.create(0, b"c", fixed).unwrap().filter();
    let outcomes = apply(&filters, &filter, ItemOp::Add, &["a", "a", "a", "a", "b", "c"]).unwrap();
    assert_eq!(outcomes, [Changed, Changed, Changed, Changed, Full, Full]);
    assert_eq!(apply(&filters, &filter, ItemOp::Remove, &["a"]).unwrap(), [Changed]);
    assert_eq!(apply(&filters, &filter, ItemOp::Add, &["b"]).unwrap(), [Changed]);
}

#[test]
fn a_cuckoo_filter_that_has_grown_too_often_refuses_commands() {
    let dir = tempfile::tempdir().unwrap();
    let filters = open(dir.path(), &Hand::at(1));
    let small = Parameters::Cuckoo(Cuckoo::new(4, 2, 20, 1).unwrap());
    let filter = filters.create(0, b"c", small).unwrap().filter();
    let items: Vec<String> = (0..125).map(|n| n.to_string()).collect();
    let items: Vec<&str> = items.iter().map(String::as_str).collect();
    assert_eq!(apply(&filters, &filter, ItemOp::Add, &items).unwrap(), [Changed; 125]);
    assert!(matches!(apply(&filters, &filter, ItemOp::Add, &["x"]), Err(Refusal::GrownTooOften)));
    assert_eq!(apply(&filters, &filter, ItemOp::Remove, &["1"]).unwrap(), [Changed]);
    assert_eq!(apply(&filters, &filter, ItemOp::Add, &["x"]).unwrap(), [Changed]);
}

#[test]
fn commands_of_one_call_see_those_before_them() {
    let dir = tempfile::tempdir().unwrap();
    let filters = open(dir.path(), &Hand::at(1));
    let (a, b) = (
        filters.create(0, b"a", cuckoo()).unwrap().filter(),
        filters.create(0, b"b", cuckoo()).unwrap().filter(),
    );
    let mut commands = ItemCommands::default();
    for (filter, op) in [(&a, ItemOp::Add), (&b, ItemOp::Remove), (&a, ItemOp::Remove), (&a, ItemOp::Remove)]
    {
        commands.push(filter, op, false, [filter.hash(b"x")]);
    }
    let outcomes: Vec<_> =
        filters.apply(&commands).unwrap().into_iter().map(|outcome| outcome.unwrap()).collect();
    assert_eq!(outcomes, [[Changed], [Unchanged], [Changed], [Unchanged]]);
    assert_eq!((a.items(), b.items()), (0, 0));
}

#[test]
fn a_deleted_filter_is_empty_when_its_name_is_used_again() {
    let dir = tempfile::tempdir().unwrap();
    let filters = open(dir.path(), &Hand::at(1));
    let first = filters.create(0, b"f", bloom()).unwrap().filter();
    filters.add(&first, &["a"]).unwrap();
    assert_eq!(filters.delete(0, &[&b"f"[..], b"f", b"none"]).unwrap(), 1);
    assert!(filters.find(0, b"f").is_none());
    assert!(matches!(filters.add(&first, &["b"]), Err(Refusal::NotFound)), "a handle to it stays deleted");
    assert_eq!(filters.contains(&first, &["a"]).unwrap(), [false]);
    let second = filters.create(0, b"f", bloom()).unwrap().filter();
    assert_eq!((filters.contains(&second, &["a"]).unwrap(), second.items()), (vec![false], 0));
}

#[test]
fn a_renamed_filter_takes_its_items_along() {
    let dir = tempfile::tempdir().unwrap();
    let filters = open(dir.path(), &Hand::at(1));
    let from = filters.create(0, b"from", bloom()).unwrap().filter();
    let to = filters.create(0, b"to", cuckoo()).unwrap().filter();
    filters.add(&from, &["a"]).unwrap();
    assert!(matches!(filters.rename(0, b"none", b"x", false), Err(Refusal::NotFound)));
    assert!(!filters.rename(0, b"from", b"to", true).unwrap());
    assert!(filters.rename(0, b"from", b"to", false).unwrap());
    assert!(filters.find(0, b"from").is_none());
    let found = filters.find(0, b"to").unwrap();
    assert_eq!(filters.contains(&found, &["a"]).unwrap(), [true]);
    assert_eq!(filters.add(&found, &["b"]).unwrap(), [true]);
    assert!(matches!(apply(&filters, &to, ItemOp::Add, &["b"]), Err(Refusal::NotFound)));
    assert!(filters.rename(0, b"to", b"to", false).unwrap());
    assert_eq!(filters.count(0), 1);
}

#[test]
fn databases_are_apart_and_flushed_alone_or_together() {
    let dir = tempfile::tempdir().unwrap();
    let filters = open(dir.path(), &Hand::at(1));
    for database in [0, 1, 15] {
        let filter = filters.create(database, b"f", bloom()).unwrap().filter();
        filters.add(&filter, &[format!("{database}")]).unwrap();
    }
    let has = |database, item: &str| {
        filters
            .find(database, b"f")
            .is_some_and(|filter| filters.contains(&filter, &[item]).unwrap() == [true])
    };
    assert!(has(1, "1") && !has(1, "0"));
    filters.flush(Some(1)).unwrap();
    assert_eq!([0, 1, 15].map(|database| filters.count(database)), [1, 0, 1]);
    assert!(has(0, "0") && has(15, "15"));
    filters.flush(None).unwrap();
    assert_eq!([0, 1, 15].map(|database| filters.count(database)), [0, 0, 0]);
    assert_eq!(filters.items.iter().count().unwrap(), 0);
    assert_eq!(filters.names_bytes(), 0);
}

#[test]
fn an_expired_filter_is_gone_at_once_and_its_rows_soon() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Hand::at(1000);
    let filters = open(dir.path(), &clock);
    for name in ["a", "b", "c"] {
        let filter = filters.create(0, name.as_bytes(), bloom()).unwrap().filter();
        filters.add(&filter, &[name]).unwrap();
    }
    assert!(filters.set_expiry(0, b"a", Some(1500), |now| now.is_none()).unwrap());
    assert!(!filters.set_expiry(0, b"a", Some(9000), |now| now.is_none()).unwrap());
    assert!(filters.set_expiry(0, b"b", Some(2000), |_| true).unwrap());
    assert!(!filters.set_expiry(0, b"none", Some(2000), |_| true).unwrap());
    assert_eq!((filters.expiring(0), filters.expiring(1)), (2, 0));
    clock.advance(499);
    assert_eq!(filters.find(0, b"a").unwrap().expires_at(), Some(1500));
    clock.advance(1);
    assert!(filters.find(0, b"a").is_none() && filters.find(0, b"b").is_some());
    let again = filters.create(0, b"a", bloom()).unwrap();
    assert!(matches!(&again, Created::New(filter) if filter.items() == 0));
    assert_eq!(filters.contains(&again.filter(), &["a"]).unwrap(), [false]);
    assert!(filters.set_expiry(0, b"b", None, |_| true).unwrap(), "it stays");
    assert_eq!(filters.expiring(0), 0);
    assert!(filters.set_expiry(0, b"c", Some(1600), |_| true).unwrap());
    clock.advance(1000);
    assert!(filters.has_any_expired());
    filters.delete_expired().unwrap();
    assert!(!filters.has_any_expired());
    assert_eq!((filters.count(0), filters.items.iter().count().unwrap()), (2, 1));
    assert!(filters.set_expiry(0, b"b", Some(1), |_| true).unwrap(), "in the past: deleted now");
    assert_eq!((filters.count(0), filters.items.iter().count().unwrap()), (1, 0));
}

#[test]
fn expiries_survive_and_time_runs_forwards() {
    let dir = tempfile::tempdir().unwrap();
    let filters = open(dir.path(), &Hand::at(1000));
    filters.create(0, b"a", bloom()).unwrap();
    filters.set_expiry(0, b"a", Some(5000), |_| true).unwrap();
    drop(filters);
    let clock = Hand::at(4999);
    let filters = open(dir.path(), &clock);
    assert!(filters.find(0, b"a").is_some());
    clock.advance(1);
    assert!(filters.find(0, b"a").is_none());
    clock.0.store(10, Relaxed);
    assert!(filters.find(0, b"a").is_none(), "what has expired does not come back");
}

#[test]
fn names_take_only_as_much_memory_as_they_may() {
    let dir = tempfile::tempdir().unwrap();
    let options = FiltersOptions { names_bytes: 1000, ..FiltersOptions::default() };
    let filters = Filters::open(dir.path(), options).unwrap();
    for name in [b"a", b"b", b"c"] {
        filters.create(0, name, bloom()).unwrap();
    }
    assert!(matches!(filters.create(0, b"d", bloom()), Err(Refusal::TooManyNames)));
    assert!(matches!(filters.create(0, b"a", bloom()), Ok(Created::Existing(_))));
    filters.delete(0, &[b"a"]).unwrap();
    filters.create(0, b"d", bloom()).unwrap();
    let long = vec![b'x'; sidebloom::MAX_KEY_BYTES];
    assert!(matches!(filters.create(0, &long, bloom()), Err(Refusal::NameTooLong)));
    assert!(matches!(filters.rename(0, b"b", &long, false), Err(Refusal::NameTooLong)));
    let longest = &long[1..];
    assert!(matches!(filters.create(0, longest, bloom()), Err(Refusal::TooManyNames)));
    assert!(matches!(filters.rename(0, b"b", longest, false), Err(Refusal::TooManyNames)));
    assert!(filters.rename(0, b"b", &[b'n'; 100], false).unwrap());
    assert!(matches!(filters.rename(0, b"c", &[b'm'; 100], false), Err(Refusal::TooManyNames)));
    assert!(filters.rename(0, &[b'n'; 100], b"b", false).unwrap(), "shorter names always fit");
}

/// Rows without a filter should not be there; if they are, they stay what they are.
#[test]
fn no_filter_gets_rows_that_are_there_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let filters = open(dir.path(), &Hand::at(1));
    filters.items.put(crate::filters::record::ItemKey::new(7, 1), "").unwrap();
    drop(filters);
    let filters = open(dir.path(), &Hand::at(1));
    assert_eq!(filters.create(0, b"f", bloom()).unwrap().filter().id(), 8);
}

#[test]
fn names_of_every_length_are_found_in_their_database() {
    let dir = tempfile::tempdir().unwrap();
    let filters = open(dir.path(), &Hand::at(1));
    let names: Vec<String> = (0..130).map(|len| "n".repeat(len)).collect();
    let ids: Vec<u64> =
        names.iter().map(|name| filters.create(3, name.as_bytes(), bloom()).unwrap().filter().id()).collect();
    for (name, id) in names.iter().zip(ids) {
        assert_eq!(filters.find(3, name.as_bytes()).unwrap().id(), id);
        assert!(filters.find(4, name.as_bytes()).is_none());
    }
}

#[test]
fn a_store_of_something_else_is_left_alone() {
    for keyspace in [None, Some("songs")] {
        let dir = tempfile::tempdir().unwrap();
        let db = sidebloom::Db::open(dir.path()).unwrap();
        match keyspace {
            None => db.put("a", "b").unwrap(),
            Some(name) => drop(db.create_keyspace(name, sidebloom::KeyspaceOptions::new()).unwrap()),
        }
        let before = db.keyspaces().unwrap();
        drop(db);
        let error = Filters::open(dir.path(), FiltersOptions::default()).err().unwrap().to_string();
        assert!(error.contains("is not a store of filters"), "{error}");
        assert_eq!(sidebloom::Db::open(dir.path()).unwrap().keyspaces().unwrap(), before);
    }
}

#[test]
fn pages_have_every_filter_that_stays_exactly_once() {
    let dir = tempfile::tempdir().unwrap();
    let filters = open(dir.path(), &Hand::at(1));
    for n in 0..100 {
        filters.create(n % 2, format!("f{n}").as_bytes(), bloom()).unwrap();
    }
    let (mut seen, mut next) = (Vec::new(), Some(0));
    while let Some(first) = next {
        let (page, rest) = filters.page(0, first, 7, usize::MAX);
        seen.extend(page.into_iter().map(|(name, _)| String::from_utf8(name).unwrap()));
        next = rest;
        filters.delete(0, &[format!("f{}", seen.len() + 70)]).unwrap();
        filters.rename(0, b"f0", b"renamed", true).ok();
    }
    let unique: std::collections::HashSet<_> = seen.iter().collect();
    assert_eq!(unique.len(), seen.len());
    assert!((2..70).step_by(2).all(|n| seen.contains(&format!("f{n}"))));
}

#[test]
fn marks_tell_changes_of_a_name() {
    let dir = tempfile::tempdir().unwrap();
    let filters = open(dir.path(), &Hand::at(1));
    let mut last = filters.mark(0, b"f");
    let mut differs = |what: &str, expected: bool| {
        let mark = filters.mark(0, b"f");
        assert_eq!(mark != last, expected, "{what}");
        last = mark;
    };
    let filter = filters.create(0, b"f", cuckoo()).unwrap().filter();
    differs("created", true);
    apply(&filters, &filter, ItemOp::Add, &["a"]).unwrap();
    differs("added", true);
    apply(&filters, &filter, ItemOp::AddNew, &["a"]).unwrap();
    differs("nothing added", false);
    filters.set_expiry(0, b"f", Some(1 << 40), |_| true).unwrap();
    differs("expires", true);
    filters.create(0, b"g", cuckoo()).unwrap();
    differs("another one", false);
    filters.rename(0, b"g", b"f", false).unwrap();
    differs("replaced", true);
    filters.delete(0, &[b"f"]).unwrap();
    differs("deleted", true);
    filters.create(0, b"f", cuckoo()).unwrap();
    differs("created again", true);
}
