//! keyspaces, and --keyspace where rows are read or written.

use crate::sandbox::{Sandbox, number};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

const NOT_UTF8: &[u8] = b"caf\xe9";

/// A store with keyspaces of these names.
fn with_keyspaces(names: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    for name in names {
        sandbox.ok(&["keyspaces", "create", name]);
    }
    sandbox
}

#[test]
fn a_command_works_on_the_keyspace_that_it_is_given() {
    let sandbox = with_keyspaces(&["users"]);
    sandbox.ok(&["put", "a", "default"]);
    sandbox.ok(&["put", "--keyspace", "users", "a", "ann"]);
    sandbox.ok(&["put", "--if", "ann", "a", "Ann", "--keyspace=users"]);
    assert_eq!(sandbox.run(&["put", "--if-absent", "--keyspace=users", "a", "eve"]).code, 1);
    assert_eq!(sandbox.ok(&["get", "a"]), "default");
    assert_eq!(sandbox.ok(&["get", "--keyspace", "users", "a"]), "Ann");
    assert_eq!(sandbox.run_with(&["get", "--keyspace", "users", "-"], b"a\n").text(), "a\tAnn\n");

    let rows = sandbox.file("rows", "b\t1\nc\t2\nd\t3\n");
    for how in ["--blind", "--bulk", "--sync"] {
        sandbox.ok(&["load", "--keyspace", "users", "--format", "scan", how, &rows]);
    }
    let json = sandbox.ok(&["load", "--keyspace", "users", "--format", "scan", "--json", &rows]);
    assert_eq!(number(&json, "overwritten"), 3.0, "{json}");
    assert_eq!(sandbox.ok(&["scan"]), "a\tdefault\n");
    assert_eq!(sandbox.ok(&["scan", "--keyspace", "users", "--reverse"]), "d\t3\nc\t2\nb\t1\na\tAnn\n");
    assert_eq!(sandbox.ok(&["scan", "--keyspace", "users", "--prefix", "b"]), "b\t1\n");

    assert_eq!(sandbox.run(&["delete", "b"]).code, 1);
    sandbox.ok(&["delete", "--keyspace", "users", "b"]);
    sandbox.ok(&["delete", "--keyspace", "users", "--prefix", "c"]);
    assert_eq!(sandbox.run(&["delete", "--from", "d"]).code, 1);
    sandbox.ok(&["delete", "--keyspace", "users", "--from", "d"]);
    assert_eq!(sandbox.ok(&["scan", "--keyspace", "users"]), "a\tAnn\n");

    let seen = |args: &[&str]| sandbox.run_with(&[&["seen"], args].concat(), b"a\nx\n").text();
    assert_eq!(seen(&["--keyspace", "users", "--check"]), "x\n");
    assert_eq!(seen(&["--keyspace", "users"]), "x\n");
    assert_eq!(seen(&["--keyspace", "users"]), "");
    assert_eq!(seen(&["--check"]), "x\n");
    let json = sandbox.ok(&["stats", "--json", "--keyspace", "users", "--probe", "10"]);
    assert_eq!(number(&json, "probed"), 10.0);
}

#[test]
fn stats_of_a_keyspace_leave_out_the_others() {
    let sandbox = Sandbox::new();
    let rows: String = (0..50_000).map(|n| format!("key{n}\tvalue {n} of a table\n")).collect();
    let rows = sandbox.file("rows.tsv", rows);
    sandbox.ok(&["keyspaces", "create", "users", "--no-filters"]);
    sandbox.ok(&["keyspaces", "create", "seen", "--bits-per-key", "15"]);
    for keyspace in ["users", "seen"] {
        sandbox.ok(&["load", "--keyspace", keyspace, &rows]);
    }
    sandbox.ok(&["compact"]);
    let stats = |name| sandbox.ok(&["stats", "--json", "--keyspace", name, "--probe", "1000"]);
    let (users, seen) = (stats("users"), stats("seen"));
    assert_eq!((number(&users, "keys"), number(&seen, "keys")), (50_000.0, 50_000.0));
    assert_eq!((number(&users, "filters"), number(&users, "expected_fpr")), (0.0, 1.0));
    assert!((13.0..16.0).contains(&number(&seen, "bits_per_key")), "{seen}");
    assert!(number(&seen, "expected_fpr") < 0.001 && number(&seen, "observed_fpr") < 0.02, "{seen}");
    let shown = sandbox.ok(&["stats", "--keyspace", "seen"]);
    assert!(shown.contains("50,000 keys"), "{shown}");
}

