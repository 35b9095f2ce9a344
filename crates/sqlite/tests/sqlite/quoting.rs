//! Names stay names: SQLite takes a quoted name without a column for a string.

use crate::support::{Case, fine, keys};
use sidebloom::filter::Verdict;
use sidebloom::guard::{Change, Source};
use sidebloom_sqlite::SqliteSource;

#[test]
fn a_column_that_was_renamed_is_an_error_and_not_its_name_as_every_key() {
    for ends in ["", " WITHOUT ROWID"] {
        let case = Case::new(&format!(
            "CREATE TABLE songs (title TEXT PRIMARY KEY, year INTEGER){ends}; INSERT INTO songs VALUES ('Zombie', 1994), ('One', 1991)"
        ));
        let mut source = case.source();
        let guard = fine().build_from(case.guard(), &mut source).unwrap();
        case.db().execute_batch("ALTER TABLE songs RENAME COLUMN title TO name").unwrap();
        for error in [
            keys(&mut source).map(drop).unwrap_err(),
            source.count(b"Zombie").map(drop).unwrap_err(),
            source.apply(&[Change::Remove(b"title")]).unwrap_err(),
            guard.refresh(&mut source).map(drop).unwrap_err(),
        ] {
            assert!(error.to_string().contains("no such column"), "{error}");
        }
        assert_eq!(guard.may_contain("Zombie"), Verdict::Maybe);
        let rows: i64 = case.db().query_row("SELECT count(*) FROM songs", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 2);
    }
}

#[test]
fn hostile_names_are_names() {
    for name in ["a\"; DROP TABLE canary; --", "a'b", "?1", "main", "a.b", "[x]", "`x`"] {
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        let case = Case::new(&format!(
            "CREATE TABLE canary (id); CREATE TABLE {quoted} ({quoted} TEXT, PRIMARY KEY ({quoted})) WITHOUT ROWID;
             INSERT INTO {quoted} VALUES ('One'), ('Two')"
        ));
        let mut source = SqliteSource::open(case.file(), name, name).unwrap();
        source.apply(&[Change::Insert(b"Three"), Change::Remove(b"One")]).unwrap();
        assert_eq!(keys(&mut source).unwrap(), [b"Three", &b"Two"[..]], "{name}");
        assert_eq!([&b"One"[..], b"Two"].map(|key| source.count(key).unwrap()), [0, 1], "{name}");
        case.db().query_row("SELECT count(*) FROM canary", [], |_| Ok(())).unwrap();
    }
}
