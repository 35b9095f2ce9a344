//! A PostgreSQL server for the tests, in a temporary directory, reached through a Unix socket.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a step that fails is a test that fails")]

use sidebloom::FilterPolicy;
use sidebloom::filter::Verdict;
use sidebloom::guard::{Guard, GuardOptions};
use sidebloom_postgres::postgres::{Client, NoTls};
use sidebloom_postgres::{FollowEvent, FollowOptions, PostgresSource};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// Filters so fine that a "maybe" for a missing key does not happen by chance: 1 in 65,000.
pub fn fine() -> GuardOptions {
    GuardOptions::new().filter_policy(FilterPolicy::bits_per_key(19.0))
}

/// How many titles the writers choose from.
pub const TITLES: u32 = 300;

pub struct Server {
    dir: TempDir,
    bin: PathBuf,
    /// Options of `postgres` that differ between servers; the last of two contradictory ones counts.
    pub options: String,
}

/// The server shared by most tests, each with its own database. It is stopped when the tests end.
pub fn server() -> Option<&'static Server> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    let server = SHARED.get_or_init(|| Server::start().inspect(Server::stop_with_the_tests));
    server.as_ref()
}

/// The program directory of the newest version, on Debian and other systems.
fn find_programs() -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = ["/usr/lib/postgresql", "/usr/pgsql", "/opt/homebrew/opt"]
        .iter()
        .flat_map(|place| std::fs::read_dir(place).into_iter().flatten().flatten())
        .map(|entry| entry.path().join("bin"))
        .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()))
        .filter(|bin| bin.join("initdb").exists() && bin.join("postgres").exists())
        .collect();
    found.sort_by_key(|bin| {
        let version = bin.components().find_map(|part| part.as_os_str().to_str()?.parse::<u32>().ok());
        std::cmp::Reverse(version)
    });
    found.into_iter().next()
}

impl Server {
    /// Starts a server; prints a warning and returns `None` if none is installed.
    pub fn start() -> Option<Server> {
        Self::start_with("", |_| ())
    }

    /// Starts a server with further options, after `prepare` has added files.
    pub fn start_with(options: &str, prepare: impl FnOnce(&Server)) -> Option<Server> {
        let Some(bin) = find_programs() else {
            let required = std::env::var("SIDEBLOOM_TEST_POSTGRES").is_ok_and(|value| value == "required");
            assert!(
                !required,
                "the tests require a PostgreSQL server (initdb, postgres), and none is installed"
            );
            eprintln!(
                "NOT TESTED: no PostgreSQL server is installed (on Debian: apt-get install postgresql)"
            );
            return None;
        };
        let server = Server { dir: tempfile::tempdir().unwrap(), bin, options: options.to_owned() };
        if is_root() {
            // The server refuses to run as root, and its account needs access to the directory.
            run(Command::new("chown").arg("postgres").arg(server.dir.path()));
        }
        run(server
            .program("initdb")
            .args([
                "--auth=trust",
                "--username=postgres",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
                "-D",
            ])
            .arg(server.data()));
        prepare(&server);
        server.run();
        Some(server)
    }

    /// Writes a file that only the server may read into its data directory. Returns its path.
    pub fn add(&self, name: &str, content: &str) -> PathBuf {
        let path = self.data().join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(&path));
        }
        path
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn program(&self, name: &str) -> Command {
        let program = self.bin.join(name);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(self.dir.path());
        command
    }

    /// Starts the server and waits for it to answer.
    pub fn run(&self) {
        let options = format!(
            "-c listen_addresses= -c unix_socket_directories={} -c fsync=off -c max_connections=40 {}",
            self.dir.path().display(),
            self.options
        );
        run(self
            .program("pg_ctl")
            .args(["start", "-w", "-D"])
            .arg(self.data())
            .arg("-o")
            .arg(options)
            .arg("-l")
            .arg(self.dir.path().join("log")));
    }

    /// Stops the server and closes every connection.
    pub fn stop(&mut self) {
        self.stop_now();
    }

    fn stop_now(&self) {
        run(self.program("pg_ctl").args(["stop", "-w", "-m", "fast", "-D"]).arg(self.data()));
    }

    /// Starts a process that stops the server after this process has ended.
    #[allow(
        clippy::zombie_processes,
        reason = "it outlives this process, which therefore cannot wait for it"
    )]
    pub fn stop_with_the_tests(&self) {
        let script = "while kill -0 \"$1\" 2> /dev/null; do sleep 0.2; done; kill -INT \"$(head -n 1 \"$2/data/postmaster.pid\")\"; sleep 1; rm -rf \"$2\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", &std::process::id().to_string()]).arg(self.dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    }

    pub fn url(&self, database: &str) -> String {
        format!("host={} user=postgres dbname={database}", self.dir.path().display())
    }

    pub fn client(&self, database: &str) -> Client {
        Client::connect(&self.url(database), NoTls).unwrap()
    }

    /// A new database.
    pub fn database(&self, name: &str) -> Client {
        self.client("postgres").batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        self.client(name)
    }

    /// A new database with an empty table of songs.
    pub fn songs(&self, name: &str) -> Client {
        let mut db = self.database(name);
        db.batch_execute("CREATE TABLE songs (id bigserial, title text, year int)").unwrap();
        db
    }

    /// The number of changes in the outbox.
    pub fn outbox(&self, database: &str) -> i64 {
        let mut db = self.client(database);
        let name = db
            .query_one("SELECT relname::text FROM pg_class WHERE relname LIKE 'sidebloom%outbox'", &[])
            .unwrap();
        db.query_one(&format!("SELECT count(*) FROM {}", name.get::<_, &str>(0)), &[]).unwrap().get(0)
    }

    /// Transactions of one writer, which inserts, deletes and updates rows and sometimes rolls back.
    pub fn write(&self, database: &str, seed: u64, transactions: u32) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut db = self.client(database);
        for _ in 0..transactions {
            let mut tx = db.transaction().unwrap();
            for _ in 0..random.usize(1..4) {
                let (title, other) =
                    (format!("title {}", random.u32(..TITLES)), format!("title {}", random.u32(..TITLES)));
                let one = "id = (SELECT id FROM songs WHERE title = $1 LIMIT 1 FOR UPDATE SKIP LOCKED)";
                match random.u8(..5) {
                    0..3 => tx.execute("INSERT INTO songs (title) VALUES ($1)", &[&title]),
                    3 => tx.execute(&format!("DELETE FROM songs WHERE {one}"), &[&title]),
                    _ => tx.execute(&format!("UPDATE songs SET title = $2 WHERE {one}"), &[&title, &other]),
                }
                .unwrap();
            }
            if random.u8(..10) == 0 { tx.rollback() } else { tx.commit() }.unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.data().join("postmaster.pid").exists() {
            self.stop_now();
        }
    }
}

