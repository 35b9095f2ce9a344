//! Encodes values with a symbol table ([`symbols`](super::symbols)).

use super::format::SYMBOLS_MAX;
use super::runs::encode_runs;
use super::symbol_decoder::{ESCAPE, RUN, ZEROS};
use super::symbols::Symbols;
use std::sync::Arc;

/// A run is written if it saves more than its code and its length.
const RUN_BYTES: usize = 2;
/// A run ends where its bytes would take this much less as symbols.
const LOSS_MAX: isize = 4;

/// Fewer zeros are coded one by one.
const ZEROS_MIN: usize = 4;

/// Symbols must save a sixteenth of what runs alone take: they cost many times as much to find.
const SYMBOLS_SHARE_MIN: usize = 16;

/// Codes values.
pub struct SymbolEncoder {
    /// `None` if values are coded as runs.
    compressor: Option<fsst::Compressor>,
    symbols: Arc<Symbols>,
}

impl SymbolEncoder {
    /// Chooses the codes for values like these: symbols, or runs if symbols would save little. `None` if a
    /// symbol table cannot be made.
    pub fn train(sample: &Vec<&[u8]>) -> Option<Self> {
        let runs = SymbolEncoder { compressor: None, symbols: Arc::new(Symbols::none()) };
        let symbols = SymbolEncoder::with_symbols(sample)?;
        let [of_runs, of_symbols] = [&runs, &symbols].map(|encoder| {
            let mut codes = Vec::new();
            let lens = sample.iter().map(|value| {
                encoder.encode_into(value, &mut codes);
                codes.len()
            });
            lens.sum::<usize>()
        });
        Some(if of_symbols + of_runs / SYMBOLS_SHARE_MIN > of_runs { runs } else { symbols })
    }

    fn with_symbols(sample: &Vec<&[u8]>) -> Option<Self> {
        let mut compressor = fsst::Compressor::train(sample);
        if compressor.n_symbols() > SYMBOLS_MAX {
            let symbols = compressor.symbol_table().get(..SYMBOLS_MAX)?;
            let lens = compressor.symbol_lengths().get(..SYMBOLS_MAX)?;
            compressor = fsst::Compressor::rebuild_from(symbols, lens);
        }
        let lens = compressor.symbol_lengths().get(..compressor.n_symbols())?;
        let count = u8::try_from(lens.len()).ok().filter(|&count| count > 0)?; // 0 stands for runs.
        let mut table = vec![count];
        table.extend_from_slice(lens);
        for (symbol, &len) in compressor.symbol_table().iter().zip(lens) {
            table.extend_from_slice(symbol.to_u64().to_le_bytes().get(..len.into())?);
        }
        let symbols = Arc::new(Symbols::parse(&table)?);
        Some(SymbolEncoder { compressor: Some(compressor), symbols })
    }

    /// The table.
    pub fn symbols(&self) -> &Arc<Symbols> {
        &self.symbols
    }

    /// Replaces the contents of `out` with the codes of a value.
    pub fn encode_into(&self, value: &[u8], out: &mut Vec<u8>) {
        out.clear();
        let Some(compressor) = &self.compressor else { return encode_runs(value, out) };
        let codes = compressor.compress(value);
        if !codes.contains(&ESCAPE) && !value.contains(&0) {
            out.extend_from_slice(&codes);
            return;
        }
        let (mut at, mut read) = (0, 0);
        while let Some(&code) = codes.get(at) {
            let zeros = self.zeros_at(&codes, at, value, read);
            if zeros.bytes >= ZEROS_MIN {
                out.extend([ZEROS, zeros.bytes as u8]);
                (at, read) = (at + zeros.codes, read + zeros.bytes);
                continue;
            }
            let run = if code == ESCAPE { self.run_at(&codes, at) } else { Span::default() };
            if run.bytes > 0 {
                out.extend([RUN, run.bytes as u8]);
                out.extend_from_slice(value.get(read..read + run.bytes).unwrap_or_default());
                (at, read) = (at + run.codes, read + run.bytes);
                continue;
            }
            let step = self.step(code);
            out.extend_from_slice(codes.get(at..at + step.codes).unwrap_or_default());
            (at, read) = (at + step.codes, read + step.bytes);
        }
    }

    /// The codes from `at` on that stand for zeros only, which the value has from `read` on.
    #[inline]
    fn zeros_at(&self, codes: &[u8], at: usize, value: &[u8], read: usize) -> Span {
        let mut span = Span::default();
        let rest = value.get(read..).unwrap_or_default();
        let zeros = rest.iter().take(usize::from(u8::MAX)).take_while(|byte| **byte == 0).count();
        while let Some(&code) = codes.get(at + span.codes) {
            let step = self.step(code);
            if span.bytes + step.bytes > zeros {
                break;
            }
            span = Span { codes: span.codes + step.codes, bytes: span.bytes + step.bytes };
        }
        span
    }

    /// The codes that a run in their place should replace, from the escape at `at` on; none if that saves
    /// nothing.
    fn run_at(&self, codes: &[u8], at: usize) -> Span {
        let (mut best, mut span) = (Span::default(), Span::default());
        let (mut saved, mut saved_most) = (0, 0);
        while let Some(&code) = codes.get(at + span.codes) {
            let step = self.step(code);
            span = Span { codes: span.codes + step.codes, bytes: span.bytes + step.bytes };
            saved += step.codes as isize - step.bytes as isize;
            if span.bytes > usize::from(u8::MAX) || saved < saved_most - LOSS_MAX {
                break;
            }
            if saved > saved_most {
                saved_most = saved;
                if saved > RUN_BYTES as isize {
                    best = span;
                }
            }
        }
        best
    }

    /// A code with the byte that it escapes, and what it stands for.
    #[inline]
    fn step(&self, code: u8) -> Span {
        if code == ESCAPE {
            Span { codes: 2, bytes: 1 }
        } else {
            Span { codes: 1, bytes: self.symbols.len_of(code).max(1) }
        }
    }
}

/// A part of a value: the length of its codes, and its own.
#[derive(Clone, Copy, Default)]
struct Span {
    codes: usize,
    bytes: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn decoded(symbols: &Symbols, coded: &[u8]) -> Option<Vec<u8>> {
        symbols.decode(coded, 0..coded.len(), <[u8]>::to_vec)
    }

    fn encoded(encoder: &SymbolEncoder, value: &[u8]) -> Vec<u8> {
        let mut codes = b"leftovers".to_vec();
        encoder.encode_into(value, &mut codes);
        codes
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
            let refs: Vec<&[u8]> = sample.iter().map(Vec::as_slice).collect();
            let encoders = [trained(&sample), SymbolEncoder::with_symbols(&refs)].into_iter().flatten();
            for encoder in encoders {
            let symbols = encoder.symbols();
            prop_assert_eq!(&Symbols::parse(symbols.encoded()).unwrap(), &**symbols);
            let zeros = |noise: &[u8]| vec![0; noise.first().copied().unwrap_or(0) as usize * 3];
            let mixed = sample.iter().zip(&noise).map(|(text, noise)| [&text[..], noise, &zeros(noise), text].concat());
            for value in sample.iter().cloned().chain(noise.iter().cloned()).chain(mixed).chain([Vec::new(), vec![0; 1000]]) {
                let codes = encoded(&encoder, &value);
                prop_assert_eq!(decoded(symbols, &codes).unwrap(), value);
            }
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
        let sum: usize = (600..700).map(|n| encoded(&encoder, &value(n)).len()).sum();
        assert!(sum < 100 * 65, "{sum} bytes for 100 values with 40 bytes of noise each");
    }
}
