use super::bits::positions;
use super::*;
use crate::hash::hash_key;
use crate::line::line_of;
use crate::test_length::sized;
use crate::*;
use proptest::prelude::*;

fn hashes(range: std::ops::Range<u64>) -> Vec<u64> {
    range.map(|i| hash_key(&i.to_le_bytes(), 0x5eed)).collect()
}

fn built(hashes: &[u64], bits_per_key: f64) -> BuiltFilter {
    BuiltFilter::build(FilterSpec::BlockedBloom { bits_per_key }, hashes).unwrap()
}

#[test]
fn i1_every_member_is_maybe_at_every_size_and_on_every_isa() {
    for keys in [0, 1, 2, 51, 52, 63, 64, 65, 1000, 30_000] {
        for bits_per_key in [2.0, 6.0, 9.5, 16.0, 64.0] {
            let members = hashes(0..keys);
            let filter = built(&members, bits_per_key);
            assert_eq!(filter.first_denied(&members), None);
            for isa in Isa::available() {
                let prober = Prober::with_isa(filter.kind, isa);
                let denied = members.iter().filter(|&&h| prober.probe(&filter.lines, h) == Verdict::Absent);
                assert_eq!(denied.count(), 0, "{keys} keys at {bits_per_key} bits on {}", isa.name());
            }
        }
    }
}

#[test]
fn size_is_the_nominal_one_rounded_up_to_a_line() {
    for keys in [0, 1, 2, 62, 63, 64, 65, 1000, 100_000] {
        let nominal_bits = (keys as f64 * 10.0) as usize;
        assert!(built(&hashes(0..keys), 10.0).lines.len() * LINE_BITS < nominal_bits + LINE_BITS + 1);
    }
}

#[test]
fn an_empty_filter_denies_everything() {
    let filter = built(&[], 10.0);
    assert_eq!(filter.first_denied(&hashes(0..1)), Some(hashes(0..1)[0]));
}

#[test]
fn no_lines_deny_nothing_and_neither_do_no_bits() {
    for isa in Isa::available() {
        let probe = |k, lines: &[Line]| {
            let prober = Prober::with_isa(FilterKind::BlockedBloom { k }, isa);
            let mut at_once = Vec::new();
            prober.probe_many(lines, &[0x5eed], &mut at_once);
            assert_eq!(at_once, [prober.probe(lines, 0x5eed)]);
            at_once[0]
        };
        for k in 0..=MAX_K + 1 {
            assert_eq!(probe(k, &[]), Verdict::Maybe, "k {k} on {}", isa.name());
            let empty = if k == 0 { Verdict::Maybe } else { Verdict::Absent };
            assert_eq!(probe(k, &[[0; LINE_BYTES]]), empty, "k {k} on {}", isa.name());
        }
    }
}

#[test]
fn measured_rate_is_within_three_per_cent_of_the_theory() {
    let members = hashes(0..400_000);
    // Enough probes that chance moves the measurement by one per cent at most: two standard deviations of
    // 40,000 hits, or one of 10,000.
    let (widths, hits) =
        sized((&[6.0, 10.0, 16.0][..], 10_000.0), (&[6.0, 8.0, 10.0, 12.0, 16.0, 20.0], 40_000.0));
    for &bits_per_key in widths {
        let filter = built(&members, bits_per_key);
        let prober = Prober::new(filter.kind);
        let expected = filter.expected_fpr();
        let probes = ((hits / expected) as u64).min(160_000_000);
        let maybe = (0..probes)
            .filter(|i| {
                let hash = hash_key(&(i + 1_000_000).to_le_bytes(), 0x5eed);
                prober.probe(&filter.lines, hash) == Verdict::Maybe
            })
            .count();
        let measured = maybe as f64 / probes as f64;
        let off = measured / expected - 1.0;
        println!("{bits_per_key} bits: {:.4} % measured, {:+.2} % off", measured * 100.0, off * 100.0);
        assert!(off.abs() < 0.03, "{bits_per_key} bits: {measured} measured, {expected} expected");
    }
}

