//! The symbol table of a segment, which compresses each value by itself, so that a found key decodes its own
//! value and nothing else.
//!
//! A symbol is a string of one to eight bytes that is frequent in the values. A coded value is a sequence of
//! codes of one byte: that of a symbol, or [`ESCAPE`](super::symbol_decoder::ESCAPE) and a byte as it is.
//! Source: Boncz, Neumann, Leis, "FSST: Fast Random Access String Compression", PVLDB 13 (2020). Runs of
//! bytes and of zeros are additions, for values that are only partly text: noise, such as a hash, would
//! otherwise take two bytes for each byte, and no symbol of the encoder ends with a zero. A table without
//! symbols stands for values of another form, [runs](super::runs).

use super::block::Rows;
use super::block_layout::{BlockHeader, HEADER_BYTES};
use super::compress::Payload;
use super::format::{
    BlockHandle, Compression, DATA_BYTES_MAX, Location, Parsed, SYMBOLS_BYTES_MAX, SYMBOLS_MARK,
    TRAILER_BYTES, open_block,
};
use super::runs::decode_runs;
use super::symbol_decoder::SymbolDecoder;
use crate::codec::Decoder;
use crate::error::Result as FileResult;
use std::cell::Cell;
use std::fmt;
use std::ops::Range;

/// The largest buffers that a thread keeps for decoding.
const DECODED_BYTES: usize = 64 << 10;

thread_local! {
    static DECODED: Cell<Decoded> = const { Cell::new(Decoded { values: Vec::new(), ends: Vec::new() }) };
}

/// Buffers for decoding.
#[derive(Default)]
struct Decoded {
    values: Vec<u8>,
    /// Where the values of a block end in `values`.
    ends: Vec<u32>,
}

impl Decoded {
    /// Those of the thread.
    fn take() -> Self {
        DECODED.try_with(Cell::take).unwrap_or_default()
    }

    /// Keeps them for the thread's next values.
    fn keep(self) {
        if self.values.len() + self.ends.len() * size_of::<u32>() <= DECODED_BYTES {
            _ = DECODED.try_with(|kept| kept.set(self));
        }
    }
}

/// A symbol table.
pub struct Symbols {
    encoded: Box<[u8]>,
    /// `None` if values are coded as [runs](super::runs).
    decoder: Option<SymbolDecoder>,
}

impl Symbols {
    /// Parses a table: `count u8  length u8*count  symbol*count`. `None` if it is not valid.
    pub fn parse(encoded: &[u8]) -> Option<Self> {
        let mut fields = Decoder::new(encoded);
        let count = usize::from(fields.u8()?);
        let mut decoder = SymbolDecoder::new();
        for &len in fields.take(count)? {
            decoder.add(fields.take(len.into())?)?;
        }
        let decoder = (count > 0).then_some(decoder);
        (fields.remaining() == 0).then(|| Symbols { encoded: encoded.into(), decoder })
    }

    /// The table without symbols: values are coded as runs.
    pub fn none() -> Self {
        Symbols { encoded: [0].into(), decoder: None }
    }

    /// The table as parsed.
    pub fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// Calls `take` with the decoded value, whose codes are a part of `block`. `None` if no table could have
    /// produced the codes.
    #[inline]
    pub fn decode<T>(&self, block: &[u8], part: Range<usize>, take: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let mut decoded = Decoded::take();
        let end = self.decode_into(block, part, &mut decoded.values, 0);
        let taken = end.map(|end| take(decoded.values.get(..end).unwrap_or_default()));
        decoded.keep();
        taken
    }

    /// Writes the decoded value to `out`, from `start` on. Returns its end; `out` may be longer.
    #[inline]
    fn decode_into(
        &self,
        block: &[u8],
        part: Range<usize>,
        out: &mut Vec<u8>,
        start: usize,
    ) -> Option<usize> {
        match &self.decoder {
            Some(decoder) => decoder.decode_into(block, part, out, start),
            None => decode_runs(block, part, out, start),
        }
    }

    /// The length of the symbol of a code; 0 if it has none.
    pub(super) fn len_of(&self, code: u8) -> usize {
        self.decoder.as_ref().map_or(0, |decoder| decoder.len_of(code))
    }

    /// The payload of a block with the decoded values of a coded one, which was checked before. Bytes may
    /// follow the block.
    pub fn decode_block(&self, coded: &[u8]) -> Parsed<Payload> {
        let rows = Rows::mapped(coded);
        let mut decoded = Decoded::take();
        let payload = self.decode_rows(coded, &rows, &mut decoded).and_then(|()| decoded.payload(&rows));
        decoded.keep();
        payload.ok_or("the values of the data block do not decode")
    }

    /// Decodes the values of all rows.
    fn decode_rows(&self, block: &[u8], rows: &Rows<&[u8]>, decoded: &mut Decoded) -> Option<()> {
        let (mut end, Decoded { values, ends }) = (0, decoded);
        ends.clear();
        for at in 0..rows.len() {
            end = self.decode_into(block, rows.value_range(at), values, end)?;
            if end > DATA_BYTES_MAX {
                return None;
            }
            ends.push(end as u32);
        }
        rows.has_coded_values().then_some(())
    }
}

