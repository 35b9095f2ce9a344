//! A followed table whose triggers, names and partitions change under the follower.

use crate::support::{check_exact, fine, follow_once, new_guard, server};
use sidebloom::filter::Verdict;
use sidebloom::guard::{Change, Guard, Source};
use sidebloom_postgres::PostgresSource;
use sidebloom_postgres::postgres::Client;
use sidebloom_postgres::{FollowEvent, FollowOptions};
use std::ops::ControlFlow;
use std::time::Duration;

const NEVER: &str = "a title that never was";

const ENABLE: &str = "DO $$ DECLARE t record; BEGIN
    FOR t IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'songs'::regclass LOOP
        EXECUTE format('ALTER TABLE songs ENABLE ALWAYS TRIGGER %I', t.tgname);
    END LOOP; END $$";

fn soon() -> FollowOptions {
    FollowOptions::new().poll(Duration::from_millis(5)).check(Duration::from_millis(5))
}

/// Follows and calls `step` with the current step, from 0, and each event. `step` returns the next step, or
/// `None` to end.
fn follow(
    source: &mut PostgresSource,
    guard: &Guard,
    mut step: impl FnMut(u32, &FollowEvent) -> Option<u32>,
) {
    let (mut at, mut events) = (0, 0);
    source
        .follow(guard, soon(), &mut |event| {
            events += 1;
            assert!(events < 5000, "stuck in step {at}: {event:?}");
            match step(at, &event) {
                Some(next) => {
                    at = next;
                    ControlFlow::Continue(())
                }
                None => ControlFlow::Break(()),
            }
        })
        .unwrap();
}

fn is_caught_up(event: &FollowEvent) -> bool {
    matches!(event, FollowEvent::CaughtUp)
}

fn left_behind(db: &mut Client) -> i64 {
    let count = "SELECT (SELECT count(*) FROM pg_class WHERE relname LIKE 'sidebloom%')
                      + (SELECT count(*) FROM pg_proc WHERE proname LIKE 'sidebloom%')";
    db.query_one(count, &[]).unwrap().get(0)
}

#[test]
fn renaming_column_table_and_schema_breaks_no_write_and_no_follower() {
    let Some(server) = server() else { return };
    let mut db = server.database("renames");
    db.batch_execute("CREATE SCHEMA music; CREATE TABLE music.songs (id bigserial, title text)").unwrap();
    let (url, dir) = (server.url("renames"), tempfile::tempdir().unwrap());
    let mut source = PostgresSource::connect(&url, "music.songs", "title").unwrap();
    let guard = fine().build_from(dir.path().join("guard"), &mut source).unwrap();
    source.install_trigger().unwrap();
    let renames = [
        ("ALTER TABLE music.songs RENAME COLUMN title TO name", "music.songs", "name"),
        ("ALTER TABLE music.songs RENAME TO tracks", "music.tracks", "name"),
        ("ALTER SCHEMA music RENAME TO audio", "audio.tracks", "name"),
        ("ALTER TABLE audio.tracks SET SCHEMA public", "public.tracks", "name"),
    ];
    let mut renamed = 0;
    follow(&mut source, &guard, |step, event| {
        renamed += u32::from(matches!(event, FollowEvent::Renamed { .. }));
        assert!(!matches!(event, FollowEvent::Suspended { .. }), "{event:?}");
        let at = step as usize;
        if !is_caught_up(event) || renamed < step {
            return Some(step);
        }
        if at > 0 {
            let (_, table, column) = renames[at - 1];
            let rows = format!(
                "INSERT INTO {table} ({column}) VALUES ('come {at}'), ('gone {at}');
                 UPDATE {table} SET {column} = 'moved {at}' WHERE {column} = 'come {at}';
                 DELETE FROM {table} WHERE {column} = 'gone {at}'"
            );
            if guard.count(format!("moved {at}")).unwrap() == 0 {
                db.batch_execute(&rows).unwrap();
                return Some(step);
            }
            assert_eq!(guard.may_contain(format!("gone {at}")), Verdict::Absent);
        }
        let (rename, ..) = renames.get(at)?;
        db.batch_execute(rename).unwrap();
        Some(step + 1)
    });
    assert_eq!((renamed, guard.stats().rows), (4, 4));
    // A new follower with new names continues where the old one stopped, without new triggers or a refresh.
    drop(source);
    let mut source = PostgresSource::connect(&url, "tracks", "name").unwrap();
    source.install_trigger().unwrap();
    db.batch_execute("INSERT INTO tracks (name) VALUES ('new')").unwrap();
    let followed = follow_once(&mut source, &guard).unwrap();
    assert_eq!((followed.refreshed, followed.inserted), (false, 1));
    assert!(
        PostgresSource::remove_triggers_at(&url, "music.songs", "title").unwrap(),
        "by its original names"
    );
    assert!(!PostgresSource::remove_triggers_at(&url, "music.songs", "title").unwrap());
    assert_eq!(left_behind(&mut db), 0);
    db.batch_execute("INSERT INTO tracks (name) VALUES ('free')").unwrap();
}

