//! Keys, triggers, and a guard that follows a table.

mod equality;

use crate::support::{
    Server, TITLES, check, check_exact, fine, follow_once, new_guard, server, until_caught_up,
};
use sidebloom::filter::Verdict;
use sidebloom::guard::{Canonical, Change, Guard, Source};
use sidebloom_postgres::PostgresSource;
use sidebloom_postgres::{FollowEvent, FollowOptions};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

fn keys(source: &mut PostgresSource) -> sidebloom::Result<Vec<String>> {
    let mut keys = Vec::new();
    source.stream(&mut |key| {
        keys.push(key.escape_ascii().to_string());
        Ok(())
    })?;
    keys.sort();
    Ok(keys)
}

const ROWS: &str = "TRUNCATE t;
    INSERT INTO t VALUES ('é', '\\x00ff', 'ABBA', 'x', -7, 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 'ok', 'Zombie', 1, 'j');
         INSERT INTO t VALUES (NULL), ('a b')";

#[test]
fn keys_of_every_type_are_streamed_counted_inserted_and_removed() {
    let Some(server) = server() else { return };
    let mut db = server.database("types");
    db.batch_execute(
        "CREATE EXTENSION citext; CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN title AS varchar(40);
         CREATE TABLE t (a text, b bytea, c citext, d char(8), e int, f uuid, g mood, h title, i numeric, j text COLLATE \"C\")",
    )
    .unwrap();
    let url = server.url("types");
    let cases: [(&str, &[&str], &str, &str); 8] = [
        ("a", &["\\xc3\\xa9", "a b"], "exact", "é"),
        ("c", &["ABBA"], "fold", "abba"),
        ("d", &["x"], "pad", "x   "),
        ("e", &["-7"], "integer", "-7"),
        ("f", &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"], "uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ("g", &["ok"], "exact", "ok"),
        ("h", &["Zombie"], "exact", "Zombie"),
        ("j", &["j"], "exact", "j"),
    ];
    for (column, expected, equality, asked) in cases {
        db.batch_execute(ROWS).unwrap();
        let mut source = PostgresSource::connect(&url, "public.t", column).unwrap();
        assert_eq!(keys(&mut source).unwrap(), expected, "{column}");
        assert_eq!(source.equality().to_string(), equality, "{column}");
        assert_eq!(source.count(asked.as_bytes()).unwrap(), 1, "{column}");
        assert_eq!(source.count(b"of no type").unwrap(), 0, "{column}");
        source.apply(&[Change::Insert(asked.as_bytes())]).unwrap();
        assert_eq!(source.count(asked.as_bytes()).unwrap(), 2, "{column}");
        source.apply(&[Change::Remove(asked.as_bytes())]).unwrap();
        assert_eq!(source.count(asked.as_bytes()).unwrap(), 1, "{column}");
        let error =
            source.apply(&[Change::Insert(asked.as_bytes()), Change::Remove(b"77")]).unwrap_err().to_string();
        assert!(error.contains("77"), "{error}");
        assert_eq!(source.count(asked.as_bytes()).unwrap(), 1, "all or nothing");
    }
    db.batch_execute(ROWS).unwrap();
    let mut bytes = PostgresSource::connect(&url, "t", "b").unwrap();
    assert_eq!(keys(&mut bytes).unwrap(), ["\\x00\\xff"]);
    assert_eq!(bytes.count(b"\x00\xff").unwrap(), 1);
    let refused =
        |table: &str, column: &str| PostgresSource::connect(&url, table, column).err().unwrap().to_string();
    assert!(refused("t", "i").contains("numeric"));
    assert!(refused("u", "a").contains("no table \"u\""));
    let error = refused("t", "z");
    assert!(error.contains("no column \"z\"") && error.contains("a, b, c"), "{error}");
    assert!(
        PostgresSource::connect(&server.url("nowhere"), "t", "a")
            .err()
            .unwrap()
            .to_string()
            .contains("nowhere")
    );
    let gone =
        PostgresSource::connect("postgres://nobody@127.0.0.1:1/x", "t", "a").err().unwrap().to_string();
    assert!(gone.contains("127.0.0.1:1") && gone.contains("refused"), "{gone}");
    assert!(PostgresSource::connect("what is this", "t", "a").is_err());
    db.batch_execute("CREATE VIEW v AS SELECT a FROM t; CREATE TABLE strict (a text, b int NOT NULL)")
        .unwrap();
    assert!(refused("v", "a").contains("not a table"));
    let mut strict = PostgresSource::connect(&url, "strict", "a").unwrap();
    assert!(strict.apply(&[Change::Insert(b"k")]).unwrap_err().to_string().contains("insert it yourself"));
    assert!(strict.apply(&[Change::Insert(b"\xff")]).unwrap_err().to_string().contains("UTF-8"));
}

#[test]
fn a_follower_sees_what_others_write_and_each_change_once() {
    let Some(server) = server() else { return };
    let mut db = server.songs("follows");
    let (dir, guard, mut source) = new_guard(server, "follows");
    assert!(
        follow_once(&mut source, &guard).unwrap().refreshed,
        "a guard that has never followed is refreshed"
    );
    // Several statements in one call are one transaction.
    for statements in [
        "INSERT INTO songs (title) VALUES ('One'), ('One'), ('Two'), (NULL)",
        "UPDATE songs SET title = 'Three' WHERE title = 'Two'; UPDATE songs SET year = 1",
        "UPDATE songs SET title = NULL WHERE title = 'Three'",
        "UPDATE songs SET title = 'Four' WHERE title IS NULL",
        "DELETE FROM songs WHERE id = (SELECT min(id) FROM songs WHERE title = 'One')",
        "INSERT INTO songs (title) VALUES ('One') ON CONFLICT DO NOTHING",
        "BEGIN; INSERT INTO songs (title) VALUES ('rolled back'); ROLLBACK",
        "BEGIN; SAVEPOINT s; INSERT INTO songs (title) VALUES ('rolled back'); ROLLBACK TO s;
         INSERT INTO songs (title) VALUES ('Five'); COMMIT",
    ] {
        db.batch_execute(statements).unwrap();
    }
    let followed = follow_once(&mut source, &guard).unwrap();
    assert!(!followed.refreshed && followed.inserted > 0 && followed.lag_seconds > 0.0);
    check_exact(&guard, &mut db);
    assert_eq!(guard.count("One").unwrap(), 2);
    assert_eq!(guard.may_contain("rolled back"), Verdict::Absent);
    assert_eq!(server.outbox("follows"), 0);
    let followed = follow_once(&mut source, &guard).unwrap();
    assert_eq!((followed.inserted, followed.removed), (0, 0));
    // Another process continues from the note.
    drop(guard);
    let guard = Guard::open(dir.path().join("guard")).unwrap();
    db.batch_execute("INSERT INTO songs (title) VALUES ('Six')").unwrap();
    assert!(!follow_once(&mut source, &guard).unwrap().refreshed);
    check_exact(&guard, &mut db);
    // TRUNCATE, and rows inserted after it.
    db.batch_execute("TRUNCATE songs; INSERT INTO songs (title) VALUES ('after')").unwrap();
    assert!(follow_once(&mut source, &guard).unwrap().refreshed);
    check_exact(&guard, &mut db);
    assert_eq!((guard.stats().rows, guard.may_contain("One")), (1, Verdict::Absent));
}

#[test]
fn changes_that_commit_out_of_order_all_arrive() {
    let Some(server) = server() else { return };
    let mut db = server.songs("disorder");
    let (_dir, guard, mut source) = new_guard(server, "disorder");
    follow_once(&mut source, &guard).unwrap();
    let (mut early, mut late) = (server.client("disorder"), server.client("disorder"));
    let mut early = early.transaction().unwrap();
    early.execute("INSERT INTO songs (title) VALUES ('small id, late commit')", &[]).unwrap();
    let mut late = late.transaction().unwrap();
    late.execute("INSERT INTO songs (title) VALUES ('large id, early commit')", &[]).unwrap();
    late.commit().unwrap();
    assert_eq!(follow_once(&mut source, &guard).unwrap().inserted, 1);
    assert_eq!(guard.may_contain("large id, early commit"), Verdict::Maybe);
    // A refresh does not see it either while it is open.
    let options = FollowOptions::new().refresh(true);
    source.follow(&guard, options, &mut |event| until_caught_up(&event)).unwrap();
    early.commit().unwrap();
    assert_eq!(follow_once(&mut source, &guard).unwrap().inserted, 1);
    check_exact(&guard, &mut db);
}

#[test]
fn a_guard_is_refreshed_when_changes_may_have_bypassed_it() {
    let Some(server) = server() else { return };
    let mut db = server.songs("missed");
    let (_dir, guard, mut source) = new_guard(server, "missed");
    follow_once(&mut source, &guard).unwrap();
    // An ordinary refresh leaves the outbox alone, so its position is no longer known.
    db.batch_execute("INSERT INTO songs (title) VALUES ('One')").unwrap();
    guard.refresh(&mut source).unwrap();
    assert!(follow_once(&mut source, &guard).unwrap().refreshed);
    check_exact(&guard, &mut db);
    // Triggers that are removed for some time.
    source.remove_trigger().unwrap();
    let error = follow_once(&mut source, &guard).err().unwrap().to_string();
    assert!(error.contains("install"), "{error}");
    db.batch_execute("INSERT INTO songs (title) VALUES ('Two')").unwrap();
    source.install_trigger().unwrap();
    assert!(follow_once(&mut source, &guard).unwrap().refreshed);
    check_exact(&guard, &mut db);
    db.batch_execute("ALTER TABLE songs DISABLE TRIGGER ALL").unwrap();
    assert!(follow_once(&mut source, &guard).is_err());
    source.install_trigger().unwrap();
    source.install_trigger().unwrap();
    assert!(follow_once(&mut source, &guard).unwrap().refreshed);
    assert!(!follow_once(&mut source, &guard).unwrap().refreshed);
    // A second guard on the same outbox: the first one notices, and is refreshed when it follows again.
    let (_other_dir, other, mut other_source) = new_guard(server, "missed");
    let mut switched = false;
    let outcome = source.follow(&guard, FollowOptions::new().poll(Duration::from_millis(5)), &mut |event| {
        if !switched && matches!(event, FollowEvent::CaughtUp) {
            follow_once(&mut other_source, &other).unwrap();
            db.batch_execute("INSERT INTO songs (title) VALUES ('Three')").unwrap();
            switched = true;
        }
        ControlFlow::Continue(())
    });
    assert!(outcome.unwrap_err().to_string().contains("another guard"));
    follow_once(&mut other_source, &other).unwrap();
    check_exact(&other, &mut db);
    assert!(follow_once(&mut source, &guard).unwrap().refreshed);
    check_exact(&guard, &mut db);
}

/// Three writers, a follower in this process, and concurrent refreshes.
#[test]
fn a_follower_keeps_up_with_concurrent_writers_and_refreshes() {
    let Some(server) = server() else { return };
    let mut db = server.songs("load");
    let (_dir, guard, mut source) = new_guard(server, "load");
    let done = AtomicBool::new(false);
    let refreshes = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let follower = scope.spawn(|| {
            while !done.load(Relaxed) {
                let mut steps = 0;
                let options = FollowOptions::new().refresh(true).poll(Duration::from_millis(10));
                source
                    .follow(&guard, options, &mut |event| {
                        refreshes.fetch_add(u64::from(matches!(event, FollowEvent::Refreshed(_))), Relaxed);
                        steps += 1;
                        if steps > 10 || done.load(Relaxed) {
                            ControlFlow::Break(())
                        } else {
                            ControlFlow::Continue(())
                        }
                    })
                    .unwrap();
            }
        });
        let writers: Vec<_> =
            (0..3).map(|seed| scope.spawn(move || server.write("load", seed, 300))).collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Relaxed);
        follower.join().unwrap();
    });
    assert!(refreshes.load(Relaxed) > 2);
    assert!(!follow_once(&mut source, &guard).unwrap().refreshed);
    check_exact(&guard, &mut db);
    assert_eq!(server.outbox("load"), 0);
}

