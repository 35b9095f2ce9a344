//! A program: operations decided by a seed, the same for every configuration.

use super::blob::Blob;
use super::cursors::{Move, moves};
use super::keys::{Keys, value};
use crate::contents::{self, Change};
use crate::support::Rng;
use sidebloom::Isolation;
use std::borrow::Cow;
use std::ops::Bound;

/// Calls per program, not counting threads.
const OPS: usize = 560;

/// A put, or a deletion.
pub type Write = Change<Blob, Blob>;

/// What to iterate over, or to delete.
pub type Span = contents::Span<Blob>;

#[derive(Debug, Clone)]
pub enum Op {
    /// All at once, in order of their keys or not.
    Ingest(Vec<(Blob, Blob)>),
    Put(Blob, Blob),
    Delete(Blob),
    DeleteSpan(Span),
    Batch(Vec<Write>),
    Get(Blob),
    MultiGet(Vec<Blob>),
    MayContain(Vec<Blob>),
    /// Each bit says from which end a step comes.
    Walk(Span, u64),
    TakeSnapshot,
    /// The number picks a snapshot.
    AskSnapshot(u64, Blob),
    WalkSnapshot(u64, Span, u64),
    DropSnapshot(u64),
    OpenIterator(Span),
    /// The numbers: which one, how many steps, and from which end each.
    AdvanceIterator(u64, u64, u64),
    DropIterator(u64),
    OpenCursor,
    /// The number picks a cursor.
    MoveCursor(u64, Vec<Move>),
    Conditional(Conditional),
    /// Rows that expire.
    Expiring(Expiring),
    OpenTransaction(Isolation),
    /// The number picks a transaction.
    InTransaction(u64, Vec<Step>),
    /// Whether it commits.
    EndTransaction(u64, bool),
    /// What the configuration prefers: flush, compaction, checkpoint, new filters, …
    Maintain,
    Reopen,
    /// Several writers, each with its own keys: their batches.
    Threads(Vec<Vec<Vec<Write>>>),
}

/// What rows that expire, and the time, are about. Durations are in milliseconds.
#[derive(Debug, Clone)]
pub enum Expiring {
    Put(Blob, Blob, u64),
    InsertNew(Blob, Blob, u64),
    /// Rows of one batch; without a duration they do not expire.
    Batch(Vec<(Blob, Blob, Option<u64>)>),
    Touch(Blob, Option<u64>),
    TimeToLive(Blob),
    /// Time passes.
    Pass(u64),
    /// Time passes until the next row expires.
    PassToExpiry,
    /// The time of day is set back, right after a row that expires at once.
    SetBack(Blob, u64),
}

/// A write that depends on what the store has.
#[derive(Debug, Clone)]
pub enum Conditional {
    InsertNew(Blob, Blob),
    InsertNewMany(Vec<(Blob, Blob)>),
    /// Whether the value is expected that the key has, or else another one; and the new value.
    CompareAndSet(Blob, bool, Option<Blob>),
    Update(Blob, Option<Blob>),
    /// Keys, each with whether its value is expected, and the writes of the batch.
    Batch(Vec<(Blob, bool)>, Vec<Write>),
}

/// One call of a transaction.
#[derive(Debug, Clone)]
pub enum Step {
    Get(Blob),
    MultiGet(Vec<Blob>),
    /// At most so many rows, forwards or not.
    Walk(Span, u64, bool),
    /// To the first key at or after this one, and so many steps further.
    Seek(Blob, u64),
    Write(Write),
    InsertNew(Blob, Blob),
    SetSavepoint,
    RollBack,
}

#[derive(Debug)]
pub struct Program {
    pub ops: Vec<Op>,
    /// How long rows live that do not say so, in milliseconds.
    pub lifetime: Option<u64>,
    /// Bounds for compactions of a part.
    pub keys: Keys,
}

