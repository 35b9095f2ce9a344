//! Decodes values that are coded with symbols.
//!
//! 1. Eight codes at a time are compared with the number of symbols. Those before the first other one are
//!    decoded without a branch: each stores eight bytes and moves the end by the length of its symbol.
//! 2. The other one follows by itself: an escape or a run.
//! 3. The last codes of a value are decoded as if the codes after them were empty.

use super::format::{SYMBOL_BYTES, SYMBOLS_MAX};
use crate::codec::uint_at;
use crate::key::MAX_VALUE_BYTES;
use std::ops::Range;

/// The code that stands for the byte after it.
pub(super) const ESCAPE: u8 = 255;
/// The code that stands for as many bytes as the byte after it says, which follow.
pub(super) const RUN: u8 = 254;
/// The code that stands for as many zeros as the byte after it says.
pub(super) const ZEROS: u8 = 253;
const _: () = assert!(SYMBOLS_MAX == ZEROS as usize);

/// Codes of one step.
const CODES: usize = 8;
/// The bytes that a step may write.
const STEP_BYTES: usize = CODES * SYMBOL_BYTES + SYMBOL_BYTES;
/// The start of each symbol of a step is at most this, which spares a check of its bounds.
const START_MASK: usize = CODES * SYMBOL_BYTES - 1;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
const LOW_BITS: u64 = !HIGH_BITS;
const EACH: u64 = 0x0101_0101_0101_0101;

/// Symbols by their codes.
pub(super) struct SymbolDecoder {
    /// For each code, the bytes of its symbol, padded with zeros.
    words: [[u8; SYMBOL_BYTES]; 256],
    /// For each code, the length of its symbol; 0 for a code without one.
    lens: [u8; 256],
    count: u8,
}

impl SymbolDecoder {
    /// No symbols.
    pub fn new() -> Self {
        SymbolDecoder { words: [[0; SYMBOL_BYTES]; 256], lens: [0; 256], count: 0 }
    }

    /// Adds a symbol of one to eight bytes. `None` if there is no code for it, or its length is another.
    pub fn add(&mut self, symbol: &[u8]) -> Option<()> {
        let code = usize::from(self.count);
        let len = u8::try_from(symbol.len()).ok().filter(|&len| len > 0 && self.count < ZEROS)?;
        self.words.get_mut(code)?.get_mut(..symbol.len())?.copy_from_slice(symbol);
        *self.lens.get_mut(code)? = len;
        self.count += 1;
        Some(())
    }

    /// The length of the symbol of a code; 0 if it has none.
    pub fn len_of(&self, code: u8) -> usize {
        self.lens[usize::from(code)].into()
    }

    /// Decodes the value whose codes are this part of `block`, and writes it to `out` from `start` on.
    /// Returns its end; `out` may be longer. `None` if no table could have produced the codes.
    #[inline]
    pub fn decode_into(
        &self,
        block: &[u8],
        part: Range<usize>,
        out: &mut Vec<u8>,
        start: usize,
    ) -> Option<usize> {
        let (mut from, mut end) = (part.start, start);
        while from < part.end {
            let Some(room) = out.get_mut(end..).and_then(<[u8]>::first_chunk_mut) else {
                grow(out, start, end + STEP_BYTES)?;
                continue;
            };
            let mut codes = uint_at(block, from, CODES);
            if part.end - from < CODES {
                codes |= from_byte(part.end - from);
            }
            let symbols = self.symbols_in(codes);
            if symbols > 0 {
                end += self.decode_step(codes | from_byte(symbols), room);
                from += symbols;
            }
            if symbols < CODES && from < part.end {
                (from, end) = decode_other(block, from..part.end, out, start, end)?;
            }
        }
        (end - start <= MAX_VALUE_BYTES).then_some(end)
    }

    /// How many of eight codes, from the first on, are those of symbols.
    #[inline]
    fn symbols_in(&self, codes: u64) -> usize {
        // The high bit of each code of at least `count`: the sum of the low bits carries into it, or it is
        // set, depending on that of `count`; none carries into another code.
        let carries = (codes & LOW_BITS) + EACH * u64::from(0x80 - (self.count & 0x7f));
        let others = if self.count < 0x80 { codes | carries } else { codes & carries };
        (others & HIGH_BITS).trailing_zeros() as usize / 8
    }

    /// Writes the symbols of eight codes. Returns their length.
    #[inline]
    fn decode_step(&self, codes: u64, room: &mut [u8; STEP_BYTES]) -> usize {
        let mut end = 0;
        for code in codes.to_le_bytes() {
            let start = end & START_MASK;
            room[start..start + SYMBOL_BYTES].copy_from_slice(&self.words[usize::from(code)]);
            end += usize::from(self.lens[usize::from(code)]);
        }
        end
    }
}

