mod oracle;

use super::build::{ParityLines, build_levels};
use super::equation::{BUMP_ALL, Control, is_bumped, largest_quota, rank, share_bumped};
use super::layout::{Seven, Wide, for_width};
use super::sort::InMemory;
use super::*;
use crate::hash::{digest, hash_key};
use crate::test_length::sized;
use crate::*;
use oracle::{answer, assert_every_isa_agrees};
use proptest::prelude::*;

const SIZES: [u64; 12] = [0, 1, 2, 31, 61, 62, 63, 64, 65, 200, 1000, 30_000];

fn hashes(range: std::ops::Range<u64>) -> Vec<u64> {
    range.map(|i| hash_key(&i.to_le_bytes(), 0x5eed)).collect()
}

fn built(hashes: &[u64], width: Width) -> BuiltFilter {
    BuiltFilter::build(FilterSpec::Parity { width }, hashes).unwrap()
}

fn levels_of(filter: &BuiltFilter) -> Levels {
    match filter.kind {
        FilterKind::Parity { levels, .. } => levels,
        FilterKind::BlockedBloom { .. } => unreachable!(),
    }
}

fn assert_members(filter: &BuiltFilter, members: &[u64], case: &str) {
    for isa in Isa::available() {
        let prober = Prober::with_isa(filter.kind, isa);
        let denied = members.iter().filter(|&&h| prober.probe(&filter.lines, h) == Verdict::Absent).count();
        assert_eq!(denied, 0, "{case} on {}", isa.name());
    }
    assert_eq!(filter.lines.len() as u64, levels_of(filter).iter().map(|&n| u64::from(n)).sum::<u64>());
}

#[test]
fn i1_every_member_is_maybe_at_every_size_and_width_and_on_every_isa() {
    for width in Width::ALL {
        for keys in SIZES {
            let members = hashes(0..keys);
            assert_members(&built(&members, width), &members, &format!("{keys} keys, {width:?}"));
        }
    }
}

#[test]
fn no_size_takes_more_than_its_nominal_bits_with_a_margin_and_a_page() {
    for width in Width::ALL {
        for keys in SIZES {
            let bits = (built(&hashes(0..keys), width).lines.len() * LINE_BITS) as f64;
            let nominal = keys as f64 * width.bits_per_key();
            assert!(bits <= 1.3 * nominal + 8.0 * 4096.0, "{keys} keys, {width:?}: {bits} bits");
        }
    }
}

#[test]
fn roomier_lines_take_the_expected_size_and_lower_the_rate() {
    let all = hashes(0..200_000);
    for width in Width::ALL {
        for keys in [1, 60, 300, 3_500, 200_000] {
            let members = &all[..keys];
            let mut worse = 1.0;
            for roomier in [1.0, 1.05, 1.1, 1.2, 1.4] {
                let keys_per_line = width.keys_per_line() / roomier;
                let filter = BuiltFilter::parity(width, keys_per_line, members).unwrap();
                assert_members(&filter, members, &format!("{keys} keys, {width:?}, {roomier}"));
                let (lines, expected) =
                    (filter.lines.len(), width.expected_lines(keys as u64, keys_per_line));
                let difference = lines.abs_diff(expected as usize);
                assert!(
                    difference <= 3 + lines / 250,
                    "{keys} keys, {width:?}, {roomier}: {lines}, {expected}"
                );
                if keys == 200_000 {
                    assert!(filter.expected_fpr() < 0.94 * worse, "{width:?}, {roomier}");
                    worse = filter.expected_fpr();
                }
            }
        }
        for refused in [0.0, 0.9, width.keys_per_line() * 1.01, f64::NAN, f64::INFINITY] {
            assert!(matches!(BuiltFilter::parity(width, refused, &all), Err(Error::InvalidArgument(_))));
        }
    }
}