impl Program {
    pub fn random(seed: u64) -> Self {
        let mut rng = Rng::new(seed.wrapping_mul(0x51_7cc1_b727_220b));
        let mut keys = Keys::random(&mut rng);
        let mut ops = Vec::with_capacity(OPS + 1);
        if rng.percent(40) {
            ops.push(ingest(&mut rng, &keys));
        }
        let deletions = *rng.pick(&[10, 30, 60]);
        while ops.len() < OPS {
            if rng.percent(2) {
                keys.refocus(&mut rng);
            }
            ops.push(op(&mut rng, &keys, deletions));
        }
        let mut rng = Rng::new(seed ^ 0xe8_9a11);
        let lifetime = (seed % 4 == 3).then(|| *rng.pick(&[1000, 4000, 15_000, 60_000]));
        if seed % 2 == 1 {
            add_expiring(&mut ops, &keys, lifetime, &mut rng);
        }
        Program { ops, lifetime, keys }
    }

    /// Whether no row lives forever.
    pub fn all_expire(&self) -> bool {
        let is_kept = |op: &Op| matches!(op, Op::Expiring(Expiring::Touch(_, None)));
        self.lifetime.is_some() && !self.ops.iter().any(is_kept)
    }
}

/// The writes of rows that expire then.
pub fn dated(writes: &[Write], until: Option<u64>) -> Cow<'_, [Write]> {
    if until.is_none() {
        return Cow::Borrowed(writes);
    }
    let dated = |write: &Write| match write {
        Change::Put(key, value) => Change::Put(key.clone(), value.until_or_never(until)),
        deletion => deletion.clone(),
    };
    writes.iter().map(dated).collect()
}

/// Adds rows that expire, and time. What others live decides how fast it passes.
fn add_expiring(ops: &mut Vec<Op>, keys: &Keys, of_others: Option<u64>, rng: &mut Rng) {
    let is_frequent = rng.percent(50);
    for _ in 0..if is_frequent { OPS / 2 } else { OPS / 10 } {
        let lifetime = |rng: &mut Rng| match rng.below(10) {
            0 => 1 + rng.below(3),
            9 => 1_000_000_000,
            _ => 1 + rng.below(60_000),
        };
        let one = match rng.below(22) {
            0..=8 => Expiring::Put(keys.pick(rng), value(rng), lifetime(rng)),
            9..=11 => Expiring::InsertNew(keys.pick(rng), value(rng), lifetime(rng)),
            12 | 13 => {
                let row = |rng: &mut Rng| {
                    let lifetime = rng.percent(70).then(|| lifetime(rng));
                    (keys.pick(rng), value(rng), lifetime)
                };
                Expiring::Batch((0..rng.below(20)).map(|_| row(rng)).collect())
            }
            14 => Expiring::Touch(keys.near(rng), rng.percent(70).then(|| lifetime(rng))),
            15 => Expiring::TimeToLive(keys.near(rng)),
            21 => Expiring::PassToExpiry,
            20 => Expiring::SetBack(keys.pick(rng), *rng.pick(&[1, 1000, 10_000, 86_400_000])),
            _ => Expiring::Pass(match (rng.below(10), of_others) {
                (0, None) => 100_000,
                (0, Some(lifetime)) => rng.below(2 * lifetime),
                (1..=3, _) => rng.below(3),
                (_, None) => rng.below(10_000),
                (_, Some(lifetime)) => rng.below(lifetime / 6),
            }),
        };
        ops.insert(rng.below(ops.len() as u64 + 1) as usize, Op::Expiring(one));
    }
}

fn ingest(rng: &mut Rng, keys: &Keys) -> Op {
    let share = 1 + rng.below(100);
    let mut rows = Vec::new();
    for at in 0..keys.len() {
        if rng.percent(share) {
            rows.push((keys.at(at), value(rng)));
        }
    }
    Op::Ingest(rows)
}

