//! Builds a filter from keys.

use crate::error::{exception, invalid, or_raise};
use crate::keys::{Sink, for_each_chunk, make_room};
use pyo3::prelude::*;
use pyo3::types::PyString;
use sidebloom::filter::{
    AnyFilter, Bloom, CountingBloom, HashFunction, LineFilter, Plan as BloomPlan, ScalableBloom, Series,
    SmallFilter,
};
use sidebloom::{Error, IoOp, KeyHasher, Result};
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The first filter of a scalable one, if nothing is said.
const FIRST_KEYS: u64 = 10_000;
/// Lines of a file that are handed over at once.
const LINES: usize = 4096;

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Parity,
    Blocked,
    Bloom,
    Counting,
    Scalable,
    Small,
}

impl FromStr for Kind {
    type Err = PyErr;

    fn from_str(name: &str) -> PyResult<Self> {
        Ok(match name {
            "parity" => Kind::Parity,
            "blocked" => Kind::Blocked,
            "bloom" => Kind::Bloom,
            "counting" => Kind::Counting,
            "scalable" => Kind::Scalable,
            "small" => Kind::Small,
            _ => {
                return Err(invalid(format!(
                    "no kind of filter is called {name:?}: \"parity\", \"blocked\", \"bloom\", \"counting\", \
                     \"scalable\" or \"small\" expected"
                )));
            }
        })
    }
}

/// What to build.
pub struct Plan {
    pub kind: Kind,
    pub fpp: f64,
    pub capacity: Option<u64>,
    pub seed: Option<u64>,
}

impl Plan {
    pub fn build(&self, keys: &Bound<'_, PyAny>) -> PyResult<AnyFilter> {
        if !(self.fpp > 0.0 && self.fpp < 1.0) {
            return Err(invalid(format!("fpp is {:?}: above 0 and below 1 expected", self.fpp)));
        }
        let source = Source::of(keys)?;
        let hasher = KeyHasher::from(self.seed.unwrap_or(0));
        match self.kind {
            Kind::Parity => {
                let hashes = source.hashes(hasher)?;
                let built = keys.py().detach(|| LineFilter::parity_at(self.fpp, &hashes, hasher));
                or_raise(built.map(AnyFilter::Lines).map_err(Into::into))
            }
            Kind::Small => {
                let rate_bits = or_raise(SmallFilter::rate_bits_at(self.fpp).map_err(Into::into))?;
                let hashes = source.distinct_hashes(hasher)?;
                let built = SmallFilter::from_hashes(rate_bits, hashes, hasher);
                or_raise(built.map(AnyFilter::Small).map_err(Into::into))
            }
            _ => {
                let capacity = match (self.capacity, self.kind) {
                    (Some(0), _) => return Err(invalid("capacity is 0: at least 1 expected")),
                    (Some(capacity), _) => capacity,
                    (None, Kind::Scalable) => FIRST_KEYS,
                    (None, _) => source.count()?.max(1),
                };
                let mut filter = or_raise(self.empty(capacity, hasher))?;
                source.for_each_chunk(&mut |keys: &[&[u8]]| Ok(filter.insert_many(keys)?))?;
                Ok(filter)
            }
        }
    }

    fn empty(&self, capacity: u64, hasher: KeyHasher) -> Result<AnyFilter> {
        let hash = match self.seed {
            // Whoever could choose keys that collide could remove others with them.
            None if self.kind == Kind::Counting => HashFunction::secret()?,
            seed => HashFunction::Xxh3(seed.unwrap_or(0)),
        };
        let plan = || Ok::<_, Error>(BloomPlan { hash, ..BloomPlan::new(capacity, self.fpp)? });
        Ok(match self.kind {
            Kind::Bloom => AnyFilter::Bloom(Bloom::with_plan(plan()?)?),
            Kind::Counting => AnyFilter::Counting(CountingBloom::with_plan(plan()?)?),
            Kind::Scalable => {
                let series = Series { first_keys: capacity, fpr: self.fpp, hash };
                AnyFilter::Scalable(ScalableBloom::with_series(series)?)
            }
            _ => AnyFilter::Lines(LineFilter::empty_blocked_at(self.fpp, capacity, hasher)?),
        })
    }
}

/// Where the keys are.
enum Source<'a, 'py> {
    Object(&'a Bound<'py, PyAny>),
    Lines(PathBuf, Python<'py>),
}

impl<'a, 'py> Source<'a, 'py> {
    fn of(keys: &'a Bound<'py, PyAny>) -> PyResult<Self> {
        let is_path = keys.is_instance_of::<PyString>() || keys.hasattr("__fspath__")?;
        Ok(if is_path { Source::Lines(keys.extract()?, keys.py()) } else { Source::Object(keys) })
    }

    fn for_each_chunk(&self, sink: &mut dyn Sink) -> PyResult<()> {
        match self {
            Source::Object(keys) => for_each_chunk(keys, sink),
            Source::Lines(path, py) => py.detach(|| for_each_line(path, sink)).map_err(exception),
        }
    }

    /// How many keys there are, duplicates included.
    fn count(&self) -> PyResult<u64> {
        match self {
            Source::Lines(..) => {
                let mut count = 0;
                self.for_each_chunk(&mut |lines: &[&[u8]]| {
                    count += lines.len() as u64;
                    Ok(())
                })?;
                Ok(count)
            }
            Source::Object(keys) => match keys.len() {
                Ok(len) => Ok(len as u64),
                Err(_) => Err(invalid(
                    "the keys have no length: give the capacity, or choose kind \"scalable\" or \"parity\"",
                )),
            },
        }
    }

    fn hashes(&self, hasher: KeyHasher) -> PyResult<Vec<u64>> {
        let mut hashes = Vec::new();
        self.for_each_chunk(&mut |keys: &[&[u8]]| {
            make_room(&mut hashes, keys.len())?;
            hashes.extend(keys.iter().map(|key| hasher.hash(key)));
            Ok(())
        })?;
        Ok(hashes)
    }

    fn distinct_hashes(&self, hasher: KeyHasher) -> PyResult<HashSet<u64>> {
        let mut hashes = HashSet::new();
        self.for_each_chunk(&mut |keys: &[&[u8]]| {
            // More than fit are refused when the filter is built.
            if hashes.len() <= SmallFilter::MAX_KEYS {
                hashes.extend(keys.iter().map(|key| hasher.hash(key)));
            }
            Ok(())
        })?;
        Ok(hashes)
    }
}

/// Passes the lines of a file on, without their LF.
fn for_each_line(path: &Path, sink: &mut dyn Sink) -> Result<()> {
    let failed = |op, error| Error::io(op, path, error);
    let mut input =
        BufReader::with_capacity(1 << 20, File::open(path).map_err(|error| failed(IoOp::Open, error))?);
    let (mut text, mut ends) = (Vec::new(), Vec::with_capacity(LINES));
    loop {
        text.clear();
        ends.clear();
        while ends.len() < LINES
            && input.read_until(b'\n', &mut text).map_err(|error| failed(IoOp::Read, error))? > 0
        {
            text.pop_if(|byte| *byte == b'\n');
            ends.push(text.len());
        }
        if ends.is_empty() {
            return Ok(());
        }
        let mut start = 0;
        let lines = ends.iter().map(|&end| {
            let line = text.get(start..end).unwrap_or_default();
            start = end;
            line
        });
        sink.take(&lines.collect::<Vec<_>>())?;
    }
}
