//! Measures sidebloom against other embedded stores, and draws the results. See this package's `README.md`.

mod engine;
mod engines;
mod error;
mod filters;
mod format;
#[cfg(feature = "rocksdb")]
mod guarded;
mod kernel;
mod keys;
mod limit;
mod machine;
mod measure;
mod quiet;
mod readme;
mod report;
mod results;
mod run;
mod session;
mod settings;
mod sweep;
mod table;
mod task;
mod worker;
mod workload;

use clap::Parser;

/// Measure sidebloom against RocksDB, fjall, redb and LMDB
#[derive(Parser)]
#[command(version)]
enum Command {
    Run(run::Args),
    Filters(filters::Args),
    #[cfg(feature = "rocksdb")]
    Guard(guarded::Args),
    Sweep(sweep::Args),
    Report(report::Args),
    Readme(readme::Args),
    /// Run one task in this process, for `run` and `sweep`
    #[command(hide = true)]
    Worker,
}

fn main() -> std::process::ExitCode {
    let result = match Command::parse() {
        Command::Run(args) => args.run(),
        Command::Filters(args) => args.run(),
        #[cfg(feature = "rocksdb")]
        Command::Guard(args) => args.run(),
        Command::Sweep(args) => args.run(),
        Command::Report(args) => args.run(),
        Command::Readme(args) => args.run(),
        Command::Worker => worker::main(),
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("versus: {error}");
            std::process::ExitCode::from(2)
        }
    }
}
