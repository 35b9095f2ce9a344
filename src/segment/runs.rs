//! Values that symbols would not shorten, such as hashes and binary fields: bytes as they are, and runs of
//! zeros.
//!
//! A value is a sequence of steps. Each is a number of bytes, then a number of zeros. Its token has the two
//! numbers, four bits each. The tokens are stored after all the bytes, the last token first. So a decoder
//! reads bytes from the front and tokens from the back until they meet, and needs neither a count nor, for
//! most steps, a branch: it copies 16 bytes, writes 16 zeros, and moves on by what the token says.

use super::symbol_decoder::grow;
use crate::key::MAX_VALUE_BYTES;
use std::ops::Range;

/// Fewer zeros are stored as they are, so that a value has fewer steps.
const ZEROS_MIN: usize = 4;
/// In a token, it says that the number has a byte of its own before the token; that of the bytes is nearer.
const LONG: usize = 15;
/// The most bytes, and the most zeros, of a step.
const STEP_MAX: usize = u8::MAX as usize;

/// Appends a coded value.
pub(super) fn encode_runs(value: &[u8], out: &mut Vec<u8>) {
    steps(value).for_each(|(bytes, _)| out.extend_from_slice(bytes));
    let tokens = out.len();
    for (bytes, zeros) in steps(value) {
        let numbers = [bytes.len(), zeros];
        let [high, low] = numbers.map(|number| number.min(LONG) as u8);
        out.push(high << 4 | low);
        out.extend(numbers.into_iter().filter(|&number| number >= LONG).map(|number| number as u8));
    }
    out.get_mut(tokens..).unwrap_or_default().reverse();
}

/// The steps of a value: bytes, and how many zeros follow them.
fn steps(value: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    let mut rest = value;
    std::iter::from_fn(move || {
        let near = rest.get(..STEP_MAX + ZEROS_MIN).unwrap_or(rest);
        let (bytes, after) = rest.split_at_checked(before_zeros(near).min(STEP_MAX))?;
        let zeros = after.iter().take(STEP_MAX).take_while(|byte| **byte == 0).count();
        let is_end = rest.is_empty();
        rest = after.get(zeros..)?;
        (!is_end).then_some((bytes, zeros))
    })
}

/// The number of bytes before the first run of at least [`ZEROS_MIN`] zeros.
fn before_zeros(bytes: &[u8]) -> usize {
    let mut start = 0;
    while let Some(at) = bytes.get(start..).and_then(|rest| rest.iter().position(|byte| *byte == 0)) {
        start += at;
        let zeros = bytes.iter().skip(start).take_while(|byte| **byte == 0).count();
        if zeros >= ZEROS_MIN {
            return start;
        }
        start += zeros;
    }
    bytes.len()
}

/// Decodes the value that is this part of `block`, and writes it to `out` from `start` on. Returns its end;
/// `out` may be longer. `None` if its bytes and its tokens do not meet.
#[inline]
pub(super) fn decode_runs(
    block: &[u8],
    part: Range<usize>,
    out: &mut Vec<u8>,
    start: usize,
) -> Option<usize> {
    let (mut from, mut tokens, mut end) = (part.start, part.end, start);
    while from < tokens {
        let token = usize::from(*block.get(tokens - 1)?);
        let (bytes, zeros) = (token >> 4, token & 15);
        if bytes != LONG
            && zeros != LONG
            && let Some(source) = block.get(from..).and_then(<[u8]>::first_chunk::<16>)
            && let Some(room) = out.get_mut(end..).and_then(<[u8]>::first_chunk_mut::<32>)
        {
            room[..16].copy_from_slice(source);
            room[bytes..bytes + 16].fill(0);
            (from, tokens, end) = (from + bytes, tokens - 1, end + bytes + zeros);
            continue;
        }
        (from, tokens, end) = decode_step(block, from..tokens, out, start, end)?;
    }
    (from == tokens && end - start <= MAX_VALUE_BYTES).then_some(end)
}

