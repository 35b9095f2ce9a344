//! Writing a segment from front to back.

use super::appender::SegmentAppender;
use super::block_builder::BlockBuilder;
use super::block_layout::fingerprint;
use super::compress::Compressor;
use super::facts::FactsBuilder;
use super::format::{
    BlockHandle, Compression, FOOTER_BYTES, Footer, MAX_BLOCK_BYTES, SYMBOLS_MARK, TRAILER_BYTES, WRITES,
    block_crc, put_ranges, put_type,
};
use super::index::{IndexBuilder, PARTITION_BYTES, separator};
use super::packing::Packing;
use super::properties::{KeyspaceName, Properties, StoreIdentity};
use super::summary::SegmentSummary;
use super::value_coder::{SampleEntry, ValueCoder};
use crate::codec::Encode;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::id::FileId;
use crate::key::{
    EntryKind, MAX_STORED_KEY_BYTES, MAX_VALUE_BYTES, Seq, Time, check_seq, common_prefix, without_head,
};
use crate::ranges::RangeTombstones;
use std::ops::RangeInclusive;
use std::path::Path;

/// The layout of a segment.
#[derive(Debug, Clone, Copy)]
pub struct WriterOptions {
    /// Largest data block before compression, unless a single entry is larger. 64 B to 16 MiB. Blocks that
    /// fit in a 4 KiB page after compression may be smaller, so that few lie in two pages.
    pub block_bytes: usize,
    /// Compression of data blocks.
    pub compression: Compression,
}

impl Default for WriterOptions {
    fn default() -> Self {
        WriterOptions { block_bytes: 4096, compression: Compression::default() }
    }
}

const BLOCK_BYTES: RangeInclusive<usize> = 64..=16 << 20;
/// The values of a block with several rows take at most this before they are coded, so that the block still
/// decodes: codes of zeros take less than a hundredth of them.
const VALUES_BYTES_MAX: usize = 16 << 20;
/// Small blocks make small partitions, so that tests see many.
const PARTITION_BLOCKS: usize = 4;

/// A segment without its footer, which waits for the sequence number of its rows.
pub struct UnnumberedSegment {
    footer: Footer,
    /// Of the whole segment, except the number.
    pub summary: SegmentSummary,
}

impl UnnumberedSegment {
    /// The footer that gives the rows their number. The caller appends it to the file and makes it durable.
    ///
    /// # Errors
    /// [`Error::NumbersExhausted`].
    pub fn footer(&self, number: Seq) -> Result<Vec<u8>> {
        Footer { number, ..self.footer }.encode()
    }

    /// The summary of the segment with that footer.
    pub fn numbered(&self, number: Seq) -> SegmentSummary {
        let summary = self.summary.clone();
        SegmentSummary { facts: summary.facts.numbered(number), ..summary }
    }
}

/// Writes one segment: `create (append)+ finish`. A writer dropped before `finish` leaves an unfinished file
/// that no reader opens. After a failed write the file is not written again, and `finish` returns the error.
pub struct SegmentWriter {
    appender: SegmentAppender,
    id: FileId,
    store: StoreIdentity,
    compression: Compression,
    /// Index partitions of small blocks are small.
    block_bytes: usize,
    block: BlockBuilder,
    compressor: Compressor,
    values: ValueCoder,
    /// The codes of the last value.
    codes: Vec<u8>,
    /// Bytes of the current block's values before they are coded.
    value_bytes: usize,
    packing: Packing,
    /// Size at which the current block ends.
    limit: usize,
    last_key: Vec<u8>,
    index: IndexBuilder,
    /// Finished index partitions with their last separators: about 1 % of the segment.
    partitions: Vec<(Vec<u8>, Vec<u8>)>,
    facts: FactsBuilder,
    ranges: RangeTombstones,
    keyspace: Option<KeyspaceName>,
}

