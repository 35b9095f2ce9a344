//! Guards are at least as coarse as the column's equality.

use super::*;

#[test]
fn a_guard_that_is_finer_than_the_columns_equality_is_refused() {
    let Some(server) = server() else { return };
    let mut db = server.database("equality");
    db.batch_execute(
        "CREATE EXTENSION citext; CREATE TABLE t (c citext, i text); INSERT INTO t VALUES ('ABBA')",
    )
    .unwrap();
    let mut source = PostgresSource::connect(&server.url("equality"), "t", "c").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let exact = fine().canonical(Canonical::EXACT);
    let error = exact.build_from(dir.path().join("g"), &mut source).err().unwrap().to_string();
    assert!(error.contains("\"fold\""), "{error}");
    let options = fine().canonical(Canonical::EXACT.fold_case());
    assert_eq!(
        options.build_from(dir.path().join("g"), &mut source).unwrap().may_contain("abba"),
        Verdict::Maybe
    );
    let icu = "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
               ALTER TABLE t ALTER COLUMN i TYPE text COLLATE loose";
    db.batch_execute(icu).unwrap();
    let error = PostgresSource::connect(&server.url("equality"), "t", "i").err().unwrap().to_string();
    assert!(error.contains("\"loose\"") && error.contains("not deterministic"), "{error}");
}

/// For every Unicode letter, folding treats as equal whatever lower(), and so citext, does.
#[test]
fn folding_is_at_least_as_coarse_as_citext_for_every_character() {
    let Some(server) = server() else { return };
    let mut db = server.database("folding");
    let fold = Canonical::EXACT.fold_case();
    let sql = "SELECT chr(i), lower(chr(i)) FROM generate_series(1, 195101) AS i WHERE i NOT BETWEEN 55296 AND 57343";
    let mut folded = 0;
    for row in db.query(sql, &[]).unwrap() {
        let (letter, lower): (&str, &str) = (row.get(0), row.get(1));
        folded += u32::from(letter != lower);
        assert_eq!(
            fold.apply(letter.as_bytes()).unwrap(),
            fold.apply(lower.as_bytes()).unwrap(),
            "{letter} {lower}"
        );
    }
    assert!(folded > 1000, "{folded}");
}
