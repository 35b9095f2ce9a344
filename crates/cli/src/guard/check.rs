//! `sidebloom guard check`: prints the lines that may be keys.

use crate::context::{Context, Failure, Outcome};
use crate::filter::sift::Sift;
use crate::url::url_of;
use sidebloom::filter::Verdict;
use sidebloom::guard::GuardOptions;
use std::path::PathBuf;

/// Print the lines that may be keys of the database
///
/// Exit codes follow grep: 0 if lines were printed (or counted), 1 if none were, 2 on error. With --json,
/// each line is an object with `key`, or `key_hex` if it is not UTF-8. The guard is opened read-only. A URL
/// is where `guard publish` put the guard; it needs a build with the feature remote.
#[derive(clap::Args)]
pub struct Args {
    /// The guard's directory, or the URL of a published guard
    #[arg(value_name = "DIR|URL")]
    place: PathBuf,
    #[command(flatten)]
    sift: Sift,
    /// Check each "maybe" against the guard's keys on disk, and print only those found there
    #[arg(long)]
    exact: bool,
    /// Keep the filters of published guards in this directory, one subdirectory per URL [default: below the
    /// user's cache directory]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Print every line if the published guard is older than this
    #[arg(long, value_name = "SECONDS")]
    max_staleness: Option<u64>,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        if let Some(url) = url_of(self.place.as_os_str()) {
            return self.check_published(cx, url);
        }
        if self.cache.is_some() || self.max_staleness.is_some() {
            return Err(Failure::message("--cache and --max-staleness are for the URL of a published guard"));
        }
        let guard = cx.opening(|| GuardOptions::new().read_only(true).open(&self.place))?;
        self.sift.run(cx, |lines| {
            let mut verdicts = guard.may_contain_many(lines);
            for (verdict, line) in verdicts.iter_mut().zip(lines).filter(|_| self.exact) {
                if *verdict == Verdict::Maybe && !guard.contains(line)? {
                    *verdict = Verdict::Absent;
                }
            }
            Ok(verdicts)
        })
    }

    #[cfg(not(feature = "remote"))]
    fn check_published(&self, _: &Context, _: &str) -> Result<Outcome, Failure> {
        Err(Failure::not_built_in("object storage", "remote"))
    }

    #[cfg(feature = "remote")]
    fn check_published(&self, cx: &Context, url: &str) -> Result<Outcome, Failure> {
        use crate::remote::cache;
        use sidebloom_remote::Remote;
        use sidebloom_remote::guard::{RemoteGuard, RemoteGuardOptions};
        use std::time::Duration;

        if self.exact {
            return Err(Failure::message(
                "a published guard has no keys: --exact needs the guard's directory",
            ));
        }
        let cache = self.cache.clone().map_or_else(cache::default_dir, Ok)?;
        let options = RemoteGuardOptions::new().poll(None);
        let options = match self.max_staleness {
            Some(seconds) => options.max_staleness(Duration::from_secs(seconds)),
            None => options,
        };
        let guard = RemoteGuard::open(Remote::open(url)?, cache, options)?;
        self.sift.run(cx, |lines| Ok(guard.may_contain_many(lines)))
    }
}
