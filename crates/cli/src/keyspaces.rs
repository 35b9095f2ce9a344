//! `sidebloom keyspaces`: lists, creates, changes and drops keyspaces.

use crate::context::{Context, Failure, Outcome};
use crate::human::{parse_bytes, parse_lifetime};
use crate::keyspace_arg::utf8;
use crate::policy_args::PolicyArgs;
use crate::remote::open_to_read;
use crate::{compression, prefixes, rebuild_filters};
use sidebloom::{Compression, FilterPolicy, Keyspace, KeyspaceOptions, PrefixExtractor, show};
use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

/// List the keyspaces of the store, or create, change and drop them
///
/// A keyspace is a set of keys of its own within a store, with its own filters and other options. Commands
/// that read and write rows work on the default keyspace, or on the one given with --keyspace.
///
/// Without a command, prints a line NAME TAB OPTIONS for each keyspace, in the order of the names. The
/// default keyspace has no name and is not listed.
///
/// Keyspaces with few rows share segments, which have the filters and other options of the store.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Subcommand)]
enum Command {
    Create(Create),
    Set(Set),
    Drop(Drop),
}

/// Create a keyspace, and the store if it is missing
///
/// Its options are stored with it. It has those of the store for what is not given.
#[derive(clap::Args)]
struct Create {
    /// The name, of 1 to 255 bytes in UTF-8
    name: OsString,
    #[command(flatten)]
    options: OptionArgs,
}

/// Change the options of a keyspace
///
/// What is not given stays as it is. The options apply to segments that are written from now on.
#[derive(clap::Args)]
struct Set {
    /// The name
    name: OsString,
    #[command(flatten)]
    options: OptionArgs,
    /// Start with the options of the store instead of those that the keyspace has
    #[arg(long)]
    reset: bool,
    /// Then give existing segments the filters that the options ask for, as `rebuild-filters --keyspace` does
    #[arg(long)]
    rebuild: bool,
}

/// Drop a keyspace with all its rows
#[derive(clap::Args)]
struct Drop {
    /// The name
    name: OsString,
}

/// The options of a keyspace.
#[derive(clap::Args)]
struct OptionArgs {
    #[command(flatten)]
    policy: PolicyArgs,
    /// No filters: for keys that are only looked up where they exist
    #[arg(long, conflicts_with = "PolicyArgs")]
    no_filters: bool,
    /// Prefixes of its keys that its filters learn: fixed:BYTES, or delimited:BYTE:COUNT for everything up to
    /// that many delimiters
    // The ID differs from that of the shared option, which is not stored.
    #[arg(id = "stored_prefixes", long = "prefixes", value_name = "RULE,…", value_delimiter = ',', value_parser = prefixes::parse)]
    prefixes: Vec<PrefixExtractor>,
    /// Its filters learn no prefixes, even if those of the store do
    #[arg(long, conflicts_with = "stored_prefixes")]
    no_prefixes: bool,
    /// Compression of its blocks
    #[arg(long, value_parser = compression::parser())]
    compression: Option<Compression>,
    /// Size of its blocks before compression, in bytes or with K or M: 256 bytes to 1 MiB
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    block_bytes: Option<u64>,
    /// Its rows expire this long after they are written, such as 90m, 24h or 7d
    #[arg(long, value_name = "TIME", value_parser = parse_lifetime)]
    expire_after: Option<Duration>,
    /// The same, at least 1s, with segments kept apart by time: one whose rows have expired is removed unread
    #[arg(long, value_name = "TIME", value_parser = parse_lifetime, conflicts_with = "expire_after")]
    window: Option<Duration>,
}

#[derive(serde::Serialize)]
struct Report<'a> {
    keyspace: &'a str,
    options: String,
}

#[derive(serde::Serialize)]
struct Dropped<'a> {
    dropped: &'a str,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        match self.command {
            None => list(cx)?,
            Some(Command::Create(args)) => args.run(cx)?,
            Some(Command::Set(args)) => args.run(cx)?,
            Some(Command::Drop(args)) => args.run(cx)?,
        }
        Ok(Outcome::Found)
    }
}

fn list(cx: &Context) -> Result<(), Failure> {
    let db = open_to_read(cx)?;
    db.keyspaces()?.iter().try_for_each(|name| print(cx, &db.keyspace(name)?))
}

/// Prints the name and the options.
fn print(cx: &Context, keyspace: &Keyspace) -> Result<(), Failure> {
    let report = Report { keyspace: keyspace.name(), options: keyspace.options().to_string() };
    cx.report(&report, |out| {
        let [name, options] = [report.keyspace, &report.options].map(show::escaped);
        Ok(writeln!(out, "{name}\t{options}")?)
    })
}

impl Create {
    fn run(self, cx: &Context) -> Result<(), Failure> {
        let (name, options) = (utf8(&self.name)?, self.options.added_to(KeyspaceOptions::new())?);
        let db = cx.open_to_write(true)?;
        print(cx, &db.create_keyspace(name, options)?)
    }
}

impl Set {
    fn run(self, cx: &Context) -> Result<(), Failure> {
        let name = utf8(&self.name)?;
        if !self.options.is_given() && !self.reset && !self.rebuild {
            return Err(Failure::message("no option is given; `sidebloom keyspaces set --help` lists them"));
        }
        let db = cx.open_to_write(false)?;
        let keyspace = db.keyspace(name)?;
        let before = if self.reset { KeyspaceOptions::new() } else { keyspace.options() };
        keyspace.set_options(self.options.added_to(before)?)?;
        print(cx, &keyspace)?;
        if self.rebuild {
            rebuild_filters::report(cx, &db, |progress| keyspace.rebuild_filters_with(progress))?;
        }
        Ok(())
    }
}

impl Drop {
    fn run(self, cx: &Context) -> Result<(), Failure> {
        let report = Dropped { dropped: utf8(&self.name)? };
        cx.open_to_write(false)?.drop_keyspace(report.dropped)?;
        cx.report(&report, |out| Ok(writeln!(out, "dropped {}", show::escaped(report.dropped))?))
    }
}

impl OptionArgs {
    /// Whether any is given.
    fn is_given(&self) -> bool {
        let flags = self.no_filters || self.no_prefixes || !self.prefixes.is_empty();
        let given = [self.policy.policy().is_some(), self.compression.is_some(), self.block_bytes.is_some()];
        flags || given.contains(&true) || self.expire_after.or(self.window).is_some()
    }

    /// Replaces what is given.
    fn added_to(&self, mut options: KeyspaceOptions) -> Result<KeyspaceOptions, Failure> {
        if let Some(policy) = self.no_filters.then_some(FilterPolicy::OFF).or(self.policy.policy()) {
            options = options.filter_policy(policy);
        }
        if self.no_prefixes || !self.prefixes.is_empty() {
            options = options.prefixes(self.prefixes.iter().copied());
        }
        if let Some(compression) = self.compression {
            options = options.compression(compression);
        }
        if let Some(bytes) = self.block_bytes {
            let bytes = usize::try_from(bytes).map_err(|_| Failure::message("--block-bytes is too large"))?;
            options = options.block_bytes(bytes);
        }
        if let Some(lifetime) = self.expire_after {
            options = options.expire_after(lifetime);
        }
        if let Some(window) = self.window {
            options = options.window(window);
        }
        Ok(options)
    }
}
