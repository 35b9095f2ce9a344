//! `sidebloom filter fold`: shrinks a filter.

use super::files;
use crate::context::{Context, Failure, Outcome};
use crate::human::parse_rate;
use sidebloom::filter::AnyFilter;
use std::path::PathBuf;

/// Halve a filter as often as a rate allows
///
/// It must be of kind bloom or counting; the result is of kind bloom. It holds the same lines and equals a
/// filter built at the smaller size. A filter that cannot be halved at that rate is written unchanged.
#[derive(clap::Args)]
pub struct Args {
    /// The filter
    filter: PathBuf,
    /// False-positive rate, as 0.01 or 1%
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    fpp: f64,
    /// The file to write; an existing file is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let folded = files::read_bloom(&self.filter)?.folded_to(self.fpp)?;
        files::write(cx, &self.output, &AnyFilter::Bloom(folded))?;
        Ok(Outcome::Found)
    }
}
