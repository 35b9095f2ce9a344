//! `sidebloom filter build`: a filter of all lines.
//!
//! # Measured
//! The numbers from 1 to 100 million as lines (`seq 100000000`), `--kind parity --fpp 0.4%`, on an Intel Xeon (Sapphire Rapids): 14 s and
//! at most 149 MiB (`/usr/bin/time -v`) for a filter of 105 MiB, with 800 MB of disk meanwhile; `--kind blocked` at the same rate takes
//! 8.6 s and 150 MiB for one of 144 MiB. `filter check` asks them for 50 million other numbers in 2.5 s. `seq 50000000` at 1 %:
//!
//! | kind | build | most memory | check of 30 million others |
//! |---|---|---|---|
//! | blocked | 3.6 s | 66 MiB | 1.1 s |
//! | bloom | 8.5 s | 64 MiB | 3.8 s |
//! | counting | 14 s | 236 MiB | 4.7 s |
//! | scalable, from 10,000 on | 56 s | 175 MiB | 40 s |

use super::input::{Lines, can_be_read_twice};
use super::sorter::Sorter;
use crate::cli::context::{Context, Failure, Outcome};
use crate::cli::human::parse_rate;
use sidebloom::KeyHasher;
use sidebloom::filter::{
    AnyFilter, Bloom, CountingBloom, FilterKind, HashFunction, LineFilter, Plan, ScalableBloom, Series,
    Shape, SortHashes, Width, sizing,
};
use std::path::PathBuf;