const DIR: &str = "SIDEBLOOM_TEST_KILLED_FOLLOWER";
const URL: &str = "SIDEBLOOM_TEST_KILLED_FOLLOWER_URL";
const KILLS: usize = 200;

/// Follows until it aborts between the guard's write and the deletion from the outbox, or is killed anywhere.
fn follow_until_killed(dir: &Path, url: &str) {
    let guard = fine().memtable_bytes(64 << 10).open(dir.join("guard")).unwrap();
    let mut source = PostgresSource::connect(url, "songs", "title").unwrap();
    println!("following");
    let mut random = fastrand::Rng::new();
    source
        .follow(&guard, FollowOptions::new().poll(Duration::from_millis(1)), &mut |event| {
            if matches!(event, FollowEvent::Applied { .. }) && random.u8(..3) == 0 {
                println!("aborting");
                std::process::abort();
            }
            ControlFlow::Continue(())
        })
        .unwrap();
}

/// A follower that is killed between the guard's write and the outbox applies each change once.
#[test]
fn a_follower_killed_before_the_outbox_applies_each_change_once() {
    const TEST: &str = "follow::a_follower_killed_before_the_outbox_applies_each_change_once";
    if let (Some(dir), Ok(url)) = (std::env::var_os(DIR), std::env::var(URL)) {
        return follow_until_killed(Path::new(&dir), &url);
    }
    let Some(server) = server() else { return };
    let mut db = server.songs("killed");
    let (dir, guard, mut source) = new_guard(server, "killed");
    follow_once(&mut source, &guard).unwrap();
    drop(guard);
    let done = AtomicBool::new(false);
    let mut aborted = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut seed = 0;
            while !done.load(Relaxed) {
                server.write("killed", seed, 20);
                seed += 1;
            }
        });
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..KILLS {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", TEST, "--nocapture"])
                .env(DIR, dir.path())
                .env(URL, server.url("killed"))
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
            let mut text = String::new();
            while !text.ends_with("following\n") {
                assert!(std::io::BufRead::read_line(&mut output, &mut text).unwrap() > 0, "it follows");
            }
            if random.bool() {
                std::thread::sleep(Duration::from_micros(random.u64(..30_000)));
                child.kill().unwrap();
            }
            std::io::Read::read_to_string(&mut output, &mut text).unwrap();
            aborted += usize::from(text.contains("aborting"));
            assert!(!child.wait().unwrap().success());
        }
        done.store(true, Relaxed);
    });
    let guard = Guard::open(dir.path().join("guard")).unwrap();
    assert!(!follow_once(&mut source, &guard).unwrap().refreshed);
    assert!(aborted > KILLS / 4, "{aborted}");
    check_exact(&guard, &mut db);
    let report = guard.reconcile(&mut source).unwrap();
    assert_eq!((report.missing, report.surplus, report.miscounted), (0, 0, 0));
}

