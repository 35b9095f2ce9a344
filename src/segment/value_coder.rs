//! Codes the values of one segment ([`symbols`](super::symbols)).
//!
//! 1. The first entries wait until their values are a sample large enough to choose symbols from. With
//!    [`Compression::Auto`], the sample also decides whether values are coded, blocks compressed by LZ4, or
//!    neither.
//! 2. From then on, each value is coded. A block has coded values or plain ones. A value that gets longer
//!    ends a block of coded ones; the next block is then plain, until it is full.

use super::block_builder::BlockBuilder;
use super::compress::Compressor;
use super::format::Compression;
use super::symbol_encoder::SymbolEncoder;
use super::symbols::Symbols;
use crate::key::{EntryKind, Seq, common_prefix};
use std::ops::Range;
use std::sync::Arc;

/// A sample is full with this many bytes of values. Symbols are chosen from 16 KiB of them.
const SAMPLE_BYTES: usize = 64 << 10;
/// A full sample has at most this many blocks, so that tests with small blocks see coded values.
const SAMPLE_BLOCKS: usize = 16;
/// A sample is also full if it takes this many times its values in memory.
const WAITING_FACTOR: usize = 4;
/// Values are not coded if there are less than this share of a full sample, an eighth: the table takes up to
/// 2.3 KB, twice.
const CODED_SHARE_MIN: usize = 8;
/// The codes may be longer than their value by an eighth and this much, without ending the block.
const EXCESS_BYTES: usize = 8;
/// They are never longer by more than this, so that the largest value still fits its block.
const EXCESS_BYTES_MAX: usize = 256;
/// With [`Compression::Auto`], what does not save this share of a sample, an eighth, is not worth its time. A
/// block that LZ4 shortens by less is not compressed either.
const SAVED_SHARE_MIN: usize = 8;

/// Codes values, or leaves them as they are.
pub enum ValueCoder {
    /// Values are stored as they are.
    Off,
    /// Entries wait.
    Sampling(Sample),
    /// Values are coded.
    On(Box<SymbolEncoder>),
}

/// Entries that wait for the symbol table.
#[derive(Default)]
pub struct Sample {
    full_bytes: usize,
    /// The size of a block, if the sample decides about the compression.
    auto_block_bytes: Option<usize>,
    keys: Vec<u8>,
    values: Vec<u8>,
    entries: Vec<Waiting>,
}

struct Waiting {
    key: Range<usize>,
    value: Range<usize>,
    fingerprint: u8,
    seq: Seq,
    kind: EntryKind,
}

/// An entry of a [`Sample`].
pub struct SampleEntry<'a> {
    pub key: &'a [u8],
    pub fingerprint: u8,
    pub seq: Seq,
    pub kind: EntryKind,
    pub value: &'a [u8],
}

impl ValueCoder {
    /// For a segment with blocks of this size.
    pub fn new(compression: Compression, block_bytes: usize) -> Self {
        let full_bytes = SAMPLE_BYTES.min(block_bytes.saturating_mul(SAMPLE_BLOCKS));
        let auto_block_bytes = (compression == Compression::Auto).then_some(block_bytes);
        match compression {
            Compression::Fsst | Compression::Auto => {
                ValueCoder::Sampling(Sample { full_bytes, auto_block_bytes, ..Sample::default() })
            }
            Compression::None | Compression::Lz4 | Compression::Zstd => ValueCoder::Off,
        }
    }

    /// Where the next entry waits; `None` if entries do not wait.
    pub fn sample(&mut self) -> Option<&mut Sample> {
        match self {
            ValueCoder::Sampling(sample) => Some(sample),
            ValueCoder::Off | ValueCoder::On(..) => None,
        }
    }

    /// Bytes of the entries that wait.
    pub fn waiting_bytes(&self) -> usize {
        match self {
            ValueCoder::Sampling(sample) => sample.keys.len() + sample.values.len(),
            ValueCoder::Off | ValueCoder::On(..) => 0,
        }
    }

    /// Ends the sampling. Returns the segment's compression and the entries that have waited; `None` if none
    /// do.
    pub fn train(&mut self) -> Option<(Compression, Sample)> {
        let ValueCoder::Sampling(sample) = self else { return None };
        let sample = std::mem::take(sample);
        let encoder = sample.encoder();
        let compression = sample.compression(encoder.as_ref());
        let encoder = encoder.filter(|_| compression == Compression::Fsst);
        *self = encoder.map_or(ValueCoder::Off, |encoder| ValueCoder::On(Box::new(encoder)));
        Some((compression, sample))
    }

