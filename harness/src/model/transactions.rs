//! Open transactions, with an exact oracle: a commit conflicts if and only if somebody has changed what it
//! must find unchanged. Two values are the same version if they share their memory in the model, where each
//! write brings its own.

use super::blob::{Blob, Model};
use super::program::{Span, Write};
use crate::contents::{Change, apply};
use sidebloom::{Isolation, Savepoint, Transaction};
use std::sync::Arc;

/// An open transaction.
pub struct Open {
    pub tx: Transaction,
    pub isolation: Isolation,
    /// What it reads from.
    pub before: Arc<Model>,
    pub writes: Vec<Write>,
    pub read: Vec<Blob>,
    pub walked: Vec<Walked>,
    pub savepoint: Option<(Savepoint, usize)>,
}

/// A span as far as it was walked: up to a key, or backwards down to one.
pub struct Walked {
    pub span: Span,
    pub end: Option<(Blob, bool)>,
}

impl Walked {
    fn holds(&self, key: &Blob) -> bool {
        self.span.holds(key)
            && match &self.end {
                None => true,
                Some((last, true)) => key <= last,
                Some((first, false)) => key >= first,
            }
    }
}

impl Open {
    /// The rows as the transaction sees them.
    pub fn contents(&self) -> Model {
        let mut contents = (*self.before).clone();
        apply(&mut contents, &self.writes);
        contents
    }

    pub fn note_read(&mut self, key: &Blob) {
        if !self.writes.iter().any(|write| write.concerns(key)) {
            self.read.push(key.clone());
        }
    }

    /// Whether the commit must fail, if the store has `now`.
    pub fn conflicts(&self, now: &Model) -> bool {
        if self.writes.is_empty() {
            return false;
        }
        if self.isolation == Isolation::Serializable {
            return self.differs(&self.read, &self.walked, now);
        }
        let (mut keys, mut spans) = (Vec::new(), Vec::new());
        for write in &self.writes {
            match write {
                Change::Put(key, _) | Change::Delete(key) => keys.push(key.clone()),
                Change::DeleteSpan(span) => spans.push(Walked { span: span.clone(), end: None }),
            }
        }
        self.differs(&keys, &spans, now)
    }

    /// Whether one of the keys, or one in the spans, has another version than at the beginning.
    fn differs(&self, keys: &[Blob], walked: &[Walked], now: &Model) -> bool {
        let is_same = |key: &Blob| match (self.before.get(key), now.get(key)) {
            (Some(before), Some(now)) => before.is_clone_of(now),
            (before, now) => before.is_none() && now.is_none(),
        };
        let mut all = self.before.keys().chain(now.keys());
        !keys.iter().all(is_same)
            || all.any(|key| walked.iter().any(|walked| walked.holds(key)) && !is_same(key))
    }
}
