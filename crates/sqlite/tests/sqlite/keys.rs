//! A guard in front of a real SQLite database: kinds of keys, collations, duplicates, and errors.

use crate::support::{Case, check, fine, keys};
use sidebloom::filter::Verdict;
use sidebloom::guard::{Canonical, Change, Guard, Source};
use sidebloom_sqlite::SqliteSource;
use sidebloom_sqlite::rusqlite::DropBehavior;
use std::time::Duration;

#[test]
fn every_kind_of_key_is_streamed_counted_inserted_and_removed() {
    let case = Case::new(
        "CREATE TABLE songs (title); -- of no affinity
         INSERT INTO songs VALUES ('Zombie'), ('Zombie'), (x'ff00'), (42), (-7), (NULL), (''), ('é');",
    );
    let mut source = case.source();
    let expected: [&[u8]; 7] = [b"Zombie", b"Zombie", b"\xff\x00", b"42", b"-7", b"", "é".as_bytes()];
    assert_eq!(keys(&mut source).unwrap(), expected);
    for (key, rows) in
        [(&b"Zombie"[..], 2), (b"42", 1), (b"-7", 1), (b"\xff\x00", 1), (b"", 1), (b"zombie", 0), (b"042", 0)]
    {
        assert_eq!(source.count(key).unwrap(), rows, "{}", key.escape_ascii());
    }
    source
        .apply(&[
            Change::Insert(b"\xfe"),
            Change::Insert(b"42"),
            Change::Remove(b"Zombie"),
            Change::Remove(b"-7"),
        ])
        .unwrap();
    for (key, rows) in [(&b"Zombie"[..], 1), (b"42", 2), (b"-7", 0), (b"\xfe", 1)] {
        assert_eq!(source.count(key).unwrap(), rows, "{}", key.escape_ascii());
    }
    let error = source.apply(&[Change::Insert(b"new"), Change::Remove(b"nobody")]).unwrap_err().to_string();
    assert!(error.contains("\"nobody\"") && error.contains("nothing was changed"), "{error}");
    assert_eq!(source.count(b"new").unwrap(), 0, "all or nothing");
}

#[test]
fn a_number_with_a_fraction_is_refused_with_its_column() {
    let case =
        Case::new("CREATE TABLE songs (title NUMERIC, rate DOUBLE); INSERT INTO songs VALUES (1.5, 1)");
    let error = keys(&mut case.source()).unwrap_err().to_string();
    assert!(error.contains("\"songs\".\"title\"") && error.contains("1.5"), "{error}");
    let error = case.refused("songs", "rate");
    assert!(error.contains("\"songs\".\"rate\"") && error.contains("DOUBLE"), "{error}");
}

/// Rows whose keys the guard refuses are rolled back, even if the transaction commits on drop.
#[test]
fn rows_whose_keys_the_guard_refuses_are_rolled_back() {
    let case = Case::new("CREATE TABLE songs (title TEXT)");
    drop(fine().build_from(case.guard(), &mut case.source()).unwrap());
    let guard = fine().read_only(true).open(case.guard()).unwrap();
    let mut db = case.db();
    let mut tx = db.transaction().unwrap();
    tx.set_drop_behavior(DropBehavior::Commit);
    tx.execute("INSERT INTO songs VALUES ('new')", []).unwrap();
    let mut changes = guard.transaction();
    changes.insert("new").unwrap();
    sidebloom_sqlite::commit(changes, tx).unwrap_err();
    assert!(!guard.contains("new").unwrap());
    assert_eq!(case.source().count(b"new").unwrap(), 0);
}

