//! `sidebloom guard serve`: serves a guard to Redis clients.

use super::following::{self, FollowArgs};
use super::keys;
use crate::context::{Context, Failure, Outcome};
use crate::serve::common::{ServeArgs, When};
use sidebloom::guard::{Guard, GuardOptions};
use sidebloom_server::server::{Served, ServedGuard};
use std::ffi::OsStr;
use std::path::PathBuf;

/// Serve a guard to Redis clients, as a Bloom filter that grows and can delete
///
/// Speaks versions 2 and 3 of the Redis protocol, with the commands of RedisBloom: BF.ADD, BF.MADD,
/// BF.INSERT, BF.EXISTS, BF.MEXISTS, BF.INFO, BF.CARD, BF.RESERVE, CF.ADD, CF.ADDNX, CF.INSERT, CF.INSERTNX,
/// CF.DEL, CF.EXISTS, CF.MEXISTS, CF.COUNT, CF.INFO, CF.RESERVE. The options of INSERT are checked but have
/// no effect: the filter exists and grows by itself.
///
/// MULTI and EXEC, which redis-py's pipeline() sends, run commands in order and apply consecutive changes as
/// one atomic write. Other clients may ask in between, but change nothing. A guard cannot be watched.
///
/// There is one filter, named by --name; `BF.RESERVE` of it replies "item exists". Any other name is the
/// error "not found", even where Redis would reply 0 or create a filter: a typo must not mean "certainly
/// absent".
///
/// EXISTS is answered from memory: 0 is certain, 1 means maybe. BF.ADD and CF.ADDNX add an item unless it
/// exists, and reply exactly whether it was added (from disk). CF.ADD adds one occurrence, CF.DEL removes
/// one, and CF.COUNT is exact. BF and CF commands see the same items. A change is acknowledged once it is
/// durable. Pipelined commands are processed in batches.
///
/// `BF.ADD name item EX seconds` (or PX milliseconds, EXAT or PXAT a Unix time) adds an item that expires,
/// unless it exists: from then on, it is absent again, and no command counts it. BF.ADD and CF.ADD without an
/// expiry make such an item stay. BF.CARD and INFO do not count items that expire. From the first such item
/// on, EXISTS also reads the disk, since filters know nothing of time. That ends when a refresh finds that
/// all of them have expired.
///
/// With --postgres the guard follows a table, and answers reflect the last change applied. It retries while
/// the database is unreachable, and exits on any other error that stops the follower. It checks the triggers
/// every second. If changes may have bypassed them, it logs a warning, and every answer is "maybe" until they
/// are in place again and all rows are recounted; INFO shows this as guard_suspended.
///
/// Prints `listening on ADDRESS` when ready. Exits on SIGINT and SIGTERM with acknowledged changes durable.
#[derive(clap::Args)]
pub struct Args {
    /// The guard's directory
    dir: PathBuf,
    /// The filter's name [default: the directory's name without its extension]
    #[arg(long)]
    name: Option<String>,
    /// Create an empty guard if there is none
    #[arg(long)]
    create: bool,
    /// When a change is acknowledged
    #[arg(long, value_name = "WHEN", default_value = "sync")]
    durability: When,
    #[command(flatten)]
    follow: FollowArgs,
    #[command(flatten)]
    serve: ServeArgs,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        // Everything that can fail comes before the guard is created.
        let ready = self.serve.ready(self.durability, None)?;
        let name = self.filter_name()?;
        let source = self.follow.connect()?;
        let guard = self.open(cx)?;
        let follower = source.map(|source| following::start(guard.clone(), source)).transpose()?;
        let is_followed = keys::is_followed(&guard)?;
        let served = ServedGuard { name: name.clone().into_bytes(), guard, is_followed };
        let (ended, _stop) = follower.map(|follower| (follower.ended, follower.stop)).unzip();
        ready.serve(cx, Served { guards: vec![served], filters: None }, ended, Some(name))?;
        Ok(Outcome::Found)
    }

    fn open(&self, cx: &Context) -> Result<Guard, Failure> {
        let options = GuardOptions::new().durability(self.durability.durability());
        let is_empty = || std::fs::read_dir(&self.dir).map_or(true, |mut entries| entries.next().is_none());
        cx.opening(|| {
            if self.create && is_empty() {
                options.clone().build(&self.dir, [[0; 0]; 0])
            } else {
                options.clone().open(&self.dir)
            }
        })
    }

    fn filter_name(&self) -> Result<String, Failure> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        let full = std::fs::canonicalize(&self.dir)
            .or_else(|_| std::path::absolute(&self.dir)) // It may not exist yet.
            .map_err(|e| Failure::file("find", &self.dir, e))?;
        let stem = full.file_stem().and_then(OsStr::to_str);
        stem.map(str::to_owned).ok_or_else(|| {
            Failure::message(format!(
                "{} has no usable name for the filter: give one with --name",
                full.display()
            ))
        })
    }
}