/// Per width, the most bits per key, also in multiples of log2(1 / false-positive rate).
const AIMS: [(Width, f64, f64); 7] = [
    (Width::Seven, 7.7, 1.05),
    (Width::Eight, 8.9, 1.05),
    (Width::Nine, 10.1, 1.06),
    (Width::Ten, 11.4, 1.06),
    (Width::Eleven, 12.8, 1.08),
    (Width::Twelve, 13.8, 1.08),
    (Width::Sixteen, 19.5, 1.12),
];

#[test]
fn aims_of_size_and_rate_and_lines_hold() {
    let members = hashes(0..400_000);
    for (width, bits_at_most, bound_at_most) in AIMS {
        let filter = built(&members, width);
        let bits = (filter.lines.len() * LINE_BITS) as f64 / filter.keys as f64;
        assert!(bits <= bits_at_most, "{width:?}: {bits} bits per key");
        assert!((bits / width.bits_per_key() - 1.0).abs() < 0.01, "{width:?}: {bits} bits per key");
        let expected = filter.expected_fpr();
        assert!((expected / width.fpr() - 1.0).abs() < 0.02, "{width:?}: {expected}");
        assert!(expected < 0.5f64.powi(width.number() as i32), "{width:?}: {expected}");
        let bound = bits / -expected.log2();
        assert!(bound <= bound_at_most, "{width:?}: {bound} times the bound");
        let lines = filter.lines_per_probe();
        assert!(lines <= 1.0505, "{width:?}: {lines} lines per probe");
    }
}

#[test]
fn the_expected_rate_is_the_measured_one() {
    let members = hashes(0..100_000);
    for width in Width::ALL {
        let filter = built(&members, width);
        let (prober, expected) = (Prober::new(filter.kind), filter.expected_fpr());
        // A standard deviation of 3 or 2 %.
        let wanted = sized(1000.0, 3000.0);
        let probes = (wanted / expected) as u64;
        let maybe = |i: &u64| {
            let hash = hash_key(&(i + (1 << 32)).to_le_bytes(), 0x5eed);
            prober.probe(&filter.lines, hash) == Verdict::Maybe
        };
        let found = (0..probes).filter(maybe).count() as f64;
        assert!(
            (found - wanted).abs() < 4.0 * wanted.sqrt(),
            "{width:?}: {found} of {probes}, {wanted} expected"
        );
    }
}

#[test]
fn lines_per_probe_is_what_probes_of_absent_keys_read() {
    for width in Width::ALL {
        let filter = built(&hashes(0..100_000), width);
        let levels = levels_of(&filter);
        let absent = hashes(1 << 32..(1 << 32) + sized(20_000, 200_000));
        let reads = absent.iter().map(|&hash| answer(width, &filter.lines, hash, &levels).lines);
        let counted = reads.sum::<usize>() as f64 / absent.len() as f64;
        // Five standard deviations of the count: 0.22 / √n each.
        let (found, margin) = (filter.lines_per_probe(), 1.1 / (absent.len() as f64).sqrt());
        assert!((found - counted).abs() < margin, "{width:?}: {found}, counted {counted}");
    }
}

#[test]
fn control_bytes_mean_what_they_were_written_for() {
    for control in 0..256 {
        let decoded = Control::decode::<Wide<16>>(control);
        assert_eq!(Control::encode::<Wide<16>>(decoded.threshold, decoded.quota), control);
        assert_eq!(Control::encode::<Wide<16>>(decoded.threshold, decoded.quota + 1).max(control), {
            let next = Control::decode::<Wide<16>>(control + 1);
            if next.threshold == 0 && next.quota == decoded.quota + 1 { control + 1 } else { control }
        });
    }
    for threshold in 0..=BUMP_ALL {
        let first_kept = (share_bumped::<Seven>(threshold) * 2f64.powi(64)) as u128;
        for quota in 0..4 {
            let control = Control::encode::<Seven>(threshold, 2 * quota);
            for place in
                [0, 1 << 56, u64::MAX / 3, first_kept.saturating_sub(1) as u64, first_kept as u64, u64::MAX]
            {
                let bumped = u128::from(place) < first_kept;
                assert_eq!(is_bumped::<Seven>(control, place), bumped, "{threshold}, {place:x}");
                assert_eq!(rank::<Seven>(place) < threshold, bumped, "{threshold}, {place:x}");
            }
        }
    }
    assert!(rank::<Seven>(u64::MAX) < BUMP_ALL);
}

