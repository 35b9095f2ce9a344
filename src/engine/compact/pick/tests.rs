//! The pick and the live set, compared with plain versions that look at every segment.

use super::*;
use crate::engine::compact::compaction::CompactionKind;
use crate::id::FileId;
use crate::key::Seq;
use crate::live::hull;
use crate::manifest::{Place, SegmentMeta};
use crate::segment::format::WRITES;
use crate::segment::{Facts, OpenFiles, SegmentFile, SegmentSummary};
use crate::support::SimFs;
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

const KEYS: u64 = 1 << 20;

/// Makes segments without files.
pub(super) struct Maker {
    files: Arc<OpenFiles>,
    pub rng: fastrand::Rng,
    next: u64,
}

impl Maker {
    pub fn new(seed: u64) -> Self {
        let files = Arc::new(OpenFiles::new(Arc::new(SimFs::new()), Path::new("/"), 0, 8, false));
        Maker { files, rng: fastrand::Rng::with_seed(seed), next: 1 }
    }

    fn segment(&mut self, level: u8, keys: [u64; 2]) -> LiveSegment {
        let keys = keys.map(|key| key.to_be_bytes().to_vec());
        self.segment_of(level, keys, [self.next; 2])
    }

    /// A segment with these smallest and largest keys and sequence numbers.
    pub fn segment_of(&mut self, level: u8, keys: [Vec<u8>; 2], seqs: [Seq; 2]) -> LiveSegment {
        let id = FileId(self.next);
        self.next += 1;
        let dense = self.rng.u8(..100) == 0;
        let longest_streak = if dense { TOMBSTONE_STREAK as u64 } else { 0 };
        let tombstones = if self.rng.bool() { longest_streak } else { longest_streak + self.rng.u64(..2) };
        let [smallest, largest] = keys;
        let (largest, [min_seq, max_seq]) = (largest.into(), seqs);
        let (version, digest, file_bytes, data_bytes) = (WRITES, 0, self.rng.u64(1000..5000), 1);
        let entries = 1 << 20;
        #[rustfmt::skip]
        let facts = Facts {
            smallest, largest, entries, tombstones, longest_streak, min_seq, max_seq, ..Facts::default()
        };
        let summary = SegmentSummary { id, version, digest, file_bytes, data_bytes, facts };
        let file = Arc::new(SegmentFile::new(Arc::clone(&self.files), id, digest));
        LiveSegment {
            meta: Arc::new(SegmentMeta { place: Place::Level(level), summary }),
            file,
            sidecar: None,
        }
    }

    /// Up to this many disjoint segments of a level, with gaps.
    fn level(&mut self, level: u8, count: usize) -> Vec<LiveSegment> {
        let mut keys: Vec<u64> = (0..2 * count).map(|_| self.rng.u64(..KEYS)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.chunks_exact(2).map(|ends| self.segment(level, [ends[0], ends[1]])).collect()
    }

    fn live(&mut self) -> LiveSet {
        let deepest = self.rng.u8(1..5);
        let mut all = Vec::new();
        for level in (1..=deepest).rev() {
            let count = if self.rng.bool() { self.rng.usize(..400) } else { self.rng.usize(..6) };
            all.extend(self.level(level, count));
        }
        for _ in 0..self.rng.usize(..20) {
            let from = self.rng.u64(..KEYS);
            let share = if self.rng.bool() { 4 } else { 4000 };
            let len = self.rng.u64(..KEYS / share);
            all.push(self.segment(0, [from, from + len]));
        }
        self.rng.shuffle(&mut all);
        LiveSet::new(all)
    }
}

/// What a compaction does.
#[derive(Debug, PartialEq)]
struct Chosen {
    upper: Vec<FileId>,
    lower: Vec<FileId>,
    output_level: u8,
    bottom: bool,
}

impl Chosen {
    fn of(compaction: &Compaction) -> Self {
        let ids = |of: &[LiveSegment]| of.iter().map(|s| s.meta.id).collect();
        let &Compaction { output_level, bottom, .. } = compaction;
        Chosen { upper: ids(&compaction.upper), lower: ids(&compaction.lower), output_level, bottom }
    }
}

/// The rules at the head of the module, segment by segment.
struct Plain<'a> {
    live: &'a LiveSet,
    levels: Vec<Vec<LiveSegment>>,
    options: &'a Options,
    running: &'a [Reservation],
}

