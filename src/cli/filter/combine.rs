//! `sidebloom filter union` and `intersect`: set algebra on filters.

use crate::cli::context::{Context, Failure, Outcome};
use sidebloom::filter::{AnyFilter, Bloom};
use std::path::PathBuf;

/// Write the filter of all lines of several filters
///
/// They must be of kind bloom or counting, with the same size, hash and seed (build them with the same --keys, --fpp, --hash, --seed).
/// The result is the very filter that all the lines together would have given.
#[derive(clap::Args)]
pub struct Union {
    #[command(flatten)]
    files: Files,
}

/// Write a filter that holds every line that several filters share
///
/// They must be of kind bloom or counting, with the same size, hash and seed. The result lets more through than a filter of the
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

impl Union {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        self.files.combine(cx, Bloom::union)
    }
}

impl Intersect {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        self.files.combine(cx, Bloom::intersection)
    }
}

impl Files {
    fn combine(
        &self,
        cx: &Context,
        op: impl Fn(&Bloom, &Bloom) -> sidebloom::Result<Bloom>,
    ) -> Result<Outcome, Failure> {
        let mut combined: Option<Bloom> = None;
        for path in &self.filters {
            let next = super::read_bloom(path)?;
            combined = Some(match combined {
                None => next,
                Some(so_far) => op(&so_far, &next)?,
            });
        }
        if let Some(filter) = combined {
            super::write(cx, &self.output, &AnyFilter::Bloom(filter))?;
        }
        Ok(Outcome::Found)
    }
}
