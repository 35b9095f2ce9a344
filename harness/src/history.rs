//! Whether committed transactions have the effect of some order, one after the other, as Elle finds it out
//! (Kingsbury and Alvaro, "Elle: inferring isolation anomalies from experimental observations", 2020).
//!
//! Each transaction appends its number to lists, and reads lists. So each list shows in which order it was
//! written, and each read shows what it came after and before:
//! 1. `ww`: whoever appended next comes later.
//! 2. `wr`: whoever read an element comes after its writer.
//! 3. `rw`: whoever read a list comes before the writer of the next element.
//!
//! The transactions are serialisable if these edges have no cycle.

use std::collections::{BTreeMap, BTreeSet};

/// What a transaction did.
#[derive(Debug, Clone)]
pub struct Done {
    /// Its number, different from all others.
    pub number: u64,
    /// The lists that it has read, as it found them. An absent key is an empty list.
    pub reads: Vec<(u64, Vec<u64>)>,
    /// The lists to which it has appended its number.
    pub appends: BTreeSet<u64>,
}

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    Conflict,
    /// Its commit failed for another reason, so it may be there or not.
    Unknown,
}

/// What happened, in this order.
#[derive(Debug, Clone)]
pub enum Event {
    /// The transaction with this number was about to begin.
    Began(u64),
    /// Its writer knew its outcome.
    Ended(Done, Outcome),
}

/// The numbers of a list, as a store keeps them.
#[cfg(sidebloom_schedules)]
pub fn parse(value: Option<&[u8]>) -> Vec<u64> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    value.unwrap_or_default().chunks(8).map(number).collect()
}

/// The list with one more number, as a store keeps it.
#[cfg(sidebloom_schedules)]
pub fn appended(list: &[u64], number: u64) -> Vec<u8> {
    list.iter().chain([&number]).flat_map(|number| number.to_le_bytes()).collect()
}

/// Checks what happened against the lists in the end.
pub fn check(events: &[Event], lists: &BTreeMap<u64, Vec<u64>>) -> Result<(), String> {
    let (mut committed, mut unknown) = (Vec::new(), BTreeSet::new());
    for event in events {
        match event {
            Event::Ended(done, Outcome::Committed) => committed.push(done),
            Event::Ended(done, Outcome::Unknown) => _ = unknown.insert(done.number),
            Event::Ended(_, Outcome::Conflict) | Event::Began(_) => {}
        }
    }
    let empty = Vec::new();
    let list = |key: &u64| lists.get(key).unwrap_or(&empty);
    let known: BTreeMap<u64, &Done> = committed.iter().map(|one| (one.number, *one)).collect();
    let mut later: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for (key, numbers) in lists {
        for number in numbers {
            let is_its = known.get(number).is_some_and(|one| one.appends.contains(key));
            if !is_its && !unknown.contains(number) {
                return Err(format!("list {key} has {number}, which was not committed: {numbers:?}"));
            }
        }
        if numbers.iter().collect::<BTreeSet<_>>().len() < numbers.len() {
            return Err(format!("list {key} has a number twice: {numbers:?}"));
        }
        for pair in numbers.windows(2) {
            later.entry(pair[0]).or_default().insert(pair[1]);
        }
    }
    for one in &committed {
        if let Some(key) = one.appends.iter().find(|key| !list(key).contains(&one.number)) {
            return Err(format!("{} was committed, but list {key} lacks it: {:?}", one.number, list(key)));
        }
        for (key, found) in &one.reads {
            let Some(rest) = list(key).strip_prefix(found.as_slice()) else {
                return Err(format!("{} read {found:?} in list {key}: {:?}", one.number, list(key)));
            };
            if let Some(writer) = found.last().filter(|writer| **writer != one.number) {
                later.entry(*writer).or_default().insert(one.number);
            }
            if let Some(writer) = rest.first().filter(|writer| **writer != one.number) {
                later.entry(one.number).or_default().insert(*writer);
            }
        }
    }
    match cycle(&later) {
        None => Ok(()),
        Some(numbers) => {
            let those: Vec<_> = numbers.iter().filter_map(|number| known.get(number)).collect();
            Err(format!("no order has the effect of {those:#?}, with the lists {lists:?}"))
        }
    }
}