/// Triggers are removed by the new names too, and after the table was dropped.
#[test]
fn triggers_are_removed_under_new_names_and_after_a_drop_of_the_table() {
    let Some(server) = server() else { return };
    let mut db = server.songs("removal");
    let url = server.url("removal");
    let (_dir, _guard, _source) = new_guard(server, "removal");
    db.batch_execute("ALTER TABLE songs RENAME COLUMN title TO name").unwrap();
    assert!(!PostgresSource::remove_triggers_at(&url, "songs", "year").unwrap());
    assert!(PostgresSource::remove_triggers_at(&url, "songs", "name").unwrap());
    assert_eq!(left_behind(&mut db), 0);
    db.batch_execute("ALTER TABLE songs RENAME COLUMN name TO title").unwrap();
    let (_dir, _guard, _source) = new_guard(server, "removal");
    db.batch_execute("DROP TABLE songs").unwrap();
    assert!(PostgresSource::remove_triggers_at(&url, "songs", "title").unwrap());
    assert_eq!(left_behind(&mut db), 0);
}

#[test]
fn a_new_table_with_the_name_of_a_followed_one_gets_its_own_outbox() {
    let Some(server) = server() else { return };
    let mut db = server.songs("namesakes");
    let (_dir, guard, mut source) = new_guard(server, "namesakes");
    follow_once(&mut source, &guard).unwrap();
    db.batch_execute(
        "ALTER TABLE songs RENAME TO old_songs; CREATE TABLE songs (id bigserial, title text, year int)",
    )
    .unwrap();
    let (_other_dir, other, mut other_source) = new_guard(server, "namesakes");
    follow_once(&mut other_source, &other).unwrap();
    db.batch_execute(
        "INSERT INTO songs (title) VALUES ('new'); INSERT INTO old_songs (title) VALUES ('old')",
    )
    .unwrap();
    follow_once(&mut other_source, &other).unwrap();
    follow_once(&mut source, &guard).unwrap();
    check_exact(&other, &mut db);
    assert_eq!((guard.stats().rows, guard.may_contain("old")), (1, Verdict::Maybe));
}

/// A disabled trigger makes every answer "maybe" until the trigger is enabled and all rows are counted.
#[test]
fn a_disabled_trigger_makes_answers_maybe_until_all_rows_are_counted() {
    let Some(server) = server() else { return };
    let mut db = server.songs("disabled");
    let (_dir, guard, mut source) = new_guard(server, "disabled");
    let mut refreshed = false;
    follow(&mut source, &guard, |step, event| match (step, event) {
        (0, FollowEvent::CaughtUp) => {
            assert_eq!(guard.may_contain(NEVER), Verdict::Absent);
            db.batch_execute(
                "ALTER TABLE songs DISABLE TRIGGER ALL; INSERT INTO songs (title) VALUES ('unseen')",
            )
            .unwrap();
            Some(1)
        }
        (1, FollowEvent::Suspended { reason }) => {
            assert!(reason.contains("missing or disabled"), "{reason}");
            Some(2)
        }
        (2, FollowEvent::Waiting) => {
            assert_eq!(guard.may_contain(NEVER), Verdict::Maybe);
            assert_eq!(guard.may_contain_many(&["unseen", NEVER]), [Verdict::Maybe; 2]);
            assert!(guard.stats().suspended);
            db.batch_execute(ENABLE).unwrap();
            Some(3)
        }
        (3, FollowEvent::Refreshed(_)) => {
            refreshed = true;
            Some(3)
        }
        (3, FollowEvent::CaughtUp) => None,
        (step, _) => Some(step),
    });
    assert!(refreshed && !guard.is_suspended());
    assert_eq!(guard.may_contain(NEVER), Verdict::Absent);
    check_exact(&guard, &mut db);
    // Disabled and enabled again while nobody followed.
    db.batch_execute("ALTER TABLE songs DISABLE TRIGGER ALL; INSERT INTO songs (title) VALUES ('missed')")
        .unwrap();
    db.batch_execute(ENABLE).unwrap();
    assert!(follow_once(&mut source, &guard).unwrap().refreshed);
    check_exact(&guard, &mut db);
    assert!(!follow_once(&mut source, &guard).unwrap().refreshed);
}

