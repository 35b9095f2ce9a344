//! Cursors, compared with the model's rows.

use super::blob::{Blob, Model};
use super::keys::Keys;
use crate::support::Rng;
use sidebloom::Cursor;
use std::ops::Bound;
use std::sync::Arc;

/// Cursors that exist at the same time.
const KEPT_MAX: usize = 3;

/// One call of a cursor.
#[derive(Debug, Clone)]
pub enum Move {
    Seek(Blob),
    SeekForPrev(Blob),
    First,
    Last,
    Next,
    Prev,
}

/// Mostly short walks from a sought key, with turns.
pub fn moves(rng: &mut Rng, keys: &Keys) -> Vec<Move> {
    let backwards = *rng.pick(&[0, 20, 100]);
    let one = |rng: &mut Rng| match rng.below(30) {
        0 => Move::First,
        1 => Move::Last,
        2..10 if rng.percent(backwards) => Move::SeekForPrev(keys.near(rng)),
        2..10 => Move::Seek(keys.near(rng)),
        _ if rng.percent(backwards) => Move::Prev,
        _ => Move::Next,
    };
    (0..rng.below(25)).map(|_| one(rng)).collect()
}

/// A cursor, the rows of its moment, and the key of the row where it should be.
struct Held {
    cursor: Cursor,
    model: Arc<Model>,
    at: Option<Blob>,
}

impl Held {
    fn go(&mut self, step: &Move) -> sidebloom::Result<bool> {
        let model = Arc::clone(&self.model);
        let from = |bound: Bound<&Blob>| model.range::<Blob, _>((bound, Bound::Unbounded)).next();
        let to = |bound: Bound<&Blob>| model.range::<Blob, _>((Bound::Unbounded, bound)).next_back();
        let (found, row) = match step {
            Move::Seek(key) => (self.cursor.seek(key), from(Bound::Included(key))),
            Move::SeekForPrev(key) => (self.cursor.seek_for_prev(key), to(Bound::Included(key))),
            Move::First => (self.cursor.seek_to_first(), model.first_key_value()),
            Move::Last => (self.cursor.seek_to_last(), model.last_key_value()),
            Move::Next => (self.cursor.next(), self.at.as_ref().and_then(|key| from(Bound::Excluded(key)))),
            Move::Prev => (self.cursor.prev(), self.at.as_ref().and_then(|key| to(Bound::Excluded(key)))),
        };
        self.at = row.map(|(key, _)| key.clone());
        found
    }
}

/// The cursors that are open, oldest first.
#[derive(Default)]
pub struct Cursors(Vec<Held>);

impl Cursors {
    pub fn open(&mut self, cursor: Cursor, model: &Model) {
        if self.0.len() == KEPT_MAX {
            self.0.remove(0);
        }
        self.0.push(Held { cursor, model: Arc::new(model.clone()), at: None });
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Moves one of them, and compares its row after each move; calls `answer` with it.
    pub fn go(&mut self, which: u64, moves: &[Move], what: &str, mut answer: impl FnMut(&[u8])) {
        let Some(at) = which.checked_rem(self.0.len() as u64) else { return };
        let held = &mut self.0[at as usize];
        for (n, step) in moves.iter().enumerate() {
            let found = held.go(step).unwrap_or_else(|e| panic!("{what}: move {n}, {step:?}: {e}"));
            let row = held.at.as_ref().and_then(|key| held.model.get_key_value(key));
            let expected = row.map(|(key, value)| (&**key, &**value));
            let is_at = held.cursor.key().zip(held.cursor.value());
            if found != row.is_some() || is_at != expected || held.cursor.is_valid() != found {
                let is_at = is_at.map(|(key, value)| (Blob::from(key), Blob::from(value)));
                panic!("{what}: move {n}, {step:?}: {found}, expected {row:?}, found {is_at:?}");
            }
            if let Some((key, value)) = is_at {
                answer(key);
                answer(value);
            }
        }
    }
}
