//! `sidebloom guard serve`: serves a guard to Redis clients.

use super::keys;
use crate::context::{Context, Failure, Outcome};
use crate::server::{self, Settings, follow};
use clap::ValueEnum;
use serde::Serialize;

use sidebloom::Durability;
use sidebloom::guard::{Guard, GuardOptions};
use std::ffi::OsStr;
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Serve a guard to Redis clients, as a Bloom filter that grows and can delete
///
/// Speaks versions 2 and 3 of the Redis protocol, with the commands of RedisBloom: BF.ADD, BF.MADD,
/// BF.INSERT, BF.EXISTS, BF.MEXISTS, BF.INFO, BF.CARD, BF.RESERVE, CF.ADD, CF.ADDNX, CF.INSERT, CF.INSERTNX,
/// CF.DEL, CF.EXISTS, CF.MEXISTS, CF.COUNT, CF.INFO, CF.RESERVE. The options of INSERT are checked but have
/// no effect: the filter exists and grows by itself.
///
/// MULTI and EXEC, which redis-py's pipeline() sends, run commands in order and apply consecutive changes as
/// one atomic write. Other clients may be served in between; there is no WATCH.
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
    /// Address and port; port 0 picks a free one. Any address except loopback requires a password
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6379")]
    listen: String,
    /// The filter's name [default: the directory's name without its extension]
    #[arg(long)]
    name: Option<String>,
    /// Create an empty guard if there is none
    #[arg(long)]
    create: bool,
    /// A file whose first line is the password that clients must give; or set SIDEBLOOM_GUARD_PASSWORD
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// When a change is acknowledged
    #[arg(long, value_name = "WHEN", default_value = "sync")]
    durability: When,
    /// Maximum number of connected clients
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u32).range(1..))]
    max_clients: u32,
    /// Disconnect a client that is idle for this many seconds; 0 means never
    #[arg(long, value_name = "SECONDS", default_value = "0")]
    idle_timeout: u64,
    /// Disconnect a client that reads no replies for this many seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u64).range(1..))]
    output_timeout: u64,
    #[command(flatten)]
    follow: Followed,
    /// Threads that serve clients [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum When {
    /// When it is on disk
    Sync,
    /// When the operating system has it; a power failure may lose the latest changes
    Os,
}

/// Which table.
#[derive(clap::Args)]
struct Followed {
    /// Follow a table of this PostgreSQL server, as `guard follow` does. Clients then cannot change the guard
    #[arg(long, value_name = "URL", requires = "table", requires = "column")]
    postgres: Option<String>,
    /// The table that has the keys, as TABLE or SCHEMA.TABLE
    #[arg(long, value_name = "TABLE", requires = "postgres")]
    table: Option<String>,
    /// The column of the keys
    #[arg(long, value_name = "COLUMN", requires = "postgres")]
    column: Option<String>,
}

const PASSWORD_VARIABLE: &str = "SIDEBLOOM_GUARD_PASSWORD";

#[derive(Serialize)]
struct Listening {
    listening: String,
    name: String,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let password = self.password()?;
        let address = self.address(password.is_some())?;
        // Everything that can fail comes before the guard is created.
        let socket = server::bind(address).map_err(|e| {
            Failure::message(format!("cannot listen on {address}: {e}; choose another with --listen"))
        })?;
        let name = self.filter_name()?;
        let source = self.follow.connect()?;
        let guard = self.open(cx)?;
        let follower = source.map(|source| follow::start(guard.clone(), source)).transpose()?;
        let settings = Settings {
            name: name.as_bytes().to_vec(),
            password,
            is_followed: keys::is_followed(&guard)?,
            idle_timeout: (self.idle_timeout > 0).then(|| Duration::from_secs(self.idle_timeout)),
            output_timeout: Duration::from_secs(self.output_timeout),
            max_clients: self.max_clients as usize,
            is_synced: self.durability == When::Sync,
            threads: self.threads.map_or_else(cores, usize::from),
        };
        server::run(socket, guard, follower, settings, |address| announce(cx, address, name))?;
        Ok(Outcome::Found)
    }

    fn open(&self, cx: &Context) -> Result<Guard, Failure> {
        let options = GuardOptions::new().durability(match self.durability {
            When::Sync => Durability::Sync,
            When::Os => Durability::Os,
        });
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

    fn password(&self) -> Result<Option<Vec<u8>>, Failure> {
        let (from, password) = match &self.password_file {
            Some(file) => (file.display().to_string(), first_line(file)?),
            None => match std::env::var_os(PASSWORD_VARIABLE) {
                Some(value) => (PASSWORD_VARIABLE.to_owned(), value.into_vec()),
                None => return Ok(None),
            },
        };
        if password.is_empty() {
            return Err(Failure::message(format!("{from}: the password is empty")));
        }
        Ok(Some(password))
    }

    fn address(&self, has_password: bool) -> Result<SocketAddr, Failure> {
        let wrong = |why: String| Failure::message(format!("--listen {}: {why}", self.listen));
        let found =
            self.listen.to_socket_addrs().map_err(|e| wrong(format!("{e}; expected ADDRESS:PORT")))?;
        let address = found.into_iter().next().ok_or_else(|| wrong("no such address".into()))?;
        if !address.ip().is_loopback() && !has_password {
            return Err(wrong(format!(
                "{} is reachable from other machines: set a password with --password-file or {PASSWORD_VARIABLE}",
                address.ip()
            )));
        }
        Ok(address)
    }
}

impl Followed {
    /// Finds the table; `None` when none is named.
    fn connect(&self) -> Result<Option<follow::PostgresSource>, Failure> {
        match (&self.postgres, &self.table, &self.column) {
            (Some(url), Some(table), Some(column)) => follow::connect(url, table, column).map(Some),
            _ => Ok(None),
        }
    }
}

fn announce(cx: &Context, address: SocketAddr, name: String) -> Result<(), Failure> {
    let report = Listening { listening: address.to_string(), name };
    cx.report(&report, |out| Ok(writeln!(out, "listening on {address}")?))?;
    cx.flush()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn first_line(file: &Path) -> Result<Vec<u8>, Failure> {
    let content = std::fs::read(file).map_err(|e| Failure::file("read", file, e))?;
    let line = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(line.strip_suffix(b"\r").unwrap_or(line).to_vec())
}