#[test]
fn a_partition_that_is_attached_or_loses_its_triggers_is_noticed() {
    let Some(server) = server() else { return };
    let mut db = server.database("partitions");
    db.batch_execute(
        "CREATE TABLE songs (id bigserial, title text, year int) PARTITION BY RANGE (year);
         CREATE TABLE old PARTITION OF songs FOR VALUES FROM (0) TO (2000);
         CREATE TABLE new (year int, junk int, title text, id bigserial); ALTER TABLE new DROP COLUMN junk;
         INSERT INTO new (title, year) VALUES ('attached', 2001); INSERT INTO songs (title, year) VALUES ('One', 1)",
    )
    .unwrap();
    let (_dir, guard, mut source) = new_guard(server, "partitions");
    follow(&mut source, &guard, |step, event| match (step, event) {
        (0, FollowEvent::CaughtUp) => {
            assert_eq!(guard.may_contain("attached"), Verdict::Absent);
            db.batch_execute("ALTER TABLE songs ATTACH PARTITION new FOR VALUES FROM (2000) TO (3000)")
                .unwrap();
            Some(1)
        }
        (1, FollowEvent::Suspended { .. }) => Some(2),
        (2, FollowEvent::Refreshed(_)) => {
            assert_eq!((guard.count("attached").unwrap(), guard.is_suspended()), (1, false));
            // In the partition, the columns have other numbers than in the parent.
            db.batch_execute("INSERT INTO songs (title, year) VALUES ('Two', 2002); UPDATE new SET title = 'Three' WHERE title = 'Two'")
                .unwrap();
            Some(3)
        }
        (3, FollowEvent::CaughtUp) if guard.count("Three").unwrap() == 1 => {
            db.batch_execute("ALTER TABLE new DISABLE TRIGGER ALL").unwrap();
            Some(4)
        }
        (4, FollowEvent::Suspended { reason }) => {
            assert!(reason.contains("new") && guard.is_suspended(), "{reason}");
            None
        }
        (step, _) => Some(step),
    });
    source.install_trigger().unwrap();
    assert!(follow_once(&mut source, &guard).unwrap().refreshed);
    check_exact(&guard, &mut db);
    assert!(!guard.is_suspended());
}

#[test]
fn dropping_the_column_breaks_no_write_and_every_answer_is_maybe() {
    let Some(server) = server() else { return };
    let mut db = server.songs("dropped");
    let (_dir, guard, mut source) = new_guard(server, "dropped");
    follow(&mut source, &guard, |step, event| match (step, event) {
        (0, FollowEvent::CaughtUp) => {
            assert!(db.batch_execute("ALTER TABLE songs DROP COLUMN title").is_err(), "not without CASCADE");
            db.batch_execute("ALTER TABLE songs DROP COLUMN title CASCADE; INSERT INTO songs (year) VALUES (1); TRUNCATE songs")
                .unwrap();
            Some(1)
        }
        (1, FollowEvent::Suspended { reason }) => {
            assert!(reason.contains("dropped"), "{reason}");
            Some(2)
        }
        (2, FollowEvent::Waiting) => None,
        (step, event) => {
            assert!(step == 0 || is_caught_up(event) || !matches!(event, FollowEvent::Disconnected { .. }));
            Some(step)
        }
    });
    assert_eq!(guard.may_contain(NEVER), Verdict::Maybe);
    assert!(PostgresSource::remove_triggers_at(&server.url("dropped"), "songs", "title").unwrap());
    assert_eq!(left_behind(&mut db), 0);
}

