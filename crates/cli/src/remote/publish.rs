//! `sidebloom publish`: uploads what has changed in the store.

use super::backend;
use crate::context::{Context, Failure, Outcome};
use crate::human::{self, parse_age};
use std::io::Write;
use std::time::Duration;

/// Publish the store to object storage, for readers anywhere
///
/// Uploads the files that the last generation there lacks, and then a new generation, whole or not at all. Of
/// two copies of a store, only one can keep publishing: the other is refused. Endpoint and credentials come
/// from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT and so on. Needs
/// a build with the feature remote.
#[derive(clap::Args)]
pub struct Args {
    /// The destination: s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH or file:///DIRECTORY
    url: String,
    /// Then remove generations replaced longer ago than this, such as 90m, 24h or 7d, and the files that only
    /// they use. Must exceed the time that publishing takes
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    collect: Option<Duration>,
    /// Replace generations that this directory does not descend from. Their writer can no longer publish
    #[arg(long)]
    take_over: bool,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let report = backend::publish(cx, &self.url, self.collect, self.take_over)?;
        cx.report(&report, |out| {
            let (files, bytes) = (human::count(report.files), human::bytes(report.bytes as f64));
            writeln!(out, "generation {}: {files} files uploaded, {bytes}", report.generation)?;
            if let Some(collected) = report.collected {
                writeln!(out, "{} old objects removed", human::count(collected))?;
            }
            Ok(())
        })?;
        Ok(Outcome::Found)
    }
}
