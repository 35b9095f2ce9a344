//! The `sidebloom` command: one file per command, built on the public interface of the library alone.
//!
//! Choose it for shells and scripts, to look into a store, or to serve filters and guards to Redis clients.
//! Programs in Rust use the crate [`sidebloom`].
//!
//! ```sh
//! cargo install sidebloom-cli
//! sidebloom --db songs.db put 'Nina Simone - Sinnerman' 1965
//! sidebloom --db songs.db get 'Nina Simone - Sinnerman'
//! sidebloom --help
//! ```
//!
//! Data goes to standard output; progress, logs and errors go to standard error. Exit codes follow grep: 0
//! found (or done), 1 not found, 2 error. A command whose reader closes the pipe early ends quietly.

mod backup;
mod bench;
mod checkpoint;
mod compact;
mod completions;
mod compression;
mod context;
mod copy;
mod delete;
mod demo;
mod expiries;
mod filter;
mod get;
mod globals;
mod guard;
mod hex;
mod holder;
mod human;
mod keyspace_arg;
mod keyspace_stats;
mod keyspaces;
mod line_end;
mod load;
mod man;
mod notice;
mod policy_args;
mod prefixes;
mod print;
mod progress;
mod put;
mod rebuild_filters;
mod remote;
mod repair;
mod report;
pub mod rows;
mod scan;
mod seen;
mod serve;
mod stats;
mod system;
mod url;
mod verify;
mod wait;
mod workdir;

use clap::{ArgAction, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use context::{Context, Failure, Outcome};
use globals::Given;
use notice::notice;
use sidebloom::{PrefixExtractor, show};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format;
use wait::Wait;

/// An embedded key-value store whose lookups for missing keys cost a cache line instead of a disk read.
#[derive(Parser)]
#[command(name = "sidebloom", version, after_help = AFTER_HELP)]
struct Cli {
    /// Directory of the store; `put`, `load`, `seen`, `import` and `keyspaces create` create it. `get`,
    /// `scan`, `stats`, `verify`, `export`, `keyspaces` and `seen --check` also take the URL of a
    /// published store
    #[arg(long, help_heading = GLOBAL, value_name = "DIR|URL", env = "SIDEBLOOM_DB", default_value = "sidebloom.db")]
    db: PathBuf,
    /// Print JSON on standard output: one object, or one object per line for rows
    #[arg(long, help_heading = GLOBAL)]
    json: bool,
    /// Log more to standard error: once for info, twice for debug
    #[arg(long, help_heading = GLOBAL, action = ArgAction::Count)]
    verbose: u8,
    /// Prefixes of keys that filters learn, so that `scan --prefix` can skip segments without such a key:
    /// fixed:BYTES, or delimited:BYTE:COUNT for everything up to that many delimiters. The option is not
    /// stored: filters written without it rule out no prefix, and answers stay the same. `rebuild-filters`
    /// with the option restores the prefixes
    #[arg(long, help_heading = GLOBAL, value_name = "RULE,…", env = "SIDEBLOOM_PREFIXES", value_delimiter = ',', value_parser = prefixes::parse)]
    prefixes: Vec<PrefixExtractor>,
    /// Wait for a store or a guard that another process has open, for at most this many seconds, instead of
    /// failing at once [default without a number: no limit]
    #[arg(long, help_heading = GLOBAL, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = wait::FOREVER, value_parser = Wait::parse)]
    wait: Option<Wait>,
    /// Directory that keeps the filters and indexes of stores at URLs, one subdirectory per URL; by default
    /// below the user's cache directory. They take 1 to 2 % of the data
    #[arg(long, help_heading = GLOBAL, value_name = "DIR", env = "SIDEBLOOM_REMOTE_CACHE")]
    remote_cache: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

const GLOBAL: &str = "Global options";

const AFTER_HELP: &str = "\
Exit codes: 0 found or done, 1 not found, 2 error.

Keys and values are bytes. Arguments are taken literally, or as hex digits with --hex.
`scan` prints a row as KEY TAB VALUE. Backslash, TAB, LF and CR appear as \\\\, \\t, \\n and \\r, and every other
control or non-UTF-8 byte as \\xHH; `load --format scan` reads exactly that back. In JSON, bytes that are not
UTF-8 appear as hex digits under `key_hex` and `value_hex` instead of `key` and `value`; `load --format jsonl`
reads that back.";

#[derive(Subcommand)]
enum Command {
    Get(get::Args),
    Put(put::Args),
    Delete(delete::Args),
    Scan(scan::Args),
    Load(load::Args),
    Seen(seen::Args),
    Serve(serve::Args),
    Keyspaces(keyspaces::Args),
    Stats(stats::Args),
    Verify(verify::Args),
    Repair(repair::Args),
    Report(report::Args),
    Compact(compact::Args),
    RebuildFilters(rebuild_filters::Args),
    Checkpoint(checkpoint::Args),
    Backup(backup::Args),
    Restore(backup::restore::Args),
    Publish(remote::publish::Args),
    Clone(remote::clone::Args),
    Export(copy::export::Args),
    Import(copy::import::Args),
    Filter(filter::Args),
    Guard(guard::Args),
    Bench(bench::Args),
    Demo(demo::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        match self {
            Command::Get(args) => args.run(cx),
            Command::Put(args) => args.run(cx),
            Command::Delete(args) => args.run(cx),
            Command::Scan(args) => args.run(cx),
            Command::Load(args) => args.run(cx),
            Command::Seen(args) => args.run(cx),
            Command::Serve(args) => args.run(cx),
            Command::Keyspaces(args) => args.run(cx),
            Command::Stats(args) => args.run(cx),
            Command::Verify(args) => args.run(cx),
            Command::Repair(args) => args.run(cx),
            Command::Report(args) => args.run(cx),
            Command::Compact(args) => args.run(cx),
            Command::RebuildFilters(args) => args.run(cx),
            Command::Checkpoint(args) => args.run(cx),
            Command::Backup(args) => args.run(cx),
            Command::Restore(args) => args.run(cx),
            Command::Publish(args) => args.run(cx),
            Command::Clone(args) => args.run(cx),
            Command::Export(args) => args.run(cx),
            Command::Import(args) => args.run(cx),
            Command::Filter(args) => args.run(cx),
            Command::Guard(args) => args.run(cx),
            Command::Bench(args) => args.run(cx),
            Command::Demo(args) => args.run(cx),
            Command::Completions(args) => args.run(cx, globals::offered(Cli::command())),
            Command::Man(args) => args.run(cx, globals::offered(Cli::command())),
        }
    }
}

/// Parses the command line, runs the command and returns its exit code.
pub fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os()))
}

