//! `sidebloom filter build`: builds a filter of all lines.
//!
//! # Measured
//! On an Intel Xeon (Sapphire Rapids), for the lines 1 to 100 million (`seq 100000000`),
//! `--kind parity --fpp 0.4%` takes 14 s and at most 149 MiB (`/usr/bin/time -v`) for a filter of 105 MiB,
//! and 800 MB of temporary disk space; `--kind blocked` at the same rate takes 8.6 s and 150 MiB for a filter
//! of 144 MiB. `filter check` probes them with 50 million other numbers in 2.5 s. `seq 50000000` at 1 %:
//!
//! | kind | build | most memory | check of 30 million others |
//! |---|---|---|---|
//! | blocked | 3.6 s | 66 MiB | 1.1 s |
//! | bloom | 8.5 s | 64 MiB | 3.8 s |
//! | counting | 14 s | 236 MiB | 4.7 s |
//! | scalable, from 10,000 on | 56 s | 175 MiB | 40 s |

use super::files;
use super::input::{InputLines, can_be_read_twice};
use super::sorter::LineHashSorter;
use crate::context::{Context, Failure, Outcome};
use crate::human::parse_rate;
use sidebloom::KeyHasher;
use sidebloom::filter::{
    AnyFilter, Bloom, CountingBloom, HashFunction, LineFilter, Plan, ScalableBloom, Series, Shape,
    SmallFilter, SortHashes, Width,
};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Build a filter of all lines
///
/// A file is read twice: once to count its lines, which determine the size, and once to add them. Standard
/// input can be read only once, so give --keys or choose --kind scalable. Kinds parity and small read their
/// lines only once anyway. Filters are filled in memory. A parity filter sorts the hashes of its lines;
/// beyond two million, each hash takes 8 bytes of disk space in the directory for temporary files (TMPDIR). A
/// filter never gets a worse rate than requested: if the lines do not fit, nothing is written and the exit
/// code is 2.
///
/// --noisy makes a Bloom filter with a high rate and a random seed, so no two filters of a list are alike.
/// Such a filter says little about any line, since a line that passes may well be a false positive; a line
/// that it denies is certainly absent. Several of them err independently, and `filter check --and` narrows
/// them down to the list: of the absent lines, r filters of rate q pass q^r. Each further filter reveals more
/// of the list, so give nobody more filters than they may learn from.
///
/// Whoever could choose a line that collides with others could remove them with it. So a counting filter
/// hashes with a secret key, which is stored in its file. The seed of the other hashes (0 unless --seed is
/// given) is not secret.
#[derive(clap::Args)]
pub struct Args {
    /// The lines; `-` is standard input
    lines: PathBuf,
    /// Lines end in NUL instead of LF
    #[arg(short = '0', long)]
    null: bool,
    /// The file to write; an existing file is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// What to build
    #[arg(long, value_enum, required_unless_present = "noisy")]
    kind: Option<BuildKind>,
    /// A Bloom filter with many false positives and a random seed, to give away: says little alone, but much
    /// together with others of the same list
    #[arg(long, conflicts_with_all = ["kind", "bits_per_key", "hash", "seed", "same_hash_as"])]
    noisy: bool,
    /// False-positive rate, as 0.01 or 1% [default: 1%; with --noisy 25%]
    #[arg(long, value_name = "RATE", value_parser = parse_rate, conflicts_with = "bits_per_key")]
    fpp: Option<f64>,
    /// Bits per line instead; for kind counting, counters per line
    #[arg(long, value_name = "BITS")]
    bits_per_key: Option<f64>,
    /// Number of distinct lines; for kind scalable, the capacity of the first filter [default: 10000]
    #[arg(long, value_name = "N")]
    keys: Option<u64>,
    /// Hash function for kinds bloom, counting and scalable [default: siphash for kind counting, else xxh3]
    #[arg(long, value_enum)]
    hash: Option<Hash>,
    /// The seed of xxh3 or murmur3 [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Use the hash function, seed and secret key of this filter, so that the filters can be combined
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["hash", "seed"])]
    same_hash_as: Option<PathBuf>,
}

