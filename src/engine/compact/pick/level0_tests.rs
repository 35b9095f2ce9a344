//! Level 0 with several keyspaces: random flushes, and compactions of them that run at the same time.

use super::tests::Maker;
use super::*;
use crate::engine::compact::compaction::CompactionKind;
use crate::id::FileId;
use crate::key::Seq;
use crate::live::reaches_into;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The newest sequence number of each key.
type Rows = BTreeMap<Vec<u8>, Seq>;

struct Sim {
    maker: Maker,
    live: LiveSet,
    /// The rows of each segment.
    rows: BTreeMap<FileId, Rows>,
    newest: Rows,
    seq: Seq,
}

impl Sim {
    fn spaces() -> Vec<Space> {
        [Space::DEFAULT].into_iter().chain((0..6).map(Space::new)).collect()
    }

    /// Segments of these rows that end at some of the borders between keyspaces.
    fn segments(&mut self, level: u8, rows: &Rows) -> Vec<LiveSegment> {
        let (mut made, mut rest) = (Vec::new(), rows.clone());
        while let Some(first) = rest.keys().next().cloned() {
            let mut borders = Sim::spaces();
            borders.retain(|space| space.first_key() > &*first);
            let border = borders.get(self.maker.rng.usize(..=borders.len()));
            let behind = border.map(|space| rest.split_off(space.first_key())).unwrap_or_default();
            let part = std::mem::replace(&mut rest, behind);
            let seqs = [*part.values().min().unwrap(), *part.values().max().unwrap()];
            let last = part.keys().next_back().unwrap().clone();
            let segment = self.maker.segment_of(level, [first, last], seqs);
            self.rows.insert(segment.meta.id, part);
            made.push(segment);
        }
        made
    }

    fn flush(&mut self) {
        let mut flushed = Rows::new();
        for space in Sim::spaces() {
            for _ in 0..self.maker.rng.usize(..4) {
                let key = space.stored(&[self.maker.rng.u8(..16)]);
                self.seq += 1;
                flushed.insert(key, self.seq);
            }
        }
        self.newest.extend(flushed.clone());
        let segments = self.segments(0, &flushed);
        self.live = self.live.with(segments, &[]);
        self.check();
    }

    fn finish(&mut self, compaction: &Compaction) {
        let removed: Vec<LiveSegment> = compaction.inputs().cloned().collect();
        let added = if compaction.kind == CompactionKind::Move {
            removed.iter().map(|s| s.at_level(compaction.output_level)).collect()
        } else {
            let mut merged = Rows::new();
            for (key, seq) in removed.iter().flat_map(|s| self.rows.get(&s.meta.id).unwrap()) {
                let newest = merged.entry(key.clone()).or_default();
                *newest = *seq.max(newest);
            }
            self.segments(compaction.output_level, &merged)
        };
        self.live = self.live.with(added.clone(), &removed);
        assert_eq!(self.live.check_disjoint(&added), Ok(()));
        self.check();
    }

    /// Whoever asks the runs in their order finds the newest row first.
    fn check(&self) {
        let mut found = Rows::new();
        for run in self.live.run_groups().iter().flat_map(|group| group.runs()) {
            for (key, seq) in run.within((0, u64::MAX)).flat_map(|s| self.rows.get(&s.meta.id).unwrap()) {
                found.entry(key.clone()).or_insert(*seq);
            }
        }
        assert_eq!(found, self.newest);
        let level0 = self.live.levels()[0].segments();
        let of = |space: Space| level0.iter().filter(move |s| reaches_into(s, space));
        for keyspace in self.live.level0_keyspaces() {
            let bytes = of(keyspace.space).map(|s| s.meta.file_bytes).sum::<u64>();
            assert_eq!((keyspace.segments, keyspace.file_bytes), (of(keyspace.space).count(), bytes));
        }
        let deepest = Sim::spaces().into_iter().map(|space| of(space).count()).max();
        assert_eq!(Some(self.live.level0_depth()), deepest);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// While compactions run, more is flushed, and they end in any order. Merges of an idle store end.
    #[test]
    fn i1_compactions_of_keyspaces_in_level_0_hide_no_row(seed: u64) {
        let live = LiveSet::new([]);
        let (rows, newest) = (BTreeMap::new(), Rows::new());
        let mut sim = Sim { maker: Maker::new(seed), live, rows, newest, seq: 0 };
        let options = Options::new().segment_bytes(4096 << sim.maker.rng.u8(..4));
        let (mut costs, mut running, mut idle_picks) = (MergeCosts::default(), Vec::new(), 0);
        for step in 0.. {
            let is_written_to = step < 100;
            if is_written_to && sim.maker.rng.u8(..3) == 0 {
                sim.flush();
            }
            let reserved: Vec<Reservation> =
                running.iter().map(|compaction: &Compaction| compaction.reservation().clone()).collect();
            let is_idle = !is_written_to || sim.maker.rng.bool();
            let picked = pick(&mut costs, &sim.live, &options, &reserved, is_idle, Time::START);
            if picked.is_none() && running.is_empty() && !is_written_to {
                break;
            }
            idle_picks += usize::from(!is_written_to);
            prop_assert!(idle_picks < 500, "merges do not end");
            running.extend(picked);
            let ends = running.len() > 3 || !is_written_to || sim.maker.rng.bool();
            if ends && !running.is_empty() {
                let at = sim.maker.rng.usize(..running.len());
                sim.finish(&running.swap_remove(at));
            }
        }
        prop_assert!(sim.live.level0_depth() < 12, "level 0 is due");
    }
}
