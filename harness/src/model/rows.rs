//! Comparison of rows, and walks from both ends.

use super::blob::{Blob, Model};
use super::program::Span;
use sidebloom::Range;
use std::collections::VecDeque;

/// Fails with the first difference.
pub fn assert_same<'a>(
    mut found: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    mut expected: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    what: &str,
) {
    let mut row = 0;
    loop {
        let (found, expected) = (found.next(), expected.next());
        if found != expected {
            let show = |row: Option<(&[u8], &[u8])>| row.map(|(k, v)| (Blob::from(k), Blob::from(v)));
            panic!("{what}: row {row}: expected {:?}, found {:?}", show(expected), show(found));
        }
        if found.is_none() {
            return;
        }
        row += 1;
    }
}

/// The rows of a span.
fn rows_of(model: &Model, span: &Span) -> VecDeque<(Blob, Blob)> {
    let rows = model.iter().filter(|(key, _)| span.holds(key));
    rows.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// An iterator of the store, and the remaining rows of the model.
pub struct Walk {
    range: Range,
    rows: VecDeque<(Blob, Blob)>,
}

impl Walk {
    pub fn new(range: Range, span: &Span, model: &Model) -> Self {
        Walk { range, rows: rows_of(model, span) }
    }

    /// Takes a row from one end and compares it; calls `answer` with it. Returns whether there was one.
    pub fn step(
        &mut self,
        from_the_front: bool,
        what: impl Fn() -> String,
        mut answer: impl FnMut(&[u8]),
    ) -> bool {
        let (found, expected) = if from_the_front {
            (self.range.next(), self.rows.pop_front())
        } else {
            (self.range.next_back(), self.rows.pop_back())
        };
        let found = found.map(|row| row.unwrap_or_else(|e| panic!("{}: the iterator fails: {e}", what())));
        let is_same = match (&found, &expected) {
            (Some((key, value)), Some(row)) => **key == *row.0 && **value == *row.1,
            (found, expected) => found.is_none() && expected.is_none(),
        };
        if !is_same {
            let found = found.map(|(key, value)| (Blob::from(key), Blob::from(&*value)));
            let end = if from_the_front { "front" } else { "back" };
            panic!("{}: from the {end}: expected {expected:?}, found {found:?}", what());
        }
        if let Some((key, value)) = &found {
            answer(key);
            answer(value);
        }
        found.is_some()
    }

    /// Walks to the end. Each bit of `turns` says from which end a step comes.
    pub fn finish(mut self, mut turns: u64, what: impl Fn() -> String, mut answer: impl FnMut(&[u8])) {
        // Walks in one direction, which read blocks in order, are the common ones.
        match turns & 3 {
            0 => turns = 0,
            1 => turns = u64::MAX,
            _ => {}
        }
        while self.step(turns & 1 == 0, &what, &mut answer) {
            turns = turns.rotate_right(1);
        }
        let ended = self.range.next().is_none() && self.range.next_back().is_none();
        assert!(ended, "{}: an ended iterator returned a row", what());
    }
}
