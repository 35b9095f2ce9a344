//! Reads a whole segment and checks everything in it.

use super::block::Rows;
use super::block_builder::BlockBuilder;
use super::damaged_blocks::DamagedBlocks;
use super::facts::FactsBuilder;
use super::format::{BlockHandle, Compression, Footer, open_block};
use super::index::Index;
use super::read_ahead::{READ_BYTES, ReadAhead};
use super::reader::{Segment, read_tail};
use super::summary::SegmentSummary;
use super::symbols::{parse_symbols, symbols_handle};
use crate::error::{Error, Result};
use crate::hash::Digest;
use crate::key::{EntryKind, Seq};

/// Receives each entry's key, sequence number and kind. Its error ends the check.
pub type OnEntry<'a> = dyn FnMut(&[u8], Seq, EntryKind) -> Result<()> + 'a;

/// Receives what cannot be read. Its error ends the check.
pub type OnDamage<'a> = dyn FnMut(DamagedBlocks) -> Result<()> + 'a;

impl Segment {
    /// Reads the file, bypassing the cache, with memory for a few of its largest blocks, and checks that
    ///
    /// 1. footer, properties and top index are valid and unchanged since the segment was opened;
    /// 2. every block has a valid checksum and form, and every data block equals what the writer would
    ///    produce for its entries, including their keys' fingerprints;
    /// 3. keys strictly increase and are within the separators around their block;
    /// 4. the blocks cover the file without gaps from the first byte to the footer;
    /// 5. counts, bounds and sums equal the properties;
    /// 6. the digest is right.
    ///
    /// `on_entry` receives every entry in key order, for checks against other data such as a filter.
    ///
    /// # Errors
    /// The first fault found.
    pub fn verify(&self, on_entry: &mut OnEntry<'_>) -> Result<()> {
        self.verify_around(on_entry, &mut |damaged| Err(damaged.error))
    }

    /// [`verify`](Self::verify), but continues after unreadable blocks. Then it compares neither the totals
    /// nor the digest.
    pub fn verify_around(&self, on_entry: &mut OnEntry<'_>, on_damage: &mut OnDamage<'_>) -> Result<()> {
        let (tail, top) = read_tail(&*self.file, self.id())?;
        let footer = tail.footer;
        let footer_location = self.location(footer.properties.end());
        if tail != self.tail {
            return Err(
                footer_location.damaged("footer or properties have changed since the segment was opened")
            );
        }
        let mut verifier = Verifier {
            segment: self,
            window: ReadAhead::uncounted(),
            digest: Digest::default(),
            offset: Some(0),
            found: FactsBuilder::default(),
            last_key: Vec::new(),
            key: Vec::new(),
            last_separator: None,
            on_entry,
            builder: BlockBuilder::default(),
            rebuilt: Vec::new(),
            damaged: None,
            is_damaged: false,
            stopped: None,
        };
        verifier.symbols(on_damage)?;
        for at in 0..top.len() {
            verifier.partition(&top, at, on_damage)?;
        }
        if let Some(damaged) = verifier.damaged.take() {
            on_damage(damaged)?;
        }
        if verifier.is_damaged {
            return Ok(());
        }
        verifier.finish(&footer, tail.summary.file_bytes)
    }
}

struct Verifier<'a, 'b> {
    segment: &'a Segment,
    window: ReadAhead,
    digest: Digest,
    /// Data blocks before this offset are checked; `None` if a damaged partition hides it.
    offset: Option<u64>,
    found: FactsBuilder,
    last_key: Vec<u8>,
    key: Vec<u8>,
    last_separator: Option<Vec<u8>>,
    on_entry: &'a mut OnEntry<'b>,
    builder: BlockBuilder,
    rebuilt: Vec<u8>,
    /// The unreadable blocks just before.
    damaged: Option<DamagedBlocks>,
    /// Whether some block could not be read.
    is_damaged: bool,
    /// The error of `on_entry`.
    stopped: Option<Error>,
}

impl Verifier<'_, '_> {
    /// Checks the copy of the symbol table at the start of the file.
    fn symbols(&mut self, on_damage: &mut OnDamage<'_>) -> Result<()> {
        let segment = self.segment;
        let Some(symbols) = segment.tail.symbols.as_deref() else { return Ok(()) };
        let handle = symbols_handle(symbols);
        self.offset = Some(handle.end());
        let checked = self.window.read(segment, handle.offset..handle.end()).and_then(|stored| {
            self.digest.update(stored);
            let location = segment.location(handle.offset);
            if parse_symbols(location, stored)? == *symbols {
                Ok(())
            } else {
                Err(location.damaged("the symbol table differs from the one in the properties"))
            }
        });
        checked.or_else(|error| {
            self.is_damaged = true;
            on_damage(DamagedBlocks { error, offset: 0, blocks: Some(0), after: None, up_to: Vec::new() })
        })
    }

