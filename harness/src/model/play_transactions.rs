//! Plays conditional writes and transactions, and compares each answer with the model's.

use super::blob::Blob;
use super::player::Player;
use super::program::{Conditional, Span, Step, Write, dated};
use super::transactions::{Open, Walked};
use crate::contents::{Change, add_to, apply};
use sidebloom::{Batch, CompareAndSet, Error, Isolation};
use std::sync::Arc;

/// Transactions that are open at the same time.
const KEPT_MAX: usize = 4;

impl Player<'_> {
    pub fn conditional(&mut self, write: &Conditional) {
        match write {
            Conditional::InsertNew(key, value) => {
                let is_new = self.ok("insert_new", self.rows().insert_new(key, value));
                self.same("insert_new", is_new, !self.model.contains_key(key));
                let value = self.put_now(value);
                self.model.entry(key.clone()).or_insert(value);
            }
            Conditional::InsertNewMany(rows) => {
                let found = self.ok("insert_new_many", self.rows().insert_new_many(rows));
                for ((key, value), is_new) in rows.iter().zip(&found) {
                    self.same("insert_new_many", *is_new, !self.model.contains_key(key));
                    let value = self.put_now(value);
                    self.model.entry(key.clone()).or_insert(value);
                }
                self.same("answers of insert_new_many", found.len(), rows.len());
            }
            Conditional::CompareAndSet(key, holds, new) => {
                let current = self.model.get(key).cloned();
                let other = current.as_ref().map_or(Some(key.clone()), |_| None);
                let expected = if *holds { current.clone() } else { other };
                let done = self.rows().compare_and_set(key, expected.as_deref(), new.as_deref());
                match self.ok("compare_and_set", done) {
                    CompareAndSet::Set => {
                        self.same("compare_and_set", true, *holds);
                        self.apply(&[Change::of(key.clone(), new.clone())]);
                    }
                    CompareAndSet::Differs(found) => {
                        self.same("compare_and_set", false, *holds);
                        self.same_value("compare_and_set", key, found.as_deref(), &self.model);
                    }
                }
            }
            Conditional::Update(key, new) => {
                let mut seen = None;
                let done = self.rows().update(key, |before| {
                    seen = before.map(Blob::from);
                    new.clone()
                });
                let set = self.ok("update", done);
                self.same("update", set.as_ref(), new.as_ref());
                self.same_value("update", key, seen.as_deref(), &self.model);
                self.apply(&[Change::of(key.clone(), new.clone())]);
            }
            Conditional::Batch(expected, writes) => self.expecting(expected, writes),
        }
    }

    fn expecting(&mut self, expected: &[(Blob, bool)], writes: &[Write]) {
        let mut batch = Batch::new();
        let mut of_rows = batch.keyspace(self.rows());
        for (key, holds) in expected {
            match (self.model.get(key), holds) {
                (Some(value), true) => of_rows.expect(key, value),
                (None, false) => of_rows.expect(key, b"something"),
                _ => of_rows.expect_absent(key),
            }
        }
        add_to(&mut of_rows, writes);
        let fails = expected.iter().find(|(_, holds)| !holds);
        match self.rows().write(batch) {
            Ok(()) => {
                self.same("a batch with expectations", None, fails);
                self.apply(writes);
            }
            // One key may be expected to have and not to have its value.
            Err(Error::Conflict { .. } | Error::Contradiction { .. }) if fails.is_some() => {}
            Err(error) => panic!("{}: {error}", self.what()),
        }
    }

    pub fn open_transaction(&mut self, isolation: Isolation) {
        let before = Arc::new(self.model.clone());
        let tx = self.rows().transaction_with(isolation);
        let (writes, read, walked) = (Vec::new(), Vec::new(), Vec::new());
        self.transactions.push(Open { tx, isolation, before, writes, read, walked, savepoint: None });
        if self.transactions.len() > KEPT_MAX {
            self.transactions.swap_remove(0).tx.roll_back();
        }
    }

    /// Takes a transaction out, if there is one.
    fn pick_transaction(&mut self, which: u64) -> Option<Open> {
        let at = which.checked_rem(self.transactions.len() as u64)?;
        Some(self.transactions.swap_remove(at as usize))
    }

    pub fn in_transaction(&mut self, which: u64, steps: &[Step]) {
        let Some(mut open) = self.pick_transaction(which) else { return };
        for step in steps {
            self.calls += 1;
            self.transaction_step(&mut open, step);
        }
        self.transactions.push(open);
    }

    fn transaction_step(&mut self, open: &mut Open, step: &Step) {
        let tx = self.ok("keyspace of a transaction", open.tx.keyspace(self.rows()));
        match step {
            Step::Get(key) => {
                let found = self.ok("get in a transaction", tx.get(key));
                self.same_value("get in a transaction", key, found.as_deref(), &open.contents());
                open.note_read(key);
            }
            Step::MultiGet(keys) => {
                let found = self.ok("multi_get in a transaction", tx.multi_get(keys));
                let contents = open.contents();
                for (key, found) in keys.iter().zip(&found) {
                    self.same_value("multi_get in a transaction", key, found.as_deref(), &contents);
                    open.note_read(key);
                }
            }
            Step::Walk(span, most, forwards) => self.walk_transaction(open, span, *most, *forwards),
            Step::Seek(key, steps) => self.seek_in_transaction(open, key, *steps),
            Step::Write(write) => {
                let written = match write {
                    Change::Put(key, value) => tx.put(key, value),
                    Change::Delete(key) => tx.delete(key),
                    Change::DeleteSpan(Span::All) => tx.delete_range(..),
                    Change::DeleteSpan(Span::Prefix(prefix)) => tx.delete_prefix(prefix),
                    Change::DeleteSpan(Span::Range(lower, upper)) => {
                        tx.delete_range((lower.as_ref(), upper.as_ref()))
                    }
                };
                match write {
                    Change::DeleteSpan(span) if span.is_refused() => {
                        assert!(written.is_err(), "{}: a refused range", self.what());
                    }
                    _ => {
                        self.ok("write in a transaction", written);
                        if !matches!(write, Change::DeleteSpan(span) if span.is_empty()) {
                            open.writes.extend(dated(std::slice::from_ref(write), self.until()).into_owned());
                        }
                    }
                }
            }
            Step::InsertNew(key, value) => {
                let is_new = self.ok("insert_new in a transaction", tx.insert_new(key, value));
                self.same("insert_new in a transaction", is_new, !open.contents().contains_key(key));
                open.note_read(key);
                if is_new {
                    open.writes.push(Change::Put(key.clone(), self.put_now(value)));
                }
            }
            Step::SetSavepoint => open.savepoint = Some((open.tx.savepoint(), open.writes.len())),
            Step::RollBack => {
                if let Some((savepoint, len)) = open.savepoint {
                    self.ok("roll_back_to", open.tx.roll_back_to(savepoint));
                    open.writes.truncate(len);
                }
            }
        }
    }

    fn walk_transaction(&mut self, open: &mut Open, span: &Span, most: u64, forwards: bool) {
        let contents = open.contents();
        let tx = self.ok("keyspace of a transaction", open.tx.keyspace(self.rows()));
        let mut rows = match span {
            Span::All => tx.range(..),
            Span::Prefix(prefix) => tx.prefix(prefix),
            Span::Range(lower, upper) => tx.range((lower.as_ref(), upper.as_ref())),
        };
        let mut expected = contents.iter().filter(|(key, _)| span.holds(key));
        let mut end = None;
        for _ in 0..most {
            let (found, row) = if forwards {
                (rows.next(), expected.next())
            } else {
                (rows.next_back(), expected.next_back())
            };
            let found = found.map(|row| self.ok("a walk in a transaction", row));
            let found = found.as_ref().map(|(key, value)| (&**key, &**value));
            self.same("a row of a transaction", found, row.map(|(key, value)| (&**key, &**value)));
            end = Some(row.map(|(key, _)| (key.clone(), forwards)));
        }
        drop(rows);
        if let Some(end) = end {
            open.walked.push(Walked { span: span.clone(), end });
        }
    }

    fn seek_in_transaction(&mut self, open: &mut Open, key: &Blob, steps: u64) {
        let contents = open.contents();
        let tx = self.ok("keyspace of a transaction", open.tx.keyspace(self.rows()));
        let mut cursor = tx.cursor();
        let mut expected = contents.range::<Blob, _>(key..);
        let (mut found, mut last) = (cursor.seek(key), None);
        for step in 0..=steps {
            let is_there = self.ok("a seek in a transaction", found);
            last = expected.next();
            self.same("a cursor of a transaction", is_there, last.is_some());
            self.same("its key", cursor.key(), last.map(|(key, _)| &**key));
            self.same("its value", cursor.value(), last.map(|(_, value)| &**value));
            if !is_there || step == steps {
                break;
            }
            found = cursor.next();
        }
        let end = last.map(|(key, _)| (key.clone(), true));
        let span = Span::Range(std::ops::Bound::Included(key.clone()), std::ops::Bound::Unbounded);
        drop(cursor);
        open.walked.push(Walked { span, end });
    }

    pub fn end_transaction(&mut self, which: u64, commits: bool) {
        let Some(open) = self.pick_transaction(which) else { return };
        if !commits {
            return open.tx.roll_back();
        }
        let conflicts = open.conflicts(&self.model);
        let (tx, writes) = (open.tx, open.writes);
        let committed = tx.commit();
        self.committed += u64::from(committed.is_ok());
        self.conflicts += u64::from(committed.is_err());
        match committed {
            Ok(()) => {
                self.same("a commit's conflict", false, conflicts);
                // How long a row lives counts from its put. It may have expired since.
                apply(&mut self.model, &writes);
                self.expire();
            }
            Err(Error::Conflict { .. }) => self.same("a commit's conflict", true, conflicts),
            Err(error) => panic!("{}: commit: {error}", self.what()),
        }
    }
}
