//! `sidebloom clone`: copies a published store into a directory.

use super::backend;
use crate::context::{Context, Failure, Outcome};
use sidebloom::show;
use std::io::Write;
use std::path::PathBuf;

/// Copy a published store into a new directory
///
/// Every file is checked against its SHA-256. The copy is writable and can be published to the same URL; of
/// the copy and the original, the first to publish keeps the URL. Needs a build with the feature remote.
#[derive(clap::Args)]
pub struct Args {
    /// Where the store is published, as for `publish`
    url: String,
    /// Directory to create
    dir: PathBuf,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let cloned = backend::clone(&self.url, &self.dir)?;
        cx.report(&cloned, |out| {
            Ok(writeln!(out, "generation {} at {}", cloned.generation, show::escaped(&cloned.clone))?)
        })?;
        Ok(Outcome::Found)
    }
}
