//! Bulk loading of rows in any order: an external merge sort in front of [`Writer::ingest`].
//!
//! 1. Rows are collected in memory. A full buffer is sorted and written as a *run*: segments without filters,
//!    whose sequence number is the run's. No manifest names them, and they have the names of obsolete
//!    segments from the start: a repair leaves them out, and the next open removes what a crash left.
//! 2. Runs are merged; for rows with the same key, the newest run wins. A merge needs a cursor per run, so
//!    only a limited number of runs is merged into one of the next tier: each row is rewritten once per tier.

use crate::direction::Direction;
use crate::engine::storage::Storage;
use crate::engine::storage::segment_builder::SegmentBuilder;
use crate::engine::write::Writer;
use crate::error::{Error, Result};
use crate::key::{EntryKind, KeyspaceId, MAX_STORED_KEY_BYTES, MAX_VALUE_BYTES, Seq, Value, prefix8};
use crate::live::LiveSegment;
use crate::merge::RunWalk;
use crate::merge::{MergeCursor, MergeSource, RunCursor};
use crate::progress::Tracker;
use crate::segment::Access;
use std::ops::{Bound, Range};

/// The most runs of a tier. Each run has a cursor in a merge, with a read window of up to 256 KiB.
const RUNS_MAX: usize = 64;

/// Segments in key order.
type Run = Vec<LiveSegment>;

impl Writer {
    /// [`ingest`](Writer::ingest) for rows in any order; for rows with the same key, the last one wins.
    pub fn ingest_unsorted<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        keyspace: Option<&KeyspaceId>,
        rows: &mut dyn Iterator<Item = Result<(K, V)>>,
        progress: &mut Tracker<'_>,
    ) -> Result<()> {
        self.check_keyspace(keyspace)?;
        let mut sorter =
            RowSorter { writer: self, keyspace, buffer: Buffer::default(), tiers: Vec::new(), runs: 0 };
        for row in rows {
            let (key, value) = row?;
            sorter.push(key.as_ref(), value.as_ref())?;
            progress.add((key.as_ref().len() + value.as_ref().len()) as u64);
        }
        progress.expect(progress.bytes_done());
        sorter.ingest(progress)
    }
}

/// The rows of segments that no manifest names, in key order; the newest of each key.
fn rows_of<'a>(
    runs: impl IntoIterator<Item = &'a [LiveSegment]>,
) -> impl Iterator<Item = Result<(Vec<u8>, Value)>> {
    let mut merge = merge_of(runs);
    std::iter::from_fn(move || match merge.advance() {
        Ok(true) => Some(Ok((merge.key().to_vec(), merge.to_value()))),
        Ok(false) => None,
        Err(error) => Some(Err(error)),
    })
}

fn merge_of<'a>(runs: impl IntoIterator<Item = &'a [LiveSegment]>) -> MergeCursor {
    let source = |run: &[LiveSegment]| {
        let walk = RunWalk::of(run.to_vec(), Direction::Forward);
        MergeSource::Run(RunCursor::new(walk, Direction::Forward, Bound::Unbounded, Access::Scan))
    };
    MergeCursor::new(runs.into_iter().map(source).collect(), Direction::Forward, Bound::Unbounded, None)
}

/// Call order: `push* ingest`.
struct RowSorter<'a> {
    writer: &'a Writer,
    keyspace: Option<&'a KeyspaceId>,
    buffer: Buffer,
    /// Each run of a tier merges [`RUNS_MAX`] of the tier before.
    tiers: Vec<Vec<Run>>,
    /// How many full buffers were written.
    runs: Seq,
}

