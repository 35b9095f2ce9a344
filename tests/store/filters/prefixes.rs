//! Prefix filters: every key can still be found, and an absent prefix costs no read.

use crate::support::{Contents, Rng, contents, eventually, fast_dir, fingerprints, tiny};
use sidebloom::filter::Verdict;
use sidebloom::{Compression, Db, Error, FilterPolicy, Options, PrefixExtractor, prefix_end};
use std::ops::Bound;

const SLASH: [PrefixExtractor; 2] = PrefixExtractor::row_and_column(b'/');

/// Short keys, for every shape: empty, shorter than an extractor, delimiters at the ends, all 0xff.
fn hostile_key(rng: &mut Rng) -> Vec<u8> {
    let bytes = [b'a', b'b', b'/', 0, 0xfe, 0xff];
    (0..rng.below(7)).map(|_| bytes[rng.below(6) as usize]).collect()
}

/// Extractors that overlap, in different orders.
fn choices() -> Vec<Vec<PrefixExtractor>> {
    let [row, column] = SLASH;
    let fixed = PrefixExtractor::fixed;
    vec![
        vec![row, column],
        vec![fixed(2)],
        vec![],
        vec![fixed(4), column, fixed(1), row],
        vec![PrefixExtractor::delimited(0xff, 2), fixed(2)],
        vec![column, row],
    ]
}

/// Every prefix of every key is found, with exactly the keys that have it, forwards and backwards; so are
/// ranges that begin at any key.
fn assert_prefixes(db: &Db, expected: &Contents) {
    assert_eq!(&contents(db), expected);
    let mut prefixes: Vec<&[u8]> =
        expected.keys().flat_map(|key| (0..=key.len()).map(|n| &key[..n])).collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    for prefix in prefixes {
        let shown = prefix.escape_ascii();
        let within: Vec<&Vec<u8>> = expected.keys().filter(|key| key.starts_with(prefix)).collect();
        let found: Vec<Vec<u8>> = db.prefix(prefix).keys().map(Result::unwrap).collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), within, "I1: {shown}");
        let mut back: Vec<Vec<u8>> = db.prefix(prefix).keys().rev().map(Result::unwrap).collect();
        back.reverse();
        assert_eq!(back, found, "backwards: {shown}");
        assert_eq!(db.may_contain_prefix(prefix), Verdict::Maybe, "I1: {shown}");
        let end = prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        for key in within.iter().step_by(3) {
            for lower in [Bound::Included((*key).clone()), Bound::Excluded((*key).clone())] {
                let range = (lower.clone(), end.clone());
                let left = expected.range::<Vec<u8>, _>((lower.as_ref(), end.as_ref())).count();
                assert_eq!(db.range(range).keys().map(Result::unwrap).count(), left, "{shown}");
            }
        }
    }
}

#[test]
fn i1_every_prefix_of_a_key_is_found_however_the_extractors_change() {
    for seed in 0..3 {
        let (dir, mut rng) = (fast_dir(), Rng::new(seed));
        let mut expected = Contents::new();
        for (round, extractors) in choices().into_iter().enumerate() {
            let db = tiny().prefixes(extractors.clone()).open(dir.path()).unwrap();
            assert_prefixes(&db, &expected); // Filters of the previous round.
            for i in 0..400u64 {
                let key = hostile_key(&mut rng);
                if rng.percent(25) {
                    db.delete(&key).unwrap();
                    expected.remove(&key);
                } else {
                    let value = [i as u8, round as u8].repeat(10);
                    db.put(&key, &value).unwrap();
                    expected.insert(key, value);
                }
            }
            assert_prefixes(&db, &expected); // Some in the memtable.
            db.flush().unwrap();
            assert_prefixes(&db, &expected);
            match round % 3 {
                0 => db.compact().unwrap(),
                1 => drop(db.rebuild_filters(FilterPolicy::bits_per_key(12.0)).unwrap()),
                _ => db.wait_for_compaction().unwrap(),
            }
            assert_prefixes(&db, &expected);
            let report = db.verify().unwrap();
            assert!(report.is_ok() && report.unusable_filters.is_empty(), "{report:?}");
        }
    }
}

fn row_key(row: u32, column: u32) -> String {
    format!("row{row:05}/col{column}/x")
}

/// A store whose even rows have three columns each, in several runs. Without a block cache, each use of a
/// compressed block counts as a read.
fn rows(options: Options, dir: &std::path::Path) -> Db {
    let db = options.compression(Compression::Lz4).open(dir).unwrap();
    for part in 0..3 {
        for row in (0..2000).step_by(2) {
            db.put(row_key(row, part), [7; 40]).unwrap();
        }
        db.flush().unwrap();
    }
    db.wait_for_compaction().unwrap();
    db
}