impl Plain<'_> {
    fn pick(&self, is_idle: bool) -> Option<Chosen> {
        let mut scores: Vec<(f64, usize)> =
            (0..LEVELS - 1).map(|level| (score(self.live, level, self.options), level)).collect();
        scores.retain(|(score, _)| *score >= 1.0);
        scores.sort_by(|a, b| b.0.total_cmp(&a.0));
        let urgent = scores.into_iter().find_map(|(_, level)| match level {
            0 => self.level0(),
            _ => self.sorted(level),
        });
        urgent
            .or_else(|| self.tombstones())
            .or_else(|| if is_idle { self.level0_when_idle().or_else(|| self.when_idle()) } else { None })
    }

    fn bottom(&self, level: usize, smallest: &[u8], largest: &[u8]) -> bool {
        !self.levels.iter().skip(level + 1).flatten().any(|s| s.overlaps(smallest, largest))
    }

    fn chosen(&self, upper: &[LiveSegment], lower: Vec<LiveSegment>, to: usize) -> Option<Chosen> {
        let (smallest, largest) = hull(upper.iter().chain(&lower))?;
        let wanted = Reservation::of(upper.iter().chain(&lower), to as u8)?;
        let ids = |of: &[LiveSegment]| of.iter().map(|s| s.meta.id).collect();
        let bottom = to > 0 && self.bottom(to, smallest, largest);
        let chosen = Chosen { upper: ids(upper), lower: ids(&lower), output_level: to as u8, bottom };
        (!self.running.iter().any(|other| other.conflicts_with(&wanted))).then_some(chosen)
    }

    fn down(&self, upper: &[LiveSegment], to: usize) -> Option<Chosen> {
        let (smallest, largest) = hull(upper)?;
        let lower = self.levels[to].iter().filter(|s| s.overlaps(smallest, largest)).cloned().collect();
        self.chosen(upper, lower, to)
    }

    fn alone(&self, bytes: u64) -> Option<Chosen> {
        let alone = |segment: &&LiveSegment| {
            let meta = &segment.meta;
            let mut others = self.levels[0].iter().filter(|s| s.meta.id != meta.id).chain(&self.levels[1]);
            meta.file_bytes >= bytes && !others.any(|s| s.overlaps(&meta.smallest, &meta.largest))
        };
        self.levels[0].iter().rev().filter(alone).find_map(|s| self.down(std::slice::from_ref(s), 1))
    }

    fn level0(&self) -> Option<Chosen> {
        let merges = |s: &&LiveSegment| self.running.iter().any(|r| r.writes(0) && r.takes(s.meta.id));
        let merging = self.levels[0].iter().rev().find(merges).map(|s| s.meta.max_seq);
        let is_older = |s: &LiveSegment| merging.is_none_or(|merging| s.meta.max_seq < merging);
        let compaction = || Compaction::of_level0(self.live, is_older, self.running);
        self.alone(self.options.segment_bytes / 16).or_else(|| Some(Chosen::of(&compaction()?)))
    }

    fn sorted(&self, level: usize) -> Option<Chosen> {
        let below = self.levels.get(level + 1)?;
        let overlap_per_byte = |segment: &LiveSegment| {
            let meta = &segment.meta;
            let overlapping = below.iter().filter(|s| s.overlaps(&meta.smallest, &meta.largest));
            overlapping.map(|s| s.meta.file_bytes).sum::<u64>() as f64 / meta.file_bytes.max(1) as f64
        };
        let mut by_cost: Vec<_> = self.levels[level].iter().map(|s| (overlap_per_byte(s), s)).collect();
        by_cost.sort_by(|a, b| a.0.total_cmp(&b.0));
        by_cost.into_iter().find_map(|(_, s)| self.down(std::slice::from_ref(s), level + 1))
    }

    fn tombstones(&self) -> Option<Chosen> {
        let is_dense = |s: &&LiveSegment| s.meta.longest_streak >= TOMBSTONE_STREAK as u64;
        self.levels.iter().enumerate().find_map(|(number, level)| {
            let mut dense = level.iter().filter(is_dense);
            match number {
                0 => dense.find_map(|_| self.level0()),
                _ => dense.find_map(|segment| {
                    let rewritten = self.chosen(std::slice::from_ref(segment), Vec::new(), number);
                    let down = || self.down(std::slice::from_ref(segment), number + 1);
                    rewritten.filter(|chosen| chosen.bottom).or_else(down)
                }),
            }
        })
    }

    fn level0_when_idle(&self) -> Option<Chosen> {
        if let Some(alone) = self.alone(self.options.segment_bytes / 4) {
            return Some(alone);
        }
        let picked = pick_level0_when_idle(self.live, self.options, self.running)?;
        Some(Chosen::of(&picked))
    }

    fn when_idle(&self) -> Option<Chosen> {
        let bytes: Vec<u64> =
            self.levels.iter().map(|level| level.iter().map(|s| s.meta.file_bytes).sum()).collect();
        let is_large = |level: &usize| bytes[level + 1] > 0 && bytes[*level] * SIZE_RATIO > bytes[level + 1];
        self.sorted((1..LEVELS - 1).find(is_large)?)
    }
}

fn ids(segments: impl Iterator<Item = LiveSegment>) -> Vec<FileId> {
    segments.map(|s| s.meta.id).collect()
}

