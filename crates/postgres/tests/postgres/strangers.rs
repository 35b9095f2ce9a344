//! Roles without rights on the followed table, and hostile names, change no answer (I11).

use crate::support::{Server, check_exact, fine, follow_once, new_guard, server};
use sidebloom::filter::Verdict;
use sidebloom::guard::{Change, Source};
use sidebloom_postgres::postgres::{Client, NoTls};
use sidebloom_postgres::{FollowEvent, FollowOptions, Installation, PostgresSource};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A client of a new role that may connect to the database and create temporary tables, and nothing else.
fn stranger(server: &Server, database: &str) -> Client {
    let role = format!("stranger_of_{database}");
    server.client(database).batch_execute(&format!("CREATE ROLE {role} LOGIN")).unwrap();
    Client::connect(&server.url(database).replace("user=postgres", &format!("user={role}")), NoTls).unwrap()
}

/// The function that fills the outbox.
fn function(db: &mut Client) -> String {
    let name = "SELECT p.oid::regproc::text FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
                WHERE t.tgrelid = 'songs'::regclass AND t.tgname LIKE 'sidebloom%rows'";
    db.query_one(name, &[]).unwrap().get(0)
}

/// A table with a followed table's trigger; then deletes a row from it.
fn forge(stranger: &mut Client, function: &str) -> Result<(), sidebloom_postgres::postgres::Error> {
    stranger.batch_execute(&format!(
        "CREATE TEMP TABLE IF NOT EXISTS forged (title text);
         CREATE TRIGGER {function}_rows AFTER INSERT OR DELETE OR UPDATE OF title ON forged
         FOR EACH ROW EXECUTE FUNCTION {function}();"
    ))?;
    stranger.batch_execute("INSERT INTO forged VALUES ('Zombie'); DELETE FROM forged WHERE title = 'Zombie'")
}

/// What version 0.1 installed, except what follows the first change.
fn install_as_before(db: &mut Client, function: &str) {
    db.batch_execute(&format!(
        "GRANT EXECUTE ON FUNCTION {function}() TO PUBLIC;
         CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql
         SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $sidebloom$ BEGIN
            IF TG_OP = 'DELETE' THEN INSERT INTO public.{function}_outbox (op, key) VALUES ('-', OLD.title); END IF;
            RETURN NULL;
         END $sidebloom$"
    ))
    .unwrap();
}

#[test]
fn i11_a_role_that_may_only_connect_cannot_make_a_guard_deny_a_key() {
    let Some(server) = server() else { return };
    let mut db = server.songs("strangers");
    db.batch_execute("INSERT INTO songs (title) VALUES ('Zombie')").unwrap();
    let (_dir, guard, mut source) = new_guard(server, "strangers");
    follow_once(&mut source, &guard).unwrap();
    let mut stranger = stranger(server, "strangers");
    let function = function(&mut db);
    let refused = forge(&mut stranger, &function).unwrap_err();
    assert_eq!(
        refused.as_db_error().unwrap().message(),
        format!("permission denied for function {function}")
    );
    // The table's number protects even after somebody granted access.
    db.batch_execute(&format!("GRANT EXECUTE ON FUNCTION {function}() TO PUBLIC")).unwrap();
    forge(&mut stranger, &function).unwrap();
    assert_eq!(server.outbox("strangers"), 0);
    assert_eq!(guard.may_contain("Zombie"), Verdict::Maybe);
}

