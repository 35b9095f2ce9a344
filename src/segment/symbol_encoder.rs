//! Encodes values with a symbol table ([`symbols`](super::symbols)).

use super::format::SYMBOLS_MAX;
use super::symbols::{ESCAPE, RUN, Symbols, ZEROS};
use std::ops::Range;
use std::sync::Arc;

/// A run is written if it saves more than its code and its length.
const RUN_BYTES: usize = 2;
/// A run ends where its bytes would take this much less as symbols.
const LOSS_MAX: isize = 4;

/// Fewer zeros are coded one by one.
const ZEROS_MIN: usize = 4;

/// Codes values.
pub struct SymbolEncoder {
    compressor: fsst::Compressor,
    symbols: Arc<Symbols>,
}

impl SymbolEncoder {
    /// Chooses symbols for values like these. `None` if no symbol would help.
    pub fn train(sample: &Vec<&[u8]>) -> Option<Self> {
        let mut compressor = fsst::Compressor::train(sample);
        if compressor.n_symbols() > SYMBOLS_MAX {
            let symbols = compressor.symbol_table().get(..SYMBOLS_MAX)?;
            let lens = compressor.symbol_lengths().get(..SYMBOLS_MAX)?;
            compressor = fsst::Compressor::rebuild_from(symbols, lens);
        }
        let lens = compressor.symbol_lengths().get(..compressor.n_symbols())?;
        let mut table = vec![u8::try_from(lens.len()).ok()?];
        table.extend_from_slice(lens);
        for (symbol, &len) in compressor.symbol_table().iter().zip(lens) {
            table.extend_from_slice(symbol.to_u64().to_le_bytes().get(..len.into())?);
        }
        let symbols = Arc::new(Symbols::parse(&table)?);
        Some(SymbolEncoder { compressor, symbols })
    }

    /// The table.
    pub fn symbols(&self) -> &Arc<Symbols> {
        &self.symbols
    }

    /// The codes of a value.
    pub fn encode(&self, value: &[u8]) -> Vec<u8> {
        let Some(mut zeros) = zeros_in(value) else { return self.encode_part(value) };
        let (mut out, mut rest) = (Vec::new(), value);
        loop {
            out.extend(self.encode_part(rest.get(..zeros.start).unwrap_or_default()));
            for len in zeros.clone().step_by(usize::from(u8::MAX)).map(|from| zeros.end - from) {
                out.extend([ZEROS, u8::try_from(len).unwrap_or(u8::MAX)]);
            }
            rest = rest.get(zeros.end..).unwrap_or_default();
            match zeros_in(rest) {
                Some(next) => zeros = next,
                None => break,
            }
        }
        out.extend(self.encode_part(rest));
        out
    }

    fn encode_part(&self, part: &[u8]) -> Vec<u8> {
        let codes = self.compressor.compress(part);
        if codes.contains(&ESCAPE) { self.with_runs(&codes, part) } else { codes }
    }

    /// The codes of a value with runs in place of codes that take more space.
    fn with_runs(&self, codes: &[u8], value: &[u8]) -> Vec<u8> {
        let (mut out, mut at, mut read) = (Vec::with_capacity(codes.len()), 0, 0);
        while let Some(&code) = codes.get(at) {
            let (end, run) = if code == ESCAPE { self.run_at(codes, at) } else { (at, 0) };
            if run > 0 {
                out.extend([RUN, run as u8]);
                out.extend_from_slice(value.get(read..read + run).unwrap_or_default());
                (at, read) = (end, read + run);
            } else {
                let (len, bytes) = self.step(code);
                out.extend_from_slice(codes.get(at..at + len).unwrap_or_default());
                (at, read) = (at + len, read + bytes);
            }
        }
        out
    }

    /// Where the run that starts with the escape at `at` should end: after which codes, and after how many
    /// bytes. `at` and 0 if there should be none.
    fn run_at(&self, codes: &[u8], at: usize) -> (usize, usize) {
        let mut best = (at, 0);
        let (mut end, mut bytes, mut saved, mut saved_most) = (at, 0, 0, 0);
        while let Some(&code) = codes.get(end) {
            let (len, more) = self.step(code);
            (end, bytes) = (end + len, bytes + more);
            saved += len as isize - more as isize;
            if bytes > usize::from(u8::MAX) || saved < saved_most - LOSS_MAX {
                break;
            }
            if saved > saved_most {
                saved_most = saved;
                if saved > RUN_BYTES as isize {
                    best = (end, bytes);
                }
            }
        }
        best
    }

    /// The length of a code with the byte that it escapes, and of what it stands for.
    fn step(&self, code: u8) -> (usize, usize) {
        if code == ESCAPE { (2, 1) } else { (1, self.symbols.len_of(code).max(1)) }
    }
}

/// The first run of at least [`ZEROS_MIN`] zeros.
fn zeros_in(bytes: &[u8]) -> Option<Range<usize>> {
    let mut start = 0;
    loop {
        start += bytes.get(start..)?.iter().position(|byte| *byte == 0)?;
        let zeros = bytes.get(start..)?.iter().take_while(|byte| **byte == 0).count();
        if zeros >= ZEROS_MIN {
            return Some(start..start + zeros);
        }
        start += zeros;
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

    fn trained(sample: &[Vec<u8>]) -> Option<SymbolEncoder> {
        SymbolEncoder::train(&sample.iter().map(Vec::as_slice).collect())
    }

    proptest! {
        #[test]
        fn a_coded_value_decodes_to_itself(
            sample in vec(prop_oneof!["[a-d]{0,40}", "(song|album|title)[0-9]{0,4}"].prop_map(String::into_bytes), 1..60),
            noise in vec(vec(any::<u8>(), 0..600), 0..20),
        ) {
            let Some(encoder) = trained(&sample) else { return Ok(()) };
            let symbols = encoder.symbols();
            prop_assert_eq!(&Symbols::parse(symbols.encoded()).unwrap(), &**symbols);
            let zeros = |noise: &[u8]| vec![0; noise.first().copied().unwrap_or(0) as usize * 3];
            let mixed = sample.iter().zip(&noise).map(|(text, noise)| [&text[..], noise, &zeros(noise), text].concat());
            for value in sample.iter().cloned().chain(noise.iter().cloned()).chain(mixed) {
                let codes = encoder.encode(&value);
                prop_assert_eq!(decoded(symbols, &codes).unwrap(), value);
            }
        }
    }

    #[test]
    fn noise_takes_little_more_than_itself() {
        let noise = |n: u64| {
            (0..40)
                .map(|i| (n * 40 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0])
                .collect::<Vec<u8>>()
        };
        let value = |n: u64| [b"a frequent text, ".to_vec(), noise(n), vec![0; 50]].concat();
        let sample: Vec<_> = (0..600).map(value).collect();
        let encoder = trained(&sample).unwrap();
        let sum: usize = (600..700).map(|n| encoder.encode(&value(n)).len()).sum();
        assert!(sum < 100 * 65, "{sum} bytes for 100 values with 40 bytes of noise each");
    }
}
