use super::*;
use crate::key::Seq;
use crate::memtable::MemKind;
use crate::memtable::entry::{Prefix, Search};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;

/// Entries in the order that a list has.
type Oracle = BTreeSet<(Vec<u8>, Reverse<Seq>)>;

fn item(key: &[u8], seq: Seq) -> MemKey {
    let (prefix, data) = (Prefix::of(key), Bytes::copy_from_slice(key));
    MemKey { prefix, data, seq, key_len: key.len() as u32, kind: MemKind::Put }
}

fn insert(list: &EntryList, oracle: &mut Oracle, key: &[u8], seq: Seq) {
    list.insert(item(key, seq));
    oracle.insert((key.to_vec(), Reverse(seq)));
}

fn of(entry: Option<EntryRef<'_>>) -> Option<(Vec<u8>, Reverse<Seq>)> {
    entry.map(|entry| (entry.key().key().to_vec(), Reverse(entry.key().seq)))
}

/// Both neighbours of a place just before an entry, and just after it.
fn check_places(list: &EntryList, oracle: &Oracle, key: &[u8], seq: Seq) {
    let (search, at) = (Search::new(key, seq), (key.to_vec(), Reverse(seq)));
    let (before, after) = (Place::Before(search), Place::After(search));
    assert_eq!(of(list.last_before(before)), oracle.range(..&at).next_back().cloned());
    assert_eq!(of(list.first_from(before)), oracle.range(&at..).next().cloned());
    assert_eq!(of(list.last_before(after)), oracle.range(..=&at).next_back().cloned());
    let behind = oracle.range((std::ops::Bound::Excluded(&at), std::ops::Bound::Unbounded)).next();
    assert_eq!(of(list.first_from(after)), behind.cloned());
}

fn check_all(list: &EntryList, oracle: &Oracle) {
    assert_eq!(list.len(), oracle.len());
    assert_eq!(list.is_empty(), oracle.is_empty());
    assert_eq!(of(list.front()), oracle.first().cloned());
    assert_eq!(of(list.back()), oracle.last().cloned());
    assert!(list.iter().map(|entry| of(Some(entry))).eq(oracle.iter().cloned().map(Some)));
    let mut previous = None;
    for (key, Reverse(seq)) in oracle {
        let entry = list.first_from(Place::Before(Search::new(key, *seq))).expect("an entry");
        assert_eq!(of(entry.prev()), previous);
        check_places(list, oracle, key, *seq);
        previous = of(Some(entry));
    }
}

proptest! {
    #[test]
    fn a_list_has_the_order_of_a_sorted_set(
        inserts in vec((vec(0u8..3, 0..20), 1u64..4), 0..400),
        places in vec((vec(0u8..3, 0..20), 0u64..5), 20),
    ) {
        let (list, mut oracle) = (EntryList::new(), Oracle::new());
        for (key, seq) in &inserts {
            insert(&list, &mut oracle, key, *seq);
        }
        check_all(&list, &oracle);
        for (key, seq) in &places {
            check_places(&list, &oracle, key, *seq);
        }
    }
}

/// Numbers below `count` in an order of their own.
fn orders(count: u32) -> [(&'static str, Vec<u32>); 5] {
    let scattered = |n: u32| (u64::from(n) * 2_654_435_761 % u64::from(count)) as u32;
    // Gaps behind full pages, filled from their ends.
    let is_early = |n: &u32| *n as usize % (10 * WIDTH) < WIDTH;
    let late = (0..count).rev().filter(|n| !is_early(n));
    let gaps = (0..count).filter(is_early).chain(late).collect();
    let inwards = (0..count).map(|n| if n % 2 == 0 { n / 2 } else { count - 1 - n / 2 }).collect();
    [
        ("ascending", (0..count).collect()),
        ("descending", (0..count).rev().collect()),
        ("scattered", (0..count).map(scattered).collect()),
        ("gaps from behind", gaps),
        ("from both ends", inwards),
    ]
}

#[test]
fn every_order_of_insertion_gives_the_same_list() {
    // Keys that differ at once, after the first eight bytes, after the first 16, and some of them each.
    let shared = |number: u32, kind: usize| match kind {
        0 => "",
        1 => "12345678",
        2 => "1234567812345678",
        _ => ["", "12345678", "1234567812345678", "8765432187654321"][number as usize / 7 % 4],
    };
    for kind in 0..4 {
        for (name, order) in orders(10_000) {
            let (list, mut oracle) = (EntryList::new(), Oracle::new());
            for number in order {
                let key = format!("{}{number:05}", shared(number, kind));
                insert(&list, &mut oracle, key.as_bytes(), 1);
            }
            check_all(&list, &oracle);
            // Ascending keys fill their pages, and no order leaves many that are less than half full.
            let slots = list.len() as f64 / list.pages.count() as f64;
            let least = if name == "ascending" && kind < 3 { WIDTH - 2 } else { WIDTH / 2 - 2 };
            assert!(slots > least as f64, "{name}: {slots} slots of a page");
        }
    }
}

#[test]
fn an_equal_entry_stays_where_it_is() {
    let list = EntryList::new();
    for _ in 0..3 {
        (0..1000).for_each(|seq| list.insert(item(b"key", seq)));
    }
    assert_eq!(list.len(), 1000);
    assert!(list.iter().map(|entry| entry.key().seq).eq((0..1000).rev()));
}

/// Pages are hints: whatever a search finds in them, its answer is right.
#[test]
fn a_search_is_right_whatever_pages_say() {
    let (list, mut oracle) = (EntryList::new(), Oracle::new());
    for number in 0..3000u32 {
        insert(&list, &mut oracle, &(number * 7919 % 3000).to_be_bytes(), 1);
    }
    let (mut random, pages) = (fastrand::Rng::with_seed(1), list.pages.count() as u32);
    for round in 0..60 {
        // More and more slots of pages of any height are wrong.
        for _ in 0..1 << (round / 6) {
            let page = list.page(random.u32(..pages)).expect("a page");
            let other = list.entry(random.u32(..3000)).expect("an entry");
            let prefix =
                if random.bool() { other.key().prefix } else { Prefix { high: random.u64(..), low: 0 } };
            let entry = random.u32(..3010);
            // Pages that are not there, too. A page below itself would be a circle, which no insertion makes.
            let leaves: Vec<_> = (0..pages + 3).filter(|n| list.page(*n).is_none_or(Page::is_leaf)).collect();
            let child = leaves[random.usize(..leaves.len())];
            page.put(random.usize(..WIDTH), Slot { prefix, entry, child });
        }
        for number in (0..3000u32).step_by(37) {
            check_places(&list, &oracle, &number.to_be_bytes(), 1);
        }
    }
}

/// I1: who knows that an entry was inserted finds it, while others are inserted around it.
#[test]
fn i1_readers_find_what_was_inserted_before() {
    for shared in ["", "1234567812345678"] {
        for (_, order) in orders(20_000) {
            let key = |number: u32| format!("{shared}{number:05}");
            let (list, inserted) = (EntryList::new(), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for reader in 0..3 {
                    let (list, inserted, order) = (&list, &inserted, &order);
                    scope.spawn(move || {
                        let mut random = fastrand::Rng::with_seed(reader);
                        loop {
                            let known = inserted.load(Acquire);
                            let Some(last) = known.checked_sub(1) else { continue };
                            // Mostly a recent one, whose page is changing.
                            let at = last - random.usize(..=last).min(random.usize(..100));
                            let key = key(order[at]);
                            let search = Search::new(key.as_bytes(), 1);
                            let found = list.first_from(Place::Before(search));
                            assert_eq!(found.map(|found| found.key().key()), Some(key.as_bytes()));
                            let before = list.last_before(Place::After(search));
                            assert_eq!(before.map(|found| found.key().key()), Some(key.as_bytes()));
                            if known == order.len() {
                                return;
                            }
                        }
                    });
                }
                for (count, number) in order.iter().enumerate() {
                    list.insert(item(key(*number).as_bytes(), 1));
                    inserted.store(count + 1, Release);
                }
            });
        }
    }
}