fn op(rng: &mut Rng, keys: &Keys, deletions: u64) -> Op {
    match rng.below(1200) {
        1000..=1059 => Op::Conditional(conditional(rng, keys, deletions)),
        1060..=1089 => Op::OpenTransaction(*rng.pick(&[
            Isolation::Serializable,
            Isolation::Serializable,
            Isolation::Snapshot,
        ])),
        1090..=1164 => Op::InTransaction(rng.next(), steps(rng, keys, deletions)),
        1165..=1199 => Op::EndTransaction(rng.next(), rng.percent(85)),
        0..=5 => ingest(rng, keys),
        6..=334 => match write(rng, keys, deletions) {
            Change::Put(key, value) => Op::Put(key, value),
            Change::Delete(key) => Op::Delete(key),
            Change::DeleteSpan(span) => Op::DeleteSpan(span),
        },
        335..=349 => Op::DeleteSpan(deleted(rng, keys)),
        350..=439 => Op::Batch(batch(rng, keys, deletions)),
        440..=629 => Op::Get(keys.near(rng)),
        630..=639 => Op::OpenCursor,
        640..=669 => Op::MoveCursor(rng.next(), moves(rng, keys)),
        670..=719 => Op::MultiGet(several(rng, keys)),
        720..=759 => Op::MayContain(several(rng, keys)),
        760..=809 => Op::Walk(span(rng, keys), rng.next()),
        810..=834 => Op::TakeSnapshot,
        835..=869 => Op::AskSnapshot(rng.next(), keys.near(rng)),
        870..=884 => Op::WalkSnapshot(rng.next(), span(rng, keys), rng.next()),
        885..=904 => Op::DropSnapshot(rng.next()),
        905..=919 => Op::OpenIterator(span(rng, keys)),
        920..=959 => Op::AdvanceIterator(rng.next(), rng.below(20), rng.next()),
        960..=969 => Op::DropIterator(rng.next()),
        970..=989 => Op::Maintain,
        990..=996 => Op::Reopen,
        _ => Op::Threads(threads(rng, keys, deletions)),
    }
}

fn write(rng: &mut Rng, keys: &Keys, deletions: u64) -> Write {
    let value = (!rng.percent(deletions)).then(|| value(rng));
    Change::of(keys.pick(rng), value)
}

fn batch(rng: &mut Rng, keys: &Keys, deletions: u64) -> Vec<Write> {
    let len = if rng.percent(10) { rng.below(60) } else { rng.below(10) } as usize;
    let from = keys.index(rng);
    let only =
        |key: Blob| Change::DeleteSpan(Span::Range(Bound::Included(key.clone()), Bound::Included(key)));
    match rng.below(7) {
        // Neighbours, which make long streaks of tombstones, of keys or of ranges.
        0 => (from..from + len).map(|at| Change::Delete(keys.at(at))).collect(),
        6 => (from..from + len).map(|at| only(keys.at(at))).collect(),
        1 => (from..from + len).map(|at| Change::Put(keys.at(at), value(rng))).collect(),
        // The same key repeatedly: the last one counts.
        2 => {
            let value = |rng: &mut Rng| (!rng.percent(deletions)).then(|| value(rng));
            (0..len).map(|_| Change::of(keys.at(from), value(rng))).collect()
        }
        // Range deletions between the writes.
        3 => {
            let mut writes: Vec<_> = (0..len).map(|_| write(rng, keys, deletions)).collect();
            for _ in 0..1 + rng.below(3) {
                let (at, span) = (rng.below(writes.len() as u64 + 1) as usize, deleted(rng, keys));
                if !span.is_refused() {
                    writes.insert(at, Change::DeleteSpan(span));
                }
            }
            writes
        }
        _ => (0..len).map(|_| write(rng, keys, deletions)).collect(),
    }
}

fn conditional(rng: &mut Rng, keys: &Keys, deletions: u64) -> Conditional {
    match rng.below(6) {
        0 | 1 => Conditional::InsertNew(keys.pick(rng), value(rng)),
        2 => {
            let row = |rng: &mut Rng| (keys.pick(rng), value(rng));
            Conditional::InsertNewMany((0..rng.below(30)).map(|_| row(rng)).collect())
        }
        3 => {
            let new = (!rng.percent(deletions)).then(|| value(rng));
            Conditional::CompareAndSet(keys.pick(rng), rng.percent(60), new)
        }
        4 => Conditional::Update(keys.pick(rng), (!rng.percent(deletions)).then(|| value(rng))),
        _ => {
            let expected = (0..rng.below(4)).map(|_| (keys.near(rng), rng.percent(85))).collect();
            Conditional::Batch(expected, batch(rng, keys, deletions))
        }
    }
}