/// A server that restarts is followed again, and the guard answers while it is down. Uses its own server,
/// because it stops and starts it.
#[test]
fn a_restarted_server_is_followed_again_while_the_guard_answers() {
    let Some(mut server) = Server::start() else { return };
    let mut db = server.songs("restart");
    db.batch_execute("INSERT INTO songs (title) VALUES ('before')").unwrap();
    let (_dir, guard, mut source) = new_guard(&server, "restart");
    let (disconnected, caught_up) = (AtomicU64::new(0), AtomicU64::new(0));
    let done = AtomicBool::new(false);
    let wait = |what: &dyn Fn() -> bool| {
        let started = std::time::Instant::now();
        while !what() {
            assert!(started.elapsed() < Duration::from_secs(60), "waited too long");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    std::thread::scope(|scope| {
        let follower = scope.spawn(|| {
            let options =
                FollowOptions::new().poll(Duration::from_millis(20)).retry_max(Duration::from_millis(200));
            source.follow(&guard, options, &mut |event| {
                match event {
                    FollowEvent::Disconnected { .. } => disconnected.fetch_add(1, Relaxed),
                    FollowEvent::CaughtUp => caught_up.fetch_add(1, Relaxed),
                    _ => 0,
                };
                if done.load(Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        });
        wait(&|| caught_up.load(Relaxed) > 0);
        for round in 0..3 {
            let before = disconnected.load(Relaxed);
            server.stop();
            wait(&|| disconnected.load(Relaxed) > before);
            assert_eq!(guard.may_contain("before"), Verdict::Maybe, "the guard still answers");
            assert!(guard.refresh(&mut NoDatabase).is_err());
            server.run();
            let title = format!("after {round}");
            server.client("restart").execute("INSERT INTO songs (title) VALUES ($1)", &[&title]).unwrap();
            wait(&|| guard.may_contain(&title) == Verdict::Maybe && guard.contains(&title).unwrap());
        }
        done.store(true, Relaxed);
        follower.join().unwrap().unwrap();
    });
    check(&guard, &mut server.client("restart"));
    // A refresh fails while the server is unreachable, and changes nothing.
    server.stop();
    assert!(guard.refresh(&mut source).is_err());
    assert_eq!(guard.may_contain("before"), Verdict::Maybe);
}

struct NoDatabase;

impl Source for NoDatabase {
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> sidebloom::Result<()>) -> sidebloom::Result<()> {
        visit(b"half of it")?;
        Err(sidebloom::Error::Database { name: "none".into(), what: "it went away in the middle".into() })
    }

    fn count(&mut self, _: &[u8]) -> sidebloom::Result<u64> {
        Ok(TITLES.into())
    }

    fn apply(&mut self, _: &[Change<'_>]) -> sidebloom::Result<()> {
        Ok(())
    }
}
