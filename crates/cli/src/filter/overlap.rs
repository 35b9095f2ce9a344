//! `sidebloom filter overlap`: estimates the overlap of two filters.

use super::files;
use crate::context::{Context, Failure, Outcome};
use crate::human;
use sidebloom::show;
use std::io::Write;
use std::path::PathBuf;

/// Estimate how many lines two filters share
///
/// They must be of kind bloom or counting, with the same size and hash. Sizes are estimated from the set bits
/// (Swamidass and Baldi); the intersection is |A| + |B| − |A ∪ B|.
#[derive(clap::Args)]
pub struct Args {
    /// One filter
    a: PathBuf,
    /// The other
    b: PathBuf,
}

#[derive(serde::Serialize)]
struct Report {
    a: f64,
    b: f64,
    union: f64,
    intersection: f64,
    jaccard: f64,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let overlap = files::read_bloom(&self.a)?.overlap(&files::read_bloom(&self.b)?)?;
        let report = Report {
            a: overlap.left,
            b: overlap.right,
            union: overlap.union,
            intersection: overlap.intersection,
            jaccard: overlap.jaccard(),
        };
        cx.report(&report, |out| self.print(&report, out))?;
        Ok(Outcome::Found)
    }

    fn print(&self, report: &Report, out: &mut impl Write) -> Result<(), Failure> {
        let lines = [
            (show::path(&self.a), report.a),
            (show::path(&self.b), report.b),
            ("either".to_owned(), report.union),
            ("both".to_owned(), report.intersection),
        ];
        for (name, estimate) in lines {
            writeln!(out, "{:>15}  {name}", human::count(estimate.round() as u64))?;
        }
        writeln!(out, "{:>15}  of either are in both (Jaccard)", human::percent(report.jaccard, 1.0))?;
        Ok(())
    }
}