impl SegmentWriter {
    /// Creates the file, which must not exist. [`Error::InvalidArgument`] for a block size out of range,
    /// [`Error::FeatureMissing`] for a compression that this build lacks.
    pub fn create(
        fs: &dyn Fs,
        path: &Path,
        id: FileId,
        store: StoreIdentity,
        options: WriterOptions,
    ) -> Result<Self> {
        let WriterOptions { block_bytes, compression } = options;
        if !BLOCK_BYTES.contains(&block_bytes) {
            return Err(Error::InvalidArgument(format!(
                "block_bytes is {block_bytes}, but must be {} to {}",
                BLOCK_BYTES.start(),
                BLOCK_BYTES.end()
            )));
        }
        let compressor = Compressor::new(compression)?;
        let values = ValueCoder::new(compression, block_bytes);
        let packing = Packing::new(block_bytes);
        Ok(SegmentWriter {
            appender: SegmentAppender::new(fs.create(path)?),
            id,
            store,
            compression,
            block_bytes,
            block: BlockBuilder::default(),
            compressor,
            values,
            codes: Vec::new(),
            value_bytes: 0,
            limit: packing.limit(0),
            packing,
            last_key: Vec::new(),
            index: IndexBuilder::new(0),
            partitions: Vec::new(),
            facts: FactsBuilder::default(),
            ranges: RangeTombstones::default(),
            keyspace: None,
        })
    }

    /// Sets when the time bucket of the rows ends, in a windowed keyspace.
    pub fn set_bucket(&mut self, end: Time) {
        self.facts.set_bucket(end);
    }

    /// Adds the newest entry of `key`. Returns the key's hash, for the filter.
    ///
    /// # Errors
    /// [`Error::KeyOutOfOrder`] unless keys strictly increase, [`Error::KeyTooLarge`],
    /// [`Error::ValueTooLarge`], [`Error::NumbersExhausted`]: the entry is not added.
    pub fn append(&mut self, key: &[u8], seq: Seq, kind: EntryKind, value: &[u8]) -> Result<u64> {
        let shared = common_prefix(&self.last_key, key);
        self.check(key, shared, kind, value)?;
        check_seq(seq)?;
        let hash = self.store.hasher.hash(key);
        if let Some(sample) = self.values.sample() {
            sample.append(key, fingerprint(hash), seq, kind, value);
            if sample.is_full() {
                self.place_sample()?;
            }
        } else {
            self.place(key, shared, fingerprint(hash), seq, kind, value)?;
        }
        self.facts.count(key, seq, kind, value.len());
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
        Ok(hash)
    }

    /// Adds an entry to the current block, or to a new one. Its key shares exactly `shared` leading bytes
    /// with `last_key`, that of the entry before it.
    fn place(
        &mut self,
        key: &[u8],
        shared: usize,
        fingerprint: u8,
        seq: Seq,
        kind: EntryKind,
        value: &[u8],
    ) -> Result<()> {
        let mut codes = std::mem::take(&mut self.codes);
        let mut is_coded = self.values.encode_into(&self.block, value, &mut codes);
        let mut stored = if is_coded { &codes[..] } else { value };
        let mut grown = self.block.grown(key, shared, seq, kind, stored);
        let is_other = is_coded != self.block.has_coded_values();
        let is_full = grown.bytes > self.limit || self.value_bytes + value.len() > VALUES_BYTES_MAX;
        if self.block.entries() > 0 && (is_other || is_full) {
            self.end_block(Some(key))?;
            if !is_coded {
                is_coded = self.values.encode_into(&self.block, value, &mut codes);
                stored = if is_coded { &codes[..] } else { value };
            }
            grown = self.block.grown(key, shared, seq, kind, stored);
        }
        if self.block.entries() == 0 {
            self.block.set_coded_values(is_coded);
        }
        self.block.append_grown(grown, key, shared, fingerprint, seq, kind, stored);
        self.value_bytes += value.len();
        self.codes = codes;
        Ok(())
    }