fn reads(db: &Db) -> u64 {
    db.stats().block_reads
}

/// How many of the odd rows, which are absent, cause a block read.
fn rows_that_read(db: &Db) -> usize {
    let absent = |row: &u32| {
        let before = reads(db);
        assert!(db.prefix(format!("row{row:05}/")).next().is_none());
        reads(db) > before
    };
    (1..2000).step_by(2).filter(absent).count()
}

#[test]
fn an_absent_prefix_reads_no_block_and_without_extractors_it_does() {
    let dir = fast_dir();
    let db = rows(tiny().prefixes(SLASH), dir.path());
    db.warm().unwrap();
    let before = db.stats();
    let wrong = rows_that_read(&db);
    assert!(wrong <= 60, "{wrong} of 1000 absent prefixes read a block");
    let now = db.stats();
    let (probes, negatives) =
        (now.prefix_probes - before.prefix_probes, now.prefix_negatives - before.prefix_negatives);
    assert!(negatives >= 940 && negatives <= probes, "{negatives} of {probes}");
    assert_eq!(now.filter_probes, before.filter_probes, "no key was asked for");
    assert!(now.levels.iter().map(|level| level.filter_prefixes).sum::<u64>() >= 1000 + 3000);
    let verdicts = (1..2000).step_by(2).map(|row| db.may_contain_prefix(format!("row{row:05}/")));
    assert!(verdicts.filter(|verdict| *verdict == Verdict::Absent).count() >= 940);
    assert_eq!(reads(&db), now.block_reads, "a verdict reads nothing");
    drop(db);

    let db = tiny().open(dir.path()).unwrap();
    db.warm().unwrap();
    assert!(rows_that_read(&db) > 990, "nobody asks for prefixes");
    assert_eq!(db.stats().prefix_probes, 0);
}

#[test]
fn a_range_within_a_prefix_is_asked_for_and_a_longer_one_is_not() {
    let dir = fast_dir();
    let db = rows(tiny().prefixes(SLASH), dir.path());
    db.warm().unwrap();
    let probes_of = |lower: &str, upper: &str| {
        let before = db.stats().prefix_probes;
        let _rows = db.range(lower.to_owned()..upper.to_owned()).count().unwrap() as usize;
        db.stats().prefix_probes > before
    };
    assert!(probes_of("row00501/", "row005010"), "0 is the byte after the delimiter");
    assert!(probes_of("row00501/col1/a", "row00501/col1/z") && probes_of("row00501/a", "row00501/d"));
    assert!(!probes_of("row00501/", "row00501a") && !probes_of("row0050", "row0051"));
    let wrong = (1..2000).step_by(2).filter(|row| {
        let before = reads(&db);
        assert_eq!(db.range(row_key(*row, 0)..row_key(*row, 9)).rev().count(), 0);
        reads(&db) > before
    });
    assert!(wrong.count() <= 60);
}

#[test]
fn an_absent_prefix_is_not_in_the_memtable_and_a_present_one_is() {
    let dir = fast_dir();
    let db = Options::new().prefixes(SLASH).open(dir.path()).unwrap();
    for row in (0..2000).step_by(2) {
        db.put(row_key(row, 1), "").unwrap();
    }
    let maybe = |row| db.may_contain_prefix(format!("row{row:05}/")) == Verdict::Maybe;
    assert!((0..2000).step_by(2).all(maybe), "I1");
    assert!((1..2000).step_by(2).filter(|row| maybe(*row)).count() < 20);
    drop(db);
    let db = Options::new().prefixes(SLASH).open(dir.path()).unwrap();
    let found = |row| db.prefix(format!("row{row:05}/")).count().unwrap() as usize;
    assert!((0..2000).all(|row| found(row) == usize::from(row % 2 == 0)), "replayed from the log");
}