/// Whether the added segments may move: nothing overlaps them, they hide nothing, and their level holds too
/// much without them.
fn check_moves(live: &LiveSet, compaction: &Compaction) {
    for (number, moved) in compaction.upper.iter().enumerate() {
        let (level, meta) = (usize::from(moved.meta.place.last_level()), &moved.meta);
        let others = compaction.upper.iter().skip(number + 1);
        assert!(
            others.clone().all(|s| !s.overlaps(&meta.smallest, &meta.largest) && s.meta.place == meta.place)
        );
        let below = live.levels()[level + 1].segments();
        assert!(below.iter().all(|s| !s.overlaps(&meta.smallest, &meta.largest)));
        assert!(number == 0 || !meta.has_tombstones());
        if level == 0 {
            let mut beside = live.levels()[0].segments().iter().filter(|s| s.meta.id != meta.id);
            assert!(beside.all(|s| !s.overlaps(&meta.smallest, &meta.largest)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn the_pick_is_the_one_that_a_look_at_every_segment_gives(seed: u64) {
        let mut maker = Maker::new(seed);
        let mut live = maker.live();
        let options = Options::new().segment_bytes(4096 << maker.rng.u8(..5));
        let mut costs = MergeCosts::default();
        let mut running: Vec<Reservation> = Vec::new();
        for step in 0..30 {
            let is_idle = maker.rng.bool();
            let levels = live.levels().iter().map(|level| level.segments().iter().cloned().collect()).collect();
            let plain = Plain { live: &live, levels, options: &options, running: &running }.pick(is_idle);
            let picked = pick(&mut costs, &live, &options, &running, is_idle, Time::START);
            let Some(compaction) = picked else {
                prop_assert_eq!(plain, None, "step {}", step);
                if running.is_empty() {
                    break;
                }
                running.remove(0);
                continue;
            };
            let chosen = Chosen::of(&compaction);
            if compaction.kind == CompactionKind::Move && compaction.upper.len() > 1 {
                check_moves(&live, &compaction);
                let first = Chosen { upper: chosen.upper[..1].to_vec(), ..chosen };
                prop_assert_eq!(plain.map(|plain| Chosen { bottom: first.bottom, ..plain }), Some(first));
            } else {
                prop_assert_eq!(plain, Some(chosen), "step {}", step);
            }
            if maker.rng.u8(..3) == 0 {
                running.push(compaction.reservation().clone()); // It runs during the next picks.
                continue;
            }
            // Its outputs have other bounds, within its hull.
            let (smallest, largest) = hull(compaction.inputs()).unwrap();
            let key = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().unwrap());
            let (from, to) = (key(smallest), key(largest));
            let added: Vec<LiveSegment> = if compaction.kind == CompactionKind::Move {
                compaction.upper.iter().map(|s| s.at_level(compaction.output_level)).collect()
            } else {
                (0..compaction.inputs().count().min(((to - from) / 2) as usize) as u64)
                    .map(|n| {
                        let step = (to - from) / compaction.inputs().count() as u64;
                        let begin = from + n * step;
                        maker.segment(compaction.output_level, [begin, begin + step.saturating_sub(1)])
                    })
                    .collect()
            };
            let removed: Vec<LiveSegment> = compaction.inputs().cloned().collect();
            let next = live.with(added.clone(), &removed);
            prop_assert_eq!(next.check_disjoint(&added), Ok(()));
            let stay = live.segments().filter(|s| removed.iter().all(|r| r.meta.id != s.meta.id));
            let plain_next = LiveSet::new(stay.cloned().chain(added.iter().cloned()));
            for (level, plain) in next.levels().iter().zip(plain_next.levels()) {
                prop_assert_eq!(ids(level.segments().iter().cloned()), ids(plain.segments().iter().cloned()));
                prop_assert_eq!(level.file_bytes(), plain.file_bytes());
                prop_assert_eq!(level.entries(), plain.entries());
                prop_assert!(level.segments().pieces().iter().all(|piece| piece.segments().len() <= 128));
            }
            for segment in next.segments() {
                prop_assert_eq!(next.now(&segment.meta).map(|s| s.meta.id), Some(segment.meta.id));
            }
            for run in next.run_groups().iter().flat_map(|group| group.runs().iter()) {
                let expected = if run.level() == 0 { 1 } else { next.levels()[run.level()].segments().len() };
                prop_assert_eq!(run.segments(), expected);
            }
            live = next;
        }
    }

    #[test]
    fn i10_a_segment_that_overlaps_another_one_of_its_level_is_refused(seed: u64) {
        let mut maker = Maker::new(seed);
        let level = maker.level(3, 300);
        prop_assume!(level.len() > 2);
        let live = LiveSet::new(level.iter().cloned());
        let other = &level[maker.rng.usize(..level.len())].meta;
        let key = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().unwrap());
        let (from, to) = (key(&other.smallest), key(&other.largest));
        for keys in [[from, from], [to, to], [from.saturating_sub(1), to + 1], [(from + to) / 2, KEYS]] {
            let added = vec![maker.segment(3, keys)];
            let what = live.with(added.clone(), &[]).check_disjoint(&added).unwrap_err();
            prop_assert!(what.contains("of level 3 overlap"), "{}", what);
            prop_assert_eq!(live.with(vec![added[0].at_level(2)], &[]).check_disjoint(&[added[0].at_level(2)]), Ok(()));
        }
    }
}
