//! Keys in memory that another object exports: numpy arrays of bytes, text and integers, and rows of bytes.

use super::integer::widened;
use super::sink::{CHUNK, Sink};
use crate::error::exception;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::slice;

/// The records of a buffer, one key each.
pub struct Records {
    buffer: PyUntypedBuffer,
    kind: Kind,
    /// The number of records.
    count: usize,
    /// The size of a record in bytes.
    bytes: usize,
    /// From one record to the next, in bytes; it may be negative.
    stride: isize,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Bytes, padded with NUL (numpy's `S`).
    Padded,
    /// Code points of four bytes, padded with 0 (numpy's `U`).
    CodePoints,
    Integer {
        is_signed: bool,
    },
    /// Rows of a two-dimensional array of bytes.
    Rows,
}

/// The address of a buffer, which stays valid while the buffer is held.
struct Address(*const u8);

// SAFETY: the memory is only read, and `Records` holds the buffer meanwhile, which keeps it in place.
unsafe impl Sync for Address {}

impl Address {
    /// The record that begins at a distance.
    ///
    /// # Safety
    /// The buffer must have as many bytes there, and must be held while the record is used.
    unsafe fn record<'a>(&self, distance: isize, bytes: usize) -> &'a [u8] {
        // SAFETY: the caller's promise.
        unsafe { slice::from_raw_parts(self.0.offset(distance), bytes) }
    }
}

impl Records {
    /// The records of an object; `None` if it exports no buffer, or one of Python objects.
    ///
    /// # Errors
    /// `TypeError` for elements that are no keys, and for more than one dimension of them.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let Ok(buffer) = PyUntypedBuffer::get(object) else { return Ok(None) };
        let refused = |what: String| Err(PyTypeError::new_err(what));
        let format = buffer.format().to_string_lossy().into_owned();
        if format == "O" {
            return Ok(None);
        }
        let is_of_bytes = buffer.item_size() == 1;
        let kind = match (buffer.dimensions(), Kind::of(&format)) {
            (2, Some(Kind::Integer { .. })) if is_of_bytes => Kind::Rows,
            (1, Some(Kind::Integer { .. })) if is_of_bytes => {
                return refused(
                    "keys: a one-dimensional array of bytes could be one key or many; put one key into a \
                     list, make rows of it (two dimensions), or numbers of at least 16 bits"
                        .to_owned(),
                );
            }
            (1, Some(kind)) => kind,
            (_, None) => {
                return refused(format!(
                    "no keys: an array of bytes, text or integers expected, not of format {format:?}"
                ));
            }
            (dimensions, _) => {
                return refused(format!(
                    "keys: one dimension expected, or two of bytes, not {dimensions} of format {format:?}"
                ));
            }
        };
        let (shape, strides) = (buffer.shape(), buffer.strides());
        let (Some(&count), Some(&stride)) = (shape.first(), strides.first()) else { return Ok(None) };
        let bytes = match kind {
            Kind::Rows => shape.get(1).copied().unwrap_or_default(),
            _ => buffer.item_size(),
        };
        let has_gaps =
            matches!(kind, Kind::Rows) && strides.get(1).is_some_and(|&stride| stride != 1) && bytes > 1;
        if has_gaps || buffer.suboffsets().is_some() {
            return refused("keys: rows of bytes must be contiguous (numpy.ascontiguousarray)".to_owned());
        }
        Ok(Some(Records { buffer, kind, count, bytes, stride }))
    }

    pub fn for_each_chunk(&self, py: Python<'_>, sink: &mut dyn Sink) -> PyResult<()> {
        let Records { kind, count, bytes, stride, .. } = *self;
        let start = Address(self.buffer.buf_ptr().cast());
        py.detach(|| {
            // SAFETY: the buffer has `count` records of so many bytes at these distances, and is held. As
            // with every buffer, whoever writes to it at the same time changes which keys are read.
            let record = |number: usize| unsafe { start.record(number as isize * stride, bytes) };
            (0..count).step_by(CHUNK).try_for_each(|first| {
                let records = (first..count.min(first + CHUNK)).map(record);
                pass_on(kind, records, sink)
            })
        })
        .map_err(|failure| match failure {
            Failure::Sink(error) => exception(error),
            Failure::NoText(what) => PyValueError::new_err(what),
        })
    }
}

enum Failure {
    Sink(sidebloom::Error),
    NoText(String),
}

/// Passes a chunk of records on as keys.
fn pass_on<'a>(
    kind: Kind,
    records: impl Iterator<Item = &'a [u8]>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let taken = match kind {
        Kind::Rows => sink.take(&records.collect::<Vec<_>>()),
        Kind::Padded => sink.take(&records.map(without_padding).collect::<Vec<_>>()),
        Kind::Integer { is_signed } => {
            let keys: Vec<_> = records.map(|record| widened(record, is_signed)).collect();
            sink.take_integers(&keys)
        }
        Kind::CodePoints => {
            let (mut text, mut ends) = (String::new(), Vec::with_capacity(CHUNK));
            for record in records {
                push_text(&mut text, record)?;
                ends.push(text.len());
            }
            let mut start = 0;
            let keys = ends.into_iter().map(|end| {
                let key = text.as_bytes().get(start..end).unwrap_or_default();
                start = end;
                key
            });
            sink.take(&keys.collect::<Vec<_>>())
        }
    };
    taken.map_err(Failure::Sink)
}

impl Kind {
    /// The kind of an element's format (PEP 3118); `None` for elements that are no keys.
    fn of(format: &str) -> Option<Self> {
        let format = format.trim_start_matches(['@', '=', '<']);
        let (count, code) = format.split_at_checked(format.len().checked_sub(1)?)?;
        let is_count = count.bytes().all(|digit| digit.is_ascii_digit());
        match code {
            "s" if is_count => Some(Kind::Padded),
            "w" if is_count => Some(Kind::CodePoints),
            "b" | "h" | "i" | "l" | "q" if count.is_empty() => Some(Kind::Integer { is_signed: true }),
            "B" | "H" | "I" | "L" | "Q" if count.is_empty() => Some(Kind::Integer { is_signed: false }),
            _ => None,
        }
    }
}

fn without_padding(record: &[u8]) -> &[u8] {
    let padding = record.iter().rev().take_while(|&&byte| byte == 0).count();
    record.get(..record.len() - padding).unwrap_or_default()
}

/// Appends a record of code points as UTF-8.
fn push_text(text: &mut String, record: &[u8]) -> Result<(), Failure> {
    let (points, _) = record.as_chunks::<4>();
    let used = points.len() - points.iter().rev().take_while(|&&point| point == [0; 4]).count();
    for &point in points.iter().take(used) {
        let point = u32::from_le_bytes(point);
        let no_text = || Failure::NoText(format!("keys: U+{point:04X} cannot be encoded as UTF-8"));
        text.push(char::from_u32(point).ok_or_else(no_text)?);
    }
    Ok(())
}