impl RowSorter<'_> {
    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if key.len() > MAX_STORED_KEY_BYTES {
            return Err(Error::KeyTooLarge { len: key.len(), max: MAX_STORED_KEY_BYTES });
        }
        if value.len() > MAX_VALUE_BYTES {
            return Err(Error::ValueTooLarge { len: value.len(), max: MAX_VALUE_BYTES });
        }
        let bytes_max = self.writer.shared.storage.options.memtable_bytes;
        if !self.buffer.rows.is_empty() && self.buffer.bytes_with(key, value) as u64 > bytes_max {
            self.spill()?;
        }
        self.buffer.push(key, value);
        Ok(())
    }

    fn ingest(mut self, progress: &mut Tracker<'_>) -> Result<()> {
        if self.tiers.is_empty() {
            self.buffer.sort();
            return self.writer.ingest(self.keyspace, &mut self.buffer.iter().map(Ok), progress);
        }
        self.spill()?;
        self.buffer = Buffer::default();
        let runs = self.tiers.iter().flatten().map(Vec::as_slice);
        self.writer.ingest(self.keyspace, &mut rows_of(runs), progress)
    }

    /// Writes the rows in memory as a run.
    fn spill(&mut self) -> Result<()> {
        self.writer.start_writing()?;
        self.buffer.sort();
        self.runs += 1;
        let mut writer = RunWriter::new(&self.writer.shared.storage);
        self.buffer.iter().try_for_each(|(key, value)| writer.append(key, self.runs, value))?;
        let run = writer.finish()?;
        self.buffer.clear();
        self.add(run)
    }

    /// Adds a run to the first tier, and merges each tier that is full.
    fn add(&mut self, mut run: Run) -> Result<()> {
        for tier in &mut self.tiers {
            tier.push(run);
            if tier.len() < RUNS_MAX {
                return Ok(());
            }
            let full = std::mem::take(tier);
            let mut merge = merge_of(full.iter().map(Vec::as_slice));
            let (mut writer, mut key) = (RunWriter::new(&self.writer.shared.storage), Vec::new());
            while merge.advance()? {
                merge.key().copy_into(&mut key);
                writer.append(&key, merge.seq(), merge.value())?;
            }
            run = writer.finish()?;
        }
        self.tiers.push(vec![run]);
        Ok(())
    }
}

/// Writes a run as segments that are removed when dropped. Call order: `append* finish`.
struct RunWriter<'a> {
    storage: &'a Storage,
    finished: Run,
    current: Option<SegmentBuilder<'a>>,
}

impl<'a> RunWriter<'a> {
    fn new(storage: &'a Storage) -> Self {
        RunWriter { storage, finished: Vec::new(), current: None }
    }

    fn append(&mut self, key: &[u8], seq: Seq, value: &[u8]) -> Result<()> {
        let storage = self.storage;
        let mut builder = match self.current.take() {
            Some(builder) => builder,
            None => SegmentBuilder::temporary(storage)?,
        };
        builder.append(key, seq, EntryKind::PUT, value)?;
        if builder.file_bytes() < storage.options.segment_bytes {
            self.current = Some(builder);
        } else {
            self.finished.push(builder.finish()?);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Run> {
        if let Some(builder) = self.current.take() {
            self.finished.push(builder.finish()?);
        }
        Ok(self.finished)
    }
}

/// Rows in memory.
#[derive(Default)]
struct Buffer {
    /// Keys, each followed by its value.
    bytes: Vec<u8>,
    rows: Vec<BufferedRow>,
}

#[derive(Clone, Copy)]
struct BufferedRow {
    /// The first bytes of the key, which decide most comparisons.
    front: u64,
    at: usize,
    key_len: u32,
    value_len: u32,
}

impl BufferedRow {
    fn key(&self) -> Range<usize> {
        self.at..self.at + self.key_len as usize
    }

    fn value(&self) -> Range<usize> {
        let at = self.key().end;
        at..at + self.value_len as usize
    }
}

impl Buffer {
    /// Memory in bytes with one more row.
    fn bytes_with(&self, key: &[u8], value: &[u8]) -> usize {
        self.bytes.len() + key.len() + value.len() + (self.rows.len() + 1) * size_of::<BufferedRow>()
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        let (key_len, value_len) = (key.len() as u32, value.len() as u32);
        self.rows.push(BufferedRow { front: prefix8(key), at: self.bytes.len(), key_len, value_len });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }

    /// Sorts the rows and keeps the last one of each key.
    fn sort(&mut self) {
        let bytes = &self.bytes;
        let key = |row: &BufferedRow| bytes.get(row.key()).unwrap_or_default();
        // Stable: the last stays last.
        self.rows.sort_by(|a, b| a.front.cmp(&b.front).then_with(|| key(a).cmp(key(b))));
        self.rows.dedup_by(|later, earlier| {
            let is_same = key(later) == key(earlier);
            if is_same {
                *earlier = *later;
            }
            is_same
        });
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let of = |range: Range<usize>| self.bytes.get(range).unwrap_or_default();
        self.rows.iter().map(move |row| (of(row.key()), of(row.value())))
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }
}