    /// Chooses compression and symbol table, and adds the entries that have waited for it.
    fn place_sample(&mut self) -> Result<()> {
        let Some((compression, sample)) = self.values.train() else { return Ok(()) };
        self.compression = compression;
        self.compressor = Compressor::new(compression)?;
        if let Some(symbols) = self.values.symbols() {
            self.appender.pending().put_u64(SYMBOLS_MARK);
            self.appender.pending().extend_from_slice(symbols.encoded());
            let handle = seal(&mut self.appender, self.id, 0, Compression::None, 0)?;
            self.index = IndexBuilder::new(handle.end());
            self.limit = self.packing.limit(handle.end());
        }
        let last_key = std::mem::take(&mut self.last_key);
        for SampleEntry { key, fingerprint, seq, kind, value } in sample.entries() {
            let shared = common_prefix(&self.last_key, key);
            self.place(key, shared, fingerprint, seq, kind, value)?;
            self.last_key.truncate(shared);
            self.last_key.extend_from_slice(&key[shared..]);
        }
        self.last_key = last_key;
        Ok(())
    }

    fn check(&self, key: &[u8], shared: usize, kind: EntryKind, value: &[u8]) -> Result<()> {
        if self.entries() > 0 && key.get(shared) <= self.last_key.get(shared) {
            return Err(Error::key_out_of_order(without_head(key), without_head(&self.last_key)));
        }
        if key.len() > MAX_STORED_KEY_BYTES {
            return Err(Error::KeyTooLarge { len: key.len(), max: MAX_STORED_KEY_BYTES });
        }
        if value.len() > MAX_VALUE_BYTES {
            return Err(Error::ValueTooLarge { len: value.len(), max: MAX_VALUE_BYTES });
        }
        if kind == EntryKind::TOMBSTONE && !value.is_empty() {
            return Err(Error::Internal("a tombstone has a value".into()));
        }
        Ok(())
    }

    /// Counts range tombstones that begin before the next entry. Others count as after the last entry.
    pub fn pass_ranges(&mut self, count: u64) {
        self.facts.pass_ranges(count);
    }

    /// Sets the range tombstones. A segment that has any also has an entry.
    pub fn set_ranges(&mut self, ranges: RangeTombstones) {
        self.ranges = ranges;
    }

    /// Sets the keyspace of all rows.
    pub fn set_keyspace(&mut self, keyspace: KeyspaceName) {
        self.keyspace = Some(keyspace);
    }

    /// The key of the last entry; empty if there is none.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Number of entries so far.
    pub fn entries(&self) -> u64 {
        self.facts.entries()
    }

    /// Bytes of data so far: written, pending, and in the current block.
    pub fn file_bytes(&self) -> u64 {
        self.appender.offset() + (self.block.bytes() + self.values.waiting_bytes()) as u64
    }

    /// Writes index, properties and footer, and makes the file's content durable. The caller makes its name
    /// durable by syncing the directory. [`Error::Internal`] when there is no entry.
    pub fn finish(mut self) -> Result<SegmentSummary> {
        let (footer, summary) = self.write_tail()?;
        let file_bytes = self.appender.finish(&footer.encode()?)?;
        Ok(SegmentSummary { file_bytes, ..summary })
    }

    /// [`finish`](Self::finish), but without the footer, for rows all appended with sequence number 0.
    pub fn finish_unnumbered(mut self) -> Result<UnnumberedSegment> {
        let (footer, summary) = self.write_tail()?;
        if summary.max_seq > 0 || summary.ranges > 0 {
            return Err(Error::Internal("rows of a segment that is to be numbered have numbers".into()));
        }
        self.appender.finish(&[])?;
        Ok(UnnumberedSegment { footer, summary })
    }

    /// Writes everything before the footer. Returns the footer, and the summary for a file that ends with it.
    fn write_tail(&mut self) -> Result<(Footer, SegmentSummary)> {
        if self.entries() == 0 {
            return Err(Error::Internal("a segment has no entries".into()));
        }
        self.place_sample()?;
        self.end_block(None)?;
        self.end_partition();
        let data_bytes = self.appender.offset();
        let top = self.write_index(data_bytes)?;
        let facts = std::mem::take(&mut self.facts).finish(&self.ranges, std::mem::take(&mut self.last_key));
        let symbols = self.values.symbols().cloned();
        let keyspace = self.keyspace.take();
        let properties =
            Properties { store: self.store, compression: self.compression, symbols, facts, keyspace };
        let at = self.appender.offset();
        properties.encode(self.appender.pending())?;
        let facts = properties.facts;
        let properties = seal(&mut self.appender, self.id, at, Compression::None, 0)?;
        let (version, digest) = (WRITES, self.appender.digest());
        let footer = Footer { id: self.id, version, number: 0, top, properties, digest };
        let file_bytes = self.appender.offset() + FOOTER_BYTES as u64;
        let summary = SegmentSummary::new(&footer, facts, data_bytes, file_bytes);
        Ok((footer, summary))
    }

