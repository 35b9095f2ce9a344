//! A key-value store over HTTP: `GET /keys/KEY` and `PUT /keys/KEY`. It shows how to call sidebloom from
//! async code, and measures it.
//!
//! ```text
//! cargo run --release -p lookup-service -- serve songs.db 127.0.0.1:8080
//! curl --upload-file - http://127.0.0.1:8080/keys/Sinnerman <<< 1965
//! curl http://127.0.0.1:8080/keys/Sinnerman
//!
//! cargo run --release -p lookup-service -- load target/lookups.db
//! ```

mod batches;
mod error;
mod load;
mod reads;
mod routes;
mod serve;
mod writes;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves a store, which is created if it is missing
    Serve {
        dir: PathBuf,
        address: String,
        /// How a key is read that may be there
        #[arg(long, value_enum, default_value_t)]
        reads: reads::Way,
        /// Threads that read
        #[arg(long, default_value_t = reads::THREADS)]
        threads: u32,
    },
    /// Serves a store in another process, and measures it
    Load(load::Load),
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Serve { dir, address, reads, threads } => serve::serve(&dir, &address, reads, threads),
        Command::Load(load) => load.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("lookup-service: {why}");
            ExitCode::from(2)
        }
    }
}