/// Dropping the column is noticed even if a truncation comes before the next check.
#[test]
fn dropping_the_column_is_noticed_even_if_a_truncation_follows() {
    let Some(server) = server() else { return };
    let mut db = server.songs("dropped_unseen");
    let (_dir, guard, mut source) = new_guard(server, "dropped_unseen");
    let (mut reasons, rarely) = (Vec::new(), soon().check(Duration::from_secs(3600)));
    source
        .follow(&guard, rarely, &mut |event| {
            match event {
                FollowEvent::CaughtUp => {
                    db.batch_execute("ALTER TABLE songs DROP COLUMN title CASCADE; TRUNCATE songs").unwrap();
                }
                FollowEvent::Suspended { reason } => reasons.push(reason),
                FollowEvent::Waiting => return ControlFlow::Break(()),
                _ => {}
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(reasons.len() == 1 && reasons[0].contains("dropped"), "{reasons:?}");
    assert_eq!(guard.may_contain(NEVER), Verdict::Maybe);
}

/// A table or a column renamed just before its rows are counted is still followed.
#[test]
fn a_table_or_column_renamed_before_rows_are_counted_is_still_followed() {
    let Some(server) = server() else { return };
    for (database, rename) in [
        ("renamed_table", "ALTER TABLE songs RENAME TO tunes"),
        ("renamed_column", "ALTER TABLE songs RENAME COLUMN title TO name"),
    ] {
        let mut db = server.songs(database);
        db.batch_execute("INSERT INTO songs (title) VALUES ('Zombie')").unwrap();
        let (_dir, guard, mut source) = new_guard(server, database);
        let mut renaming = db.transaction().unwrap();
        renaming.batch_execute(rename).unwrap();
        std::thread::scope(|scope| {
            let following = scope.spawn(|| follow_once(&mut source, &guard).unwrap());
            let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND database =
                         (SELECT oid FROM pg_database WHERE datname = current_database())";
            while renaming.query_one(waits, &[]).unwrap().get::<_, i64>(0) == 0 {
                assert!(!following.is_finished(), "it waits for the rename");
                std::thread::sleep(Duration::from_millis(1));
            }
            renaming.commit().unwrap();
            assert!(following.join().unwrap().refreshed);
        });
        assert_eq!((guard.count("Zombie").unwrap(), guard.stats().rows), (1, 1));
    }
}

#[test]
fn a_key_whose_enum_label_is_renamed_is_found_by_its_new_name() {
    let Some(server) = server() else { return };
    for (database, of_type) in [("labels", "mood"), ("labels_of_a_domain", "feeling")] {
        let mut db = server.database(database);
        db.batch_execute(&format!(
            "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN feeling AS mood;
             CREATE TABLE songs (id bigserial, title {of_type}); INSERT INTO songs (title) VALUES ('sad')"
        ))
        .unwrap();
        let (_dir, guard, mut source) = new_guard(server, database);
        follow_once(&mut source, &guard).unwrap();
        assert!(!follow_once(&mut source, &guard).unwrap().refreshed);
        db.batch_execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'").unwrap();
        assert!(follow_once(&mut source, &guard).unwrap().refreshed, "no trigger reports it");
        assert_eq!((guard.count("blue").unwrap(), guard.count("sad").unwrap()), (1, 0));
        db.batch_execute("UPDATE songs SET title = 'ok'").unwrap();
        source.apply(&[Change::Insert(b"blue"), Change::Remove(b"ok"), Change::Insert(b"ok")]).unwrap();
        let followed = follow_once(&mut source, &guard).unwrap();
        assert_eq!((followed.inserted, followed.removed), (3, 2));
        assert_eq!([b"blue", &b"ok"[..], b"sad"].map(|key| source.count(key).unwrap()), [1, 1, 0]);
        assert_eq!(["blue", "ok", "sad"].map(|key| guard.count(key).unwrap()), [1, 1, 0]);
    }
}

#[test]
fn rows_that_a_policy_hides_are_an_error_and_not_missing_keys() {
    let Some(server) = server() else { return };
    let mut db = server.songs("hidden");
    db.batch_execute(
        "INSERT INTO songs (title) VALUES ('seen'), ('hidden');
         CREATE ROLE reader LOGIN; GRANT SELECT ON songs TO reader;
         ALTER TABLE songs ENABLE ROW LEVEL SECURITY;
         CREATE POLICY hiding ON songs TO reader USING (title = 'seen')",
    )
    .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let connect = |url: &str| PostgresSource::connect(url, "songs", "title").unwrap();
    let build = |url: &str| {
        let mut source = connect(url);
        fine().build_from(dir.path().join("guard"), &mut source)
    };
    let url = server.url("hidden");
    let reader = url.replace("user=postgres", "user=reader");
    for error in [build(&reader).err().unwrap(), connect(&reader).count(b"hidden").unwrap_err()] {
        assert!(error.to_string().contains("row-level security"), "{error}");
    }
    assert_eq!(build(&url).unwrap().stats().keys, 2, "the owner of the table sees all rows");
}
