//! The object store that a URL names, and blocking calls of SlateDB.

use super::Slate;
use crate::context::Failure;
use crate::human;
use crate::progress;
use indicatif::ProgressBar;
use sidebloom::show;
use sidebloom_slatedb::Copied;
use slatedb::object_store::path::Path;
use slatedb::object_store::{ObjectStore, parse_url_opts};
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;
use url::Url;

/// Prefixes of option names. Options also have short names (`TOKEN`, `REGION`), which may mean something else
/// in the environment.
const OPTIONS: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

impl Slate {
    /// The object store, and the path within it.
    pub fn open(&self) -> Result<(Arc<dyn ObjectStore>, Path), Failure> {
        let refuse = |why: String| {
            Failure::message(format!("--slatedb {}: {}", show::url(&self.url), show::message(&why)))
        };
        let url = Url::parse(&self.url).map_err(|error| refuse(format!("not a URL: {error}")))?;
        let texts = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let options = texts.filter(|(name, _)| OPTIONS.iter().any(|start| name.starts_with(start)));
        let (store, mut path) = parse_url_opts(&url, options).map_err(|error| refuse(error.to_string()))?;
        if let Some(below) = &self.path {
            let below = Path::parse(below).map_err(|error| refuse(format!("--path {below}: {error}")))?;
            path.extend(&below);
        }
        Ok((store.into(), path))
    }
}

/// Runs SlateDB calls to completion.
pub fn run<T>(calls: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime
        .map_err(|error| Failure::message(format!("cannot start threads for SlateDB: {error}")))?
        .block_on(calls)
}

impl From<slatedb::Error> for Failure {
    fn from(error: slatedb::Error) -> Self {
        Failure::message(format!("SlateDB: {}", show::message(&error.to_string())))
    }
}

impl From<sidebloom_slatedb::Error> for Failure {
    fn from(error: sidebloom_slatedb::Error) -> Self {
        match error {
            sidebloom_slatedb::Error::Store(error) => Failure::Store(error),
            other => Failure::message(show::message(&other.to_string())),
        }
    }
}

/// Rows copied, and the time taken.
pub struct Copy {
    bar: ProgressBar,
    start: Instant,
}

#[derive(serde::Serialize)]
pub struct Report {
    rows: u64,
    bytes: u64,
    seconds: f64,
}

impl Copy {
    pub fn start(label: &str) -> Self {
        Copy { bar: progress::counter(label), start: Instant::now() }
    }

    pub fn at(&self, so_far: Copied) {
        self.bar.set_position(so_far.rows);
    }

    pub fn end(self, Copied { rows, bytes }: Copied) -> Report {
        self.bar.finish_and_clear();
        Report { rows, bytes, seconds: self.start.elapsed().as_secs_f64() }
    }
}

impl Report {
    pub fn write(&self, done: &str, out: &mut impl Write) -> Result<(), Failure> {
        let (rows, bytes) = (human::count(self.rows), human::bytes(self.bytes as f64));
        Ok(writeln!(out, "{done} {rows} rows, {bytes}, in {:.1} s", self.seconds)?)
    }
}
