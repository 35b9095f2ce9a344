//! Reading a whole segment and checking everything in it.

use super::block::Rows;
use super::block_builder::BlockBuilder;
use super::format::{BlockHandle, Footer};
use super::index::Index;
use super::properties::PropertiesBuilder;
use super::reader::{Segment, read_tail};
use super::summary::SegmentSummary;
use super::window::{READ_BYTES, Window};
use crate::error::Result;
use crate::hash::Digest;
use crate::key::{EntryKind, Seq};

/// Receives each entry's key, sequence number and kind. Its error ends the check.
pub type OnEntry<'a> = dyn FnMut(&[u8], Seq, EntryKind) -> Result<()> + 'a;

impl Segment {
    /// Reads the whole file, bypassing the cache and using memory for a few of its largest blocks, and checks that
    ///
    /// 1. footer, properties and top index are valid and unchanged since the segment was opened;
    /// 2. every block has a valid checksum and form, and every data block equals what the writer would produce for its entries, the
    ///    fingerprints of their keys included;
    /// 3. keys strictly increase and are within the separators around their block;
    /// 4. the blocks cover the file without gaps from the first byte to the footer;
    /// 5. counts, bounds and sums equal the properties;
    /// 6. the digest is right.
    ///
    /// `on_entry` receives every entry in key order, for checks against other data such as a filter.
    pub fn verify(&self, on_entry: &mut OnEntry<'_>) -> Result<()> {
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
            window: Window::uncounted(),
            digest: Digest::default(),
            offset: 0,
            found: PropertiesBuilder::new(self.store(), self.compression()),
            last_key: Vec::new(),
            key: Vec::new(),
            last_separator: None,
            on_entry,
            builder: BlockBuilder::default(),
            rebuilt: Vec::new(),
        };
        for at in 0..top.len() {
            verifier.partition(&top, at)?;
        }
        verifier.finish(&footer, tail.summary.file_bytes)
    }
}

struct Verifier<'a, 'b> {
    segment: &'a Segment,
    window: Window,
    digest: Digest,
    /// Data blocks before this offset are checked.
    offset: u64,
    found: PropertiesBuilder,
    last_key: Vec<u8>,
    key: Vec<u8>,
    last_separator: Option<Vec<u8>>,
    on_entry: &'a mut OnEntry<'b>,
    builder: BlockBuilder,
    rebuilt: Vec<u8>,
}

impl Verifier<'_, '_> {
    fn partition(&mut self, top: &Index, number: usize) -> Result<()> {
        let handle = top.handle(number);
        let mut stored = vec![0; handle.len as usize];
        self.segment.file.read_exact_at(&mut stored, handle.offset)?;
        let partition = self.segment.parse_partition(handle, &stored)?;
        let location = self.segment.location(handle.offset);
        if partition.area().start != self.offset {
            return Err(location.damaged("the index partition skips or repeats data blocks"));
        }
        if partition.separator(partition.len() - 1) != top.separator(number) {
            return Err(location.damaged("the last separator differs from the one in the top index"));
        }
        (0..partition.len()).try_for_each(|at| self.block(&partition, at))
    }

    fn block(&mut self, partition: &Index, at: usize) -> Result<()> {
        let (handle, separator) = (partition.handle(at), partition.separator(at));
        let stored = self.window.stored(self.segment, partition, at, false)?;
        self.digest.update(stored);
        let rows = self.segment.decode_block(handle, stored)?.rows();
        let location = self.segment.location(handle.offset);
        self.entries(handle, &rows)?;
        if *self.last_key > *separator {
            return Err(location.damaged("keys greater than the block's separator in the index"));
        }
        self.last_separator = Some(separator.to_vec());
        let hasher = self.segment.store().hasher;
        if !rows.is_as_written(Some(hasher), &mut self.builder, &mut self.rebuilt) {
            return Err(location.damaged("a data block in a form that no writer gives it"));
        }
        self.offset = handle.end();
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
            (self.on_entry)(&self.key, seq, kind)?;
            std::mem::swap(&mut self.key, &mut self.last_key);
        }
        Ok(())
    }

    /// Digests the bytes between data blocks and footer, which have been parsed already, and compares the totals.
    fn finish(mut self, footer: &Footer, file_bytes: u64) -> Result<()> {
        let data_bytes = self.segment.summary().data_bytes;
        let location = self.segment.location(footer.properties.end());
        if self.offset != data_bytes {
            return Err(self.segment.location(self.offset).damaged("data blocks are missing from the index"));
        }
        while self.offset < location.offset {
            let end = location.offset.min(self.offset + READ_BYTES);
            self.digest.update(self.window.read(self.segment, self.offset..end)?);
            self.offset = end;
        }
        let found = self.found.finish(&self.segment.read_ranges()?, self.last_key);
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