impl Decoded {
    /// A block with these values, and all else as these rows have it.
    fn payload(&self, rows: &Rows<&[u8]>) -> Option<Payload> {
        let (areas, ends) = (rows.areas()?, &self.ends);
        let (first, end) = (*ends.first()?, *ends.last()?);
        let is_fixed = (1..).zip(ends).all(|(count, &end)| u64::from(end) == count * u64::from(first));
        let (values, value_width) = if is_fixed { (first, 0) } else { (end, 4) };
        let header = BlockHeader { values, value_width, has_coded_values: false, ..areas.header };
        let ends_bytes = ends.len() * usize::from(value_width);
        let values = self.values.get(..end as usize)?;
        let total =
            HEADER_BYTES + areas.before_ends.len() + ends_bytes + areas.after_ends.len() + values.len();
        let fill = |mut raw: &mut [u8]| {
            raw.split_off_mut(..HEADER_BYTES)?.copy_from_slice(&header.encoded());
            raw.split_off_mut(..areas.before_ends.len())?.copy_from_slice(areas.before_ends);
            let raw_ends = raw.split_off_mut(..ends_bytes)?.chunks_exact_mut(size_of::<u32>());
            raw_ends.zip(ends).for_each(|(raw, end)| raw.copy_from_slice(&end.to_le_bytes()));
            raw.split_off_mut(..areas.after_ends.len())?.copy_from_slice(areas.after_ends);
            raw.split_off_mut(..values.len())?.copy_from_slice(values);
            Some(())
        };
        let is_small = total <= DATA_BYTES_MAX;
        is_small.then(|| Payload::filled(total, |raw| fill(raw).ok_or(())).ok())?
    }
}

/// The longest block with a symbol table, with its trailer.
pub(super) const SYMBOLS_STORED_MAX: usize = 8 + SYMBOLS_BYTES_MAX + TRAILER_BYTES;

/// Where a segment has its symbol table, besides its properties: at the start of the file.
pub(super) fn symbols_handle(symbols: &Symbols) -> BlockHandle {
    let len = SYMBOLS_MARK.to_le_bytes().len() + symbols.encoded().len() + TRAILER_BYTES;
    BlockHandle { offset: 0, len: len as u32 }
}

/// Checks and parses a stored block with the symbol table.
pub(super) fn parse_symbols(location: Location<'_>, stored: &[u8]) -> FileResult<Symbols> {
    let (kind, payload) = open_block(location, stored)?;
    let table = payload.strip_prefix(&SYMBOLS_MARK.to_le_bytes()).filter(|_| kind == Compression::None);
    table.and_then(Symbols::parse).ok_or_else(|| location.damaged("the symbol table does not parse"))
}

impl PartialEq for Symbols {
    fn eq(&self, other: &Self) -> bool {
        self.encoded == other.encoded
    }
}

impl Eq for Symbols {}

impl fmt::Debug for Symbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Symbols({} bytes)", self.encoded.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::MAX_VALUE_BYTES;
    use crate::segment::symbol_decoder::{ESCAPE, RUN, ZEROS};
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn decoded(symbols: &Symbols, coded: &[u8]) -> Option<Vec<u8>> {
        symbols.decode(coded, 0..coded.len(), <[u8]>::to_vec)
    }

    proptest! {
        #[test]
        fn any_codes_and_any_table_decode_or_are_refused(
            table in vec(any::<u8>(), 0..80), codes in vec(any::<u8>(), 0..200),
        ) {
            if let Some(symbols) = Symbols::parse(&table) {
                let found = decoded(&symbols, &codes);
                prop_assert!(found.is_none_or(|found| found.len() <= 128 * codes.len()));
            }
        }
    }

    #[test]
    fn a_table_of_any_other_form_is_refused() {
        let sound = [2, 3, 1, b'a', b'b', b'c', b'd'];
        let symbols = Symbols::parse(&sound).unwrap();
        assert_eq!(decoded(&symbols, &[1, 0, ESCAPE, 0, 1]).unwrap(), b"dabc\0d");
        assert_eq!(decoded(&symbols, &[2]), None, "a code without a symbol");
        assert_eq!(decoded(&symbols, &[0, ESCAPE]), None, "an escape without its byte");
        assert_eq!(decoded(&symbols, &[RUN, 3, 7, 8, 9, 0]).unwrap(), b"\x07\x08\x09abc");
        assert_eq!(decoded(&symbols, &[1, ZEROS, 255, 0]).unwrap(), [&b"d"[..], &[0; 255], b"abc"].concat());
        for codes in [&[RUN][..], &[RUN, 0], &[RUN, 2, 1], &[ZEROS], &[ZEROS, 0]] {
            assert_eq!(decoded(&symbols, codes), None, "{codes:?}: a run without its bytes");
        }
        let zeros = [ZEROS, 255].repeat(MAX_VALUE_BYTES / 255 + 10);
        assert_eq!(decoded(&symbols, &zeros), None, "a value that is too long");
        for wrong in [
            &[][..],
            &[0, 0],
            &sound[..6],
            &[&sound[..], &[0]].concat(),
            &[1, 0],
            &[1, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        ] {
            assert!(Symbols::parse(wrong).is_none(), "{wrong:?}");
        }
    }
}