/// New extractors come with rebuilt filters, and leave segments as they are.
#[test]
fn i3_new_extractors_come_with_rebuilt_filters_and_leave_segments_alone() {
    let dir = fast_dir();
    let expected = contents(&rows(tiny(), dir.path()));
    let segments = fingerprints(dir.path(), ".segment");
    let fixed = PrefixExtractor::fixed(8);
    for extractors in [&SLASH[..], &[fixed], &[]] {
        let db = tiny().prefixes(extractors.iter().copied()).open(dir.path()).unwrap();
        db.warm().unwrap();
        assert_eq!(contents(&db), expected);
        if !extractors.is_empty() {
            assert!(rows_that_read(&db) > 990, "the old filters know nothing of them");
        }
        let policy = FilterPolicy::bits_per_key(10.0);
        let report = db.rebuild_filters(policy).unwrap();
        assert_eq!((report.segments as usize, report.kept), (segments.len(), 0));
        assert_eq!(fingerprints(dir.path(), ".segment"), segments);
        if !extractors.is_empty() {
            assert!(rows_that_read(&db) < 60, "{extractors:?}");
        }
        assert_eq!(contents(&db), expected);
        // All filters now know their number of prefixes; those built with an estimate may be rebuilt once.
        db.rebuild_filters(policy).unwrap();
        let report = db.rebuild_filters(policy).unwrap();
        assert_eq!((report.segments, report.kept as usize), (0, segments.len()), "{extractors:?}");
        let reversed = extractors.iter().rev().copied();
        drop(db);
        let db = tiny().prefixes(reversed).open(dir.path()).unwrap();
        db.warm().unwrap();
        let report = db.rebuild_filters(policy).unwrap();
        assert_eq!(report.segments, 0, "their order does not matter");
    }
}

#[test]
fn i2_without_sidecars_every_prefix_is_found_and_the_filters_come_back() {
    let dir = fast_dir();
    let expected = contents(&rows(tiny().prefixes(SLASH), dir.path()));
    for damage in 0..2 {
        for entry in std::fs::read_dir(dir.path()).unwrap().map(Result::unwrap) {
            if entry.path().extension().is_some_and(|extension| extension == "filter") {
                match damage {
                    0 => std::fs::remove_file(entry.path()).unwrap(),
                    _ => std::fs::write(entry.path(), vec![0; 8192]).unwrap(),
                }
            }
        }
        let db = tiny().prefixes(SLASH).open(dir.path()).unwrap();
        let found = |row: u32| db.prefix(format!("row{row:05}/")).count().unwrap() as usize;
        assert!((0..2000).all(|row| found(row) == 3 * usize::from(row % 2 == 0)), "I2");
        eventually("the filters are back", || rows_that_read(&db) < 60);
        assert_eq!(contents(&db), expected);
    }
}

#[test]
fn bits_and_budgets_count_prefixes() {
    let policies = [FilterPolicy::bits_per_key(10.0), FilterPolicy::memory_budget(20_000)];
    for policy in policies {
        let dir = fast_dir();
        let options = tiny().memtable_bytes(64 << 10).segment_bytes(32 << 10).filter_policy(policy);
        let db = rows(options.prefixes(SLASH), dir.path());
        db.rebuild_filters(policy).unwrap();
        db.rebuild_filters(policy).unwrap();
        let levels = db.stats().levels;
        let sum = |of: fn(&sidebloom::LevelStats) -> u64| levels.iter().map(of).sum::<u64>();
        let (bytes, keys, prefixes) = (sum(|l| l.filter_bytes), sum(|l| l.keys), sum(|l| l.filter_prefixes));
        assert!(keys >= 3000 && prefixes >= 4000, "{keys} {prefixes}");
        let bits = 8.0 * bytes as f64 / (keys + prefixes) as f64;
        if policy == policies[0] {
            assert!((9.0..12.0).contains(&bits), "{bits} bits per member");
        } else {
            assert!((16_000..24_000).contains(&bytes), "{bytes} bytes");
        }
    }
}

#[test]
fn extractors_that_make_no_sense_are_refused_by_name() {
    let [row, _] = SLASH;
    let fixed = PrefixExtractor::fixed;
    for (extractors, what) in [
        (vec![fixed(0)], "0 bytes"),
        (vec![fixed(sidebloom::MAX_KEY_BYTES + 1)], "65537 bytes"),
        (vec![PrefixExtractor::delimited(b'/', 0)], "0 delimiters"),
        (vec![PrefixExtractor::delimited(b'/', usize::MAX)], "delimiters"),
        (vec![row, fixed(3), row], "twice"),
        ((1..10).map(fixed).collect(), "more than 8"),
    ] {
        let dir = fast_dir();
        match Options::new().prefixes(extractors).open(dir.path().join("db")) {
            Err(Error::InvalidArgument(text)) => assert!(text.contains(what), "{text}"),
            other => panic!("{what}: {:?}", other.map(|_| ())),
        }
        assert!(!dir.path().join("db").exists());
    }
    let all: Vec<_> = (1..8).map(fixed).chain([fixed(sidebloom::MAX_KEY_BYTES)]).collect();
    Options::new().prefixes(all).open(fast_dir().path().join("db")).unwrap();
}
