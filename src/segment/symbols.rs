//! The symbol table of a segment, which compresses each value by itself, so that a found key decodes its own
//! value and nothing else.
//!
//! A symbol is a string of one to eight bytes that is frequent in the values. A coded value is a sequence of
//! codes of one byte: that of a symbol, or [`ESCAPE`] and a byte as it is. Source: Boncz, Neumann, Leis,
//! "FSST: Fast Random Access String Compression", PVLDB 13 (2020). [`RUN`] and [`ZEROS`] are additions, for
//! values that are only partly text: noise, such as a hash, would otherwise take two bytes for each byte, and
//! no symbol of the encoder ends with a zero.

use super::block::Rows;
use super::block_layout::{BlockHeader, HEADER_BYTES};
use super::compress::Payload;
use super::format::{
    BlockHandle, Compression, DATA_BYTES_MAX, Location, Parsed, SYMBOL_BYTES, SYMBOLS_BYTES_MAX,
    SYMBOLS_MARK, SYMBOLS_MAX, TRAILER_BYTES, open_block,
};
use crate::codec::Decoder;
use crate::error::Result as FileResult;
use crate::key::MAX_VALUE_BYTES;
use std::cell::Cell;
use std::fmt;

/// The code that stands for the byte after it.
pub(super) const ESCAPE: u8 = 255;
/// The code that stands for as many bytes as the byte after it says, which follow.
pub(super) const RUN: u8 = 254;
/// The code that stands for as many zeros as the byte after it says.
pub(super) const ZEROS: u8 = 253;
const _: () = assert!(SYMBOLS_MAX == ZEROS as usize);
/// The largest buffer that a thread keeps for decoding.
const DECODED_BYTES: usize = 64 << 10;

thread_local!(static DECODED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) });

/// A symbol table.
pub struct Symbols {
    encoded: Box<[u8]>,
    /// For each code, the bytes of its symbol, padded with zeros.
    words: Box<[[u8; SYMBOL_BYTES]; 256]>,
    /// For each code, the length of its symbol; 0 for a code without one.
    lens: Box<[u8; 256]>,
    /// Each code below [`ZEROS`] stands for the byte of its number.
    are_bytes: bool,
}

impl Symbols {
    /// Parses a table: `count u8  length u8*count  symbol*count`. `None` if it is not valid.
    pub fn parse(encoded: &[u8]) -> Option<Self> {
        let mut fields = Decoder::new(encoded);
        let count = usize::from(fields.u8()?);
        let of_symbols = fields.take(count)?;
        let (mut words, mut lens) = (Box::new([[0; SYMBOL_BYTES]; 256]), Box::new([0; 256]));
        for ((word, len), &symbol_len) in words.iter_mut().zip(lens.iter_mut()).zip(of_symbols) {
            let symbol = fields.take(symbol_len.into()).filter(|symbol| !symbol.is_empty())?;
            word.get_mut(..symbol.len())?.copy_from_slice(symbol);
            *len = symbol_len;
        }
        let is_whole = (1..=SYMBOLS_MAX).contains(&count) && fields.remaining() == 0;
        let mut all = (0..ZEROS).zip(words.iter().zip(lens.iter()));
        let are_bytes = all.all(|(code, (word, len))| *len == 1 && word.first() == Some(&code));
        is_whole.then(|| Symbols { encoded: encoded.into(), words, lens, are_bytes })
    }

    /// The table as parsed.
    pub fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// Calls `take` with the decoded value. `None` if no table could have produced the codes.
    pub fn decode<T>(&self, coded: &[u8], take: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let mut buffer = DECODED.try_with(Cell::take).unwrap_or_default();
        let taken =
            self.decode_to(coded, &mut buffer, 0).map(|end| take(buffer.get(..end).unwrap_or_default()));
        if buffer.len() <= DECODED_BYTES {
            _ = DECODED.try_with(|kept| kept.set(buffer));
        }
        taken
    }

    /// Writes the decoded value to `out`, from `at` on. Returns its end; `out` may be longer.
    #[inline]
    fn decode_to(&self, coded: &[u8], out: &mut Vec<u8>, at: usize) -> Option<usize> {
        let most = at + coded.len() * SYMBOL_BYTES;
        if out.len() < most {
            out.resize(most, 0);
        }
        let (mut end, mut codes) = (at, coded);
        while let Some((&code, rest)) = codes.split_first() {
            if self.are_bytes
                && let Some((word, count)) = bytes_at(codes)
            {
                *out.get_mut(end..)?.first_chunk_mut()? = word;
                (end, codes) = (end + count, codes.get(count..)?);
                continue;
            }
            let len = match code {
                ZEROS => {
                    let (&len, left) = rest.split_first()?;
                    codes = left;
                    end.checked_sub(at).filter(|len| *len <= MAX_VALUE_BYTES)?;
                    let most = end + usize::from(len) + left.len() * SYMBOL_BYTES;
                    if out.len() < most {
                        out.resize(most, 0);
                    }
                    out.get_mut(end..end + usize::from(len))?.fill(0);
                    len.into()
                }
                ESCAPE | RUN => {
                    let (bytes, left) = literals(code, rest)?;
                    out.get_mut(end..end + bytes.len())?.copy_from_slice(bytes);
                    codes = left;
                    bytes.len()
                }
                _ => {
                    *out.get_mut(end..)?.first_chunk_mut()? = *self.words.get(usize::from(code))?;
                    codes = rest;
                    usize::from(*self.lens.get(usize::from(code))?)
                }
            };
            if len == 0 {
                return None;
            }
            end += len;
        }
        (end - at <= MAX_VALUE_BYTES).then_some(end)
    }