    fn partition(&mut self, top: &Index, number: usize, on_damage: &mut OnDamage<'_>) -> Result<()> {
        let partition = match self.read_partition(top, number) {
            Ok(partition) => partition,
            Err(error) => {
                self.note_damage(error, top.handle(number).offset, None, top.separator(number));
                // The blocks of the next one begin somewhere after this.
                self.offset = None;
                return Ok(());
            }
        };
        for at in 0..partition.len() {
            match self.block(&partition, at) {
                Ok(()) => {
                    if let Some(damaged) = self.damaged.take() {
                        on_damage(damaged)?;
                    }
                }
                Err(error) => {
                    let offset = partition.handle(at).offset;
                    self.note_damage(error, offset, Some(1), partition.separator(at));
                }
            }
            if let Some(error) = self.stopped.take() {
                return Err(error);
            }
            self.offset = Some(partition.handle(at).end());
            self.last_separator = Some(partition.separator(at).to_vec());
        }
        Ok(())
    }

    /// Consecutive blocks count as one damage.
    fn note_damage(&mut self, error: Error, offset: u64, blocks: Option<u64>, separator: &[u8]) {
        let after = self.last_separator.replace(separator.to_vec());
        let blocks_before = self.damaged.as_ref().map_or(Some(0), |damaged| damaged.blocks);
        let blocks = blocks_before.zip(blocks).map(|(before, more)| before + more);
        let first = self.damaged.take().map(|damaged| (damaged.error, damaged.offset, damaged.after));
        let (error, offset, after) = first.unwrap_or((error, offset, after));
        self.damaged = Some(DamagedBlocks { error, offset, blocks, after, up_to: separator.to_vec() });
        self.is_damaged = true;
        self.last_key.clear(); // It may belong to the damaged block; the separator bounds what follows.
    }

    fn read_partition(&mut self, top: &Index, number: usize) -> Result<Index> {
        let handle = top.handle(number);
        let mut stored = vec![0; handle.len as usize];
        self.segment.file.read_exact_at(&mut stored, handle.offset)?;
        let partition = self.segment.parse_partition(handle, &stored)?;
        let location = self.segment.location(handle.offset);
        if self.offset.is_some_and(|offset| partition.area().start != offset) {
            return Err(location.damaged("the index partition skips or repeats data blocks"));
        }
        if partition.separator(partition.len() - 1) != top.separator(number) {
            return Err(location.damaged("the last separator differs from the one in the top index"));
        }
        Ok(partition)
    }

    fn block(&mut self, partition: &Index, at: usize) -> Result<()> {
        let (handle, separator) = (partition.handle(at), partition.separator(at));
        let stored = self.window.stored(self.segment, partition, at, false)?;
        self.digest.update(stored);
        let (kind, payload) = open_block(self.segment.location(handle.offset), stored)?;
        let rows = self.segment.decode_payload(handle, kind, payload)?.rows();
        let hasher = self.segment.store().hasher;
        let is_as_written = match kind {
            // The rows as they are stored.
            Compression::Fsst => {
                Rows::mapped(payload).is_as_written(Some(hasher), &mut self.builder, &mut self.rebuilt)
            }
            _ => rows.is_as_written(Some(hasher), &mut self.builder, &mut self.rebuilt),
        };
        let location = self.segment.location(handle.offset);
        self.entries(handle, &rows)?;
        if *self.last_key > *separator {
            return Err(location.damaged("keys greater than the block's separator in the index"));
        }
        if !is_as_written {
            return Err(location.damaged("a data block that no writer would produce"));
        }
        Ok(())
    }

    fn entries(&mut self, handle: BlockHandle, rows: &Rows) -> Result<()> {
        for at in 0..rows.len() {
            rows.key(at).copy_into(&mut self.key);
            let after_last = self.found.entries() == 0 || self.key > self.last_key;
            if !after_last || self.last_separator.as_ref().is_some_and(|separator| self.key <= *separator) {
                return Err(self.segment.location(handle.offset).damaged("the keys are out of order"));
            }
            let (seq, kind) = (rows.seq(at), rows.kind(at));
            self.found.count(&self.key, seq, kind, rows.value(at).len());
            if let Err(error) = (self.on_entry)(&self.key, self.segment.seq_of(seq), kind) {
                self.stopped = Some(error);
                return Ok(());
            }
            std::mem::swap(&mut self.key, &mut self.last_key);
        }
        Ok(())
    }

    /// Digests the bytes between data blocks and footer, already parsed, and compares the totals.
    fn finish(mut self, footer: &Footer, file_bytes: u64) -> Result<()> {
        let data_bytes = self.segment.summary().data_bytes;
        let location = self.segment.location(footer.properties.end());
        let mut offset = self.offset.unwrap_or(data_bytes);
        if offset != data_bytes {
            return Err(self.segment.location(offset).damaged("data blocks are missing from the index"));
        }
        while offset < location.offset {
            let end = location.offset.min(offset + READ_BYTES);
            self.digest.update(self.window.read(self.segment, offset..end)?);
            offset = end;
        }
        let ranges = self.segment.read_ranges()?;
        self.found.set_bucket(self.segment.summary().bucket); // Nothing in the rows tells.
        let mut found = self.found.finish(&ranges, self.last_key);
        if !ranges.is_empty() {
            // A repair does not know where among the rows to count each.
            found.longest_streak = self.segment.summary().longest_streak;
        }
        if SegmentSummary::new(footer, found, data_bytes, file_bytes) != *self.segment.summary() {
            let what = "the properties differ from the entries";
            return Err(self.segment.location(footer.properties.offset).damaged(what));
        }
        if self.digest.finish() != footer.digest {
            return Err(location.damaged("file digest mismatch, although every block checksum passed"));
        }
        Ok(())
    }
}