#[test]
fn keyspaces_lists_names_and_options_for_a_terminal_and_as_json() {
    let sandbox = Sandbox::new();
    sandbox.fails(&["keyspaces"]);
    sandbox.ok(&["put", "a", "1"]);
    assert_eq!(sandbox.ok(&["keyspaces"]), "");
    let filters = ["--bits-per-key", "15", "--prefixes", "fixed:4,delimited:0x09:1,delimited:/:2"];
    let blocks = ["--compression", "lz4", "--block-bytes", "8K"];
    let shown = "filters 15 bits per key, prefixes delimited:0x09:1 delimited:/:2 fixed:4, \
                 compression lz4, blocks of 8192 bytes";
    let created = sandbox.ok(&[&["keyspaces", "create", "users"], &filters[..], &blocks].concat());
    assert_eq!(created, format!("users\t{shown}\n"));
    sandbox.ok(&["keyspaces", "create", "new\nline\x1b[2J", "--no-filters", "--no-prefixes"]);
    let off = "filters off, prefixes none";
    assert_eq!(sandbox.ok(&["keyspaces"]), format!("new\\nline\\x1b[2J\t{off}\nusers\t{shown}\n"));
    let json = sandbox.ok(&["keyspaces", "--json"]);
    let first = format!("{{\"keyspace\":\"new\\nline\\u001b[2J\",\"options\":\"{off}\"}}\n");
    assert_eq!(json, first + &format!("{{\"keyspace\":\"users\",\"options\":\"{shown}\"}}\n"));
    assert!(sandbox.fails(&["keyspaces", "create", "users"]).contains("already has a keyspace"));
}

#[test]
fn set_replaces_only_the_options_that_are_given() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["keyspaces", "create", "k", "--target-fpr", "0.1%", "--prefixes", "fixed:2"]);
    let set = |args: &[&str]| sandbox.ok(&[&["keyspaces", "set", "k"], args].concat());
    let [rate, none] = ["filters false-positive rate 0.001", "prefixes none"];
    assert_eq!(set(&["--compression", "none"]), format!("k\t{rate}, prefixes fixed:2, compression none\n"));
    assert_eq!(set(&["--no-prefixes"]), format!("k\t{rate}, {none}, compression none\n"));
    assert_eq!(set(&["--no-filters"]), format!("k\tfilters off, {none}, compression none\n"));
    assert_eq!(set(&["--reset", "--memory", "1M"]), "k\tfilters 1048576 bytes in all\n");
    assert_eq!(set(&["--reset"]), "k\tas the store\n");
    assert!(sandbox.fails(&["keyspaces", "set", "k"]).contains("no option is given"));
    assert!(sandbox.fails(&["keyspaces", "set", "k", "--block-bytes", "3"]).contains("block_bytes"));
    assert!(sandbox.fails(&["keyspaces", "set", "other", "--reset"]).contains("no keyspace \"other\""));
    for pair in [
        ["--no-filters", "--bits-per-key=9"],
        ["--memory=1M", "--blocked-bloom=9"],
        ["--no-prefixes", "--prefixes=fixed:1"],
    ] {
        let said = sandbox.fails(&[&["keyspaces", "set", "k"], &pair[..]].concat());
        assert!(said.contains("cannot be used with"), "{said}");
    }
    assert_eq!(sandbox.ok(&["keyspaces"]), "k\tas the store\n");
}

#[test]
fn the_prefixes_of_a_keyspace_are_not_those_of_the_store() {
    let sandbox = with_keyspaces(&["k"]);
    for verb in ["create", "set"] {
        let said = sandbox.fails(&["--prefixes", "fixed:1", "keyspaces", verb, "k"]);
        assert!(said.contains("give it after the command"), "{said}");
    }
    let mut set = sandbox.command();
    set.args(["keyspaces", "set", "k", "--reset"]).env("SIDEBLOOM_PREFIXES", "fixed:3");
    set.assert().success().stdout("k\tas the store\n");
}

#[test]
fn filters_of_a_keyspace_are_rebuilt_to_its_options() {
    let sandbox = with_keyspaces(&["k"]);
    // Random values do not compress: the keyspace is too large to share a segment.
    let mut random = fastrand::Rng::with_seed(1);
    let rows: String = (0..40_000).map(|i| format!("key{i:06}\t{:032x}\n", random.u128(..))).collect();
    let file = sandbox.file("rows", rows);
    for keyspace in [&["--keyspace", "k"][..], &[]] {
        sandbox.ok(&[&["load", "--bulk", "--format", "scan", &file], keyspace].concat());
    }
    let bits = || number(&sandbox.ok(&["stats", "--json"]), "bits_per_key");
    let before = bits();
    let set = |args: &[&str]| sandbox.ok(&[&["keyspaces", "set", "k", "--rebuild"], args].concat());
    let said = set(&["--bits-per-key", "16"]);
    assert!(said.contains("filters of 1 segments, kept 0: 40,000 keys"), "{said}");
    assert!((2.0..4.0).contains(&(bits() - before)), "{} from {before}", bits());
    let again = sandbox.ok(&["rebuild-filters", "--keyspace", "k"]);
    assert!(again.contains("of 0 segments, kept 1"), "{again}");
    set(&["--no-filters"]);
    assert!(bits() < before * 0.6, "{} from {before}", bits());
    assert_eq!(sandbox.ok(&["scan", "--keyspace", "k"]).lines().count(), 40_000);
    let said = sandbox.fails(&["rebuild-filters", "--keyspace", "k", "--bits-per-key", "9"]);
    assert!(said.contains("`sidebloom keyspaces set NAME --rebuild`"), "{said}");
    sandbox.ok(&["compact", "--keyspace", "k"]);
    sandbox.ok(&["compact", "--keyspace", "k", "--from", "key01"]);
}

