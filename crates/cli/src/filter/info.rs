//! `sidebloom filter info`: describes filters, and the rate of several together.

use crate::context::{Context, Failure, Outcome};
use crate::human;
use sidebloom::filter::{AnyFilter, Bloom, FilterKind, NoisyBloom, Plan};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Print a filter's kind, size, keys and false-positive rate
///
/// For several filters, also prints the rate at which absent lines pass all of them, as with
/// `filter check --and`. For Bloom filters, such as noisy ones, it is the product of their rates if all
/// differ in hash or seed. Otherwise it is at most the lowest of their rates.
#[derive(clap::Args)]
pub struct Args {
    /// The filters
    #[arg(required = true, value_name = "FILTER")]
    filters: Vec<PathBuf>,
}

/// Several filters, probed together.
#[derive(serde::Serialize)]
struct Together {
    filters: Vec<Report>,
    /// The rate of absent keys that pass all of them.
    fpr: f64,
    /// Whether they err independently. If that is unknown, `fpr` is an upper bound.
    independent: bool,
}

/// A filter's properties. Fields that its kind lacks are left out.
#[derive(serde::Serialize, Default)]
pub struct Report {
    file: String,
    kind: &'static str,
    keys: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity: Option<u64>,
    /// Its lines, or the coded values of a small filter.
    filter_bytes: u64,
    file_bytes: u64,
    /// `None` while it is empty.
    bits_per_key: Option<f64>,
    /// The current rate, computed from the set bits where possible.
    fpr: f64,
    /// `None` if the key is secret.
    seed: Option<u64>,
    hash: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    k: Option<u32>,
    /// Lanes of a parity filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    /// Share of the bits, or counters, that are set.
    #[serde(skip_serializing_if = "Option::is_none")]
    fill: Option<f64>,
    /// Distinct keys, estimated from the set bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_keys: Option<f64>,
    /// Counters stuck at their limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    saturated: Option<u64>,
    /// The b of a small filter's rate, 2^−b.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_bits: Option<u32>,
    /// Filters of a series.
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<usize>,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let (mut reports, mut filters) = (Vec::new(), Vec::new());
        for path in &self.filters {
            let filter = sidebloom::read_filter(path)?;
            let meta = std::fs::metadata(path).map_err(|e| Failure::file("read", path, e))?;
            reports.push(Report::new(path, &filter, meta.len()));
            filters.push(filter);
        }
        match &*reports {
            [one] => one.print(cx)?,
            _ => Together::new(reports, filters).print(cx)?,
        }
        Ok(Outcome::Found)
    }
}

impl Together {
    fn new(reports: Vec<Report>, filters: Vec<AnyFilter>) -> Self {
        let least = reports.iter().map(|report| report.fpr).fold(1.0, f64::min);
        let bloom = |filter| match filter {
            AnyFilter::Bloom(filter) => Some(filter),
            _ => None,
        };
        let parts: Option<Vec<Bloom>> = filters.into_iter().map(bloom).collect();
        let noisy = parts.and_then(|parts| NoisyBloom::from_parts(parts).ok());
        let fpr = noisy.as_ref().map_or(least, NoisyBloom::fpr);
        Together { filters: reports, fpr, independent: noisy.is_some() }
    }

    fn print(&self, cx: &Context) -> Result<(), Failure> {
        cx.report(self, |out| {
            self.filters.iter().try_for_each(|report| report.write(out))?;
            let (count, rate) = (self.filters.len(), human::percent(self.fpr, 1.0));
            if self.independent {
                writeln!(out, "all {count}  {rate} of absent keys pass")?
            } else {
                writeln!(out, "all {count}  at most {rate} of absent keys pass: they may err together")?
            }
            Ok(())
        })
    }
}

impl Report {
    pub fn new(path: &Path, filter: &AnyFilter, file_bytes: u64) -> Self {
        let keys = filter.keys();
        let filter_bytes = match filter {
            AnyFilter::Small(filter) => filter.coded_bytes(),
            other => other.bytes(),
        };
        let report = Report {
            file: path.display().to_string(),
            kind: filter.name(),
            keys,
            capacity: filter.capacity(),
            filter_bytes,
            file_bytes,
            bits_per_key: (keys > 0).then(|| 8.0 * filter_bytes as f64 / keys as f64),
            fpr: filter.fpr(),
            ..Report::default()
        };
        let planned = |report: Report, plan: &Plan| Report {
            seed: plan.hash.seed(),
            hash: plan.hash.name(),
            k: Some(plan.shape.hashes()),
            ..report
        };
        match filter {
            AnyFilter::Lines(filter) => {
                let report = Report {
                    seed: filter.hasher().seed(),
                    hash: filter.hasher().function().name(),
                    ..report
                };
                match filter.built().kind {
                    FilterKind::BlockedBloom { k } => Report { k: Some(k), ..report },
                    FilterKind::Parity { width, .. } => Report { width: Some(width.number()), ..report },
                }
            }
            AnyFilter::Bloom(filter) => Report {
                fill: Some(filter.fill()),
                estimated_keys: Some(filter.estimated_keys()),
                ..planned(report, filter.plan())
            },
            AnyFilter::Counting(filter) => Report {
                fill: Some(filter.ones() as f64 / filter.plan().shape.bits() as f64),
                saturated: Some(filter.saturated()),
                ..planned(report, filter.plan())
            },
            AnyFilter::Scalable(filter) => Report {
                seed: filter.series().hash.seed(),
                hash: filter.series().hash.name(),
                layers: Some(filter.layers().len()),
                ..report
            },
            AnyFilter::Small(filter) => Report {
                seed: filter.hasher().seed(),
                hash: filter.hasher().function().name(),
                rate_bits: Some(filter.rate_bits()),
                ..report
            },
            // The enum may grow; every kind has these fields.
            _ => report,
        }
    }

    /// Prints it as JSON or as text.
    pub fn print(&self, cx: &Context) -> Result<(), Failure> {
        cx.report(self, |out| self.write(out))
    }

    fn write(&self, out: &mut impl Write) -> Result<(), Failure> {
        let bits = self.bits_per_key.map_or(String::new(), |bits| format!(", {bits:.2} bits per key"));
        let known = |name: &str, value: Option<String>| value.map(|value| format!(", {name} {value}"));
        let details = [
            known("k", self.k.map(|k| k.to_string())),
            known("width", self.width.map(|width| width.to_string())),
            known("b", self.rate_bits.map(|bits| bits.to_string())),
            known("filters", self.layers.map(|layers| layers.to_string())),
            known("set", self.fill.map(|fill| human::percent(fill, 1.0))),
            known(
                "about",
                self.estimated_keys.map(|n| format!("{} keys by its set bits", human::count(n as u64))),
            ),
            known("saturated", self.saturated.map(human::count)),
        ];
        let details: String = details.into_iter().flatten().collect();
        let capacity = self.capacity.map_or(String::new(), |n| format!(" of at most {}", human::count(n)));
        writeln!(out, "{}: {}{details}", self.file, self.kind)?;
        writeln!(out, "keys   {}{capacity}", human::count(self.keys))?;
        writeln!(out, "size   {}{bits}", human::bytes(self.filter_bytes as f64))?;
        writeln!(out, "rate   {} of absent keys pass", human::percent(self.fpr, 1.0))?;
        let seed = self.seed.map_or("a secret key".to_owned(), |seed| format!("seed {seed}"));
        Ok(writeln!(out, "hash   {}, {seed}", self.hash)?)
    }
}
