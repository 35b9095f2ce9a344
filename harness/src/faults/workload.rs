//! A workload decided by a seed: some sessions with a store, each with its own options.

use super::history::{History, Ingested, Model};
use crate::config;
use crate::support::{Rng, SimFs};
use sidebloom::Options;
use std::sync::Arc;

/// What a session does, apart from reading.
#[derive(Debug, Clone)]
pub enum Step {
    /// Some batches; this percentage of them is synced.
    Write(u64, u64),
    Flush,
    Sync,
    Compact,
    CompactRange(Vec<u8>, Vec<u8>),
    /// Takes a snapshot, which is read at the end.
    Snapshot,
    Walk,
    Get,
    MultiGet,
    RebuildFilters(f64),
    /// Creates or drops a keyspace.
    Keyspace,
    /// Writes rows that live for milliseconds, and looks for some that have expired.
    Brief,
    Checkpoint,
    Verify,
    Warm,
    Wait,
}

#[derive(Debug, Clone)]
pub enum Session {
    Writable { options: u64, steps: Vec<Step>, second_writer: bool, ingest: bool },
    ReadOnly { options: u64 },
    Repair,
}

#[derive(Debug, Clone)]
pub struct Workload {
    pub seed: u64,
    pub sessions: Vec<Session>,
}

impl Workload {
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0xfa17 << 40);
        let writers = 1 + u64::from(rng.percent(30));
        let mut sessions = Vec::new();
        let count = 2 + rng.below(2);
        for number in 0..count {
            sessions.push(Session::Writable {
                options: rng.next(),
                steps: (0..7 + rng.below(8)).map(|_| step(&mut rng, seed)).collect(),
                second_writer: writers == 2,
                ingest: number == 0 && rng.percent(40),
            });
            match rng.below(6) {
                0 | 1 => sessions.push(Session::ReadOnly { options: rng.next() }),
                2 => sessions.push(Session::Repair),
                _ => {}
            }
        }
        Workload { seed, sessions }
    }

    pub fn model(&self) -> Model {
        let mut rng = Rng::new(self.seed ^ 0x1261 << 40);
        let rows =
            (0..20 + rng.below(80)).map(|i| (format!("i{:05}", i * 3).into_bytes(), vec![i as u8; 40]));
        let ingested = Ingested { rows: rows.collect(), there: Some(false) };
        Model { histories: (0..2).map(|writer| History::new(writer, self.seed)).collect(), ingested }
    }
}

/// Random options.
pub fn options(seed: u64, fs: &SimFs) -> Options {
    config::random(&mut Rng::new(seed), Arc::new(fs.clone()))
}

fn step(rng: &mut Rng, seed: u64) -> Step {
    // Half of the stores have never had a keyspace.
    match rng.below(if seed.is_multiple_of(2) { 41 } else { 34 }) {
        0..=9 => Step::Write(1 + rng.below(8), *rng.pick(&[0, 20, 100])),
        10..=13 => Step::Flush,
        14 => Step::Sync,
        15 | 16 => Step::Compact,
        17 | 18 => {
            let history = History::new(0, seed);
            let (a, b) = (history.any_key(rng), history.any_key(rng));
            Step::CompactRange(a.clone().min(b.clone()), a.max(b))
        }
        19 | 20 => Step::Snapshot,
        21 | 22 => Step::Walk,
        23..=25 => Step::Get,
        26 => Step::MultiGet,
        27 => Step::RebuildFilters(2.0 + rng.below(160) as f64 / 10.0),
        28 | 29 => Step::Checkpoint,
        30 => Step::Verify,
        31 => Step::Warm,
        34..38 => Step::Keyspace,
        38.. => Step::Brief,
        _ => Step::Wait,
    }
}