proptest! {
    #[test]
    fn the_largest_quota_has_at_most_so_many_checks(
        mut places in proptest::collection::vec(any::<u64>(), 0..80), checks in 0usize..200,
    ) {
        places.sort_unstable_by(|a, b| b.cmp(a));
        let asked = |quota| {
            let control = Control { threshold: 0, quota };
            places.iter().map(|&place| control.checks(place)).sum::<usize>()
        };
        let quota = largest_quota(checks, places.len(), |i| places[i]);
        prop_assert!(asked(quota) <= checks);
        prop_assert!(places.is_empty() || asked(quota + 1) > checks);
    }
}

/// A probe that checks lines one by one reads no other line, and gives the same answer.
#[test]
fn i1_a_probe_of_lines_believed_one_by_one_reads_no_other_line() {
    for width in Width::ALL {
        let filter = built(&hashes(0..3000), width);
        let prober = Prober::new(filter.kind);
        let mut in_lower_levels = 0;
        for hash in hashes(0..6000) {
            let mut read = Vec::new();
            let mut believe = |line| {
                read.push(line);
                true
            };
            let verdict = prober.probe_believed(&filter.lines, hash, &mut believe);
            assert_eq!(verdict, Some(prober.probe(&filter.lines, hash)));
            // The other lines do not matter.
            let mut others_gone = vec![[0xa5; 64]; filter.lines.len()];
            read.iter().for_each(|&line| others_gone[line] = filter.lines[line]);
            assert_eq!(verdict, Some(prober.probe(&others_gone, hash)));
            // Refusing any of the lines read leaves no verdict.
            for refused in &read {
                let believed = prober.probe_believed(&filter.lines, hash, &mut |line| line != *refused);
                assert_eq!(believed, None);
            }
            in_lower_levels += usize::from(read.len() > 1);
        }
        assert!(in_lower_levels > 60, "{in_lower_levels}");
    }
}

#[test]
fn degenerate_sets_build_and_deny_no_member() {
    let one_line = (0..100_000).collect::<Vec<u64>>();
    let top = (0..100_000).map(|i| u64::MAX - i).collect();
    let shifted = (0..50_000).map(|i| i << 48).collect();
    let one_rank = (0..200).map(|i| 7 << 61 | i).collect();
    let low_half_equal = (0..50_000).map(|i| i << 32 | 0xdead_beef).collect();
    let mut mostly_equal = vec![42; 100_000];
    mostly_equal.extend(hashes(0..1000));
    for width in Width::ALL {
        for members in [
            &one_line,
            &top,
            &shifted,
            &one_rank,
            &low_half_equal,
            &mostly_equal,
            &vec![0; 1000],
            &vec![u64::MAX; 3],
        ] {
            let case = format!("{width:?}, {} from {:x}", members.len(), members[0]);
            assert_members(&built(members, width), members, &case);
        }
        assert!(built(&mostly_equal, width).lines.len() < 60, "copies take no room");
    }
}

#[test]
fn what_the_last_level_bumps_is_maybe() {
    let members = hashes(0..2000);
    let ParityLines { lines, levels, .. } =
        build_levels::<Wide<8>, _>(Isa::best(), &mut InMemory::of(&members).unwrap(), 1e9).unwrap();
    assert_eq!(levels, [1; MAX_LEVELS], "one line per level holds far fewer");
    let kind = FilterKind::Parity { width: Width::Eight, levels };
    assert_members(&BuiltFilter { kind, keys: 2000, lines }, &members, "overfull");
}

