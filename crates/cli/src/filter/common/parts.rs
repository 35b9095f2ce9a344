//! Lines on disk, partitioned into files by hash, so that equal lines are in the same file.

use crate::context::Failure;
use crate::filter::input::InputLines;
use sidebloom::KeyHasher;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Files of a partition.
pub const PARTS: usize = 64;

/// A file of a partition, and its size.
pub struct PartFile {
    /// The file.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// Its lines.
    pub lines: u64,
    /// Lines end in NUL, as in the input.
    null: bool,
}

/// A partition being written.
pub struct Dealer {
    files: Vec<(BufWriter<File>, PartFile)>,
    hasher: KeyHasher,
}

impl Dealer {
    /// Creates the files `name.0`, `name.1`, … in `dir`. `hasher` assigns the lines; the buffers take `bytes`
    /// of memory together. With `null`, lines end in NUL instead of LF.
    pub fn create(
        dir: &Path,
        name: &str,
        hasher: KeyHasher,
        bytes: usize,
        null: bool,
    ) -> Result<Self, Failure> {
        let create = |i: usize| {
            let path = dir.join(format!("{name}.{i}"));
            let file = File::create_new(&path).map_err(|e| Failure::file("create", &path, e))?;
            let part = PartFile { path, bytes: 0, lines: 0, null };
            Ok((BufWriter::with_capacity(bytes / PARTS, file), part))
        };
        Ok(Dealer { files: (0..PARTS).map(create).collect::<Result<_, Failure>>()?, hasher })
    }

    /// Writes a line to the file of its hash.
    pub fn deal(&mut self, line: &[u8]) -> Result<(), Failure> {
        let which = (self.hasher.hash(line) >> (u64::BITS - PARTS.ilog2())) as usize;
        if let Some((file, part)) = self.files.get_mut(which) {
            let end: &[u8] = if part.null { b"\0" } else { b"\n" };
            let written = file.write_all(line).and_then(|()| file.write_all(end));
            written.map_err(|e| Failure::file("write", &part.path, e))?;
            part.bytes += line.len() as u64 + 1;
            part.lines += 1;
        }
        Ok(())
    }

    /// All files, complete.
    pub fn finish(self) -> Result<Vec<PartFile>, Failure> {
        let finish = |(mut file, part): (BufWriter<File>, PartFile)| {
            file.flush().map_err(|e| Failure::file("write", &part.path, e))?;
            Ok(part)
        };
        self.files.into_iter().map(finish).collect()
    }
}

impl PartFile {
    /// Opens it for reading.
    pub fn read(&self, label: &str) -> Result<InputLines, Failure> {
        Ok(InputLines::open(&self.path, label)?.ending_in_nul(self.null))
    }

    /// Removes the file, to free disk space early.
    pub fn remove(self) -> Result<(), Failure> {
        fs::remove_file(&self.path).map_err(|e| Failure::file("remove", &self.path, e))
    }
}