/// Decodes one step. Returns what is left of the value, and the new end.
fn decode_step(
    block: &[u8],
    part: Range<usize>,
    out: &mut Vec<u8>,
    start: usize,
    end: usize,
) -> Option<(usize, usize, usize)> {
    let mut rest = block.get(part.clone())?;
    let mut last = || {
        let (&last, before) = rest.split_last()?;
        rest = before;
        Some(usize::from(last))
    };
    let token = last()?;
    let mut number = |bits: usize| if bits == LONG { last() } else { Some(bits) };
    let (bytes, zeros) = (number(token >> 4)?, number(token & 15)?);
    let source = rest.get(..bytes)?;
    let next = end + bytes + zeros;
    if out.len() < next {
        grow(out, start, next)?;
    }
    let (copied, filled) = out.get_mut(end..next)?.split_at_mut_checked(bytes)?;
    copied.copy_from_slice(source);
    filled.fill(0);
    Some((part.start + bytes, part.start + rest.len(), next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// The plain way to decode.
    fn plain(mut coded: &[u8]) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        while let Some((token, mut rest)) = coded.split_last() {
            let mut numbers = [usize::from(token >> 4), usize::from(token & 15)];
            for number in numbers.iter_mut().filter(|number| **number == 15) {
                let (last, before) = rest.split_last()?;
                (*number, rest) = ((*last).into(), before);
            }
            let (bytes, after) = rest.split_at_checked(numbers[0])?;
            value.extend_from_slice(bytes);
            value.resize(value.len() + numbers[1], 0);
            coded = after;
        }
        Some(value)
    }

    /// Decodes a part of a block into a part of a buffer.
    fn decoded(coded: &[u8], around: &[u8], buffer: &[u8], start: usize) -> Option<Vec<u8>> {
        let block = [around, coded, around].concat();
        let mut out = buffer.to_vec();
        let end = decode_runs(&block, around.len()..around.len() + coded.len(), &mut out, start);
        assert_eq!(out[..start], buffer[..start]);
        end.map(|end| out[start..end].to_vec())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn a_value_of_runs_decodes_to_itself(
            parts in vec((vec(prop_oneof![any::<u8>(), Just(0)], 0..40), 0usize..40, prop_oneof![9 => Just(1), 1 => 1usize..40]), 0..12),
            around in vec(any::<u8>(), 0..20), buffer in vec(any::<u8>(), 0..300), start in 0usize..300,
        ) {
            let part = |(bytes, zeros, times): (Vec<u8>, usize, usize)| [bytes.repeat(times), vec![0; zeros * times]].concat();
            let value: Vec<u8> = parts.into_iter().flat_map(part).collect();
            let mut coded = Vec::new();
            encode_runs(&value, &mut coded);
            prop_assert!(coded.len() <= value.len() + value.len() / 100 + 3);
            prop_assert_eq!(plain(&coded), Some(value.clone()));
            prop_assert_eq!(decoded(&coded, &around, &buffer, start.min(buffer.len())), Some(value));
        }

        #[test]
        fn any_bytes_decode_as_they_do_step_by_step_or_are_refused(
            coded in vec(prop_oneof![any::<u8>(), 0u8..4, Just(0x12), Just(0xff)], 0..60), around in vec(any::<u8>(), 0..20),
        ) {
            let found = decoded(&coded, &around, &[], 0);
            prop_assert!(found.as_ref().is_none_or(|found| found.len() <= 128 * coded.len()));
            prop_assert_eq!(found, plain(&coded));
        }
    }

    #[test]
    fn a_value_of_runs_that_is_too_long_is_refused() {
        let zeros = [255, 0x0f].repeat(MAX_VALUE_BYTES / 255 + 10);
        assert_eq!(decoded(&zeros, &[], &[], 0), None);
    }
}