/// All bits of a word from byte `at` on.
#[inline]
fn from_byte(at: usize) -> u64 {
    u64::MAX.checked_shl(8 * at as u32).unwrap_or(0)
}

/// Decodes the first of these codes, which has no symbol. Returns where the next one starts, and the new end.
#[inline]
fn decode_other(
    block: &[u8],
    part: Range<usize>,
    out: &mut Vec<u8>,
    start: usize,
    end: usize,
) -> Option<(usize, usize)> {
    let (code, rest) = block.get(part.clone())?.split_first()?;
    let (&operand, after) = rest.split_first()?;
    let len = if *code == ESCAPE { 1 } else { usize::from(operand) };
    let next = part.start + 2;
    if out.len() < end + len {
        grow(out, start, end + len)?;
    }
    let room = out.get_mut(end..end + len).filter(|room| !room.is_empty())?;
    let next = match *code {
        ESCAPE => {
            room.fill(operand);
            next
        }
        RUN => {
            room.copy_from_slice(after.get(..len)?);
            next + len
        }
        ZEROS => {
            room.fill(0);
            next
        }
        _ => return None,
    };
    Some((next, end + len))
}

/// Makes a buffer at least this long. `None` if a value that starts at `start` would be too long.
#[cold]
pub(super) fn grow(out: &mut Vec<u8>, start: usize, least: usize) -> Option<()> {
    if least - start > MAX_VALUE_BYTES + STEP_BYTES {
        return None;
    }
    out.resize(least.max(2 * out.len()), 0);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// The plain way to decode.
    fn plain(symbols: &[Vec<u8>], mut codes: &[u8]) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        while let Some((&code, rest)) = codes.split_first() {
            codes = rest;
            let mut operand = || {
                let (&operand, rest) = codes.split_first()?;
                codes = rest;
                Some(operand)
            };
            match code {
                ESCAPE => value.push(operand()?),
                RUN | ZEROS => {
                    let len = usize::from(operand()?);
                    if len == 0 {
                        return None;
                    }
                    if code == ZEROS {
                        value.resize(value.len() + len, 0);
                    } else {
                        let (bytes, rest) = codes.split_at_checked(len)?;
                        codes = rest;
                        value.extend_from_slice(bytes);
                    }
                }
                _ => value.extend_from_slice(symbols.get(usize::from(code))?),
            }
        }
        Some(value)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        /// Whatever is before and after the codes in their block, and in the buffer.
        #[test]
        fn values_decode_as_they_do_code_by_code(
            symbols in prop_oneof![vec(vec(any::<u8>(), 1..=8), 1..20), vec(vec(any::<u8>(), 1..=8), 120..=253)],
            parts in vec(prop_oneof![
                20 => any::<prop::sample::Index>().prop_map(Err),
                1 => any::<u8>().prop_map(|byte| Ok(vec![byte])),
                1 => any::<u8>().prop_map(|byte| Ok(vec![ESCAPE, byte])),
                1 => any::<u8>().prop_map(|len| Ok(vec![ZEROS, len])),
                1 => vec(any::<u8>(), 0..100).prop_map(|run| Ok([&[RUN, run.len() as u8], &run[..]].concat())),
            ], 0..60),
            before in vec(any::<u8>(), 0..10), after in vec(any::<u8>(), 0..10),
            buffer in vec(any::<u8>(), 0..300), start in 0usize..300, cut in any::<bool>(),
        ) {
            let mut decoder = SymbolDecoder::new();
            symbols.iter().for_each(|symbol| decoder.add(symbol).unwrap());
            let code = |part: Result<Vec<u8>, prop::sample::Index>| {
                part.unwrap_or_else(|index| vec![index.index(symbols.len()) as u8])
            };
            let mut codes = parts.into_iter().flat_map(code).collect::<Vec<_>>();
            codes.truncate(codes.len() - usize::from(cut && !codes.is_empty()));
            let block = [&before[..], &codes, &after].concat();
            let start = start.min(buffer.len());
            let mut out = buffer.clone();
            let end = decoder.decode_into(&block, before.len()..before.len() + codes.len(), &mut out, start);
            prop_assert_eq!(end.map(|end| out[start..end].to_vec()), plain(&symbols, &codes));
            prop_assert_eq!(&out[..start], &buffer[..start]);
        }
    }

    #[test]
    fn a_symbol_without_a_code_is_refused() {
        let mut decoder = SymbolDecoder::new();
        assert_eq!([decoder.add(b""), decoder.add(b"nine byte")], [None, None]);
        (0..ZEROS).for_each(|byte| decoder.add(&[byte]).unwrap());
        assert_eq!(decoder.add(b"a"), None);
    }
}
