//! Lines of a file or of standard input, in constant memory, with a progress bar.

use crate::context::Failure;
use crate::progress;
use indicatif::ProgressBar;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Longest line, in bytes: the longest key of a store.
pub const MAX_LINE_BYTES: usize = sidebloom::MAX_KEY_BYTES;
/// Bytes read at once.
const BUFFER_BYTES: usize = 256 << 10;
/// Limits of a batch: its lines, and its bytes without the last line.
const BATCH: usize = 1024;
const BATCH_BYTES: usize = 256 << 10;
/// Bytes between two moves of the bar.
const BAR_STEP: u64 = 1 << 20;

/// An open input.
pub struct InputLines {
    input: BufReader<Box<dyn Read>>,
    line: Vec<u8>,
    number: u64,
    path: PathBuf,
    bytes: Option<u64>,
    read: u64,
    bar: ProgressBar,
    /// The byte that ends a line.
    end: u8,
    max_bytes: usize,
}

impl InputLines {
    /// Opens a file, or standard input for `-`, with a progress bar named `label`.
    pub fn open(path: &Path, label: &str) -> Result<Self, Failure> {
        let (input, bytes): (Box<dyn Read>, _) = if is_stdin(path) {
            (Box::new(io::stdin().lock()), None)
        } else {
            let file = File::open(path).map_err(|e| Failure::file("open", path, e))?;
            let meta = file.metadata().map_err(|e| Failure::file("read", path, e))?;
            (Box::new(file), meta.is_file().then_some(meta.len()))
        };
        Ok(InputLines {
            input: BufReader::with_capacity(BUFFER_BYTES, input),
            line: Vec::new(),
            number: 0,
            path: path.to_path_buf(),
            bytes,
            read: 0,
            bar: progress::byte_bar(label, bytes),
            end: b'\n',
            max_bytes: MAX_LINE_BYTES,
        })
    }

    /// Whether lines end in NUL instead of LF.
    pub fn ending_in_nul(mut self, null: bool) -> Self {
        self.end = if null { 0 } else { b'\n' };
        self
    }

    /// Lines may have this many bytes, instead of [`MAX_LINE_BYTES`].
    pub fn of_at_most(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Whether [`next`](Self::next) returns a line without waiting for input.
    pub fn has_line_in_memory(&self) -> bool {
        self.input.buffer().contains(&self.end)
    }

    /// The next line, without its end; `None` at the end.
    pub fn next(&mut self) -> Result<Option<&[u8]>, Failure> {
        self.line.clear();
        let mut limited = (&mut self.input).take(self.max_bytes as u64 + 1);
        let read =
            limited.read_until(self.end, &mut self.line).map_err(|e| Failure::file("read", &self.path, e))?;
        if read == 0 {
            self.bar.finish_and_clear();
            return Ok(None);
        }
        self.number += 1;
        self.read += read as u64;
        if self.read / BAR_STEP != (self.read - read as u64) / BAR_STEP {
            self.bar.set_position(self.read);
        }
        match self.line.pop_if(|last| *last == self.end) {
            None if self.line.len() > self.max_bytes => Err(Failure::message(format!(
                "{}: line {} is longer than {} bytes",
                self.path.display(),
                self.number,
                self.max_bytes
            ))),
            _ => Ok(Some(&self.line)),
        }
    }

    /// Calls `each` for every remaining line. Returns the number of lines read in total.
    pub fn for_each(&mut self, mut each: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<u64, Failure> {
        while let Some(line) = self.next()? {
            each(line)?;
        }
        Ok(self.number)
    }

    /// Like [`for_each`](Self::for_each), but in batches. Passes on the lines before a faulty one, then
    /// returns the error.
    pub fn for_each_batch(
        &mut self,
        mut each: impl FnMut(&[&[u8]]) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let mut text = Vec::new();
        loop {
            text.clear();
            let (mut ends, mut fault) = (vec![0], None);
            while ends.len() <= BATCH && text.len() < BATCH_BYTES {
                match self.next() {
                    Ok(Some(line)) => text.extend_from_slice(line),
                    Ok(None) => break,
                    Err(error) => {
                        fault = Some(error);
                        break;
                    }
                }
                ends.push(text.len());
            }
            let lines: Vec<&[u8]> =
                ends.windows(2).filter_map(|at| text.get(*at.first()?..*at.last()?)).collect();
            if !lines.is_empty() {
                each(&lines)?;
            }
            match fault {
                Some(error) => return Err(error),
                None if lines.is_empty() => return Ok(self.number),
                None => {}
            }
        }
    }

    /// The number of the line last read, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The size of a regular file.
    pub fn bytes(&self) -> Option<u64> {
        self.bytes
    }
}

/// Whether the path stands for standard input.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether a file can be read twice: neither standard input nor a pipe. Fails if it is missing.
pub fn can_be_read_twice(path: &Path) -> Result<bool, Failure> {
    if is_stdin(path) {
        return Ok(false);
    }
    let meta = std::fs::metadata(path).map_err(|e| Failure::file("open", path, e))?;
    if meta.is_dir() {
        return Err(Failure::file("read", path, io::ErrorKind::IsADirectory.into()));
    }
    Ok(meta.is_file())
}

/// The number of lines in a file, estimated from its size and the mean length of the first lines. With
/// `null`, lines end in NUL.
pub fn estimated_lines(path: &Path, null: bool) -> Result<u64, Failure> {
    const SAMPLE: u64 = 10_000;
    let mut lines = InputLines::open(path, "measuring")?.ending_in_nul(null);
    let mut bytes = 0;
    while lines.number() < SAMPLE
        && let Some(line) = lines.next()?
    {
        bytes += line.len() as u64 + 1;
    }
    let mean = bytes as f64 / lines.number().max(1) as f64;
    Ok((lines.bytes().unwrap_or(bytes) as f64 / mean.max(1.0)).ceil() as u64)
}
