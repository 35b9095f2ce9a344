//! Plays a program under one configuration, and compares each answer with the model's.

use super::blob::Blob;
use super::player::Player;
use super::program::{Op, Program, Span};
use super::rows::Walk;
use super::threads::Phase;
use crate::contents::{Change, batch_of};
use crate::harness::Counts;
use sidebloom::filter::Verdict;
use sidebloom::{Error, Range, Snapshot};
use std::sync::Arc;

/// Maximum number of snapshots, and of iterators, at the same time.
const KEPT_MAX: usize = 6;

/// Plays the program. Returns a hash of all answers.
pub fn play(program: &Program, seed: u64, configuration: u64, counts: &Counts) -> u64 {
    let mut player = Player::new(program, seed, configuration);
    for (at, op) in program.ops.iter().enumerate() {
        player.at = at;
        player.step(op);
    }
    player.at = program.ops.len();
    player.reopen();
    player.finish();
    counts.add("operations", player.calls);
    counts.add("runs", 1);
    counts.add("commits", player.committed);
    counts.add("conflicts", player.conflicts);
    counts.add("publications", player.place.publications());
    counts.add("sidecars damaged", player.damaged);
    player.transcript.digest()
}

impl Player<'_> {
    fn step(&mut self, op: &Op) {
        self.calls += 1;
        match op {
            Op::Ingest(rows) => self.ingest(rows),
            Op::Put(key, value) => {
                self.ok("put", self.rows().put(key, value));
                self.model.insert(key.clone(), self.put_now(value));
            }
            Op::Delete(key) => {
                self.ok("delete", self.rows().delete(key));
                self.model.remove(key);
            }
            Op::DeleteSpan(span) => self.delete_span(span),
            Op::Batch(writes) => {
                self.ok("batch", self.rows().write(batch_of(self.rows(), writes)));
                self.apply(writes);
            }
            Op::Get(key) => self.get(key),
            Op::MultiGet(keys) => self.multi_get(keys),
            Op::MayContain(keys) => self.may_contain(keys),
            Op::Walk(span, turns) => {
                self.may_contain_prefix(span);
                let walk = Walk::new(range(&self.rows().snapshot(), span), span, &self.model);
                self.finish_walk(walk, *turns);
            }
            Op::TakeSnapshot | Op::AskSnapshot(..) | Op::WalkSnapshot(..) | Op::DropSnapshot(_) => {
                self.snapshot(op)
            }
            Op::OpenIterator(_) | Op::AdvanceIterator(..) | Op::DropIterator(_) => self.iterator(op),
            Op::OpenCursor => {
                let cursor = self.rows().cursor();
                self.cursors.open(cursor, &self.model);
            }
            Op::MoveCursor(which, moves) => {
                let (what, transcript) = (self.what(), &mut self.transcript);
                self.cursors.go(*which, moves, &what, |bytes| transcript.update(bytes));
                self.calls += moves.len() as u64;
            }
            Op::Conditional(write) => self.conditional(write),
            Op::Expiring(op) => self.expiring(op),
            Op::OpenTransaction(isolation) => self.open_transaction(*isolation),
            Op::InTransaction(which, steps) => self.in_transaction(*which, steps),
            Op::EndTransaction(which, commits) => self.end_transaction(*which, *commits),
            Op::Maintain => self.maintain(),
            Op::Reopen => self.reopen(),
            Op::Threads(writers) => {
                self.phases += 1;
                let (base, until, what) = (self.phases << 32, self.until(), self.what());
                let (db, rows) = (self.open.as_ref().unwrap(), self.rows.as_ref().unwrap());
                let phase = Phase { db, rows, before: &self.model, writers, base, until, what: &what };
                let (after, calls) = phase.run(&mut self.rng);
                self.model = after;
                self.calls += calls;
                self.check_all();
                self.check_levels();
            }
        }
    }

    fn delete_span(&mut self, span: &Span) {
        let deleted = match span {
            Span::All => self.rows().delete_range(..),
            Span::Prefix(prefix) => self.rows().delete_prefix(prefix),
            Span::Range(lower, upper) => self.rows().delete_range((lower.as_ref(), upper.as_ref())),
        };
        if span.is_refused() {
            let refused = matches!(deleted, Err(Error::InvalidRange { .. } | Error::EmptyPrefix));
            assert!(refused, "{}: {deleted:?}", self.what());
            return;
        }
        self.ok("delete_range", deleted);
        self.apply(&[Change::DeleteSpan(span.clone())]);
    }

    fn ingest(&mut self, rows: &[(Blob, Blob)]) {
        let sorted = |rows: &[(Blob, Blob)]| rows.iter().cloned().map(Ok).collect::<Vec<_>>();
        if rows.len() > 1 && self.rng.percent(30) {
            let mut wrong = sorted(rows);
            wrong.rotate_left(1);
            let refused = self.rows().ingest(wrong);
            assert!(matches!(refused, Err(Error::KeyOutOfOrder { .. })), "{}: {refused:?}", self.what());
            self.check_all();
        }
        // An ingested store answers like one that was written.
        match self.rng.below(5) {
            0 => rows.iter().for_each(|(key, value)| self.ok("put", self.rows().put(key, value))),
            1 | 2 => self.ok("ingest", self.rows().ingest(sorted(rows))),
            _ => {
                // For each key, a row that does not count may come first.
                let mut unsorted = sorted(rows);
                let stale = rows.iter().filter(|_| self.rng.percent(20));
                let stale: Vec<_> = stale.map(|(key, _)| Ok((key.clone(), key.clone()))).collect();
                for at in (1..unsorted.len()).rev() {
                    unsorted.swap(at, self.rng.below(at as u64 + 1) as usize);
                }
                let rows = stale.into_iter().chain(unsorted);
                self.ok("ingest_unsorted", self.rows().ingest_unsorted(rows));
            }
        }
        rows.iter().for_each(|(key, value)| _ = self.model.insert(key.clone(), self.put_now(value)));
        self.check_all();
    }

    fn get(&mut self, key: &Blob) {
        let found = self.ok("get", self.rows().get(key));
        self.same_value("get", key, found.as_deref(), &self.model);
        self.answer(found.as_deref());
        if self.rng.percent(10) {
            let found = self.ok("contains_key", self.rows().contains_key(key));
            self.same("contains_key", found, self.model.contains_key(key));
            self.calls += 1;
        }
    }

    fn multi_get(&mut self, keys: &[Blob]) {
        let found = self.ok("multi_get", self.rows().multi_get(keys));
        self.same("answers of multi_get", found.len(), keys.len());
        for (key, found) in keys.iter().zip(&found) {
            self.same_value("multi_get", key, found.as_deref(), &self.model);
        }
        found.iter().for_each(|found| self.answer(found.as_deref()));
    }

    fn may_contain(&mut self, keys: &[Blob]) {
        let many = self.rows().may_contain_many(keys);
        self.same("answers of may_contain_many", many.len(), keys.len());
        for (key, verdict) in keys.iter().zip(many) {
            let verdicts = [verdict, self.rows().may_contain(key)];
            let denied = verdicts.contains(&Verdict::Absent);
            assert!(!denied || !self.model.contains_key(key), "{}: may_contain denies {key:?}", self.what());
        }
        self.calls += keys.len() as u64;
    }

    fn may_contain_prefix(&mut self, span: &Span) {
        let Span::Prefix(prefix) = span else { return };
        let denied = self.rows().may_contain_prefix(prefix) == Verdict::Absent;
        let is_there = self.model.keys().any(|key| key.starts_with(prefix));
        assert!(!denied || !is_there, "{}: may_contain_prefix denies {prefix:?}", self.what());
        self.calls += 1;
    }

    fn snapshot(&mut self, op: &Op) {
        if matches!(op, Op::TakeSnapshot) {
            let last = self.snapshots.last().map(|(_, model)| model).filter(|model| ***model == self.model);
            let model = last.cloned().unwrap_or_else(|| Arc::new(self.model.clone()));
            self.snapshots.push((self.rows().snapshot(), model));
            if self.snapshots.len() > KEPT_MAX {
                self.snapshots.swap_remove(0);
            }
            return;
        }
        let (Op::AskSnapshot(which, ..) | Op::WalkSnapshot(which, ..) | Op::DropSnapshot(which)) = op else {
            return;
        };
        let count = self.snapshots.len() as u64;
        let Some(at) = which.checked_rem(count).map(|at| at as usize) else { return };
        let (snapshot, model) = &self.snapshots[at];
        match op {
            Op::AskSnapshot(_, key) => {
                let found = self.ok("get in a snapshot", snapshot.get(key));
                self.same_value("get in a snapshot", key, found.as_deref(), model);
                self.answer(found.as_deref());
            }
            Op::WalkSnapshot(_, span, turns) => {
                let walk = Walk::new(range(snapshot, span), span, model);
                self.finish_walk(walk, *turns);
            }
            _ => _ = self.snapshots.swap_remove(at),
        }
    }

    fn iterator(&mut self, op: &Op) {
        if let Op::OpenIterator(span) = op {
            let walk = Walk::new(range(&self.rows().snapshot(), span), span, &self.model);
            self.iterators.push(walk);
            if self.iterators.len() > KEPT_MAX {
                self.iterators.swap_remove(0);
            }
            return;
        }
        let (Op::AdvanceIterator(which, ..) | Op::DropIterator(which)) = op else { return };
        let Some(at) = which.checked_rem(self.iterators.len() as u64) else { return };
        let mut walk = self.iterators.swap_remove(at as usize);
        let Op::AdvanceIterator(_, steps, turns) = op else { return };
        for step in 0..*steps {
            let mut transcript = std::mem::take(&mut self.transcript);
            let more = walk.step(turns >> step & 1 == 0, || self.what(), |bytes| transcript.update(bytes));
            self.transcript = transcript;
            self.calls += 1;
            if !more {
                return;
            }
        }
        self.iterators.push(walk);
    }

    fn finish_walk(&mut self, walk: Walk, turns: u64) {
        let mut transcript = std::mem::take(&mut self.transcript);
        walk.finish(turns, || self.what(), |bytes| transcript.update(bytes));
        self.transcript = transcript;
    }

    fn answer(&mut self, answer: Option<&[u8]>) {
        self.transcript.update(&[u8::from(answer.is_some())]);
        self.transcript.update(answer.unwrap_or_default());
    }
}

/// The iterator for a span.
fn range(snapshot: &Snapshot, span: &Span) -> Range {
    match span {
        Span::All => snapshot.iter(),
        Span::Prefix(prefix) => snapshot.prefix(prefix),
        Span::Range(lower, upper) => snapshot.range((lower.clone(), upper.clone())),
    }
}
