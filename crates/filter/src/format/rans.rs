//! An entropy coder for bytes: range asymmetric numeral systems (Duda 2013), order 0, 14-bit frequencies.
//!
//! The bytes of a sparse filter are independent and unevenly distributed. An order-0 coder compresses them to
//! their entropy, while dictionary coders find no matches.
//!
//! A coded block is: the number of distinct symbols minus one (1 byte); for each symbol in ascending order,
//! the symbol (1 byte) and its frequency (a varint), where all frequencies add up to 2¹⁴; the state (4
//! bytes); the stream that refills the state. Symbols are coded last to first, so they decode first to last.
//! A block is intact if the state ends at the initial value of the coder and the whole stream is consumed.

use crate::codec::{Decoder, Encode};

const SCALE_BITS: u32 = 14;
const SCALE: u32 = 1 << SCALE_BITS;
/// The state stays in [LOW, 2⁸ LOW).
const LOW: u32 = 1 << 23;

/// Codes `block`, which must not be empty. Returns `None` if that would save less than one byte in a hundred.
pub(super) fn encode(block: &[u8]) -> Option<Vec<u8>> {
    let mut counts = [0u32; 256];
    block.iter().for_each(|&b| counts[usize::from(b)] += 1);
    let cost = |count: u32| f64::from(count) * (block.len() as f64 / f64::from(count)).log2();
    let bits: f64 = counts.iter().filter(|&&count| count > 0).map(|&count| cost(count)).sum();
    if bits / 8.0 > 0.99 * block.len() as f64 {
        return None;
    }
    let freqs = scaled(&counts, block.len());
    let mut starts = [0u32; 256];
    let mut sum = 0;
    for (start, freq) in starts.iter_mut().zip(freqs) {
        *start = sum;
        sum += freq;
    }
    let mut reversed = Vec::with_capacity((bits / 8.0) as usize + 16);
    let mut state = LOW;
    for &b in block.iter().rev() {
        let (freq, start) = (freqs[usize::from(b)], starts[usize::from(b)]);
        while u64::from(state) >= u64::from(freq) << (31 - SCALE_BITS) {
            reversed.push(state as u8);
            state >>= 8;
        }
        state = ((state / freq) << SCALE_BITS) + state % freq + start;
    }
    let symbols = freqs.iter().filter(|&&freq| freq > 0).count();
    let mut coded = Vec::with_capacity(reversed.len() + 3 * symbols + 5);
    coded.put_u8((symbols - 1) as u8);
    for (symbol, &freq) in freqs.iter().enumerate().filter(|(_, freq)| **freq > 0) {
        coded.put_u8(symbol as u8);
        coded.put_varint(u64::from(freq));
    }
    coded.put_u32(state);
    coded.extend(reversed.iter().rev());
    (coded.len() < block.len()).then_some(coded)
}

/// Frequencies that add up to [`SCALE`], nonzero for every symbol that occurs.
fn scaled(counts: &[u32; 256], total: usize) -> [u32; 256] {
    let share = |&count: &u32| match count {
        0 => 0,
        count => ((u64::from(count) * u64::from(SCALE) / total as u64) as u32).max(1),
    };
    let mut freqs: [u32; 256] = std::array::from_fn(|i| share(&counts[i]));
    let sum: u32 = freqs.iter().sum();
    // Rounding errors sum to at most 256 of 16384. They go to or come from the most frequent symbol, which
    // has at least 1/256 of the total, and then the next one if that is not enough.
    let (mut missing, mut excess) = (SCALE.saturating_sub(sum), sum.saturating_sub(SCALE));
    while missing > 0 || excess > 0 {
        let Some(largest) = freqs.iter_mut().max() else { break };
        let take = excess.min(*largest - 1);
        *largest = *largest + missing - take;
        (missing, excess) = (0, excess - take);
    }
    freqs
}