/// Runs a command line, which begins with the name of the program, and returns its exit code. A command line
/// that asks for help, or cannot be understood, ends the process.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let matches = line_end::told_from_keys(command(), &args).get_matches_from(args);
    let (cx, command) = parse(&matches).unwrap_or_else(|error| error.exit());
    match command.run(&cx).and_then(|outcome| cx.flush().map(|()| outcome)) {
        Ok(Outcome::Found) => 0,
        Ok(Outcome::NotFound) => 1,
        Err(failure) if failure.is_closed_pipe() => 0,
        Err(failure) => {
            let _ = cx.flush(); // Print results found before the failure first.
            notice(failure);
            2
        }
    }
}

/// The whole command line.
fn command() -> clap::Command {
    globals::understood(Cli::command())
}

/// Reads the shared options wherever they were given, and starts logging.
fn parse(matches: &ArgMatches) -> Result<(Context, Command), clap::Error> {
    let given = Given::new(matches);
    given.check(command)?;
    let mut cli = Cli::from_arg_matches(matches)?;
    log_to_stderr(given.count("verbose"));
    if let Some(db) = given.level("db").and_then(|level| level.get_one::<PathBuf>("db")) {
        cli.db.clone_from(db);
    }
    if let Some(prefixes) = given.level("prefixes").and_then(|level| level.get_many("prefixes")) {
        cli.prefixes = prefixes.copied().collect();
    }
    cli.wait = given.level("wait").and_then(|level| level.get_one("wait")).copied();
    cli.remote_cache = given.level("remote_cache").and_then(|level| level.get_one("remote_cache")).cloned();
    let json = given.is_named("json");
    let cx = Context::new(cli.db, given.is_named("db"), json, cli.prefixes, cli.wait, cli.remote_cache);
    Ok((cx, cli.command))
}

fn log_to_stderr(verbose: u8) {
    let level = match verbose {
        0 => tracing_subscriber::filter::LevelFilter::WARN,
        1 => tracing_subscriber::filter::LevelFilter::INFO,
        _ => tracing_subscriber::filter::LevelFilter::DEBUG,
    };
    // Log messages may contain names from outside.
    let field = format::debug_fn(|out, field, value| {
        let value = format!("{value:?}");
        match field.name() {
            "message" => write!(out, "{}", show::escaped(&value)),
            name => write!(out, "{name}={}", show::escaped(&value)),
        }
    });
    tracing_subscriber::fmt()
        .fmt_fields(field.delimited(" "))
        .with_writer(std::io::stderr)
        // Otherwise a message that cannot be written panics.
        .log_internal_errors(false)
        .with_max_level(level)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        .init();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
        globals::offered(Cli::command()).debug_assert();
    }

    fn add_letters(command: &clap::Command, path: &str, letters: &mut BTreeMap<char, String>) {
        let path = format!("{path} {}", command.get_name());
        for arg in command.get_arguments() {
            let (Some(letter), Some(name)) = (arg.get_short(), arg.get_long()) else { continue };
            let meant = letters.entry(letter).or_insert_with(|| name.to_owned());
            assert_eq!(meant, name, "-{letter} of{path}");
        }
        command.get_subcommands().for_each(|sub| add_letters(sub, &path, letters));
    }

    #[test]
    fn a_letter_means_the_same_option_in_every_command() {
        let mut command = command();
        command.build();
        let mut letters = BTreeMap::new();
        add_letters(&command, "", &mut letters);
        assert_eq!(letters.keys().collect::<String>(), "0Vchov");
    }

    #[test]
    fn a_zero_with_a_hyphen_is_a_key_unless_keys_are_lines() {
        let null = |args: &str| {
            let args: Vec<OsString> = args.split(' ').map(OsString::from).collect();
            let matches = line_end::told_from_keys(command(), &args).try_get_matches_from(args).ok()?;
            let mut at = &matches;
            while let Some((_, below)) = at.subcommand() {
                at = below;
            }
            Some(at.get_flag("null"))
        };
        for args in [
            "s get -0 -",
            "s get - -0",
            "s get --db d --null -",
            "s guard insert g --lines - -0",
            "s guard remove -0 --lines=f g",
            "s guard build -0 --lines f g",
        ] {
            assert_eq!(null(args), Some(true), "{args}");
        }
        for args in
            ["s get -0", "s get -5 -0 -1.5", "s get -- -0 -", "s get - -- -0", "s guard insert g -0 -1"]
        {
            assert_eq!(null(args), Some(false), "{args}");
        }
        for args in ["s get -5 -0 -", "s guard insert g -0 --lines f k"] {
            assert_eq!(null(args), None, "{args}");
        }
    }
}