fn is_root() -> bool {
    static ROOT: OnceLock<bool> = OnceLock::new();
    *ROOT.get_or_init(|| Command::new("id").arg("-u").output().unwrap().stdout == b"0\n")
}

fn run(command: &mut Command) {
    // Not through pipes, which the server would inherit and keep open.
    let log = tempfile::NamedTempFile::new().unwrap();
    let output = || Stdio::from(log.reopen().unwrap());
    let status = command.stdin(Stdio::null()).stdout(output()).stderr(output()).status().unwrap();
    assert!(status.success(), "{command:?}: {}", read(log.path()));
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// A guard of the songs, with the triggers installed.
pub fn new_guard(server: &Server, database: &str) -> (TempDir, Guard, PostgresSource) {
    let dir = tempfile::tempdir().unwrap();
    let mut source = PostgresSource::connect(&server.url(database), "songs", "title").unwrap();
    let options = fine().memtable_bytes(64 << 10);
    let guard = options.build_from(dir.path().join("guard"), &mut source).unwrap();
    source.install_trigger().unwrap();
    (dir, guard, source)
}

/// A follower's actions before it had caught up.
#[derive(Default)]
pub struct Followed {
    pub refreshed: bool,
    pub inserted: u64,
    pub removed: u64,
    pub lag_seconds: f64,
}

pub fn until_caught_up(event: &FollowEvent) -> ControlFlow<()> {
    match event {
        FollowEvent::CaughtUp => ControlFlow::Break(()),
        FollowEvent::Disconnected { error, .. } => panic!("{error}"),
        _ => ControlFlow::Continue(()),
    }
}

pub fn follow_once(source: &mut PostgresSource, guard: &Guard) -> sidebloom::Result<Followed> {
    let mut followed = Followed::default();
    source.follow(guard, FollowOptions::new(), &mut |event| {
        match &event {
            FollowEvent::Refreshed(_) => followed.refreshed = true,
            FollowEvent::Applied { inserted, removed, lag_seconds } => {
                followed.inserted += inserted;
                followed.removed += removed;
                followed.lag_seconds = lag_seconds.max(followed.lag_seconds);
            }
            _ => {}
        }
        until_caught_up(&event)
    })?;
    Ok(followed)
}

fn titles(db: &mut Client) -> BTreeMap<String, u64> {
    let rows =
        db.query("SELECT title, count(*) FROM songs WHERE title IS NOT NULL GROUP BY title", &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get::<_, i64>(1) as u64)).collect()
}

/// Checks that no row is denied and no key is counted too low.
pub fn check(guard: &Guard, db: &mut Client) {
    for (title, rows) in titles(db) {
        assert_eq!(guard.may_contain(&title), Verdict::Maybe, "{title} exists and was denied");
        assert!(guard.count(&title).unwrap() >= rows, "{title}");
    }
}

/// Also checks that no key is counted too high.
pub fn check_exact(guard: &Guard, db: &mut Client) {
    check(guard, db);
    let titles = titles(db);
    titles.iter().for_each(|(title, rows)| assert_eq!(guard.count(title).unwrap(), *rows, "{title}"));
    let stats = guard.stats();
    assert_eq!((stats.rows, stats.keys), (titles.values().sum(), titles.len() as u64));
}