#[test]
fn triggers_that_any_role_could_use_are_replaced_at_the_next_start() {
    let Some(server) = server() else { return };
    let mut db = server.songs("mended");
    db.batch_execute("INSERT INTO songs (title) VALUES ('Zombie')").unwrap();
    let (_dir, guard, mut source) = new_guard(server, "mended");
    follow_once(&mut source, &guard).unwrap();
    let function = function(&mut db);
    install_as_before(&mut db, &function);
    let mut stranger = stranger(server, "mended");
    forge(&mut stranger, &function).unwrap();
    assert_eq!(server.outbox("mended"), 1, "version 0.1 believed it");
    let refused = source.follow(&guard, FollowOptions::new(), &mut |_| ControlFlow::Break(())).unwrap_err();
    assert!(refused.to_string().contains("not safe from other roles"), "{refused}");
    let installed = source.install_trigger().unwrap();
    assert!(
        matches!(&installed, Installation::Mended { reason } if reason.contains("an earlier version")),
        "{installed}"
    );
    assert!(installed.to_string().contains("counted again"), "{installed}");
    stranger.batch_execute("INSERT INTO forged VALUES ('Zombie'); DELETE FROM forged").unwrap();
    assert!(follow_once(&mut source, &guard).unwrap().refreshed);
    check_exact(&guard, &mut db);
    assert!(
        stranger
            .batch_execute(&format!(
                "CREATE TRIGGER again AFTER INSERT ON forged FOR EACH ROW EXECUTE FUNCTION {function}()"
            ))
            .is_err()
    );
    assert_eq!(source.install_trigger().unwrap(), Installation::Found);
    source.remove_trigger().unwrap();
}

#[test]
fn triggers_that_become_unsafe_suspend_the_guard_until_they_are_replaced() {
    let Some(server) = server() else { return };
    let mut db = server.songs("unsafe");
    db.batch_execute("CREATE ROLE other").unwrap();
    let (_dir, guard, mut source) = new_guard(server, "unsafe");
    let name = function(&mut db);
    let soon = FollowOptions::new().poll(Duration::from_millis(5)).check(Duration::from_millis(5));
    for (mut change, why) in [
        (format!("GRANT EXECUTE ON FUNCTION {name}() TO PUBLIC"), "every role may use"),
        (format!("GRANT DELETE ON {name}_outbox TO PUBLIC"), "can be written by every role"),
        (format!("ALTER TABLE {name}_outbox OWNER TO other"), "belongs to the role other"),
        (format!("ALTER FUNCTION {name}() SET search_path = public"), "has been altered"),
        (format!("CREATE RULE r AS ON INSERT TO {name}_outbox DO INSTEAD NOTHING"), "has rules or triggers"),
    ] {
        let (mut reason, mut events) = (None, 0);
        source
            .follow(&guard, soon, &mut |event| {
                events += 1;
                match event {
                    FollowEvent::CaughtUp if events < 100 => {
                        db.batch_execute(&std::mem::take(&mut change)).unwrap();
                        return ControlFlow::Continue(());
                    }
                    FollowEvent::Suspended { reason: why } => reason = Some(why),
                    FollowEvent::CaughtUp => {}
                    _ => return ControlFlow::Continue(()),
                }
                ControlFlow::Break(())
            })
            .unwrap();
        assert!(reason.as_ref().is_some_and(|reason| reason.contains(why)), "{why}: {reason:?}");
        assert_eq!(guard.may_contain("of no row"), Verdict::Maybe);
        if why.contains("other") {
            let refused = source.install_trigger().unwrap_err().to_string();
            assert!(
                refused.contains("belongs to the role other") && refused.contains("remove it"),
                "{refused}"
            );
            db.batch_execute(&format!("DROP TABLE {name}_outbox")).unwrap();
            assert_eq!(source.install_trigger().unwrap(), Installation::Created);
        } else {
            assert!(matches!(source.install_trigger().unwrap(), Installation::Mended { .. }), "{why}");
        }
        assert!(follow_once(&mut source, &guard).unwrap().refreshed, "{why}");
        assert_eq!(guard.may_contain("of no row"), Verdict::Absent);
    }
}

/// Whoever may create objects in the schema can guess the names and create them first.
#[test]
fn names_that_another_role_has_taken_are_not_used() {
    let Some(server) = server() else { return };
    let mut db = server.songs("taken");
    let (_dir, _guard, mut source) = new_guard(server, "taken");
    let expected = function(&mut db);
    source.remove_trigger().unwrap();
    let mut stranger = stranger(server, "taken");
    db.batch_execute("GRANT CREATE ON SCHEMA public TO PUBLIC; INSERT INTO songs (title) VALUES ('Zombie')")
        .unwrap();
    stranger
        .batch_execute(&format!(
            "CREATE TABLE {expected}_outbox (id bigserial, op \"char\", key text, at timestamptz DEFAULT now());
             INSERT INTO {expected}_outbox (op, key) VALUES ('-', 'Zombie');
             CREATE TABLE {expected}_follower (token bigint, catalogue text);
             CREATE FUNCTION {expected}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
        ))
        .unwrap();
    let (_dir, guard, mut source) = new_guard(server, "taken");
    let used = function(&mut db);
    assert_ne!(used, expected);
    follow_once(&mut source, &guard).unwrap();
    db.batch_execute("INSERT INTO songs (title) VALUES ('Two')").unwrap();
    assert_eq!(follow_once(&mut source, &guard).unwrap().inserted, 1);
    check_exact(&guard, &mut db);
}