#[test]
fn bits_are_frozen() {
    let positions_of = |hash| positions(hash, MAX_K).collect::<Vec<_>>();
    assert_eq!(positions_of(0), [0; 16]);
    assert_eq!(positions_of(0x0123_4567_89ab_cdef), GOLDEN_POSITIONS);
    let filter = built(&[0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210], 10.0);
    assert_eq!((filter.kind, filter.lines.len()), (FilterKind::BlockedBloom { k: 8 }, 1));
    let filter = built(&hashes(0..200), 10.0);
    assert_eq!((filter.kind, filter.lines.len()), (FilterKind::BlockedBloom { k: 7 }, 4));
    assert_eq!(crate::hash::digest(filter.lines.as_flattened()), GOLDEN_DIGEST);
    assert_eq!([0, 1 << 62, u64::MAX].map(|h| line_of(h, 5)), [0, 1, 4]);
}

const GOLDEN_POSITIONS: [usize; 16] =
    [435, 441, 168, 313, 200, 50, 214, 143, 37, 424, 339, 158, 430, 332, 265, 399];
const GOLDEN_DIGEST: u64 = 18_152_444_662_337_896_097;

proptest! {
    #[test]
    fn every_isa_answers_as_the_scalar_oracle(
        line in proptest::array::uniform32(any::<[u8; 2]>()),
        fill in any::<u64>(),
        hashes in proptest::collection::vec(any::<u64>(), 64),
        k in 1..=MAX_K,
    ) {
        // Dense lines, so that both answers occur for every k.
        let mut dense: Line = line.as_flattened().try_into().unwrap();
        dense.iter_mut().enumerate().for_each(|(i, byte)| *byte |= (fill >> (i % 8 * 8)) as u8);
        hashes.iter().take(8).for_each(|&h| positions(h, k).for_each(|p| dense[p / 8] |= 1 << (p % 8)));
        let kind = FilterKind::BlockedBloom { k };
        for isa in Isa::available() {
            let prober = Prober::with_isa(kind, isa);
            let mut at_once = Vec::new();
            prober.probe_many(&[dense], &hashes, &mut at_once);
            prop_assert_eq!(at_once.len(), hashes.len());
            for (&hash, at_once) in hashes.iter().zip(at_once) {
                let expected = Verdict::of(positions(hash, k).all(|p| dense[p / 8] >> (p % 8) & 1 == 1));
                prop_assert_eq!(prober.probe(&[dense], hash), expected, "{} {:x}", isa.name(), hash);
                prop_assert_eq!(at_once, expected, "{} {:x}, at once", isa.name(), hash);
                let denied = prober.denies(&[dense], &ProbeHash::new(hash));
                prop_assert_eq!(denied, expected == Verdict::Absent, "{} {:x}, first line", isa.name(), hash);
            }
        }
    }

    #[test]
    fn the_atomic_filter_answers_as_the_static_one(seed in any::<u64>(), keys in 0u64..500) {
        let members: Vec<u64> = (0..keys).map(|i| hash_key(&i.to_le_bytes(), seed)).collect();
        let filter = built(&members, 10.0);
        let atomic = AtomicBloom::new(keys, 10.0).unwrap();
        members.iter().for_each(|&h| atomic.insert(h));
        let prober = Prober::new(filter.kind);
        for i in 0..2 * keys + 10 {
            let hash = hash_key(&i.to_le_bytes(), seed);
            prop_assert_eq!(atomic.probe(hash), prober.probe(&filter.lines, hash));
        }
    }
}

/// Concurrent inserts lose no bit, and overfull filters still know their members.
#[test]
fn i1_concurrent_inserts_lose_no_bit_even_in_overfull_filters() {
    let atomic = AtomicBloom::new(1000, 10.0).unwrap();
    std::thread::scope(|scope| {
        for part in 0..4 {
            let atomic = &atomic;
            scope.spawn(move || {
                let members = hashes(part * 2500..(part + 1) * 2500);
                for &hash in &members {
                    atomic.prefetch(hash);
                    atomic.insert(hash);
                    assert_eq!(atomic.probe(hash), Verdict::Maybe);
                }
            });
        }
    });
    assert!(hashes(0..10_000).iter().all(|&h| atomic.probe(h) == Verdict::Maybe));
}
