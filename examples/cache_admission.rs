//! A cache that stores objects only at their second request. Most objects requested from a web cache in a day
//! are "one-hit wonders"; storing them evicts objects that would be requested again. A filter of all
//! requested objects recognises the second request. (Maggs and Sitaraman, "Algorithmic Nuggets in Content
//! Delivery", 2015: at Akamai this halved the disk writes.)

use sidebloom::filter::Bloom;
use std::collections::{HashSet, VecDeque};

const REQUESTS: u64 = 400_000;
const CACHE_OBJECTS: usize = 3000;

fn main() -> sidebloom::Result<()> {
    let always = run(None);
    let second_time = run(Some(Bloom::new(REQUESTS, 0.01)?));
    println!("admission        hits     writes");
    println!("always       {:>8} {:>10}", always.hits, always.writes);
    println!("second time  {:>8} {:>10}", second_time.hits, second_time.writes);
    assert!(second_time.hits > always.hits && second_time.writes * 2 < always.writes);
    Ok(())
}

#[derive(Default)]
struct Outcome {
    hits: u32,
    writes: u32,
}

/// Serves all requests from a first-in-first-out cache, with or without an admission filter.
fn run(mut asked_once: Option<Bloom>) -> Outcome {
    let (mut cached, mut order, mut outcome) = (HashSet::new(), VecDeque::new(), Outcome::default());
    for object in requests() {
        if cached.contains(&object) {
            outcome.hits += 1;
            continue;
        }
        // `insert` returns true for a certainly new object: its first request. A full filter is an error.
        let first_time =
            asked_once.as_mut().is_some_and(|asked| asked.insert(object.to_le_bytes()).unwrap_or(false));
        if first_time {
            continue;
        }
        outcome.writes += 1;
        cached.insert(object);
        order.push_back(object);
        if order.len() > CACHE_OBJECTS
            && let Some(oldest) = order.pop_front()
        {
            cached.remove(&oldest);
        }
    }
    outcome
}

/// Half of the requests are for a few thousand objects of unequal popularity, the other half for objects that
/// are never requested again.
fn requests() -> impl Iterator<Item = u64> {
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    (0..REQUESTS).map(move |i| {
        if random() % 2 == 0 {
            return 1_000_000 + i;
        }
        let (a, b) = (random() % 6000, random() % 6000);
        a.min(b)
    })
}
