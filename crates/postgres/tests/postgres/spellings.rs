//! A guard never denies a spelling that a PostgreSQL column treats as one of its keys.

use crate::support::{fine, server};
use sidebloom::filter::Verdict;
use sidebloom::guard::Source;
use sidebloom_postgres::PostgresSource;

/// Columns, their rows, and the types that queries may use for their keys.
const COLUMNS: &str = "
    CREATE EXTENSION citext; CREATE DOMAIN serial_number AS int8; CREATE DOMAIN ident AS uuid;
    CREATE TABLE t (a int2, b int4, c serial_number, d uuid, e ident, f char(6), g citext, h text, n name, l bool, w timestamptz);
    INSERT INTO t (a, b, c) VALUES (5, 5, 5), (-7, -7, -7), (0, 0, 0), (32767, 2147483647, 9223372036854775807);
    INSERT INTO t (d, e) VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');
    INSERT INTO t (f, g, h) VALUES ('Abba', 'Abba', 'Abba'), ('5', '5', '5')";

const ASKED: &[&str] = &[
    "5",
    "05",
    "+5",
    "5.0",
    "5.",
    " 5",
    "5 ",
    "\t5\u{b}\n",
    "5e0",
    "50e-1",
    "0x5",
    "0b101",
    "0_5",
    "-7",
    "-007",
    "-7.00",
    "-0",
    "+0.0",
    "32767",
    "2147483647",
    "9223372036854775807",
    "+9223372036854775807",
    "9223372036854775807.0",
    "9223372036854775808",
    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
    "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
    "{A0EEBC999C0B4EF8BB6D6BB9BD380A11}",
    "a0eebc999c0b4ef8bb6d6bb9bd380a11",
    "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
    "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12",
    "Abba",
    "ABBA",
    "Abba  ",
    "abba ",
    "",
];

#[test]
fn no_spelling_that_the_column_treats_as_one_of_its_keys_gets_a_no() {
    let Some(server) = server() else { return };
    let mut db = server.database("spellings");
    db.batch_execute(COLUMNS).unwrap();
    let url = server.url("spellings");
    let dir = tempfile::tempdir().unwrap();
    for (column, types, equality, absent) in [
        ("a", &["int2", "numeric"][..], "integer", "6"),
        ("b", &["int4", "numeric"], "integer", "6"),
        ("c", &["int8", "numeric"], "integer", "6"),
        ("d", &["uuid"], "uuid", "00000000-0000-0000-0000-000000000000"),
        ("e", &["uuid"], "uuid", "00000000-0000-0000-0000-000000000000"),
        ("f", &["bpchar", "text"], "pad", "6"),
        ("g", &["citext"], "fold", "6"),
        ("h", &["text"], "exact", "6"),
    ] {
        let mut source = PostgresSource::connect(&url, "t", column).unwrap();
        assert_eq!(source.equality().to_string(), equality, "{column}");
        let guard = fine().build_from(dir.path().join(column), &mut source).unwrap();
        assert_eq!(guard.canonical(), source.equality());
        let mut found = 0;
        for (key, name) in ASKED.iter().flat_map(|key| types.iter().map(move |name| (key, name))) {
            let sql = format!("SELECT count(*) FROM t WHERE {column} = $1::text::{name}");
            // A key that the type rejects is in no row.
            let rows: i64 = db.query_one(&sql, &[key]).map_or(0, |row| row.get(0));
            if rows > 0 {
                found += 1;
                let told = guard.may_contain(key);
                assert_eq!(told, Verdict::Maybe, "{column} as {name} treats {key:?} as one of its keys");
            }
        }
        assert!(found >= 2, "{column}: {found}");
        assert_eq!(guard.may_contain(absent), Verdict::Absent, "{column}");
        let exact = fine().canonical("exact".parse().unwrap());
        let refused = exact.build_from(dir.path().join("exact"), &mut source).err().map(|e| e.to_string());
        match equality {
            "exact" => assert_eq!(refused, None),
            _ => assert!(
                refused.is_some_and(|e| e.contains(&format!("build the guard with keys \"{equality}\"")))
            ),
        }
    }
    for (column, why) in
        [("n", "truncates longer texts"), ("l", "more than one spelling"), ("w", "more than one spelling")]
    {
        let refused = PostgresSource::connect(&url, "t", column).err().unwrap().to_string();
        assert!(refused.contains(why) && refused.contains("keys must be text"), "{refused}");
    }
}
