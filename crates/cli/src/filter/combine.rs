//! `sidebloom filter union` and `intersect`: set algebra on filters.

use super::files;
use crate::context::{Context, Failure, Outcome};
use crate::human;
use sidebloom::filter::{AnyFilter, Bloom, Plan};
use std::path::PathBuf;

/// Write the union of several filters
///
/// They must be of kind bloom or counting, with the same size and hash: build them with the same --keys and
/// --fpp, and either all of kind bloom, or all but the first with --same-hash-as the first. The result equals
/// a filter of all the lines. If it holds more lines than its rate allows, nothing is written and the exit
/// code is 2, as when lines do not fit in `filter build` and `filter add`.
#[derive(clap::Args)]
pub struct Union {
    #[command(flatten)]
    files: Files,
    /// Write the result even if it holds too many lines; its false-positive rate is then higher than planned
    #[arg(long)]
    overfull: bool,
}

/// Write the intersection of several filters
///
/// They must be of kind bloom or counting, with the same size and hash. The result has more false positives
/// than a filter built from the common lines, but no more than any of its inputs.
#[derive(clap::Args)]
pub struct Intersect {
    #[command(flatten)]
    files: Files,
}

#[derive(clap::Args)]
struct Files {
    /// The filters, two or more
    #[arg(required = true, num_args = 2.., value_name = "FILTER")]
    filters: Vec<PathBuf>,
    /// The file to write; an existing file is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// The highest estimate at which a filter still counts as within its capacity. For an exactly full filter,
/// the estimate's error is below four standard deviations, √(m (e^t − t − 1)) / k at t = ln 2.
fn most_lines(plan: &Plan) -> f64 {
    let deviation = (0.307 * plan.shape.bits() as f64).sqrt() / f64::from(plan.shape.hashes());
    1.01 * plan.capacity() as f64 + 4.0 * deviation
}

impl Union {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let filter = self.files.combined(Bloom::union)?;
        let (keys, plan) = (filter.estimated_keys(), filter.plan());
        if !self.overfull && keys > most_lines(plan) {
            return Err(Failure::message(format!(
                "the union would hold about {} lines, but the filters are sized for {}: {} of absent lines would pass instead of {}; \
                 rebuild the filters with a larger --keys, or add --overfull",
                human::count(keys as u64),
                human::count(plan.capacity()),
                human::percent(filter.fpr(), 1.0),
                human::percent(plan.fpr, 1.0),
            )));
        }
        self.files.write(cx, filter)
    }
}

impl Intersect {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let filter = self.files.combined(Bloom::intersection)?;
        self.files.write(cx, filter)
    }
}

impl Files {
    /// The filters, combined from left to right.
    fn combined(
        &self,
        op: impl Fn(&Bloom, &Bloom) -> sidebloom::filter::Result<Bloom>,
    ) -> Result<Bloom, Failure> {
        let mut filters = self.filters.iter().map(|path| files::read_bloom(path));
        let first = filters.next().unwrap_or_else(|| Err(Failure::message("no filters to combine")))?;
        filters.try_fold(first, |so_far, next| Ok(op(&so_far, &next?)?))
    }

    fn write(&self, cx: &Context, filter: Bloom) -> Result<Outcome, Failure> {
        files::write(cx, &self.output, &AnyFilter::Bloom(filter))?;
        Ok(Outcome::Found)
    }
}
