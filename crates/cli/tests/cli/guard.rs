//! `sidebloom guard …` as a user runs it: the binary, its output, its exit codes.

use crate::sandbox::{Sandbox, number};

/// A command line's words, with `@name` for a path in the sandbox.
fn words(sandbox: &Sandbox, line: &str) -> Vec<String> {
    let word = |word: &str| match word.strip_prefix('@') {
        Some(name) => sandbox.path(name).to_str().unwrap().to_owned(),
        None => word.to_owned(),
    };
    std::iter::once("guard".to_owned()).chain(line.split_whitespace().map(word)).collect()
}

fn ok(sandbox: &Sandbox, line: &str) -> String {
    sandbox.ok(&words(sandbox, line))
}

fn fails(sandbox: &Sandbox, line: &str) -> String {
    sandbox.fails(&words(sandbox, line))
}

/// Exit code and standard output.
fn run(sandbox: &Sandbox, line: &str, stdin: &str) -> (i32, String) {
    let outcome = sandbox.run_with(&words(sandbox, line), stdin.as_bytes());
    (outcome.code, outcome.text())
}

fn songs() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("titles", "Sinnerman\nZombie\nZombie\nGracias a la vida\n");
    let built = ok(&sandbox, "build @guard --lines @titles --bits-per-key 19 --json");
    assert_eq!((number(&built, "rows"), number(&built, "keys")), (4.0, 3.0));
    assert!(number(&built, "disk_bytes") > 0.0 && number(&built, "filter_bytes") > 0.0);
    sandbox
}

#[test]
fn build_and_check_print_what_may_be_there_with_greps_exit_codes() {
    let sandbox = songs();
    let asked = "Zombie\nFreebird\nSinnerman\n";
    assert_eq!(run(&sandbox, "check @guard", asked), (0, "Zombie\nSinnerman\n".into()));
    assert_eq!(run(&sandbox, "check @guard -v -", asked), (0, "Freebird\n".into()));
    assert_eq!(run(&sandbox, "check @guard -c", asked), (0, "2\n".into()));
    assert_eq!(run(&sandbox, "check @guard -vc", asked), (0, "1\n".into()));
    assert_eq!(run(&sandbox, "check @guard", "Freebird\n"), (1, String::new()));
    assert_eq!(run(&sandbox, "check @guard -v", "Zombie\n"), (1, String::new()));
    assert_eq!(run(&sandbox, "check @guard --json", "Zombie\n"), (0, "{\"key\":\"Zombie\"}\n".into()));
    assert_eq!(run(&sandbox, "check @guard -c --json", asked), (0, "{\"count\":2,\"lines\":3}\n".into()));
    assert_eq!(run(&sandbox, "check @guard --exact", asked), (0, "Zombie\nSinnerman\n".into()));
    assert!(fails(&sandbox, "check @nothing").contains("build a guard first"));
    assert!(fails(&sandbox, "check @guard @nothing").contains("cannot open"));
    assert!(fails(&sandbox, "build @guard --lines @titles").contains("there is a guard already"));
}

#[test]
fn keys_that_count_as_one_are_declared_at_the_build() {
    let sandbox = songs();
    let built = ok(&sandbox, "build @folded --lines @titles --keys fold,pad --narrow --bits-per-key 10");
    assert!(built.contains("keys are fold,pad\n"), "{built}");
    ok(&sandbox, "build @numbers --lines @titles --keys integer");
    assert_eq!(run(&sandbox, "insert @numbers 42", "").0, 0);
    assert_eq!(run(&sandbox, "check @numbers", "+042.0\n43\n"), (0, "+042.0\n".into()));
    assert_eq!(run(&sandbox, "check @folded", "ZOMBIE  \nzombi\n"), (0, "ZOMBIE  \n".into()));
    let stats = ok(&sandbox, "stats @folded --json");
    assert!(stats.contains("\"canonical\":\"fold,pad\""), "{stats}");
    assert!(fails(&sandbox, "build @x --lines @titles --keys lower").contains("exact, fold, pad"));
    assert!(fails(&sandbox, "build @x --lines @titles --bits-per-key 0").contains("between"));
}

#[test]
fn insert_and_remove_count_rows() {
    let sandbox = songs();
    assert_eq!(ok(&sandbox, "insert @guard Freebird Zombie"), "inserted 2\n");
    assert_eq!(
        run(&sandbox, "insert @guard --lines - --json", "One\nTwo\n"),
        (0, "{\"inserted\":2}\n".into())
    );
    assert_eq!(ok(&sandbox, "remove @guard Zombie Zombie Sinnerman"), "removed 3, not found 0\n");
    assert_eq!(run(&sandbox, "check @guard", "Zombie\nSinnerman\nTwo\n"), (0, "Zombie\nTwo\n".into()));
    assert_eq!(
        run(&sandbox, "remove @guard Zombie nobody --json", ""),
        (1, "{\"removed\":1,\"not_found\":1}\n".into())
    );
    assert_eq!(run(&sandbox, "check @guard", "Zombie\n"), (1, String::new()));
    let stats = ok(&sandbox, "stats @guard --json");
    assert_eq!((number(&stats, "rows"), number(&stats, "keys")), (4.0, 4.0));
    let table = ok(&sandbox, "stats @guard");
    assert!(table.contains("distinct keys") && table.contains("generation"), "{table}");
    assert!(fails(&sandbox, "insert @guard").contains("required"));
    assert!(fails(&sandbox, "insert @nothing One").contains("build a guard first"));
}

