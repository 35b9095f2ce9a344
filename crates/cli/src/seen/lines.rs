//! The lines of a file, in chunks.

use super::chunk::Chunk;
use super::columns::KeyColumns;
use crate::context::Failure;
use crate::filter::input::InputLines;
use crate::rows::{MAX_LINE_BYTES, RowError};
use std::path::Path;

/// An open file.
pub struct Lines<'a> {
    lines: InputLines,
    /// What finds the keys; `None` if they are the lines.
    columns: Option<KeyColumns>,
    path: &'a Path,
}

impl<'a> Lines<'a> {
    /// Opens a file, or standard input for `-`. With `null`, lines end in NUL.
    pub fn open(path: &'a Path, null: bool, columns: Option<KeyColumns>) -> Result<Self, Failure> {
        let lines = InputLines::open(path, "reading")?.ending_in_nul(null);
        let lines = if columns.is_some() { lines.of_at_most(MAX_LINE_BYTES) } else { lines };
        Ok(Lines { lines, columns, path })
    }

    /// Reads the next chunk: up to its limits, or up to where the input would have to be waited for. `false`
    /// at the end of the file. The chunk has the last lines then, and those before a faulty one.
    pub fn fill(&mut self, chunk: &mut Chunk) -> Result<bool, Failure> {
        chunk.clear();
        while !chunk.is_full() && (chunk.is_empty() || self.lines.has_line_in_memory()) {
            let Some(line) = self.lines.next()? else { return Ok(false) };
            let Some(columns) = &mut self.columns else {
                chunk.push(line, None);
                continue;
            };
            if let Some(key) = columns.key_of(line).map_err(|error| failure(self.path, error))? {
                chunk.push(line, Some(key));
            }
        }
        Ok(true)
    }
}

fn failure(file: &Path, error: RowError) -> Failure {
    let file = file.display();
    Failure::message(match error {
        RowError::Bad { line, why } => format!("{file}: line {line}: {why}"),
        RowError::Input(why) => format!("{file}: {why}"),
    })
}