#[test]
fn the_same_set_gives_the_same_bytes_in_any_order_and_on_any_isa() {
    let members = hashes(0..5000);
    let mut reversed = members.clone();
    reversed.reverse();
    for width in Width::ALL {
        assert_eq!(built(&members, width), built(&reversed, width));
    }
    for width in Width::ALL {
        let on = |isa| built_on(isa, &members, width);
        assert!(Isa::available().all(|isa| on(isa) == on(Isa::SCALAR)), "{width:?}");
    }
}

fn built_on(isa: Isa, members: &[u64], width: Width) -> (Lines, Levels) {
    let (hashes, keys_per_line) = (&mut InMemory::of(members).unwrap(), width.keys_per_line());
    let built = for_width!(width, L => build_levels::<L, _>(isa, hashes, keys_per_line)).unwrap();
    (built.lines, built.levels)
}

/// Hands out its hashes in pieces of `of` hashes.
struct Pieces {
    all: InMemory,
    of: usize,
}

impl SortHashes for Pieces {
    type Error = Error;

    fn another(&self) -> Result<Self> {
        Ok(Pieces { all: self.all.another()?, of: self.of })
    }

    fn push(&mut self, hash: u64) -> Result<()> {
        self.all.push(hash)
    }

    fn distinct(&mut self) -> Result<u64> {
        self.all.distinct()
    }

    fn in_order(&mut self, each: EachPiece<'_, Error>) -> Result<()> {
        let of = self.of;
        self.all.in_order(&mut |hashes| hashes.chunks(of).try_for_each(&mut *each))
    }
}

#[test]
fn bytes_are_frozen_on_every_isa() {
    for isa in Isa::available() {
        let found = Width::ALL.map(|width| digest(built_on(isa, &hashes(0..1000), width).0.as_flattened()));
        assert_eq!(found, GOLDEN, "{}", isa.name());
    }
}

const GOLDEN: [u64; 7] = [
    8_691_185_058_369_721_028,
    15_678_290_452_079_452_123,
    1_126_148_622_110_075_527,
    15_886_515_899_340_650_276,
    1_691_006_144_712_929_926,
    17_086_526_363_348_364_405,
    2_863_985_025_355_038_821,
];

proptest! {
    #[test]
    fn every_isa_answers_as_the_definition(
        lines in proptest::collection::vec(any::<[[u8; 32]; 2]>(), 6),
        hashes in proptest::collection::vec(any::<u64>(), 100),
        low_controls in any::<bool>(),
    ) {
        // Random lines answer "maybe" too rarely, so some hashes are members of built ones below; here all
        // readings differ.
        let mut lines: Vec<Line> = lines.iter().map(|halves| halves.as_flattened().try_into().unwrap()).collect();
        if low_controls {
            lines.iter_mut().for_each(|line| line[32..].fill(0));
        }
        for width in Width::ALL {
            assert_every_isa_agrees(width, &lines, &hashes, &[3, 2, 1, 0, 0, 0, 0]);
        }
    }

    #[test]
    fn pieces_of_any_length_give_the_same_bytes(keys in 0u64..3000, of in 1usize..300) {
        let members = hashes(0..keys);
        for width in Width::ALL {
            let mut pieces = Pieces { all: InMemory::of(&members).unwrap(), of };
            prop_assert_eq!(BuiltFilter::from_sorter(width, &mut pieces).unwrap(), built(&members, width));
        }
    }

    #[test]
    fn built_filters_answer_as_the_definition(keys in 0u64..400, seed in any::<u64>()) {
        let hashes: Vec<u64> = (0..keys + 50).map(|i| hash_key(&i.to_le_bytes(), seed)).collect();
        for width in Width::ALL {
            let filter = built(&hashes[..keys as usize], width);
            assert_every_isa_agrees(width, &filter.lines, &hashes, &levels_of(&filter));
        }
    }
}