    /// The symbol table, if values are coded.
    pub fn symbols(&self) -> Option<&Arc<Symbols>> {
        match self {
            ValueCoder::On(encoder) => Some(encoder.symbols()),
            ValueCoder::Off | ValueCoder::Sampling(_) => None,
        }
    }

    /// Writes the codes of a value for the current block to `out`. `false` if the value should be stored as
    /// it is.
    pub fn encode_into(&self, block: &BlockBuilder, value: &[u8], out: &mut Vec<u8>) -> bool {
        let ValueCoder::On(encoder) = self else { return false };
        let is_plain = block.entries() > 0 && !block.has_coded_values();
        if is_plain {
            return false;
        }
        encoder.encode_into(value, out);
        let excess = (value.len() / 8 + EXCESS_BYTES).min(EXCESS_BYTES_MAX);
        out.len() <= value.len() + excess
    }
}

impl Sample {
    /// Adds an entry.
    pub fn append(&mut self, key: &[u8], fingerprint: u8, seq: Seq, kind: EntryKind, value: &[u8]) {
        let (key_start, value_start) = (self.keys.len(), self.values.len());
        self.keys.extend_from_slice(key);
        self.values.extend_from_slice(value);
        let (key, value) = (key_start..self.keys.len(), value_start..self.values.len());
        self.entries.push(Waiting { key, value, fingerprint, seq, kind });
    }

    /// Whether it is large enough.
    pub fn is_full(&self) -> bool {
        let entries = self.keys.len() + self.entries.len() * size_of::<Waiting>();
        self.values.len() >= self.full_bytes || entries >= WAITING_FACTOR * self.full_bytes
    }

    /// Codes values with symbols chosen from the sample; `None` if there are too few values, or no symbols.
    fn encoder(&self) -> Option<SymbolEncoder> {
        if self.values.len() < self.full_bytes / CODED_SHARE_MIN {
            return None;
        }
        let values = self.entries().map(|entry| entry.value).filter(|value| !value.is_empty());
        SymbolEncoder::train(&values.collect())
    }

    /// The compression of the segment: if the sample decides about it, the one with the smallest blocks.
    fn compression(&self, encoder: Option<&SymbolEncoder>) -> Compression {
        let Some(block_bytes) = self.auto_block_bytes else { return Compression::Fsst };
        let Ok(mut lz4) = Compressor::new(Compression::Lz4) else { return Compression::Fsst };
        let mut plain = 0;
        let as_it_is = |value: &[u8], out: &mut Vec<u8>| value.clone_into(out);
        let compressed = self.stored_bytes(block_bytes, as_it_is, |block| {
            plain += block.len();
            lz4.pack(block, 0);
        });
        let coded = encoder.map_or(usize::MAX, |encoder| {
            self.stored_bytes(block_bytes, |value, out| encoder.encode_into(value, out), |_| {})
        });
        if coded.min(compressed) > plain - plain / SAVED_SHARE_MIN {
            Compression::None
        } else if coded <= compressed {
            Compression::Fsst
        } else {
            Compression::Lz4
        }
    }

    /// The size of the sample's blocks, given what is stored of a value and what becomes of a block.
    fn stored_bytes(
        &self,
        block_bytes: usize,
        store: impl Fn(&[u8], &mut Vec<u8>),
        mut pack: impl FnMut(&mut Vec<u8>),
    ) -> usize {
        let (mut builder, mut block, mut total) = (BlockBuilder::default(), Vec::new(), 0);
        let mut end_block = |builder: &mut BlockBuilder| {
            block.clear();
            builder.finish_into(&mut block);
            pack(&mut block);
            total += block.len();
        };
        let (mut last_key, mut stored): (&[u8], _) = (&[], Vec::new());
        for SampleEntry { key, fingerprint, seq, kind, value } in self.entries() {
            store(value, &mut stored);
            let shared = common_prefix(last_key, key);
            if builder.entries() > 0 && builder.grown(key, shared, seq, kind, &stored).bytes > block_bytes {
                end_block(&mut builder);
            }
            builder.append(key, shared, fingerprint, seq, kind, &stored);
            last_key = key;
        }
        end_block(&mut builder);
        total
    }

    /// The entries, in order.
    pub fn entries(&self) -> impl Iterator<Item = SampleEntry<'_>> {
        self.entries.iter().map(|Waiting { key, value, fingerprint, seq, kind }| SampleEntry {
            key: self.keys.get(key.clone()).unwrap_or_default(),
            value: self.values.get(value.clone()).unwrap_or_default(),
            fingerprint: *fingerprint,
            seq: *seq,
            kind: *kind,
        })
    }
}