#[test]
fn compact_without_a_keyspace_covers_all_of_them() {
    let sandbox = with_keyspaces(&["k"]);
    let lines: String = (0..2000).map(|i| format!("{i}\n")).collect();
    let file = sandbox.file("lines", lines);
    sandbox.ok(&["load", "--keyspace", "k", &file]);
    sandbox.ok(&["compact"]);
    sandbox.ok(&["delete", "--keyspace", "k", "--from", ""]);
    sandbox.ok(&["compact"]);
    let json = sandbox.ok(&["verify", "--json"]);
    assert!(number(&json, "entries") < 100.0, "{json}");
}

#[test]
fn a_missing_keyspace_is_named_and_is_not_created() {
    let sandbox = Sandbox::new();
    let lines = sandbox.file("lines", "a\n");
    let load = ["load", "--keyspace", "nope", &lines];
    assert!(sandbox.fails(&load).contains("`sidebloom keyspaces create NAME`"));
    assert!(!sandbox.store().exists(), "a new store has no keyspace");
    sandbox.ok(&["put", "a", "1"]);
    for args in [
        &["get", "a"][..],
        &["put", "a", "1"],
        &["delete", "a"],
        &["scan"],
        &["load", &lines],
        &["seen", &lines],
        &["seen", "--check", &lines],
        &["compact"],
        &["rebuild-filters"],
        &["stats", "--probe", "1"],
    ] {
        let said = sandbox.fails(&[args, &["--keyspace", "nope"]].concat());
        assert!(said.contains("the store has no keyspace \"nope\""), "{args:?}: {said}");
        let creates = matches!(args[0], "put" | "load") || args == ["seen", &lines];
        assert_eq!(said.contains("`sidebloom keyspaces create NAME`"), creates, "{args:?}: {said}");
    }
    assert_eq!(sandbox.ok(&["keyspaces"]), "");
}

#[test]
fn a_name_that_no_keyspace_can_have_is_refused_with_the_reason() {
    let sandbox = Sandbox::new();
    let name = OsStr::from_bytes(NOT_UTF8);
    for args in [
        &["keyspaces", "create"][..],
        &["keyspaces", "set", "--reset"],
        &["keyspaces", "drop"],
        &["put", "a", "1", "--keyspace"],
        &["get", "a", "--keyspace"],
    ] {
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).chain([name]).collect();
        let said = sandbox.fails(&args);
        assert!(said.contains("cannot be the name of a keyspace: it is not UTF-8"), "{args:?}: {said}");
    }
    assert!(!sandbox.store().exists(), "the name is checked first");
    let long = "x".repeat(256);
    for (name, why) in [("", "it is empty"), (&long, "255")] {
        let said = sandbox.fails(&["keyspaces", "create", name]);
        assert!(said.contains("cannot be the name of a keyspace") && said.contains(why), "{said}");
        assert!(sandbox.fails(&["scan", "--keyspace", name]).contains("no keyspace"));
    }
}

#[test]
fn a_dropped_keyspace_is_gone_and_a_new_one_of_its_name_is_empty() {
    let sandbox = with_keyspaces(&["a", "b"]);
    for name in ["a", "b"] {
        sandbox.ok(&["put", "--keyspace", name, "k", name]);
    }
    assert_eq!(sandbox.ok(&["keyspaces", "drop", "a"]), "dropped a\n");
    assert!(sandbox.fails(&["get", "--keyspace", "a", "k"]).contains("no keyspace \"a\""));
    assert!(sandbox.fails(&["keyspaces", "drop", "a"]).contains("no keyspace \"a\""));
    assert_eq!(sandbox.ok(&["keyspaces"]), "b\tas the store\n");
    sandbox.ok(&["keyspaces", "create", "a"]);
    assert_eq!(sandbox.run(&["get", "--keyspace", "a", "k"]).code, 1);
    assert_eq!(sandbox.ok(&["get", "--keyspace", "b", "k"]), "b");
    assert_eq!(sandbox.ok(&["keyspaces", "drop", "b", "--json"]), "{\"dropped\":\"b\"}\n");
    let copy = sandbox.path("copy").to_str().unwrap().to_owned();
    sandbox.ok(&["checkpoint", &copy]);
    assert_eq!(sandbox.ok(&["keyspaces", "--db", &copy]), "a\tas the store\n");
}
