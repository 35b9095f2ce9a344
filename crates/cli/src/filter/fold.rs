//! `sidebloom filter fold`: a filter made smaller.

use super::files;
use crate::context::{Context, Failure, Outcome};
use crate::human::parse_rate;
use sidebloom::filter::AnyFilter;
use std::path::PathBuf;

/// Halve a filter as often as a rate allows
///
/// It must be of kind bloom or counting (the result is of kind bloom). The result holds the same lines, and is the very filter that the
/// smaller size would have given. A filter that cannot be halved at that rate is written as it is.
#[derive(clap::Args)]
pub struct Args {
    /// The filter
    filter: PathBuf,
    /// The share of absent lines that may pass, as 0.01 or 1%
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    fpp: f64,
    /// The file to write; one that is there is replaced
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
