//! What compactions make of rows that have expired.

use super::{Timed, after, options, secs};
use sidebloom::filter::Verdict;
use sidebloom::{Expiry, FilterPolicy, Options};

fn fill(timed: &Timed, from: u32, expiry: Expiry) {
    (from..from + 200).for_each(|n| timed.db.put_with(n.to_be_bytes(), [7; 30], expiry).unwrap());
    timed.db.flush().unwrap();
}

#[test]
fn compacting_removes_what_has_expired() {
    let timed = Timed::new();
    for n in 0..300u32 {
        let expiry = if n % 3 == 0 { Expiry::never() } else { after(10 * u64::from(n % 3)) };
        timed.db.put_with(n.to_be_bytes(), n.to_string(), expiry).unwrap();
    }
    let entries = || timed.db.stats().levels.iter().map(|level| level.keys).sum::<u64>();
    for (left, advance) in [(300, 0), (200, 10), (100, 10)] {
        timed.clock.advance(secs(advance));
        timed.db.compact().unwrap();
        assert_eq!((entries(), timed.db.iter().count().unwrap()), (left, left));
        assert!(timed.db.verify().unwrap().is_ok());
    }
}

#[test]
fn wholly_expired_segments_are_dropped_unread() {
    let timed = Timed::new();
    fill(&timed, 0, after(10));
    fill(&timed, 1000, after(20));
    timed.db.wait_for_compaction().unwrap();
    let before = timed.db.stats();
    assert!(timed.segments() >= 4);
    timed.clock.advance(secs(10));
    timed.db.wait_for_compaction().unwrap();
    assert!(timed.segments() > 0);
    assert_eq!(timed.db.iter().count().unwrap(), 200);
    timed.clock.advance(secs(10));
    timed.db.wait_for_compaction().unwrap();
    assert_eq!((timed.segments(), timed.keys()), (0, Vec::new()));
    let after = timed.db.stats();
    assert_eq!(after.compaction_read_bytes, before.compaction_read_bytes);
}

#[test]
fn i15_an_expired_segment_stays_while_it_hides_older_rows() {
    let timed = Timed::new();
    fill(&timed, 0, Expiry::never());
    timed.db.compact().unwrap();
    fill(&timed, 0, after(10));
    timed.db.wait_for_compaction().unwrap();
    timed.clock.advance(secs(10));
    timed.db.wait_for_compaction().unwrap();
    assert_eq!(timed.db.iter().count().unwrap(), 0);
    assert!((0..200u32).all(|n| timed.db.get(n.to_be_bytes()).unwrap().is_none()));
    timed.db.compact().unwrap();
    assert_eq!((timed.segments(), timed.keys()), (0, Vec::new()));
}

#[test]
fn filters_deny_what_only_expired_segments_may_have() {
    let Timed { dir, clock, db } = Timed::new();
    (0..200u32).for_each(|n| db.put_with(n.to_be_bytes(), [7; 30], after(10)).unwrap());
    db.flush().unwrap();
    db.close().unwrap();
    // A read-only store drops no segment.
    let db = options(&clock).read_only(true).open(dir.path().join("store")).unwrap();
    let keys: Vec<_> = (0..200u32).map(u32::to_be_bytes).collect();
    let before = db.snapshot();
    for verdict in [Verdict::Maybe, Verdict::Absent] {
        assert!(keys.iter().all(|key| db.may_contain(key) == verdict));
        assert_eq!(db.may_contain_many(&keys), [verdict; 200]);
        assert!(keys.iter().all(|key| before.get(key).unwrap().is_some()));
        clock.advance(secs(10));
    }
    assert!(db.stats().levels.iter().any(|level| level.segments > 0));
}

#[test]
fn i1_filters_that_err_in_expired_segments_deny_no_older_row() {
    // Filters that err often.
    let coarse =
        |options: Options| options.memtable_bytes(1 << 20).filter_policy(FilterPolicy::bits_per_key(2.0));
    let Timed { dir, clock, db } = Timed::with(coarse);
    let [forever, expiring] = [0, 1].map(|first| (first..4000u32).step_by(2).map(u32::to_be_bytes));
    forever.clone().for_each(|key| db.put(key, "old").unwrap());
    db.compact().unwrap();
    expiring.for_each(|key| db.put_with(key, "new", after(10)).unwrap());
    db.flush().unwrap();
    db.close().unwrap();
    clock.advance(secs(10));
    let db = coarse(options(&clock)).read_only(true).open(dir.path().join("store")).unwrap();
    let keys: Vec<_> = forever.collect();
    assert!(keys.iter().all(|key| db.may_contain(key) == Verdict::Maybe));
    assert_eq!(db.may_contain_many(&keys), vec![Verdict::Maybe; keys.len()]);
}

#[test]
fn segments_are_rewritten_once_about_a_third_of_their_rows_has_expired() {
    let timed = Timed::new();
    for n in 0..1000u32 {
        timed.db.put_with(n.to_be_bytes(), [7; 30], after(1 + u64::from(n * 7919 % 1000))).unwrap();
    }
    timed.db.compact().unwrap();
    let kept = || timed.db.stats().levels.iter().map(|level| level.keys).sum::<u64>();
    assert_eq!(kept(), 1000);
    timed.clock.advance(secs(100));
    timed.db.wait_for_compaction().unwrap();
    assert_eq!(kept(), 1000, "too few have expired");
    for passed in (150..=1000).step_by(50) {
        timed.clock.advance(secs(50));
        timed.db.wait_for_compaction().unwrap();
        let live = timed.db.iter().count().unwrap();
        assert_eq!(live, 1000 - passed);
        assert!(kept() >= live && kept() <= live * 5 / 3 + 20, "after {passed} s: {} of {live}", kept());
    }
    assert_eq!((kept(), timed.segments()), (0, 0));
    assert!(timed.db.verify().unwrap().is_ok());
}