#[test]
fn refresh_and_reconcile_take_the_keys_anew_and_say_what_had_come_apart() {
    let sandbox = songs();
    ok(&sandbox, "insert @guard surplus");
    sandbox.file("now", "Zombie\nSinnerman\nmissing\n");
    let (code, report) = run(&sandbox, "reconcile @guard --lines @now --json", "");
    assert_eq!(code, 1, "keys were missing");
    let counts = ["missing", "surplus", "miscounted", "rows"].map(|name| number(&report, name));
    assert_eq!(counts, [1.0, 2.0, 1.0, 3.0]);
    assert!(ok(&sandbox, "reconcile @guard --lines @now").starts_with("missing    0 keys"));
    assert!(ok(&sandbox, "refresh @guard --lines @titles").starts_with("4 rows, 3 keys"));
    assert_eq!(run(&sandbox, "check @guard", "missing\nZombie\n"), (0, "Zombie\n".into()));
    assert!(fails(&sandbox, "refresh @guard --lines @nowhere").contains("nowhere"));
    assert_eq!(run(&sandbox, "check @guard", "Zombie\n"), (0, "Zombie\n".into()));
}

#[test]
fn filter_bits_are_kept_until_a_refresh_is_given_others() {
    let sandbox = Sandbox::new();
    let titles: String = (0..20_000).map(|i| format!("song {i}\n")).collect();
    sandbox.file("titles", &titles);
    ok(&sandbox, "build @guard --lines @titles --bits-per-key 19");
    for (command, expected) in [
        ("refresh @guard", 19.0),
        ("reconcile @guard", 19.0),
        ("refresh @guard --bits-per-key 8", 8.0),
        ("refresh @guard", 8.0),
    ] {
        ok(&sandbox, &format!("{command} --lines @titles"));
        let bits = number(&ok(&sandbox, "stats @guard --json"), "bits_per_key");
        assert!((bits - expected).abs() < 1.0, "{bits} bits a key after {command}");
    }
}

#[test]
fn one_source_must_be_named_and_whole() {
    let sandbox = Sandbox::new();
    assert!(fails(&sandbox, "build @guard").contains("--sqlite <FILE>|--postgres <URL>|--lines <FILE>"));
    assert!(fails(&sandbox, "build @guard --sqlite x --lines y").contains("cannot be used"));
    assert!(fails(&sandbox, "build @guard --sqlite x --table t").contains("--column"));
    let help = ok(&sandbox, "build --help");
    assert!(help.contains("--sqlite") && help.contains("--postgres"), "{help}");
    assert!(!sandbox.path("guard").exists());
}

#[cfg(not(feature = "sqlite"))]
#[test]
fn a_build_without_sqlite_says_how_to_get_one() {
    let error = fails(&Sandbox::new(), "build @guard --sqlite x --table t --column c");
    assert!(error.contains("--features sqlite"), "{error}");
}

#[cfg(not(feature = "postgres"))]
#[test]
fn a_build_without_postgres_says_how_to_get_one() {
    for line in
        ["build @guard --postgres x --table t --column c", "follow @guard --postgres x --table t --column c"]
    {
        let error = fails(&Sandbox::new(), line);
        assert!(error.contains("--features postgres"), "{error}");
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn a_sqlite_database_is_guarded_refreshed_and_reconciled() {
    let sandbox = Sandbox::new();
    let db = sidebloom_sqlite::rusqlite::Connection::open(sandbox.path("db")).unwrap();
    db.execute_batch(
        "CREATE TABLE songs (title TEXT COLLATE NOCASE); INSERT INTO songs VALUES ('Zombie'), ('Sinnerman'), (NULL)",
    )
    .unwrap();
    let from = "--sqlite @db --table songs --column title";
    let refused = fails(&sandbox, &format!("build @guard {from} --keys exact"));
    assert!(refused.contains("\"fold\""), "{refused}");
    // The column's own equality is the default.
    let built = ok(&sandbox, &format!("build @guard {from} --bits-per-key 19"));
    assert!(built.starts_with("2 rows, 2 keys") && built.contains("fold"), "{built}");
    assert_eq!(run(&sandbox, "check @guard", "ZOMBIE\nFreebird\n"), (0, "ZOMBIE\n".into()));
    db.execute_batch("INSERT INTO songs VALUES ('Freebird'); DELETE FROM songs WHERE title = 'zombie'")
        .unwrap();
    let (code, report) = run(&sandbox, &format!("reconcile @guard {from} --json"), "");
    assert_eq!((code, number(&report, "missing"), number(&report, "surplus")), (1, 1.0, 1.0));
    ok(&sandbox, &format!("refresh @guard {from}"));
    assert_eq!(run(&sandbox, "check @guard", "zombie\nfreebird\n"), (0, "freebird\n".into()));
    let missing = fails(&sandbox, "refresh @guard --sqlite @db --table songs --column name");
    assert!(missing.contains("no column \"name\""), "{missing}");
}
