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

use super::files;
use super::input::{Lines, can_be_read_twice};
use super::sorter::LineHashSorter;
use crate::context::{Context, Failure, Outcome};
use crate::human::parse_rate;
use sidebloom::KeyHasher;
use sidebloom::filter::{
    AnyFilter, Bloom, CountingBloom, FilterKind, HashFunction, LineFilter, Plan, ScalableBloom, Series,
    Shape, SortHashes, Width, sizing,
};
use std::path::{Path, PathBuf};

/// Build a filter of all lines
///
/// A file is read twice: to count its lines, which decide the size, and to add them. Standard input cannot be: say --keys, or choose
/// --kind scalable. All kinds are filled in place, in memory. For a parity filter, whose lines are read once, the hashes of all lines are sorted
/// before: more than two million of them take 8 bytes of disk each, in the directory for temporary files (TMPDIR). A filter that is smaller
/// than its lines need is refused (exit code 2), never written with a worse rate.
///
/// Where lines are removed, lines that somebody has chosen to pass would take others with them. A counting filter therefore hashes under a secret
/// key of its own, which stands in the file. The seed of the other hashes, 0 unless --seed says otherwise, is no secret.
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
    /// The hash of kinds bloom, counting and scalable [default: siphash for kind counting, else xxh3]
    #[arg(long, value_enum)]
    hash: Option<Hash>,
    /// The seed of xxh3 or murmur3 [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Hash as this filter does, secret key included: filters can be combined only when their hash is the same
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["hash", "seed"])]
    same_hash_as: Option<PathBuf>,
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
    /// Under a new secret key: without it, nobody can choose lines that pass
    Siphash,
}

const DEFAULT_FPP: f64 = 0.01;

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let by_line = matches!(self.kind, Kind::Parity | Kind::Blocked);
        if by_line && (self.hash.is_some() || self.same_hash_as.is_some()) {
            return Err(Failure::message(
                "--hash and --same-hash-as have no meaning for kinds parity and blocked: theirs is xxh3",
            ));
        }
        if self.hash == Some(Hash::Siphash) && self.seed.is_some() {
            return Err(Failure::message(
                "--seed has no meaning for siphash, whose key is secret: use --same-hash-as to share it",
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
        files::write(cx, &self.output, &filter)?;
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
        let mut hashes = LineHashSorter::new()?;
        Lines::open(&self.lines, "hashing")?
            .for_each(|line| hashes.push(KeyHasher::from(self.seed()).hash(line)))?;
        Ok(AnyFilter::Lines(LineFilter::from_sorter(width, hashes, self.seed())?))
    }

    fn blocked(&self, keys: u64) -> Result<LineFilter, Failure> {
        let bits = match self.bits_per_key {
            Some(bits) => bits,
            None => blocked_bits(keys, self.fpp.unwrap_or(DEFAULT_FPP))?,
        };
        Ok(LineFilter::empty_blocked(keys, bits, self.seed())?)
    }

    fn plan(&self, keys: u64) -> Result<Plan, Failure> {
        let hash = self.hash()?;
        match self.bits_per_key {
            None => Ok(Plan { hash, ..Plan::new(keys, self.fpp.unwrap_or(DEFAULT_FPP))? }),
            Some(bits) => {
                let shape = Shape::with_bits_per_key(keys, bits)?;
                // The rate that the keys give this size, and a little over, so that rounding does not cost the last key its room.
                let fpr = (shape.fpr(keys) * 1.001).min(0.999_999);
                Ok(Plan { shape, hash, fpr })
            }
        }
    }

    fn scalable(&self) -> Result<ScalableBloom, Failure> {
        if self.bits_per_key.is_some() {
            return Err(Failure::message("--bits-per-key has no meaning for kind scalable: use --fpp"));
        }
        let (first_keys, fpr) = (self.keys.unwrap_or(10_000), self.fpp.unwrap_or(DEFAULT_FPP));
        Ok(ScalableBloom::with_series(Series { first_keys, fpr, hash: self.hash()? })?)
    }

    fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// Of the kinds that have a choice.
    fn hash(&self) -> Result<HashFunction, Failure> {
        if let Some(other) = &self.same_hash_as {
            return hash_of(other);
        }
        // A seed names a hash that has one.
        let is_secret = self.kind == Kind::Counting && self.seed.is_none();
        match self.hash {
            Some(Hash::Siphash) => Ok(HashFunction::secret()?),
            None if is_secret => Ok(HashFunction::secret()?),
            Some(Hash::Murmur3) => Ok(HashFunction::Murmur3(self.seed())),
            Some(Hash::Xxh3) | None => Ok(HashFunction::Xxh3(self.seed())),
        }
    }

    fn filled(&self, mut filter: AnyFilter) -> Result<AnyFilter, Failure> {
        Lines::open(&self.lines, "adding")?.for_each_batch(|lines| Ok(filter.insert_many(lines)?))?;
        Ok(filter)
    }
}

/// How a filter of the family hashes.
fn hash_of(path: &Path) -> Result<HashFunction, Failure> {
    match sidebloom::read_filter(path)? {
        AnyFilter::Bloom(filter) => Ok(filter.plan().hash),
        AnyFilter::Counting(filter) => Ok(filter.plan().hash),
        AnyFilter::Scalable(filter) => Ok(filter.series().hash),
        other => Err(Failure::message(format!(
            "--same-hash-as {}: kind {} has another hash than kinds bloom, counting and scalable",
            path.display(),
            other.name()
        ))),
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