/// Kinds of filters, each with its strength.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum BuildKind {
    /// Smallest; cannot take more lines once built
    Parity,
    /// One cache line per probe; can take more lines
    Blocked,
    /// Supports union, intersect, overlap and fold
    Bloom,
    /// Supports remove; four times the memory
    Counting,
    /// For an unknown number of lines
    Scalable,
    /// For messages: smallest up to a few hundred lines, 65,536 at most; cannot take more lines once built
    Small,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Hash {
    Xxh3,
    Murmur3,
    /// Keyed with a new secret, so that nobody can choose colliding lines
    Siphash,
}

const DEFAULT_FPP: f64 = 0.01;
/// The rate of a noisy filter: two positions of a line in 2.9 bits.
const NOISY_FPP: f64 = 0.25;

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let filter = match self.kind {
            Some(kind) => self.of_kind(kind)?,
            None => self.noisy()?,
        };
        files::write(cx, &self.output, &filter)?;
        Ok(Outcome::Found)
    }

    fn of_kind(&self, kind: BuildKind) -> Result<AnyFilter, Failure> {
        let has_one_hash = matches!(kind, BuildKind::Parity | BuildKind::Blocked | BuildKind::Small);
        if has_one_hash && (self.hash.is_some() || self.same_hash_as.is_some()) {
            return Err(Failure::message(
                "--hash and --same-hash-as do not apply to kinds parity, blocked and small, which always use xxh3",
            ));
        }
        if self.hash == Some(Hash::Siphash) && self.seed.is_some() {
            return Err(Failure::message(
                "--seed does not apply to siphash, whose key is random: use --same-hash-as to share it",
            ));
        }
        match kind {
            BuildKind::Parity => self.parity(),
            BuildKind::Blocked => self.filled(AnyFilter::Lines(self.blocked(self.count()?)?)),
            BuildKind::Bloom => self.filled(AnyFilter::Bloom(Bloom::with_plan(self.plan(self.count()?)?)?)),
            BuildKind::Counting => {
                self.filled(AnyFilter::Counting(CountingBloom::with_plan(self.plan(self.count()?)?)?))
            }
            BuildKind::Scalable => self.filled(AnyFilter::Scalable(self.scalable()?)),
            BuildKind::Small => self.small(),
        }
    }

    /// One part of a [`NoisyBloom`](sidebloom::filter::NoisyBloom). Own seeds make them independent.
    fn noisy(&self) -> Result<AnyFilter, Failure> {
        let plan = Plan::new(self.count()?, self.fpp.unwrap_or(NOISY_FPP))?;
        let hash = HashFunction::random()?;
        self.filled(AnyFilter::Bloom(Bloom::with_plan(Plan { hash, ..plan })?))
    }

    /// The number of lines that the filter is sized for: at least one.
    fn count(&self) -> Result<u64, Failure> {
        match self.keys {
            Some(0) => Err(Failure::message("--keys must be at least 1")),
            Some(keys) => Ok(keys),
            None if can_be_read_twice(&self.lines)? => {
                Ok(self.open("counting")?.for_each(|_| Ok(()))?.max(1))
            }
            None => Err(Failure::message(format!(
                "{} can be read only once: give the number of lines with --keys, or choose --kind scalable",
                self.lines.display()
            ))),
        }
    }

    fn open(&self, label: &str) -> Result<InputLines, Failure> {
        Ok(InputLines::open(&self.lines, label)?.ending_in_nul(self.null))
    }

    fn parity(&self) -> Result<AnyFilter, Failure> {
        // Widths to try, until one reaches the requested rate.
        let most = if self.bits_per_key.is_some() { 1.0 } else { self.fpp.unwrap_or(DEFAULT_FPP) };
        let mut widths: Vec<Width> = Width::ALL.into_iter().filter(|width| width.fpr() <= most).collect();
        if let Some(bits) = self.bits_per_key {
            widths.retain(|width| width.bits_per_key() <= bits);
            widths.reverse();
        }
        if widths.is_empty() {
            return Err(Failure::message(format!(
                "no such parity filter: they have {:.2} to {:.2} bits per key and false-positive rates of {:.2e} to {:.2e}",
                Width::Seven.bits_per_key(),
                Width::Sixteen.bits_per_key(),
                Width::Seven.fpr(),
                Width::Sixteen.fpr()
            )));
        }
        let mut hashes = LineHashSorter::new();
        self.open("hashing")?.for_each(|line| hashes.push(KeyHasher::from(self.seed()).hash(line)))?;
        let filter = LineFilter::parity_from_sorter_at(most, widths, &mut hashes, self.seed())?;
        Ok(AnyFilter::Lines(filter))
    }

    fn small(&self) -> Result<AnyFilter, Failure> {
        let mut of_all = 1..=SmallFilter::MAX_RATE_BITS;
        let rate_bits = match (self.bits_per_key, self.fpp.unwrap_or(DEFAULT_FPP)) {
            (Some(bits), _) => of_all.rfind(|&b| SmallFilter::bits_per_key(b) <= bits),
            (None, fpp) => of_all.find(|&b| 0.5f64.powi(b as i32) <= fpp),
        };
        let Some(rate_bits) = rate_bits else {
            return Err(Failure::message(format!(
                "no such small filter: they have {:.2} to {:.2} bits per key and false-positive rates of 0.5 to {:.2e}",
                SmallFilter::bits_per_key(1),
                SmallFilter::bits_per_key(SmallFilter::MAX_RATE_BITS),
                0.5f64.powi(SmallFilter::MAX_RATE_BITS as i32),
            )));
        };
        let mut lines = self.open("hashing")?;
        let (hasher, mut hashes) = (KeyHasher::from(self.seed()), HashSet::new());
        // One more than fits is enough to refuse the lines.
        while hashes.len() <= SmallFilter::MAX_KEYS
            && let Some(line) = lines.next()?
        {
            hashes.insert(hasher.hash(line));
        }
        Ok(AnyFilter::Small(SmallFilter::from_hashes(rate_bits, hashes, hasher)?))
    }

    fn blocked(&self, keys: u64) -> Result<LineFilter, Failure> {
        Ok(match self.bits_per_key {
            Some(bits) => LineFilter::empty_blocked(keys, bits, self.seed())?,
            None => LineFilter::empty_blocked_at(self.fpp.unwrap_or(DEFAULT_FPP), keys, self.seed())?,
        })
    }

    fn plan(&self, keys: u64) -> Result<Plan, Failure> {
        let hash = self.hash()?;
        match self.bits_per_key {
            None => Ok(Plan { hash, ..Plan::new(keys, self.fpp.unwrap_or(DEFAULT_FPP))? }),
            Some(bits) => {
                let shape = Shape::with_bits_per_key(keys, bits)?;
                // The rate of this size with all keys in it, plus a little, so that rounding does not reject
                // the last key.
                let fpr = (shape.fpr(keys) * 1.001).min(0.999_999);
                Ok(Plan { shape, hash, fpr })
            }
        }
    }

    fn scalable(&self) -> Result<ScalableBloom, Failure> {
        if self.bits_per_key.is_some() {
            return Err(Failure::message("--bits-per-key does not apply to kind scalable: use --fpp"));
        }
        let (first_keys, fpr) = (self.keys.unwrap_or(10_000), self.fpp.unwrap_or(DEFAULT_FPP));
        Ok(ScalableBloom::with_series(Series { first_keys, fpr, hash: self.hash()? })?)
    }

    fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// The hash function, for the kinds that have a choice.
    fn hash(&self) -> Result<HashFunction, Failure> {
        if let Some(other) = &self.same_hash_as {
            return hash_of(other);
        }
        // A seed implies a hash function that takes one.
        let is_secret = self.kind == Some(BuildKind::Counting) && self.seed.is_none();
        match self.hash {
            Some(Hash::Siphash) => Ok(HashFunction::secret()?),
            None if is_secret => Ok(HashFunction::secret()?),
            Some(Hash::Murmur3) => Ok(HashFunction::Murmur3(self.seed())),
            Some(Hash::Xxh3) | None => Ok(HashFunction::Xxh3(self.seed())),
        }
    }

    fn filled(&self, mut filter: AnyFilter) -> Result<AnyFilter, Failure> {
        self.open("adding")?.for_each_batch(|lines| Ok(filter.insert_many(lines)?))?;
        Ok(filter)
    }
}

/// The hash function of an existing filter.
fn hash_of(path: &Path) -> Result<HashFunction, Failure> {
    match sidebloom::read_filter(path)? {
        AnyFilter::Bloom(filter) => Ok(filter.plan().hash),
        AnyFilter::Counting(filter) => Ok(filter.plan().hash),
        AnyFilter::Scalable(filter) => Ok(filter.series().hash),
        other => Err(Failure::message(format!(
            "--same-hash-as {}: a {} filter does not share its hash function with kinds bloom, counting and scalable",
            path.display(),
            other.name()
        ))),
    }
}
