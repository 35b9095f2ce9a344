//! `sidebloom filter union` and `intersect`: set algebra on filters.

use super::files;
use crate::context::{Context, Failure, Outcome};
use crate::human;
use sidebloom::filter::{AnyFilter, Bloom, Plan};
use std::path::PathBuf;

/// Write the filter of all lines of several filters
///
/// They must be of kind bloom or counting, with the same size and hash: build them with the same
/// --keys and --fpp, and all but the first with --same-hash-as the first, or all of kind bloom.
/// The result is the very filter that all the lines together would have given. When it would hold more lines than its rate allows,
/// nothing is written and the exit code is 2, as it is when `filter build` and `filter add` find too little room.
#[derive(clap::Args)]
pub struct Union {
    #[command(flatten)]
    files: Files,
    /// Write the result even when it holds too many lines; it lets more absent lines pass than it was built for
    #[arg(long)]
    overfull: bool,
}

/// Write a filter that holds every line that several filters share
///
/// They must be of kind bloom or counting, with the same size and hash. The result lets more through than a filter of the
/// common lines would, and no more than any of the filters that it comes from.
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
    /// The file to write; one that is there is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// The most lines that a filter may seem to hold. One that is full to the last line is estimated a little above or below its capacity:
/// by less than four standard deviations of the estimate, √(m (e^t − t − 1)) / k at t = ln 2.
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
                "the union would hold about {} lines, but the filters are for {}: {} of the absent lines would pass, not {}; \
                 build the filters again with a larger --keys, or add --overfull",
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
    /// The filters, combined from the first to the last.
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