/// Decodes a block of the length of `out`. Returns `None` if `coded` is not such a block.
pub(super) fn decode(coded: &[u8], out: &mut [u8]) -> Option<()> {
    let mut input = Decoder::new(coded);
    let mut freqs = [0u32; 256];
    let mut starts = [0u32; 256];
    let mut symbol_at = Vec::with_capacity(SCALE as usize);
    for _ in 0..=input.u8()? {
        let (symbol, freq) = (input.u8()?, input.length()?);
        if freq == 0 || freqs[usize::from(symbol)] != 0 || freq > SCALE as usize - symbol_at.len() {
            return None;
        }
        freqs[usize::from(symbol)] = freq as u32;
        starts[usize::from(symbol)] = symbol_at.len() as u32;
        symbol_at.resize(symbol_at.len() + freq, symbol);
    }
    if symbol_at.len() != SCALE as usize {
        return None;
    }
    let mut state = input.u32()?;
    let mut stream = coded.get(input.position()..)?.iter();
    for byte in out.iter_mut() {
        let slot = state % SCALE;
        let symbol = *symbol_at.get(slot as usize)?;
        let (freq, start) = (freqs[usize::from(symbol)], starts[usize::from(symbol)]);
        // A damaged state may exceed its range. Wrapping avoids a panic; the final check finds the damage.
        state = freq.wrapping_mul(state >> SCALE_BITS).wrapping_add(slot).wrapping_sub(start);
        while state < LOW {
            state = state << 8 | u32::from(*stream.next()?);
        }
        *byte = symbol;
    }
    (state == LOW && stream.next().is_none()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(coded: &[u8], len: usize) -> Option<Vec<u8>> {
        let mut out = vec![0; len];
        decode(coded, &mut out).map(|()| out)
    }

    #[test]
    fn sparse_bytes_come_near_their_entropy() {
        let mut rng = fastrand::Rng::with_seed(1);
        for fill in [0.001, 0.01, 0.1, 0.25] {
            let byte = |rng: &mut fastrand::Rng| (0..8).fold(0, |b, i| b | u8::from(rng.f64() < fill) << i);
            let block: Vec<u8> = (0..1 << 20).map(|_| byte(&mut rng)).collect();
            let coded = encode(&block).unwrap();
            let entropy = -fill * fill.log2() - (1.0 - fill) * (1.0 - fill).log2();
            let bits = coded.len() as f64 / block.len() as f64;
            assert!(bits < entropy * 1.03 + 0.0005, "fill {fill}: {bits} bits a bit, entropy {entropy}");
            assert_eq!(decoded(&coded, block.len()).unwrap(), block);
        }
    }

    #[test]
    fn random_bytes_are_left_alone_and_equal_ones_vanish() {
        let mut rng = fastrand::Rng::with_seed(2);
        assert_eq!(encode(&(0..10_000).map(|_| rng.u8(..)).collect::<Vec<_>>()), None);
        let zeros = vec![0; 1 << 20];
        let coded = encode(&zeros).unwrap();
        assert_eq!((coded.len(), decoded(&coded, zeros.len())), (9, Some(zeros)));
    }

    proptest! {
        #[test]
        fn what_is_coded_decodes(block in proptest::collection::vec(0u8..7, 1..3000)) {
            if let Some(coded) = encode(&block) {
                prop_assert!(coded.len() < block.len());
                prop_assert_eq!(decoded(&coded, block.len()).unwrap(), block);
            }
        }

        #[test]
        fn rare_symbols_beside_a_frequent_one_decode(rare in proptest::collection::vec(any::<u8>(), 1..300)) {
            let mut block = vec![9; 200_000];
            block.iter_mut().step_by(600).zip(&rare).for_each(|(to, from)| *to = *from);
            prop_assert_eq!(decoded(&encode(&block).unwrap(), block.len()).unwrap(), block);
        }

        #[test]
        fn damaged_blocks_never_panic(
            block in proptest::collection::vec(0u8..3, 200..900), at: usize, to: u8, cut: usize, noise: Vec<u8>,
        ) {
            let mut coded = encode(&block).unwrap();
            let len = coded.len();
            coded[at % len] = to;
            decoded(&coded, block.len());
            prop_assert_eq!(decoded(&coded[..cut % len], block.len()), None);
            decoded(&noise, 100);
        }
    }
}
