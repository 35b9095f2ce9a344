//! Noisy filters whose parts come from several parties, each over the wire.

use super::*;
use crate::{receive_filter, send_filter};
use proptest::prelude::*;

/// A part as a party sends it, with its own seed.
fn sent_part(keys: &[Vec<u8>], rate: f64) -> Bloom {
    let hash = HashFunction::random().unwrap();
    let mut part = bloom_for(keys.len() as u64, rate, hash);
    keys.iter().for_each(|key| assert!(part.insert(key).is_ok()));
    let mut wire = Vec::new();
    send_filter(&AnyFilter::Bloom(part), &mut wire).unwrap();
    match receive_filter(&mut &wire[..], 1 << 20).unwrap() {
        AnyFilter::Bloom(part) => part,
        other => panic!("a {} filter", other.name()),
    }
}

fn bloom_for(keys: u64, rate: f64, hash: HashFunction) -> Bloom {
    Bloom::with_plan(Plan { hash, ..Plan::new(keys.max(1), rate).unwrap() }).unwrap()
}

proptest! {
    #[test]
    fn i1_parts_from_anywhere_never_deny_a_member_and_let_less_pass_together(
        keys in prop::collection::vec(any::<Vec<u8>>(), 0..200),
        others in prop::collection::vec(any::<Vec<u8>>(), 0..200),
        parts in 1usize..7,
        rate in 0.01f64..0.9,
    ) {
        let parts: Vec<Bloom> = (0..parts).map(|_| sent_part(&keys, rate)).collect();
        let noisy = NoisyBloom::from_parts(parts.clone()).unwrap();
        for key in &keys {
            prop_assert_eq!(noisy.contains(key), Verdict::Maybe);
        }
        for key in &others {
            let is_denied = parts.iter().any(|part| part.contains(key) == Verdict::Absent);
            prop_assert_eq!(noisy.contains(key) == Verdict::Absent, is_denied);
        }
        prop_assert!(parts.iter().all(|part| noisy.fpr() <= part.fpr()));
    }
}

#[test]
fn two_builds_of_one_list_differ() {
    let keys: Vec<Vec<u8>> = (0..1000u64).map(|i| i.to_le_bytes().to_vec()).collect();
    let [a, b] = [(); 2].map(|()| sent_part(&keys, 0.25));
    assert_ne!(a.plan().hash, b.plan().hash);
    // Bits of independent filters agree by chance: half of them in full ones.
    let bits = a.plan().shape.bits() as f64;
    let differing: u32 = a
        .lines()
        .as_flattened()
        .iter()
        .zip(b.lines().as_flattened())
        .map(|(a, b)| (a ^ b).count_ones())
        .sum();
    assert!(f64::from(differing) > 0.4 * bits, "{differing} of {bits}");
}