fn steps(rng: &mut Rng, keys: &Keys, deletions: u64) -> Vec<Step> {
    let one = |rng: &mut Rng| match rng.below(20) {
        0..=4 => Step::Get(keys.near(rng)),
        5 => Step::MultiGet(several(rng, keys)),
        6..=8 => Step::Walk(span(rng, keys), *rng.pick(&[0, 1, 3, 10, 1000]), rng.percent(70)),
        9 | 10 => Step::Seek(keys.near(rng), rng.below(5)),
        11..=15 => Step::Write(write(rng, keys, deletions)),
        16 => Step::Write(Change::DeleteSpan(deleted(rng, keys))),
        17 => Step::InsertNew(keys.pick(rng), value(rng)),
        18 => Step::SetSavepoint,
        _ => Step::RollBack,
    };
    (0..1 + rng.below(4)).map(|_| one(rng)).collect()
}

fn several(rng: &mut Rng, keys: &Keys) -> Vec<Blob> {
    (0..rng.below(20)).map(|_| keys.near(rng)).collect()
}

fn span(rng: &mut Rng, keys: &Keys) -> Span {
    let bound = |rng: &mut Rng| match rng.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(keys.near(rng)),
        _ => Bound::Excluded(keys.near(rng)),
    };
    match rng.below(10) {
        0 => Span::All,
        1 | 2 => {
            let key = keys.near(rng);
            let len = if rng.percent(50) { key.len() } else { rng.below(key.len() as u64 + 1) as usize };
            Span::Prefix(Blob::from(&key[..len]))
        }
        3 => Span::Range(bound(rng), bound(rng)),
        _ => neighbours(rng, keys, 20),
    }
}

/// What to delete: mostly a few neighbours, rarely everything.
fn deleted(rng: &mut Rng, keys: &Keys) -> Span {
    match rng.below(40) {
        0..=5 => span(rng, keys),
        6..=9 => Span::Prefix(keys.near(rng)),
        10..=14 => Span::only(keys.near(rng)),
        15..=24 => neighbours(rng, keys, 80),
        _ => neighbours(rng, keys, 10),
    }
}

/// From one key to a later one.
fn neighbours(rng: &mut Rng, keys: &Keys, most: u64) -> Span {
    let from = keys.index(rng);
    let to = (from + 1 + rng.below(most) as usize).min(keys.len() - 1);
    let end = if rng.percent(50) { Bound::Included(keys.at(to)) } else { Bound::Excluded(keys.at(to)) };
    let start = keys.at(from);
    Span::Range(if rng.percent(50) { Bound::Included(start) } else { Bound::Excluded(start) }, end)
}

/// The keys of the writers interleave.
fn threads(rng: &mut Rng, keys: &Keys, deletions: u64) -> Vec<Vec<Vec<Write>>> {
    let writers = 2 + rng.below(3) as usize;
    let mut all = Vec::with_capacity(writers);
    for writer in 0..writers {
        let batches = 5 + rng.below(25);
        let mine = |rng: &mut Rng| {
            let at = keys.index(rng) / writers * writers + writer;
            let value = (!rng.percent(deletions)).then(|| value(rng));
            let as_range = rng.percent(30);
            (at < keys.len()).then(|| match value {
                None if as_range => Change::DeleteSpan(Span::only(keys.at(at))),
                value => Change::of(keys.at(at), value),
            })
        };
        let len = 1 + rng.below(8);
        let batch = |rng: &mut Rng| (0..rng.below(len)).filter_map(|_| mine(rng)).collect();
        all.push((0..batches).map(|_| batch(rng)).collect());
    }
    all
}
