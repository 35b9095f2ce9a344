//! What a metric family is: the name, the help and the values of one kind of metric.

use crate::api::keyspace_stats::KeyspaceStats;
use crate::api::stats::{LevelStats, Stats};

/// What a scraper may do with the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only rises while the store is open. The name ends in `_total`.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counters of values up to each of some bounds.
    Histogram,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// A value.
pub(super) enum Number {
    Whole(u64),
    Fraction(f64),
}

impl From<u64> for Number {
    fn from(n: u64) -> Self {
        Number::Whole(n)
    }
}

impl From<usize> for Number {
    fn from(n: usize) -> Self {
        Number::Whole(n as u64)
    }
}

impl From<bool> for Number {
    fn from(is: bool) -> Self {
        Number::Whole(is.into())
    }
}

impl From<f64> for Number {
    fn from(x: f64) -> Self {
        Number::Fraction(x)
    }
}

/// Where the values are.
pub(super) enum Values {
    /// One for the store.
    Store(fn(&Stats) -> Number),
    /// One for the store, if it has any.
    MaybeStore(fn(&Stats) -> Option<Number>),
    /// One for each value of this label.
    By(&'static str, fn(&Stats) -> Vec<(&'static str, Number)>),
    /// A histogram for each operation that is timed.
    Latencies,
    /// One for each level.
    Level(fn(&LevelStats) -> Number),
    /// One for each keyspace.
    Keyspace(fn(&KeyspaceStats) -> Number),
}

impl Values {
    /// For the page about the metrics: the label that tells the values of a store apart.
    #[cfg(test)]
    pub fn label(&self) -> Option<&'static str> {
        match self {
            Values::Store(_) | Values::MaybeStore(_) => None,
            Values::By(label, _) => Some(label),
            Values::Latencies => Some("operation"),
            Values::Level(_) => Some("level"),
            Values::Keyspace(_) => Some("keyspace"),
        }
    }
}

/// A family of metrics.
pub(super) struct Family {
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
    pub values: Values,
}
