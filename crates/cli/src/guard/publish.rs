//! `sidebloom guard publish`: publishes a guard to object storage.

use crate::context::{Context, Failure, Outcome};
use crate::human::parse_age;
use std::path::PathBuf;
use std::time::Duration;

/// Publish a guard to object storage, for `guard check URL` and the library's RemoteGuard
///
/// Uploads the missing filters, but no keys, and a state that names them. For a guard that follows a
/// database, use `guard follow --publish URL` instead. Only one directory at a time can publish to a URL:
/// another copy of the guard is refused. Whoever can read the URL has the guard's secret key. Needs a build
/// with the feature remote.
#[derive(clap::Args)]
pub struct Args {
    /// The guard's directory
    dir: PathBuf,
    /// s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH or file:///DIRECTORY; credentials come from
    /// the environment
    url: String,
    /// Even if another directory published last. The guard must have every key: refresh it first
    #[arg(long)]
    take_over: bool,
    /// Then remove states replaced longer ago than this, such as 90m, 24h or 7d, and the filters that only
    /// they use. Must exceed the time that publishing takes
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    collect: Option<Duration>,
}

#[cfg(not(feature = "remote"))]
impl Args {
    pub fn run(self, _: &Context) -> Result<Outcome, Failure> {
        Err(Failure::not_built_in("object storage", "remote"))
    }
}

#[cfg(feature = "remote")]
#[derive(serde::Serialize)]
struct Report {
    state: u64,
    filters_uploaded: u64,
    bytes_uploaded: u64,
    removed: u64,
}

#[cfg(feature = "remote")]
impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        use crate::human;
        use sidebloom::guard::Guard;
        use sidebloom_remote::guard::GuardPublisher;
        use sidebloom_remote::{Remote, TakeOver};
        use std::io::Write;

        let guard = cx.opening(|| Guard::open(&self.dir))?;
        let take_over = if self.take_over { TakeOver::Yes } else { TakeOver::No };
        let mut publisher = GuardPublisher::new(&guard, Remote::open(&self.url)?, take_over)?;
        let published = publisher.publish()?;
        let removed = self.collect.map(|age| publisher.collect(age)).transpose()?;
        let report = Report {
            state: published.number,
            filters_uploaded: published.filters,
            bytes_uploaded: published.bytes,
            removed: removed.unwrap_or(0),
        };
        cx.report(&report, |out| {
            let (filters, bytes) =
                (human::count(report.filters_uploaded), human::bytes(report.bytes_uploaded as f64));
            writeln!(out, "state {}: {filters} filters uploaded, {bytes}", report.state)?;
            if self.collect.is_some() {
                writeln!(out, "removed {} old objects", human::count(report.removed))?;
            }
            Ok(())
        })?;
        Ok(Outcome::Found)
    }
}