    /// The length of the symbol of a code; 0 if it has none.
    pub(super) fn len_of(&self, code: u8) -> usize {
        self.lens.get(usize::from(code)).copied().unwrap_or_default().into()
    }

    /// The payload of a block with the decoded values of a coded one, which the caller parses. Bytes may
    /// follow the block.
    pub fn decode_block(&self, coded: &[u8]) -> Parsed<Payload> {
        const REFUSED: &str = "the values of the data block do not decode";
        let rows = Rows::mapped(coded);
        let Some(areas) = rows.areas().filter(|_| rows.has_coded_values()) else { return Err(REFUSED) };
        let mut values = DECODED.try_with(Cell::take).unwrap_or_default();
        let (mut ends, mut end) = (Vec::with_capacity(rows.len()), 0);
        for at in 0..rows.len() {
            end = self.decode_to(rows.value(at), &mut values, end).ok_or(REFUSED)?;
            if end > DATA_BYTES_MAX {
                return Err(REFUSED);
            }
            ends.push(end as u32);
        }
        let first = ends.first().copied().unwrap_or_default();
        let is_fixed = (1..).zip(&ends).all(|(count, &end)| u64::from(end) == count * u64::from(first));
        let (len, value_width) = if is_fixed { (first, 0) } else { (end as u32, 4) };
        let header = BlockHeader { values: len, value_width, has_coded_values: false, ..areas.header };
        let ends_bytes = ends.len() * usize::from(value_width);
        let total = HEADER_BYTES + areas.before_ends.len() + ends_bytes + areas.after_ends.len() + end;
        if total > DATA_BYTES_MAX {
            return Err(REFUSED);
        }
        let payload = Payload::filled(total, |mut raw| {
            let mut head = Vec::with_capacity(HEADER_BYTES);
            header.encode_into(&mut head);
            for part in [&head[..], areas.before_ends] {
                raw = copy(raw, part)?;
            }
            for end in ends.iter().filter(|_| value_width > 0) {
                raw = copy(raw, &end.to_le_bytes())?;
            }
            raw = copy(raw, areas.after_ends)?;
            copy(raw, values.get(..end).unwrap_or_default()).map(drop)
        });
        if values.len() <= DECODED_BYTES {
            _ = DECODED.try_with(|kept| kept.set(values));
        }
        payload.map_err(|()| REFUSED)
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

/// The next eight codes, and how many of them, from the first on, are below [`ZEROS`]; `None` if none are, or
/// fewer than eight codes are left.
#[inline]
fn bytes_at(codes: &[u8]) -> Option<([u8; 8], usize)> {
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    const ABOVE: u64 = 0x0101_0101_0101_0101 * (0x80 - (ZEROS as u64 & 0x7f));
    let word = codes.first_chunk()?;
    let bits = u64::from_le_bytes(*word);
    // The high bit of each byte of at least `ZEROS`: its own is set, and the rest of it carries into another.
    let others = bits & ((bits & !HIGH_BITS) + ABOVE) & HIGH_BITS;
    let count = others.trailing_zeros() as usize / 8;
    (count > 0).then_some((*word, count))
}

/// The bytes that follow the code [`ESCAPE`] or [`RUN`] as they are, and the codes after them.
#[inline]
fn literals(code: u8, rest: &[u8]) -> Option<(&[u8], &[u8])> {
    if code == ESCAPE {
        return rest.split_at_checked(1);
    }
    let (&len, rest) = rest.split_first()?;
    rest.split_at_checked(len.into())
}

/// Copies `part` to the start of `raw`. Returns the rest of `raw`.
fn copy<'a>(raw: &'a mut [u8], part: &[u8]) -> Result<&'a mut [u8], ()> {
    let (start, rest) = raw.split_at_mut_checked(part.len()).ok_or(())?;
    start.copy_from_slice(part);
    Ok(rest)
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
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn decoded(symbols: &Symbols, coded: &[u8]) -> Option<Vec<u8>> {
        symbols.decode(coded, <[u8]>::to_vec)
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

    proptest! {
        #[test]
        fn bytes_are_counted_up_to_the_first_other_code(codes in vec(prop_oneof![any::<u8>(), 250u8..], 8..20)) {
            let count = codes.iter().take(8).take_while(|code| **code < ZEROS).count();
            let found = bytes_at(&codes).map(|(word, count)| (word.to_vec(), count));
            prop_assert_eq!(found, (count > 0).then(|| (codes[..8].to_vec(), count)));
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
            &[0],
            &sound[..6],
            &[&sound[..], &[0]].concat(),
            &[1, 0],
            &[1, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        ] {
            assert!(Symbols::parse(wrong).is_none(), "{wrong:?}");
        }
    }
}
