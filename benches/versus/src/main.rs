//! Measures sidebloom against other embedded stores, and draws the results. See this package's `README.md`.

mod child;
#[cfg(feature = "rocksdb")]
mod choose;
mod engine;
mod engines;
mod error;
mod filters;
mod format;
#[cfg(feature = "rocksdb")]
mod guarded;
mod kernel;
mod keys;
mod keyspaces;
mod limit;
mod machine;
mod measure;
mod measures;
mod model;
mod output;
mod pages;
#[cfg(feature = "rocksdb")]
mod policies;
#[cfg(feature = "rocksdb")]
mod prefixes;
mod quiet;
mod report;
mod results;
mod rocks_filter;
mod rocks_record;
mod rocks_settings;
mod rounds;
mod run;
mod session;
mod settings;
#[cfg(feature = "rocksdb")]
mod shape;
mod sweep;
mod table;
mod task;
mod terminal;
mod window;
mod worker;
mod workload;
mod workload_table;
mod writes;

use clap::Parser;
use error::Result;
#[cfg(feature = "rocksdb")]
use std::ffi::OsString;
#[cfg(feature = "rocksdb")]
use std::io::Write;
#[cfg(feature = "rocksdb")]
use std::path::{Path, PathBuf};

/// Measure sidebloom against RocksDB, fjall, redb, LMDB, libmdbx and CandyStore
#[derive(Parser)]
#[command(version)]
enum VersusCommand {
    Run(run::Args),
    Filters(filters::Args),
    #[cfg(feature = "rocksdb")]
    Guard(guarded::Args),
    #[cfg(feature = "rocksdb")]
    Policies(policies::Args),
    #[cfg(feature = "rocksdb")]
    Prefixes(prefixes::Args),
    Keyspaces(keyspaces::Args),
    Window(window::Args),
    Sweep(sweep::Args),
    Writes(writes::Args),
    #[cfg(feature = "rocksdb")]
    Settings(choose::Args),
    Model(model::Args),
    Report(report::Args),
    Pages(pages::Args),
    /// Run all comparisons with other stores, small, to see that they work
    #[cfg(feature = "rocksdb")]
    Smoke {
        /// Directory for the results
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Run one task in this process, for `run` and `sweep`
    #[command(hide = true)]
    Worker,
    /// Run one task in this process, for `keyspaces`
    #[command(hide = true)]
    KeyspaceWorker,
    /// Run one task in this process, for `window`
    #[command(hide = true)]
    WindowWorker,
}

impl VersusCommand {
    fn run(self) -> Result<()> {
        match self {
            VersusCommand::Run(args) => args.run(),
            VersusCommand::Filters(args) => args.run(),
            #[cfg(feature = "rocksdb")]
            VersusCommand::Guard(args) => args.run(),
            #[cfg(feature = "rocksdb")]
            VersusCommand::Policies(args) => args.run(),
            #[cfg(feature = "rocksdb")]
            VersusCommand::Prefixes(args) => args.run(),
            VersusCommand::Keyspaces(args) => args.run(),
            VersusCommand::Window(args) => args.run(),
            VersusCommand::Sweep(args) => args.run(),
            VersusCommand::Writes(args) => args.run(),
            #[cfg(feature = "rocksdb")]
            VersusCommand::Settings(args) => args.run(),
            VersusCommand::Model(args) => args.run(),
            VersusCommand::Report(args) => args.run(),
            VersusCommand::Pages(args) => args.run(),
            #[cfg(feature = "rocksdb")]
            VersusCommand::Smoke { out } => smoke(&out),
            VersusCommand::Worker => worker::main(),
            VersusCommand::KeyspaceWorker => keyspaces::worker_main(),
            VersusCommand::WindowWorker => window::worker_main(),
        }
    }
}

/// Each comparison with other stores, at a small size.
#[cfg(feature = "rocksdb")]
const SMALL: [&str; 7] = [
    "run --quick --num 20000",
    "guard --num 50000 --reads 20000 --rounds 2",
    "policies --quick --num 100000 --reads 20000",
    "prefixes --quick",
    "writes --quick",
    "keyspaces --quick",
    "window --quick",
];

#[cfg(feature = "rocksdb")]
fn smoke(out: &Path) -> Result<()> {
    for (number, line) in SMALL.into_iter().enumerate() {
        writeln!(std::io::stdout(), "versus {line}")?;
        let out = out.join(number.to_string()).into_os_string();
        let words = ["versus"].into_iter().chain(line.split(' ')).map(OsString::from);
        VersusCommand::parse_from(words.chain(["--out".into(), out])).run()?;
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    match VersusCommand::parse().run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("versus: {error}");
            std::process::ExitCode::from(2)
        }
    }
}
