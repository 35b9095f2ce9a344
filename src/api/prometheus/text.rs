//! The text of a family.

use super::family::{Family, Number, Values};
use crate::api::keyspace_stats::KeyspaceStats;
use crate::api::stats::Stats;
use crate::engine::latency::{Latencies, LatencyHistogram};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write};

/// The statistics of one store.
#[derive(Debug, Clone)]
pub(super) struct StoreMetrics {
    pub name: String,
    pub stats: Stats,
    pub keyspaces: BTreeMap<String, KeyspaceStats>,
}

/// The bounds of histograms are the powers of two of nanoseconds from 2^6, 64 ns, to 2^33, 8.6 s.
const BOUNDS: (u32, u32) = (6, 33);

/// Writes a family with the values of all stores. A family without values is left out.
pub(super) fn write_family(family: &Family, stores: &[StoreMetrics], out: &mut Formatter<'_>) -> fmt::Result {
    let mut samples = Samples { family, out, has_header: false };
    for store in stores {
        samples.write_store(store)?;
    }
    Ok(())
}

struct Samples<'a, 'f> {
    family: &'a Family,
    out: &'a mut Formatter<'f>,
    has_header: bool,
}

impl Samples<'_, '_> {
    fn write_store(&mut self, store: &StoreMetrics) -> fmt::Result {
        let name = ("store", store.name.as_str());
        match self.family.values {
            Values::Store(value) => self.write("", &[name], &value(&store.stats)),
            Values::MaybeStore(value) => {
                value(&store.stats).map_or(Ok(()), |value| self.write("", &[name], &value))
            }
            Values::By(label, values) => values(&store.stats)
                .iter()
                .try_for_each(|(of, value)| self.write("", &[name, (label, of)], value)),
            Values::Latencies => {
                let mut all = store.stats.latencies.iter().flat_map(Latencies::by_name);
                all.try_for_each(|(operation, times)| self.write_histogram(name, operation, times))
            }
            Values::Level(value) => store.stats.levels.iter().try_for_each(|level| {
                self.write("", &[name, ("level", &level.level.to_string())], &value(level))
            }),
            Values::Keyspace(value) => store.keyspaces.iter().try_for_each(|(keyspace, stats)| {
                self.write("", &[name, ("keyspace", keyspace)], &value(stats))
            }),
        }
    }

    fn write_histogram(
        &mut self,
        store: (&str, &str),
        operation: &str,
        times: &LatencyHistogram,
    ) -> fmt::Result {
        let operation = ("operation", operation);
        for (bound, below) in times.below_powers(BOUNDS.0, BOUNDS.1) {
            let bound = bound.as_secs_f64().to_string();
            self.write("_bucket", &[store, operation, ("le", &bound)], &below.into())?;
        }
        let count = times.count();
        self.write("_bucket", &[store, operation, ("le", "+Inf")], &count.into())?;
        self.write("_sum", &[store, operation], &times.sum().as_secs_f64().into())?;
        self.write("_count", &[store, operation], &count.into())
    }

    /// Writes one value. An empty label is the same as none.
    fn write(&mut self, suffix: &str, labels: &[(&str, &str)], value: &Number) -> fmt::Result {
        let Family { name, kind, help, .. } = self.family;
        if !std::mem::replace(&mut self.has_header, true) {
            writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {}", kind.name())?;
        }
        write!(self.out, "{name}{suffix}")?;
        let mut open = '{';
        for (label, value) in labels.iter().filter(|(_, value)| !value.is_empty()) {
            write!(self.out, "{open}{label}=\"{}\"", Escaped(value))?;
            open = ',';
        }
        writeln!(self.out, "{} {value}", if open == ',' { "}" } else { "" })
    }
}

impl Display for Number {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Number::Whole(n) => n.fmt(out),
            Number::Fraction(x) if x.is_infinite() => out.write_str(if *x > 0.0 { "+Inf" } else { "-Inf" }),
            Number::Fraction(x) => x.fmt(out),
        }
    }
}

/// A label's value as it is written between quotes.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\\' => out.write_str("\\\\"),
            '"' => out.write_str("\\\""),
            '\n' => out.write_str("\\n"),
            c => out.write_char(c),
        })
    }
}
