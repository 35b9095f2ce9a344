//! The definition on the module's page, bit by bit, and the comparison of every instruction set with it.

use super::*;
use crate::parity::equation::{ProbeHash, Products, next_level, place};

/// The position in the line of each row of a lane.
fn rows_of(width: Width, lane: usize) -> Vec<usize> {
    let bits = |word: usize, from: usize, to: usize| (64 * word + from)..(64 * word + to);
    match (width, lane) {
        (Width::Seven, j) => bits(j, 0, 63).chain(bits(7, 9 * j, 9 * j + 9)).collect(),
        (Width::Eight, j) => bits(j, 0, 63).collect(),
        (Width::Nine, j @ 0..8) => bits(j, 0, 56).collect(),
        (Width::Nine, _) => (0..8).flat_map(|word| bits(word, 56, 63)).collect(),
        (Width::Ten, j @ 0..8) => bits(j, 0, 50).collect(),
        (Width::Ten, j) => {
            let first = 4 * (j - 8);
            (first..first + 3).flat_map(|word| bits(word, 50, 63)).chain(bits(first + 3, 50, 61)).collect()
        }
        (Width::Eleven, j @ 0..8) => bits(j, 0, 45).collect(),
        (Width::Eleven, 8) => bits(0, 45, 63).chain(bits(1, 45, 63)).chain(bits(2, 45, 54)).collect(),
        (Width::Eleven, 9) => bits(2, 54, 63).chain(bits(3, 45, 63)).chain(bits(4, 45, 63)).collect(),
        (Width::Eleven, _) => bits(5, 45, 63).chain(bits(6, 45, 63)).chain(bits(7, 45, 54)).collect(),
        (Width::Twelve, j @ 0..8) => bits(j, 0, 42).collect(),
        (Width::Twelve, j) => (2 * (j - 8)..2 * (j - 7)).flat_map(|word| bits(word, 42, 63)).collect(),
        (Width::Sixteen, j @ 0..8) => bits(j, 0, 31).collect(),
        (Width::Sixteen, j) => bits(j - 8, 31, 62).collect(),
    }
}

fn bit(line: &Line, position: usize) -> u64 {
    u64::from(line[position / 8] >> (position % 8) & 1)
}

/// The control byte: bit 63 of each word.
fn control_of(line: &Line) -> u64 {
    (0..8).map(|word| bit(line, 64 * word + 63) << word).sum()
}

/// The number of checks of a key at this place, from 0 to 1; `None` if it is bumped.
fn checks(width: Width, control: u64, place: f64) -> Option<usize> {
    let step = match width {
        Width::Seven | Width::Eight | Width::Nine => 2,
        Width::Ten | Width::Eleven => 3,
        Width::Twelve => 4,
        Width::Sixteen => 8,
    };
    let (threshold, quota) = match control {
        0..64 => (0, control),
        _ => ((control - 64) / 4 + 1, (control - 64) % 4 * step),
    };
    let ranks = match width {
        Width::Twelve => 96.0,
        Width::Sixteen => 80.0,
        _ => 128.0,
    };
    let rank = (place * ranks).floor().min(47.0);
    let more = place >= 1.0 - (quota % 16) as f64 / 16.0;
    (rank >= threshold as f64).then_some((quota / 16) as usize + usize::from(more))
}

fn passes(width: Width, line: &Line, hash: &Products, check: usize) -> bool {
    let words = if width == Width::Seven { 7 } else { 8 };
    let mut parity = 0;
    for word in 0..words {
        let by = 2 * (8 * check + word * (2 * check + 1) % 8) + 1;
        let selected = (0..63).filter(|bit| hash.coefficients >> ((64 + bit - by) % 64) & 1 == 1);
        parity ^= selected.fold(0, |parity, at| parity ^ bit(line, 64 * word + at));
    }
    parity == hash.fingerprint >> (32 + check) & 1
}

fn satisfies(width: Width, line: &Line, hash: &Products, first: usize) -> bool {
    let lanes = width.number() as usize; // Every width is named after its lanes.
    let high = u128::from(hash.fingerprint >> 39 & 0x1ff);
    (0..lanes.min(first)).all(|lane| {
        let rows = rows_of(width, lane);
        assert_eq!(rows.len(), 504 / lanes);
        let coefficients = u128::from(hash.coefficients << 1 >> 1) | high << 63;
        let selected = rows.iter().enumerate().filter(|(row, _)| coefficients >> row & 1 == 1);
        let parity = selected.fold(0, |parity, (_, &at)| parity ^ bit(line, at));
        parity == hash.fingerprint >> (64 - lanes + lane) & 1
    })
}

/// What a probe of a hash reads and answers.
pub(super) struct Answer {
    pub maybe: bool,
    /// Whether the first lanes of the first line deny the hash.
    denied: bool,
    pub lines: usize,
}

pub(super) fn answer(width: Width, lines: &[Line], mut hash: u64, levels: &Levels) -> Answer {
    let (mut base, mut read) = (0, 0);
    for &count in levels.iter().filter(|&&count| count > 0) {
        let (index, place) = place(hash, count);
        let line = &lines[base + index as usize];
        read += 1;
        // A rank is decided by the high half of the place.
        let place = (place >> 32) as f64 / 2f64.powi(32);
        if let Some(checks) = checks(width, control_of(line), place) {
            let products = Products::of(hash);
            let passes = |check| passes(width, line, &products, check);
            let maybe = satisfies(width, line, &products, 16) && (0..checks).all(passes);
            let denied = read == 1 && !satisfies(width, line, &products, 8);
            return Answer { maybe, denied, lines: read };
        }
        base += count as usize;
        hash = next_level(hash);
    }
    Answer { maybe: true, denied: false, lines: read }
}

/// Whether the first line denies the hash.
struct OneFirstProbe<'a> {
    first: FirstProbe,
    first_level: &'a [Line],
}

impl ProbeLoop for OneFirstProbe<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<P: Probes>(self, probes: P, hash: u64) -> bool {
        probes.denies(&probes.hash(ProbeHash::new(hash)), &self.first, self.first_level)
    }
}

pub(super) fn assert_every_isa_agrees(width: Width, lines: &[Line], hashes: &[u64], levels: &Levels) {
    let kind = FilterKind::Parity { width, levels: *levels };
    let answers: Vec<Answer> = hashes.iter().map(|&hash| answer(width, lines, hash, levels)).collect();
    let expected: Vec<Verdict> = answers.iter().map(|answer| Verdict::of(answer.maybe)).collect();
    for isa in Isa::available() {
        let (prober, case) = (Prober::with_isa(kind, isa), format!("{width:?} on {}", isa.name()));
        let one_by_one: Vec<Verdict> = hashes.iter().map(|&hash| prober.probe(lines, hash)).collect();
        assert_eq!(one_by_one, expected, "{case}");
        for (&hash, answer) in hashes.iter().zip(&answers) {
            assert_eq!(prober.denies(lines, &ProbeHash::new(hash)), answer.denied, "{case}, first line");
        }
        let (first, first_level) = (prober.first_probe(), &lines[..prober.first_level(lines.len())]);
        for (&hash, answer) in hashes.iter().zip(&answers) {
            let denied = isa.run(OneFirstProbe { first, first_level }, hash);
            assert_eq!(denied, answer.denied && width >= Width::Eight, "{case}, first line in a loop");
        }
        let mut at_once = vec![Verdict::Absent];
        prober.probe_many(lines, hashes, &mut at_once);
        assert_eq!(at_once.split_first(), Some((&Verdict::Absent, &expected[..])), "{case}, at once");
    }
}