/// Several threads insert at once.
#[test]
fn threads_insert_beside_each_other() {
    let (list, count) = (EntryList::new(), 5000);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let list = &list;
            scope.spawn(move || {
                for number in 0..count {
                    list.insert(item(&(number * 4 + thread).reverse_bits().to_be_bytes(), 1));
                    list.insert(item(&number.to_be_bytes(), 1 + thread));
                }
            });
        }
    });
    assert!(list.iter().is_sorted_by_key(|entry| (entry.key().key(), Reverse(entry.key().seq))));
    let keys: BTreeSet<_> = list.iter().map(|entry| (entry.key().key().to_vec(), entry.key().seq)).collect();
    let expected = (0..4 * count).map(|number| (number.reverse_bits().to_be_bytes().to_vec(), 1));
    let of_all = (0..count).flat_map(|number| (1..5).map(move |seq| (number.to_be_bytes().to_vec(), seq)));
    assert_eq!(keys, expected.chain(of_all).collect());
}

#[test]
fn many_versions_of_few_keys_are_in_order() {
    for keys in [1, 3, 64, 300] {
        for threads in [1, 4] {
            let (list, next) = (EntryList::new(), AtomicUsize::new(1));
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let (list, next) = (&list, &next);
                    scope.spawn(move || {
                        let mut random = fastrand::Rng::with_seed(thread);
                        for _ in 0..20_000 / threads {
                            let seq = next.fetch_add(1, Relaxed) as Seq;
                            let key = format!("1234567812345678t{:03}", random.u32(..keys));
                            list.insert(item(key.as_bytes(), seq));
                        }
                    });
                }
            });
            assert_eq!(list.len(), 20_000);
            let all: Vec<_> =
                list.iter().map(|entry| (entry.key().key(), Reverse(entry.key().seq))).collect();
            assert_eq!(all.len(), 20_000);
            assert!(all.is_sorted(), "{keys} keys, {threads} threads");
        }
    }
}

#[test]
fn smaller_keys_that_come_late_find_their_pages() {
    let (list, mut oracle, mut random) = (EntryList::new(), Oracle::new(), fastrand::Rng::with_seed(1));
    // Groups of keys that share their first 16 bytes, each group before all earlier ones.
    for group in (0..20u8).rev() {
        for seq in 1..1000 {
            let key = [&[group; 16][..], &[random.u8(..100)]].concat();
            insert(&list, &mut oracle, &key, seq);
        }
        check_all(&list, &oracle);
    }
}

/// A process that forks beside an insertion keeps its lock, and a page of which a part has moved.
#[test]
fn i13_searches_wait_for_nobody_in_a_page_that_is_half_moved() {
    for (order, numbers) in orders(3 * WIDTH as u32 * WIDTH as u32 / 2) {
        let (list, mut oracle) = (EntryList::new(), Oracle::new());
        for number in &numbers {
            insert(&list, &mut oracle, &number.to_be_bytes(), 1);
        }
        let _left_behind = lock(&list.inserting);
        let halves = list.pages.iter().filter(|(_, page)| page.len() < WIDTH);
        let moved = halves.map(|(number, page)| page.move_half(number % (page.len() + 1))).count();
        assert!(moved > 0, "{order}");
        for (key, Reverse(seq)) in &oracle {
            check_places(&list, &oracle, key, *seq);
        }
    }
}