/// Build a filter of all lines
///
/// A file is read twice: to count its lines, which decide the size, and to add them. Standard input cannot be: say --keys, or choose
/// --kind scalable. All kinds are filled in place, in memory. For a parity filter, whose lines are read once, the hashes of all lines are sorted
/// before: more than two million of them take 8 bytes of disk each, in the directory for temporary files (TMPDIR). A filter that is smaller
/// than its lines need is refused (exit code 2), never written with a worse rate.
#[derive(clap::Args)]
pub struct Args {
    /// The lines; `-` is standard input
    lines: PathBuf,
    /// The file to write; one that is there is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// What to build
    #[arg(long, value_enum)]
    kind: Kind,
    /// The share of absent lines that may pass, as 0.01 or 1% [default: 1%]
    #[arg(long, value_name = "RATE", value_parser = parse_rate, conflicts_with = "bits_per_key")]
    fpp: Option<f64>,
    /// Bits for each line instead; of counters, for kind counting
    #[arg(long, value_name = "BITS")]
    bits_per_key: Option<f64>,
    /// How many distinct lines will come; for kind scalable, the first filter of the series [default: 10000]
    #[arg(long, value_name = "N")]
    keys: Option<u64>,
    /// The hash of kinds bloom, counting and scalable [default: xxh3]
    #[arg(long, value_enum)]
    hash: Option<Hash>,
    /// The seed of the hash; filters can be combined only when theirs is the same
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// Kinds of filters, by what they are good at.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// The smallest; takes no more lines once built
    Parity,
    /// One cache line a probe, and takes more lines
    Blocked,
    /// For union, intersect, overlap, fold
    Bloom,
    /// For remove; four times the memory
    Counting,
    /// For an unknown number of lines
    Scalable,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Hash {
    Xxh3,
    Murmur3,
}

const DEFAULT_FPP: f64 = 0.01;

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        if self.hash.is_some() && matches!(self.kind, Kind::Parity | Kind::Blocked) {
            return Err(Failure::message(
                "--hash has no meaning for kinds parity and blocked: theirs is xxh3",
            ));
        }
        let filter = match self.kind {
            Kind::Parity => self.parity()?,
            Kind::Blocked => self.filled(AnyFilter::Lines(self.blocked(self.count()?)?))?,
            Kind::Bloom => self.filled(AnyFilter::Bloom(Bloom::with_plan(self.plan(self.count()?)?)?))?,
            Kind::Counting => {
                self.filled(AnyFilter::Counting(CountingBloom::with_plan(self.plan(self.count()?)?)?))?
            }
            Kind::Scalable => self.filled(AnyFilter::Scalable(self.scalable()?))?,
        };
        super::write(cx, &self.output, &filter)?;
        Ok(Outcome::Found)
    }

    /// How many lines the filter is for: at least one.
    fn count(&self) -> Result<u64, Failure> {
        match self.keys {
            Some(0) => Err(Failure::message("--keys 0: a filter is for at least one line")),
            Some(keys) => Ok(keys),
            None if can_be_read_twice(&self.lines)? => {
                Ok(Lines::open(&self.lines, "counting")?.for_each(|_| Ok(()))?.max(1))
            }
            None => Err(Failure::message(format!(
                "{} can be read only once: say how many lines will come with --keys, or choose --kind scalable",
                self.lines.display()
            ))),
        }
    }

    fn parity(&self) -> Result<AnyFilter, Failure> {
        let width = match (self.bits_per_key, self.fpp.unwrap_or(DEFAULT_FPP)) {
            (Some(bits), _) => Width::ALL.into_iter().rev().find(|width| width.bits_per_key() <= bits),
            (None, fpp) => Width::ALL.into_iter().find(|width| width.fpr() <= fpp),
        };
        let Some(width) = width else {
            return Err(Failure::message(format!(
                "no parity filter is like that: they have {:.2} to {:.2} bits per key and let {:.2e} to {:.2e} through",
                Width::Seven.bits_per_key(),
                Width::Sixteen.bits_per_key(),
                Width::Seven.fpr(),
                Width::Sixteen.fpr()
            )));
        };
        let mut hashes = Sorter::new();
        Lines::open(&self.lines, "hashing")?
            .for_each(|line| hashes.push(KeyHasher::from(self.seed).hash(line)))?;
        Ok(AnyFilter::Lines(LineFilter::from_sorter(width, hashes, self.seed)?))
    }

    fn blocked(&self, keys: u64) -> Result<LineFilter, Failure> {
        let bits = match self.bits_per_key {
            Some(bits) => bits,
            None => blocked_bits(keys, self.fpp.unwrap_or(DEFAULT_FPP))?,
        };
        Ok(LineFilter::empty_blocked(keys, bits, self.seed)?)
    }

    fn plan(&self, keys: u64) -> Result<Plan, Failure> {
        let hash = self.hash();
        let seed = self.seed;
        match self.bits_per_key {
            None => Ok(Plan { hash, seed, ..Plan::new(keys, self.fpp.unwrap_or(DEFAULT_FPP))? }),
            Some(bits) => {
                let shape = Shape::with_bits_per_key(keys, bits)?;
                // The rate that the keys give this size, and a little over, so that rounding does not cost the last key its room.
                let fpr = (shape.fpr(keys) * 1.001).min(0.999_999);
                Ok(Plan { shape, hash, seed, fpr })
            }
        }
    }

    fn scalable(&self) -> Result<ScalableBloom, Failure> {
        if self.bits_per_key.is_some() {
            return Err(Failure::message("--bits-per-key has no meaning for kind scalable: use --fpp"));
        }
        let (first_keys, fpr) = (self.keys.unwrap_or(10_000), self.fpp.unwrap_or(DEFAULT_FPP));
        Ok(ScalableBloom::with_series(Series { first_keys, fpr, hash: self.hash(), seed: self.seed })?)
    }

    fn hash(&self) -> HashFunction {
        match self.hash {
            Some(Hash::Murmur3) => HashFunction::Murmur3,
            Some(Hash::Xxh3) | None => HashFunction::Xxh3,
        }
    }

    fn filled(&self, mut filter: AnyFilter) -> Result<AnyFilter, Failure> {
        Lines::open(&self.lines, "adding")?.for_each_batch(|lines| Ok(filter.insert_many(lines)?))?;
        Ok(filter)
    }
}

/// The least bits per key, to a hundredth, that keep a blocked Bloom filter at a rate.
fn blocked_bits(keys: u64, fpp: f64) -> Result<f64, Failure> {
    let fits = |bits: f64| -> Result<bool, Failure> {
        let lines = sizing::lines_for(keys, bits)? as u64;
        let kind = FilterKind::BlockedBloom { k: sizing::best_k(keys, lines) };
        Ok(kind.expected_fpr(keys, lines) <= fpp)
    };
    let (mut low, mut high) = (sizing::MIN_BITS_PER_KEY, sizing::MAX_BITS_PER_KEY);
    if !fits(high)? {
        return Err(Failure::message(format!("a blocked Bloom filter cannot reach {fpp}: use another kind")));
    }
    while high - low > 0.01 {
        let middle = f64::midpoint(low, high);
        if fits(middle)? { high = middle } else { low = middle }
    }
    Ok(high)
}
