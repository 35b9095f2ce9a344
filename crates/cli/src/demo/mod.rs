//! `sidebloom demo`: lookups in a song catalogue, with and without filters.

mod build;
mod by_name;
mod catalogue;
mod measure;
mod report;
mod show;
mod words;

use crate::context::{Context, Failure, Outcome};
use crate::workdir::WorkDir;
use catalogue::{Songs, TITLES_MAX};
use measure::Asked;
use report::Report;
use std::path::PathBuf;

/// Build a song catalogue and compare lookups with and without filters
///
/// Writes real songs and generated titles into a store, drops the page cache if permitted, and looks up
/// present and absent titles with and without filters. Takes about half a minute. Removes the store unless
/// --keep is given.
#[derive(clap::Args)]
pub struct Args {
    /// Number of generated titles
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1..=TITLES_MAX))]
    titles: u64,
    /// Maximum number of lookups of each kind (each kind also ends after four seconds)
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    lookups: u64,
    /// Build the store in this new directory and keep it
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let dir = match &self.keep {
            Some(path) => WorkDir::kept(path)?,
            None => WorkDir::temporary("demo")?,
        };
        let songs = Songs::new();
        let asked = Asked { titles: self.titles, lookups: self.lookups };
        show::begin(cx, self.titles)?;
        let built = build::build(dir.path(), &songs, self.titles)?;
        show::built(cx, &built)?;
        let by_name = by_name::look_up(dir.path(), &songs)?;
        show::answers(cx, &by_name)?;
        let (filters_on, page_cache) = measure::measure(dir.path(), true, asked)?;
        let (filters_off, _) = measure::measure(dir.path(), false, asked)?;
        let report = Report { built, page_cache, by_name, filters_on, filters_off };
        if cx.json {
            cx.print_json(&report)?;
        } else {
            show::comparison(cx, &report)?;
            show::next_commands(cx, self.keep.as_deref(), &songs)?;
        }
        Ok(Outcome::Found)
    }
}
