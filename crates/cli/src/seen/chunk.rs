//! Lines that are looked up at once.

use std::ops::Range;

/// Limits of a chunk: its lines, and its bytes without the last line.
const LINES_MAX: usize = 4096;
const BYTES_MAX: usize = 1 << 20;

/// Lines, each with its key.
#[derive(Default)]
pub struct Chunk {
    bytes: Vec<u8>,
    /// Where each line and its key are in `bytes`.
    rows: Vec<(Range<usize>, Range<usize>)>,
}

impl Chunk {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.rows.len() >= LINES_MAX || self.bytes.len() >= BYTES_MAX
    }

    /// Adds a line. Without `key`, it is its own key.
    pub fn push(&mut self, line: &[u8], key: Option<&[u8]>) {
        let line = self.add(line);
        let key = key.map_or_else(|| line.clone(), |key| self.add(key));
        self.rows.push((line, key));
    }

    /// Each line, and its key.
    pub fn rows(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let at = |range: &Range<usize>| self.bytes.get(range.clone()).unwrap_or_default();
        self.rows.iter().map(move |(line, key)| (at(line), at(key)))
    }

    fn add(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }
}