/// Queries the database for every spelling, bound as text and as a number, in every column.
#[test]
fn no_spelling_that_the_column_treats_as_one_of_its_keys_gets_a_no() {
    let asked = [
        "5",
        "05",
        "+5",
        "5.0",
        "5.",
        " 5",
        "5\t",
        "5e0",
        "50e-1",
        ".5e1",
        "0x5",
        "5_0",
        "5.00000000000000000000001",
        "-7",
        "-07.0",
        "0",
        "-0",
        "+0.0",
        "",
        " ",
        "42",
        "1e400",
        "9007199254740993",
        "9007199254740993.0",
        "9007199254740992.0",
        "ABBA",
        "abba",
        "abba  ",
        "9223372036854775807",
        "9223372036854775808",
        "09223372036854775807",
        "9223372036854775807.0",
        "-9223372036854775808.0",
        "2024-01-02",
        "1_0",
        "12AB",
        "12ab",
        "5 ABBA",
        "nan",
    ];
    let types = [
        "INTEGER",
        "INT",
        "BIGINT UNSIGNED",
        "INTEGER PRIMARY KEY",
        "NUMERIC",
        "BOOLEAN",
        "DATE",
        "DECIMAL(10, 2)",
        "TEXT",
        "VARCHAR(3)",
        "",
        "BLOB",
        "TEXT COLLATE NOCASE",
        "NUMERIC COLLATE NOCASE",
        "TEXT COLLATE RTRIM",
        "INT COLLATE RTRIM",
    ];
    for declared in types {
        let case = Case::new(&format!(
            "CREATE TABLE songs (title {declared}); INSERT INTO songs VALUES (5), (-7), (0), (9007199254740993),
             (9007199254740992), (9223372036854775807), (-9223372036854775807 - 1);"
        ));
        let db = case.db();
        if !declared.ends_with("KEY") {
            db.execute_batch("INSERT INTO songs VALUES ('Abba'), ('2024-01-02'), ('12AB'), ('1_0'), ('')")
                .unwrap();
        }
        let guard = fine().build_from(case.guard(), &mut case.source()).unwrap();
        let mut found = 0;
        for key in asked {
            let as_text: i64 =
                db.query_row("SELECT count(*) FROM songs WHERE title = ?", [key], |row| row.get(0)).unwrap();
            let by_affinity = declared.is_empty()
                || declared == "BLOB"
                || declared.starts_with("TEXT")
                || declared.starts_with("VAR");
            let as_number: i64 = match key.parse::<f64>() {
                Ok(number) if !by_affinity => db
                    .query_row("SELECT count(*) FROM songs WHERE title = ?", [number], |row| row.get(0))
                    .unwrap(),
                _ => 0,
            };
            if as_text + as_number > 0 {
                found += 1;
                assert_eq!(
                    guard.may_contain(key),
                    Verdict::Maybe,
                    "{declared} takes {key:?} for a key that it has"
                );
            }
        }
        assert!(found >= 3, "{declared}: {found}");
        assert_eq!(guard.may_contain("6"), Verdict::Absent);
    }
}

