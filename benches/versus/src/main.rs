//! Measures sidebloom against other embedded stores, and draws the results. See this package's `README.md`.

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
mod limit;
mod machine;
mod measure;
mod measures;
mod model;
mod output;
#[cfg(feature = "rocksdb")]
mod policies;
#[cfg(feature = "rocksdb")]
mod prefixes;
mod quiet;
mod readme;
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
mod worker;
mod workload;
mod workload_table;

use clap::Parser;

/// Measure sidebloom against RocksDB, fjall, redb and LMDB
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
    Sweep(sweep::Args),
    #[cfg(feature = "rocksdb")]
    Settings(choose::Args),
    Model(model::Args),
    Report(report::Args),
    Readme(readme::Args),
    /// Run one task in this process, for `run` and `sweep`
    #[command(hide = true)]
    Worker,
}

fn main() -> std::process::ExitCode {
    let result = match VersusCommand::parse() {
        VersusCommand::Run(args) => args.run(),
        VersusCommand::Filters(args) => args.run(),
        #[cfg(feature = "rocksdb")]
        VersusCommand::Guard(args) => args.run(),
        #[cfg(feature = "rocksdb")]
        VersusCommand::Policies(args) => args.run(),
        #[cfg(feature = "rocksdb")]
        VersusCommand::Prefixes(args) => args.run(),
        VersusCommand::Sweep(args) => args.run(),
        #[cfg(feature = "rocksdb")]
        VersusCommand::Settings(args) => args.run(),
        VersusCommand::Model(args) => args.run(),
        VersusCommand::Report(args) => args.run(),
        VersusCommand::Readme(args) => args.run(),
        VersusCommand::Worker => worker::main(),
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("versus: {error}");
            std::process::ExitCode::from(2)
        }
    }
}