/// The transactions in and between cycles; `None` if there is no cycle.
fn cycle(later: &BTreeMap<u64, BTreeSet<u64>>) -> Option<BTreeSet<u64>> {
    let mut left: BTreeSet<u64> =
        later.iter().flat_map(|(from, to)| to.iter().chain([from])).copied().collect();
    loop {
        let reached: BTreeSet<u64> =
            left.iter().filter_map(|from| later.get(from)).flatten().copied().collect();
        let before = left.len();
        // Whoever comes after nobody may come first; whoever comes before nobody, last.
        left.retain(|one| reached.contains(one));
        let leads = |one: &u64| later.get(one).is_some_and(|to| to.iter().any(|to| reached.contains(to)));
        left.retain(leads);
        if left.is_empty() {
            return None;
        }
        if left.len() == before {
            return Some(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::second_opinion;

    fn one(number: u64, reads: &[(u64, &[u64])], appends: &[u64]) -> Done {
        let reads = reads.iter().map(|(key, found)| (*key, found.to_vec())).collect();
        Done { number, reads, appends: appends.iter().copied().collect() }
    }

    /// What both checkers object to.
    fn objection(events: &[Event], lists: &[(u64, &[u64])]) -> Option<String> {
        let lists = lists.iter().map(|(key, numbers)| (*key, numbers.to_vec())).collect();
        let [mine, other] = [check(events, &lists), second_opinion::check(events, &lists)].map(Result::err);
        assert_eq!(mine.is_some(), other.is_some(), "{mine:?} {other:?}");
        mine
    }

    /// What both object to transactions that ran at the same time and were committed.
    fn objection_to(committed: &[Done], lists: &[(u64, &[u64])]) -> Option<String> {
        let began = committed.iter().map(|one| Event::Began(one.number));
        let ended = committed.iter().map(|one| Event::Ended(one.clone(), Outcome::Committed));
        objection(&began.chain(ended).collect::<Vec<_>>(), lists)
    }

    #[test]
    fn what_has_an_order_passes() {
        let all =
            [one(1, &[(7, &[])], &[7]), one(2, &[(7, &[1]), (8, &[])], &[8]), one(3, &[(8, &[2])], &[7])];
        assert_eq!(objection_to(&all, &[(7, &[1, 3]), (8, &[2])]), None);
    }

    #[test]
    fn each_anomaly_is_found() {
        let lost = [one(1, &[(7, &[])], &[7]), one(2, &[(7, &[])], &[7])];
        assert!(objection_to(&lost, &[(7, &[1, 2])]).unwrap().starts_with("no order"), "lost update");
        let skew = [one(1, &[(7, &[]), (8, &[])], &[7]), one(2, &[(7, &[]), (8, &[])], &[8])];
        assert!(objection_to(&skew, &[(7, &[1]), (8, &[2])]).unwrap().starts_with("no order"), "write skew");
        let half = [one(1, &[], &[7, 8]), one(2, &[(7, &[1]), (8, &[])], &[9])];
        assert!(objection_to(&half, &[(7, &[1]), (8, &[1]), (9, &[2])]).unwrap().starts_with("no order"));
        assert!(objection_to(&[one(1, &[], &[7])], &[(7, &[])]).unwrap().contains("lacks it"), "lost");
    }

    #[test]
    fn what_had_a_conflict_must_not_be_there_and_what_is_unknown_may() {
        let writer = one(1, &[(7, &[])], &[7]);
        let reader = [Event::Began(2), Event::Ended(one(2, &[(7, &[1])], &[8]), Outcome::Committed)];
        let objection = |outcome, lists: &[(u64, &[u64])]| {
            let events = [[Event::Began(1), Event::Ended(writer.clone(), outcome)], reader.clone()].concat();
            objection(&events, lists)
        };
        let both: [(u64, &[u64]); 2] = [(7, &[1]), (8, &[2])];
        assert!(objection(Outcome::Conflict, &both).unwrap().contains("not committed"));
        assert!(objection(Outcome::Conflict, &both[1..]).unwrap().contains("read"), "dirty read");
        assert_eq!((objection(Outcome::Unknown, &both), objection(Outcome::Committed, &both)), (None, None));
    }
}