#[test]
fn names_are_quoted_and_single_rows_of_every_kind_of_table_can_be_removed() {
    let case = Case::new(
        r#"CREATE TABLE "a ""b"" -- c" ("select ""x""" TEXT, oid INT, _rowid_ INT);
           INSERT INTO "a ""b"" -- c" VALUES ('k', 1, 1), ('k', 1, 1);
           CREATE TABLE pairs (artist TEXT, title TEXT, PRIMARY KEY (artist, title)) WITHOUT ROWID;
           INSERT INTO pairs VALUES ('a', 'k'), ('b', 'k');
           CREATE TABLE hidden (k TEXT, oid INT, _rowid_ INT, rowid INT); INSERT INTO hidden VALUES ('k', 1, 1, 1);"#,
    );
    for (table, column) in [(r#"a "b" -- c"#, r#"select "x""#), ("pairs", "title"), ("PAIRS", "TITLE")] {
        let mut source = SqliteSource::open(case.file(), table, column).unwrap();
        assert_eq!(source.count(b"k").unwrap(), 2, "{table}");
        if table != "PAIRS" {
            source.apply(&[Change::Remove(b"k")]).unwrap();
            assert_eq!(source.count(b"k").unwrap(), 1, "{table}");
            case.db().execute_batch("INSERT OR IGNORE INTO pairs VALUES ('a', 'k'), ('b', 'k')").unwrap();
        }
    }
    let mut hidden = SqliteSource::open(case.file(), "hidden", "k").unwrap();
    assert!(
        hidden.apply(&[Change::Remove(b"k")]).unwrap_err().to_string().contains("cannot delete a single row")
    );
}

#[test]
fn errors_about_missing_tables_and_columns_list_the_existing_ones() {
    let case = Case::new(
        "CREATE TABLE songs (title TEXT, artist TEXT NOT NULL); CREATE VIEW v AS SELECT title FROM songs;",
    );
    let error = case.refused("song", "title");
    assert!(error.contains("no table \"song\"") && error.contains("songs, v"), "{error}");
    let error = case.refused("songs", "name");
    assert!(error.contains("no column \"name\"") && error.contains("title, artist"), "{error}");
    assert!(case.refused("v", "title").contains("is a view"));
    let missing =
        SqliteSource::open(case.dir.path().join("nothing"), "songs", "title").err().unwrap().to_string();
    assert!(missing.contains("nothing") && missing.contains("unable to open"), "{missing}");
    assert!(!case.dir.path().join("nothing").exists(), "a missing database is not created");
    std::fs::write(
        case.dir.path().join("text"),
        "no database, but long enough to have a header of its own ".repeat(20),
    )
    .unwrap();
    let text = SqliteSource::open(case.dir.path().join("text"), "songs", "title").err().unwrap().to_string();
    assert!(text.contains("not a database"), "{text}");
    let error = case.source().apply(&[Change::Insert(b"k")]).unwrap_err().to_string();
    assert!(error.contains("songs.artist") && error.contains("insert it yourself"), "{error}");
}

#[test]
fn a_guard_that_is_finer_than_the_collation_is_refused() {
    for (collation, keys, asked) in
        [("NOCASE", "fold", "SINNERMAN"), ("RTRIM", "pad", "Sinnerman   "), ("BINARY", "exact", "Sinnerman")]
    {
        let case = Case::new(&format!(
            "CREATE TABLE songs (title TEXT COLLATE {collation}); INSERT INTO songs VALUES ('Sinnerman')"
        ));
        let mut source = case.source();
        let canonical: Canonical = keys.parse().unwrap();
        assert_eq!(source.equality(), canonical);
        assert_eq!(source.count(asked.as_bytes()).unwrap(), 1, "the database's own equality");
        let wrong = if keys == "fold" { "pad" } else { "fold" };
        for finer in ["exact", wrong].iter().filter(|_| keys != "exact") {
            let options = fine().canonical(finer.parse().unwrap());
            let error =
                options.build_from(case.guard(), &mut source).err().expect("it was built").to_string();
            assert!(error.contains(keys) && error.contains("build the guard with"), "{error}");
        }
        // A finer guard built from lines cannot be refreshed, but still answers.
        let finer = fine().build(case.guard(), ["Sinnerman"]).unwrap();
        assert_eq!(finer.refresh(&mut source).is_ok(), keys == "exact");
        assert_eq!(finer.may_contain("Sinnerman"), Verdict::Maybe);
        drop(finer);
        std::fs::remove_dir_all(case.guard()).unwrap();
        let guard = fine().canonical(canonical).build_from(case.guard(), &mut source).unwrap();
        assert_eq!(guard.may_contain(asked), Verdict::Maybe, "{asked}");
        assert_eq!(guard.may_contain("Freebird"), Verdict::Absent);
    }
}

#[test]
fn keys_that_only_a_collation_can_compare_are_refused() {
    let case = Case::new(
        "CREATE TABLE songs (title TEXT COLLATE NOCASE); INSERT INTO songs VALUES ('a' || char(0) || 'b')",
    );
    assert_eq!(case.source().count(b"A\0x").unwrap(), 1, "NOCASE ends at a NUL");
    let error = fine().build_from(case.guard(), &mut case.source()).err().unwrap().to_string();
    assert!(error.contains("NUL") && error.contains("fold,any"), "{error}");
    let db = case.db();
    // As created by an application with its own collation.
    db.execute_batch(
        "CREATE TABLE other (title TEXT COLLATE NOCASE); PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = replace(sql, 'NOCASE', 'SWEDISH') WHERE name = 'other'",
    )
    .unwrap();
    let error = case.refused("other", "title");
    assert!(error.to_lowercase().contains("swedish"), "{error}");
}

/// Text that is not UTF-8 is a key when bytes are compared, and an error when case is folded.
#[test]
fn text_that_is_not_utf8_is_a_key_as_bytes_and_an_error_when_folded() {
    let case = Case::new(
        "CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES (CAST(x'636166e9' AS TEXT)), ('b')",
    );
    let mut source = case.source();
    assert_eq!(source.count(b"caf\xe9").unwrap(), 1);
    let guard = fine().build_from(case.guard(), &mut source).unwrap();
    assert_eq!(guard.may_contain(b"caf\xe9"), Verdict::Maybe);
    let folding = fine().canonical(Canonical::EXACT.fold_case());
    let path = case.dir.path().join("folding");
    let error = folding.clone().build_from(&path, &mut source).err().unwrap().to_string();
    assert!(error.contains("caf\\xe9") && error.contains("not UTF-8"), "{error}");
    // An existing guard is unchanged.
    let guard = folding.build(&path, ["old"]).unwrap();
    assert!(guard.refresh(&mut source).is_err());
    assert_eq!(guard.may_contain("OLD"), Verdict::Maybe);
    assert_eq!(guard.stats().generation, 1);
}

/// Keys that cannot be folded get "maybe" if they are accepted, and the others are unaffected.
#[test]
fn keys_that_cannot_be_folded_are_maybe_and_others_are_unaffected() {
    let case = Case::new(
        "CREATE TABLE songs (title TEXT COLLATE NOCASE);
         INSERT INTO songs VALUES (CAST(x'636166e9' AS TEXT)), ('a' || char(0) || 'b'), ('Zombie')",
    );
    let taken: Canonical = "fold,any".parse().unwrap();
    let guard = fine().canonical(taken).build_from(case.guard(), &mut case.source()).unwrap();
    for key in [&b"caf\xe9"[..], b"CAF\xe9", b"A\0x", b"never\xff", b"ZOMBIE"] {
        assert_eq!(guard.may_contain(key), Verdict::Maybe, "{}", key.escape_ascii());
    }
    assert_eq!(guard.may_contain("Freebird"), Verdict::Absent);
    // Each is counted, and they are absent once the last one is removed.
    guard.remove(b"caf\xe9").unwrap();
    assert_eq!(guard.may_contain(b"a\0b"), Verdict::Maybe);
    guard.remove(b"a\0b").unwrap();
    assert_eq!(guard.may_contain(b"a\0b"), Verdict::Absent);
    drop(guard);
    assert_eq!(Guard::open(case.guard()).unwrap().canonical(), taken);
}

#[test]
fn rows_with_the_same_key_are_removed_one_by_one() {
    let case = Case::new(
        "CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('One'), ('One'), ('One'), ('Two')",
    );
    let guard = fine().build_from(case.guard(), &mut case.source()).unwrap();
    let mut db = case.db();
    for left in [2, 1, 0] {
        let tx = db.transaction().unwrap();
        tx.execute(
            "DELETE FROM songs WHERE rowid = (SELECT rowid FROM songs WHERE title = 'One' LIMIT 1)",
            [],
        )
        .unwrap();
        let mut changes = guard.transaction();
        changes.remove("One").unwrap();
        sidebloom_sqlite::commit(changes, tx).unwrap();
        assert_eq!(guard.count("One").unwrap(), left);
        check(&guard, &db);
    }
    assert_eq!(guard.may_contain("One"), Verdict::Absent);
    let tx = db.transaction().unwrap();
    tx.execute("INSERT INTO songs VALUES ('Three')", []).unwrap();
    let mut changes = guard.transaction();
    changes.insert("Three").unwrap();
    sidebloom_sqlite::commit(changes, tx).unwrap();
    check(&guard, &db);
}

/// A database that disappears or is locked gives an error, and the guard still answers.
#[test]
fn a_lost_or_locked_database_is_an_error_and_the_guard_still_answers() {
    let case = Case::new("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('Zombie')");
    let mut source = case.source().busy_timeout(Duration::from_millis(20)).unwrap();
    let guard = fine().build_from(case.guard(), &mut source).unwrap();
    let locker = case.db();
    locker.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = guard.refresh(&mut source).unwrap_err().to_string();
    assert!(error.contains("songs.sqlite") && error.contains("locked"), "{error}");
    locker.execute_batch("COMMIT").unwrap();
    guard.refresh(&mut source).unwrap();
    case.db().execute_batch("ALTER TABLE songs RENAME TO albums").unwrap();
    let error = guard.refresh(&mut source).unwrap_err().to_string();
    assert!(error.contains("no such table: songs"), "{error}");
    std::fs::remove_file(case.file()).unwrap();
    let error = guard.reconcile(&mut source).unwrap_err().to_string();
    assert!(error.contains("unable to open"), "{error}");
    // Damaged in the middle: some keys are read before the error.
    let db = case.db();
    db.execute_batch("CREATE TABLE songs (title TEXT)").unwrap();
    db.execute_batch("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO songs SELECT 'title ' || i FROM n").unwrap();
    drop(db);
    let mut bytes = std::fs::read(case.file()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 8192].fill(0xaa);
    std::fs::write(case.file(), bytes).unwrap();
    let error = guard.refresh(&mut source).unwrap_err().to_string();
    assert!(error.contains("malformed"), "{error}");
    assert_eq!(
        (guard.may_contain("Zombie"), guard.may_contain("title 1")),
        (Verdict::Maybe, Verdict::Absent)
    );
    guard.insert("title 1").unwrap();
    assert_eq!(guard.may_contain("title 1"), Verdict::Maybe);
}
