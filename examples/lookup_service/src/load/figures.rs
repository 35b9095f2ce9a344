//! What the load test prints.

use super::store::Request;
use crate::error::Result;
use hdrhistogram::Histogram;
use std::fmt;
use std::time::Duration;

const NAMES: [&str; 4] = ["/ping", "missing key", "found key", "put"];
const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

/// How long each kind of request took.
pub struct Figures {
    pub duration: Duration,
    /// Nanoseconds, in the order of [`NAMES`].
    taken: [Histogram<u64>; 4],
}

impl Figures {
    pub fn new(duration: Duration) -> Result<Self> {
        let taken = || Histogram::new_with_bounds(100, 60_000_000_000, 3);
        Ok(Figures { duration, taken: [taken()?, taken()?, taken()?, taken()?] })
    }

    pub fn requests(&self) -> u64 {
        self.taken.iter().map(Histogram::len).sum()
    }

    pub fn record(&mut self, request: Request, took: Duration) {
        let kind = match request {
            Request::Ping => 0,
            Request::Missing(_) => 1,
            Request::Found(_) => 2,
            Request::Put(_) => 3,
        };
        self.taken[kind].saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:.0} requests a second\n", self.requests() as f64 / self.duration.as_secs_f64())?;
        writeln!(
            f,
            "{:12} {:>9} {:>9} {:>9} {:>9} {:>13}",
            "", "requests", "p50", "p99", "p99.9", "p99 ÷ /ping"
        )?;
        for (name, taken) in NAMES.iter().zip(&self.taken).filter(|(_, taken)| !taken.is_empty()) {
            write!(f, "{name:12} {:9}", taken.len())?;
            for quantile in QUANTILES {
                write!(f, " {:6.0} µs", taken.value_at_quantile(quantile) as f64 / 1e3)?;
            }
            let p99 = |taken: &Histogram<u64>| taken.value_at_quantile(0.99) as f64;
            match &self.taken[0] {
                pings if pings.is_empty() => writeln!(f)?,
                pings => writeln!(f, " {:13.2}", p99(taken) / p99(pings))?,
            }
        }
        Ok(())
    }
}
