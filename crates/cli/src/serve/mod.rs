//! `sidebloom serve`: filters for Redis clients.

mod allocator;
pub mod common;
mod passed;
mod scheduler;
mod unix_socket;

use crate::context::{Context, Failure, Outcome};
use crate::guard::following::{self, FollowArgs};
use crate::guard::keys;
use common::{ServeArgs, When};
use sidebloom::guard::GuardOptions;
use sidebloom_server::filters::{Filters, FiltersOptions, Refusal};
use sidebloom_server::server::{SaveTo, Served, ServedGuard};
use std::path::PathBuf;

/// Serve named Bloom and cuckoo filters to Redis clients, as RedisBloom does
///
/// The filters are in the store DIR, which is created if it is missing. Clients create them, by BF.RESERVE
/// and CF.RESERVE or by adding to them. All commands of RedisBloom for both kinds are there, and those of
/// Redis for keys: DEL, EXISTS, TYPE, RENAME, KEYS, SCAN, EXPIRE, TTL, FLUSHDB, SELECT (16 databases), WATCH,
/// MULTI and EXEC. docs/redis.md has the list, and all differences.
///
/// Filters are exact: an item that was not added is never reported, whatever the error rate. They take about
/// 20 bytes of disk for an item, and 1.3 bytes of memory. Capacities are enforced where RedisBloom enforces
/// them.
///
/// A change is acknowledged once the operating system has it, so it survives a crash of the server; with
/// `--durability sync` also a power failure.
///
/// Prints `listening on ADDRESS` when ready. Exits on SIGINT and SIGTERM with acknowledged changes durable.
#[derive(clap::Args)]
pub struct Args {
    /// The store of the filters
    dir: PathBuf,
    /// Also serve a guard under a name, in database 0, from a directory that nothing else changes; may be
    /// repeated
    #[arg(long, value_name = "NAME=DIR", value_parser = named_guard)]
    guard: Vec<(String, PathBuf)>,
    #[command(flatten)]
    follow: FollowArgs,
    /// When a change is acknowledged
    #[arg(long, value_name = "WHEN", default_value = "os")]
    durability: When,
    /// Where SAVE and BGSAVE write backups of all filters: `sidebloom restore` reads them
    #[arg(long, value_name = "DIR")]
    backups: Option<PathBuf>,
    /// Keep only the newest N backups
    #[arg(long, value_name = "N", requires = "backups", value_parser = clap::value_parser!(u64).range(1..))]
    keep: Option<u64>,
    /// Where SAVE and BGSAVE write checkpoints of all filters, each to a directory of its own
    #[arg(long, value_name = "DIR", conflicts_with = "backups")]
    checkpoints: Option<PathBuf>,
    #[command(flatten)]
    serve: ServeArgs,
}

fn named_guard(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, dir)) if !name.is_empty() && !dir.is_empty() => Ok((name.to_owned(), dir.into())),
        _ => Err("expected NAME=DIR".into()),
    }
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let backups = self.backups.clone().map(|dir| SaveTo::Backups { dir, keep: self.keep });
        let save_to = backups.or(self.checkpoints.clone().map(SaveTo::Checkpoints));
        let ready = self.serve.ready(self.durability, save_to)?;
        let mut source = self.follow.connect()?;
        if source.is_some() && self.guard.len() != 1 {
            return Err(Failure::message(
                "--postgres needs exactly one --guard: the one that follows the table",
            ));
        }
        let (mut guards, mut follower) = (Vec::new(), None);
        for (name, dir) in &self.guard {
            if guards.iter().any(|guard: &ServedGuard| guard.name == name.as_bytes()) {
                return Err(Failure::message(format!("--guard {name}: there are two of this name")));
            }
            let options = GuardOptions::new().durability(self.durability.durability());
            let guard = cx.opening(|| options.clone().open(dir))?;
            if let Some(source) = source.take() {
                follower = Some(following::start(guard.clone(), source)?);
            }
            let is_followed = keys::is_followed(&guard)?;
            guards.push(ServedGuard { name: name.clone().into_bytes(), guard, is_followed });
        }
        let memory = self.serve.memory_bytes();
        let options = FiltersOptions {
            durability: self.durability.durability(),
            // There may be a few memtables at once.
            memtable_bytes: memory as u64 / 16,
            block_cache_bytes: memory as u64 / 8,
            names_bytes: memory / 8,
            ..FiltersOptions::default()
        };
        let filters = cx.opening(|| {
            Filters::open(&self.dir, options.clone()).map_err(|refusal| match refusal {
                Refusal::Store(error) => error,
                other => sidebloom::Error::InvalidArgument(other.to_string()),
            })
        })?;
        let (ended, _stop) = follower.map(|follower| (follower.ended, follower.stop)).unzip();
        ready.serve(cx, Served { guards, filters: Some(filters) }, ended, None)?;
        Ok(Outcome::Found)
    }
}