#[test]
fn default_privileges_give_nobody_the_outbox() {
    let Some(server) = server() else { return };
    let mut db = server.songs("defaults");
    let _stranger = stranger(server, "defaults");
    db.batch_execute(
        "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO stranger_of_defaults, PUBLIC;
         ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO stranger_of_defaults;
         ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO stranger_of_defaults",
    )
    .unwrap();
    let (_dir, guard, mut source) = new_guard(server, "defaults");
    let granted = "SELECT count(*) FROM (
            SELECT a.grantee, c.relowner AS owner FROM pg_class c, aclexplode(c.relacl) a WHERE c.relname LIKE 'sidebloom%'
            UNION ALL SELECT a.grantee, p.proowner FROM pg_proc p, aclexplode(p.proacl) a WHERE p.proname LIKE 'sidebloom%') AS all_of_them
        WHERE grantee <> owner";
    assert_eq!(db.query_one(granted, &[]).unwrap().get::<_, i64>(0), 0);
    follow_once(&mut source, &guard).unwrap();
}

/// Other roles' functions, operators and casts match a follower's queries better than the server's own.
#[test]
fn a_follower_runs_no_function_of_another_role() {
    let Some(server) = server() else { return };
    let mut db = server.database("shadows");
    db.batch_execute(
        "CREATE TABLE runs (by name);
         CREATE ROLE owner_of_shadows LOGIN; GRANT ALL ON SCHEMA public TO owner_of_shadows; GRANT ALL ON runs TO owner_of_shadows",
    )
    .unwrap();
    let url = server.url("shadows");
    let mut owner = Client::connect(&url.replace("user=postgres", "user=owner_of_shadows"), NoTls).unwrap();
    owner
        .batch_execute(
            "CREATE TYPE mood AS ENUM ('sad', 'ok');
             CREATE TABLE songs (id bigserial, title mood);
             CREATE FUNCTION shadow(mood) RETURNS text LANGUAGE plpgsql AS
                'BEGIN INSERT INTO public.runs VALUES (current_user); RETURN ''forged''; END';
             CREATE FUNCTION shadow(text) RETURNS mood LANGUAGE plpgsql AS
                'BEGIN INSERT INTO public.runs VALUES (current_user); RETURN ''sad''; END';
             CREATE CAST (mood AS text) WITH FUNCTION shadow(mood); CREATE CAST (text AS mood) WITH FUNCTION shadow(text);
             CREATE FUNCTION same(mood, mood) RETURNS bool LANGUAGE plpgsql AS
                'BEGIN INSERT INTO public.runs VALUES (current_user); RETURN true; END';
             CREATE OPERATOR = (LEFTARG = mood, RIGHTARG = mood, FUNCTION = same);
             CREATE FUNCTION concat_ws(text, oid, oid, text, \"char\") RETURNS text LANGUAGE plpgsql AS
                'BEGIN INSERT INTO public.runs VALUES (current_user); RETURN ''x''; END';
             INSERT INTO songs (title) VALUES ('sad')",
        )
        .unwrap();
    let (_dir, guard, mut source) = new_guard(server, "shadows");
    follow_once(&mut source, &guard).unwrap();
    owner.batch_execute("INSERT INTO songs (title) VALUES ('ok'); UPDATE songs SET title = 'ok'").unwrap();
    follow_once(&mut source, &guard).unwrap();
    source.apply(&[Change::Insert(b"sad"), Change::Remove(b"ok")]).unwrap();
    follow_once(&mut source, &guard).unwrap();
    assert_eq!(["sad", "ok"].map(|key| guard.count(key).unwrap()), [1, 1]);
    assert_eq!([b"sad", &b"ok"[..], b"forged"].map(|key| source.count(key).unwrap()), [1, 1, 0]);
    let runs: Vec<String> =
        db.query("SELECT by::text FROM runs", &[]).unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(runs, Vec::<String>::new());
}

#[test]
fn hostile_names_are_names_whatever_strings_mean() {
    let Some(server) = server() else { return };
    for (setting, database) in [("on", "names_on"), ("off", "names_off")] {
        let mut db = server.database(database);
        db.batch_execute(&format!(
            "ALTER DATABASE {database} SET standard_conforming_strings = {setting};
             ALTER DATABASE {database} SET backslash_quote = on; ALTER DATABASE {database} SET escape_string_warning = off;
             CREATE TABLE canary (id int)"
        ))
        .unwrap();
        let names = [
            "a\\'; DROP TABLE canary; --",
            "$sidebloom$; DROP TABLE canary; --",
            "\"; DROP TABLE canary; --",
            "%I %s %% %1$I",
            "line\nfeed \\\\' || $1 {}",
        ];
        for name in names {
            let mut db = server.client(database);
            let quoted = format!("\"{}\"", name.replace('"', "\"\""));
            let create = format!(
                "CREATE SCHEMA {quoted}; CREATE TABLE {quoted}.{quoted} (id bigserial, {quoted} text);
                 INSERT INTO {quoted}.{quoted} ({quoted}) VALUES ('One')"
            );
            db.batch_execute(&create).unwrap();
            let dir = tempfile::tempdir().unwrap();
            let url = server.url(database);
            let table = format!("{name}.{name}");
            let mut source =
                PostgresSource::connect(&url, &table, name).unwrap_or_else(|error| panic!("{name}: {error}"));
            let guard = fine().build_from(dir.path().join("guard"), &mut source).unwrap();
            source.install_trigger().unwrap_or_else(|error| panic!("{name}: {error}"));
            follow_once(&mut source, &guard).unwrap();
            db.batch_execute(&format!("INSERT INTO {quoted}.{quoted} ({quoted}) VALUES ('Two')")).unwrap();
            assert_eq!(follow_once(&mut source, &guard).unwrap().inserted, 1, "{name}");
            db.batch_execute(&format!(
                "ALTER TABLE {quoted}.{quoted} RENAME COLUMN {quoted} TO other; UPDATE {quoted}.{quoted} SET other = 'Three' WHERE other = 'Two'"
            ))
            .unwrap();
            follow_once(&mut source, &guard).unwrap();
            assert_eq!(["One", "Two", "Three"].map(|key| guard.count(key).unwrap()), [1, 0, 1], "{name}");
            assert!(PostgresSource::remove_triggers_at(&url, &table, name).unwrap(), "{name}");
        }
        assert_eq!(db.query("SELECT FROM canary", &[]).unwrap().len(), 0);
    }
}

#[test]
fn a_role_that_notifies_without_pause_delays_no_change() {
    let Some(server) = server() else { return };
    let mut db = server.songs("flooded");
    let (_dir, guard, mut source) = new_guard(server, "flooded");
    let channel = function(&mut db);
    follow_once(&mut source, &guard).unwrap();
    let mut stranger = stranger(server, "flooded");
    let (done, mut looks, started) = (AtomicBool::new(false), 0u32, Instant::now());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                stranger.batch_execute(&format!("NOTIFY {channel}, 'nothing'")).unwrap();
            }
        });
        source
            .follow(&guard, FollowOptions::new().poll(Duration::from_millis(50)), &mut |event| {
                let is_caught_up = matches!(event, FollowEvent::CaughtUp);
                looks += u32::from(is_caught_up);
                if is_caught_up && looks == 100 {
                    db.batch_execute("INSERT INTO songs (title) VALUES ('Zombie')").unwrap();
                }
                if guard.may_contain("Zombie") == Verdict::Maybe {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
            .unwrap();
        done.store(true, Relaxed);
    });
    assert!(u128::from(looks) <= started.elapsed().as_millis() / 2 + 2, "{looks} looks at an empty outbox");
    check_exact(&guard, &mut db);
}