    /// Ends the data block; `next` is the first key after it.
    fn end_block(&mut self, next: Option<&[u8]>) -> Result<()> {
        let at = self.appender.offset();
        let pending = self.appender.pending();
        let start = pending.len();
        self.block.finish_into(pending);
        self.value_bytes = 0;
        let raw = pending.len() - start;
        let kind = match self.compressor.pack(pending, start) {
            Compression::None if self.block.has_coded_values() => Compression::Fsst,
            kind => kind,
        };
        let stored = pending.len() - start + TRAILER_BYTES;
        self.packing.learn(raw, stored);
        let padding = self.packing.padding(at + stored as u64);
        let handle = seal(&mut self.appender, self.id, at, kind, padding)?;
        self.limit = self.packing.limit(handle.end());
        self.index.append(next.map_or(&self.last_key, |next| separator(&self.last_key, next)), handle.len);
        if self.index.weight() >= PARTITION_BYTES.min(self.block_bytes * PARTITION_BLOCKS) {
            self.end_partition();
        }
        Ok(())
    }

    fn end_partition(&mut self) {
        let ended = std::mem::replace(&mut self.index, IndexBuilder::new(self.appender.offset()));
        if ended.weight() > 0 {
            let (last, mut payload) = (ended.last().to_vec(), Vec::new());
            ended.finish_into(&mut payload);
            self.partitions.push((last, payload));
        }
    }

    /// Writes the partitions, starting at `at`, the range tombstones, and the top index over the partitions.
    fn write_index(&mut self, at: u64) -> Result<BlockHandle> {
        let mut top = IndexBuilder::new(at);
        for (last, payload) in std::mem::take(&mut self.partitions) {
            let at = self.appender.offset();
            self.appender.pending().extend_from_slice(&payload);
            let handle = seal(&mut self.appender, self.id, at, Compression::None, 0)?;
            top.append(&last, handle.len);
        }
        if top.weight() > MAX_BLOCK_BYTES {
            let (bytes, max) = (top.weight() as u64, MAX_BLOCK_BYTES as u64);
            return Err(Error::SegmentTooLarge { bytes, max });
        }
        if !self.ranges.is_empty() {
            let at = self.appender.offset();
            let mut payload = Vec::new();
            put_ranges(&mut payload, &self.ranges)?;
            if payload.len() > MAX_BLOCK_BYTES {
                let (bytes, max) = (payload.len() as u64, MAX_BLOCK_BYTES as u64);
                return Err(Error::SegmentTooLarge { bytes, max });
            }
            self.appender.pending().extend_from_slice(&payload);
            seal(&mut self.appender, self.id, at, Compression::None, 0)?;
        }
        let at = self.appender.offset();
        top.finish_into(self.appender.pending());
        seal(&mut self.appender, self.id, at, Compression::None, 0)
    }
}

/// Adds padding and trailer to the payload that starts at offset `at`.
fn seal(
    appender: &mut SegmentAppender,
    id: FileId,
    at: u64,
    kind: Compression,
    padding: usize,
) -> Result<BlockHandle> {
    let payload = (appender.offset() - at) as usize;
    let pending = appender.pending();
    let start = pending.len() - payload;
    put_type(pending, kind, padding);
    let crc = block_crc(id, at, &pending[start..]);
    pending.put_u32(crc);
    let len = (pending.len() - start) as u32;
    appender.flush_when_large()?;
    Ok(BlockHandle { offset: at, len })
}
