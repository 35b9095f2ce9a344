//! put, get, delete, scan: what goes in comes out, and the exit codes are grep's.

use crate::sandbox::Sandbox;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

#[test]
fn a_value_comes_back_as_it_was_put() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.ok(&["put", "Queen - Innuendo", "1991"]), "");
    assert_eq!(sandbox.ok(&["get", "Queen - Innuendo"]), "1991");
    sandbox.ok(&["put", "Queen - Innuendo", "a new value\n"]);
    assert_eq!(sandbox.ok(&["get", "Queen - Innuendo"]), "a new value\n");
}

#[test]
fn exit_codes_are_0_found_1_not_found_2_error() {
    let sandbox = Sandbox::new();
    let code = |args: &[&str]| sandbox.run(args).code;
    assert_eq!(code(&["get", "a"]), 2, "there is no store yet");
    assert_eq!(code(&["put", "a", "1"]), 0);
    assert_eq!(code(&["get", "a"]), 0);
    assert_eq!(code(&["get", "b"]), 1);
    assert_eq!(code(&["get", "a", "b"]), 1);
    assert_eq!(code(&["scan"]), 0);
    assert_eq!(code(&["scan", "--prefix", "b"]), 1);
    assert_eq!(code(&["delete", "a", "b"]), 1);
    assert_eq!(code(&["put", "b", "1"]), 0);
    assert_eq!(code(&["delete", "b"]), 0);
    assert_eq!(code(&["scan"]), 1);
}

#[test]
fn keys_that_are_not_utf8_survive_the_command_line() {
    let sandbox = Sandbox::new();
    let key = OsStr::from_bytes(b"Bj\xf6rk\t\\n");
    let value = OsStr::from_bytes(b"\xff\xfe\n");
    sandbox.ok(&[OsStr::new("put"), key, value]);
    assert_eq!(sandbox.run(&[OsStr::new("get"), key]).out, b"\xff\xfe\n");
    assert_eq!(sandbox.ok(&["scan"]), "Bj\\xf6rk\\t\\\\n\t\\xff\\xfe\\n\n");
    assert_eq!(
        sandbox.ok(&["scan", "--json"]),
        "{\"key_hex\":\"426af6726b095c6e\",\"value_hex\":\"fffe0a\"}\n"
    );
    assert_eq!(sandbox.ok(&["get", "--hex", "426af6726b095c6e"]), "fffe0a\n");
}

#[test]
fn any_bytes_go_from_store_to_store_through_every_format() {
    let sandbox = Sandbox::new();
    let mut expected = String::new();
    for byte in 0..=255u8 {
        // Each byte alone as a key, and within a value, including the empty key and the empty value.
        let key = if byte == 0 { String::new() } else { format!("{byte:02x}") };
        let value = if byte == 1 { String::new() } else { format!("61{byte:02x}c3bc") };
        expected += &format!("{key}\t{value}\n");
    }
    assert_eq!(sandbox.run_with(&["load", "--format", "scan", "--hex", "-"], expected.as_bytes()).code, 0);
    assert_eq!(sandbox.ok(&["scan", "--hex"]), expected);
    for (scan, load) in [
        (vec!["scan"], vec!["load", "--format", "scan", "-"]),
        (vec!["scan", "--hex"], vec!["load", "--format", "scan", "--hex", "-"]),
        (vec!["scan", "--json"], vec!["load", "--format", "jsonl", "-"]),
        (vec!["scan", "--json", "--hex", "--reverse"], vec!["load", "--format", "jsonl", "-"]),
    ] {
        let copy = Sandbox::new();
        let rows = sandbox.run(&scan).out;
        let loaded = copy.run_with(&load, &rows);
        assert_eq!(loaded.code, 0, "{load:?}: {}", loaded.err);
        assert_eq!(copy.ok(&["scan", "--hex"]), expected, "{scan:?}");
    }
}

#[test]
fn a_value_from_standard_input_is_taken_as_it_is() {
    let sandbox = Sandbox::new();
    let value: Vec<u8> = (0..=255).cycle().take(3_000_000).collect();
    assert_eq!(sandbox.run_with(&["put", "big", "-"], &value).code, 0);
    assert!(sandbox.run(&["get", "big"]).out == value);
    assert_eq!(sandbox.run_with(&["put", "--hex", "00", "-"], b"61").code, 0);
    assert_eq!(sandbox.ok(&["get", "--hex", "00"]), "3631\n");
}

#[test]
fn values_may_begin_with_a_minus() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["put", "temperature", "-5"]);
    assert_eq!(sandbox.ok(&["get", "temperature"]), "-5");
    sandbox.ok(&["put", "--", "--json", "-v"]);
    assert_eq!(sandbox.ok(&["get", "--", "--json"]), "-v");
}

#[test]
fn several_keys_are_printed_as_rows_in_the_order_asked_for() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["put", "a", "1"]);
    sandbox.ok(&["put", "b", "2"]);
    let outcome = sandbox.run(&["get", "b", "c", "a", "b"]);
    assert_eq!((outcome.code, outcome.text()), (1, "b\t2\na\t1\nb\t2\n".to_owned()));
    let outcome = sandbox.run(&["get", "--json", "b", "c"]);
    let expected = "{\"key\":\"b\",\"value\":\"2\",\"found\":true}\n{\"key\":\"c\",\"found\":false}\n";
    assert_eq!((outcome.code, outcome.text()), (1, expected.to_owned()));
}

#[test]
fn scan_obeys_its_range_options() {
    let sandbox = Sandbox::new();
    let rows = ["a", "ab", "abc", "b", "ba", "c"].map(|key| format!("{key}\t{key}{key}\n")).concat();
    sandbox.run_with(&["load", "--format", "scan", "-"], rows.as_bytes());
    let scan = |options: &[&str]| {
        let out = sandbox.run(&[&["scan", "--keys-only"], options].concat()).text();
        out.split_terminator('\n').collect::<Vec<_>>().join(" ")
    };
    assert_eq!(scan(&[]), "a ab abc b ba c");
    assert_eq!(scan(&["--prefix", "ab"]), "ab abc");
    assert_eq!(scan(&["--from", "ab", "--to", "ba"]), "ab abc b");
    assert_eq!(scan(&["--from", "aa", "--prefix", "a"]), "ab abc");
    assert_eq!(scan(&["--to", "b", "--prefix", "a", "--reverse"]), "abc ab a");
    assert_eq!(scan(&["--limit", "2"]), "a ab");
    assert_eq!(scan(&["--limit", "2", "--reverse"]), "c ba");
    assert_eq!(scan(&["--from", "b", "--to", "a"]), "");
    assert_eq!(scan(&["--from", "61", "--to", "6162", "--hex"]), "61");
    assert_eq!(sandbox.ok(&["scan", "--limit", "1"]), "a\taa\n");
}

#[test]
fn delete_reports_what_it_did() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["put", "a", "1"]);
    sandbox.ok(&["put", "b", "1"]);
    let outcome = sandbox.run(&["delete", "--json", "a", "a", "x"]);
    assert_eq!((outcome.code, outcome.text()), (1, "{\"deleted\":1,\"not_found\":1}\n".to_owned()));
    assert_eq!(sandbox.ok(&["scan"]), "b\t1\n");
    assert_eq!(sandbox.ok(&["put", "--json", "--sync", "k", "abc"]), "{\"key\":\"k\",\"value_bytes\":3}\n");
    sandbox.ok(&["delete", "--sync", "k"]);
}

#[test]
fn delete_takes_a_prefix_or_bounds_and_refuses_what_is_no_range() {
    let sandbox = Sandbox::new();
    ["a", "ab", "b", "c", "d"].iter().for_each(|key| _ = sandbox.ok(&["put", key, "1"]));
    let run = |args: &[&str]| {
        let outcome = sandbox.run(&[&["delete"], args].concat());
        (outcome.code, outcome.text())
    };
    assert_eq!(run(&["--prefix", "a"]), (0, String::new()));
    assert_eq!(run(&["--prefix", "a"]).0, 1, "nothing is left to delete");
    assert_eq!(run(&["--from", "b", "--to", "c", "--json", "--sync"]), (0, "{\"found\":true}\n".to_owned()));
    assert_eq!(sandbox.ok(&["scan"]), "c\t1\nd\t1\n");
    for refused in [&["--prefix", ""][..], &["--from", "d", "--to", "c"], &[], &["c", "--prefix", "c"]] {
        assert_eq!(run(refused).0, 2, "{refused:?}");
    }
    assert_eq!(run(&["--hex", "--from", "64"]).0, 0);
    assert_eq!(sandbox.ok(&["scan"]), "c\t1\n");
    assert!(sandbox.ok(&["stats", "--json"]).contains("range_tombstones"));
}

#[test]
fn sizes_over_the_limits_are_refused_by_name() {
    let sandbox = Sandbox::new();
    // The largest key is longer than an argument may be.
    let key = |len: usize| format!("{}\tv\n", "k".repeat(len));
    let load = |rows: String| sandbox.run_with(&["load", "--format", "scan", "-"], rows.as_bytes());
    assert_eq!(load(key(65536)).code, 0);
    let outcome = load(format!("ok\tv\n{}", key(65537)));
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.err.contains("line 2") && outcome.err.contains("65537") && outcome.err.contains("key"),
        "{}",
        outcome.err
    );
    let outcome = sandbox.run_with(&["put", "big", "-"], &vec![0; (64 << 20) + 1]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.err.contains("too large"), "{}", outcome.err);
}

#[test]
fn hex_that_is_not_hex_is_an_error() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["put", "a", "1"]);
    assert!(sandbox.fails(&["get", "--hex", "abc"]).contains("even"));
    assert!(sandbox.fails(&["scan", "--hex", "--from", "zz"]).contains("--from"));
    assert!(sandbox.fails(&["put", "--hex", "00", "0g"]).contains("value"));
}

#[test]
fn a_reader_that_closes_the_pipe_ends_scan_quietly() {
    let sandbox = Sandbox::new();
    let rows: String = (0..100_000).map(|i| format!("{i:06}\n")).collect();
    assert_eq!(sandbox.run_with(&["load", "-"], rows.as_bytes()).code, 0);
    let mut scan = Command::new(env!("CARGO_BIN_EXE_sidebloom"))
        .args([OsString::from("--db"), sandbox.store().into(), "scan".into()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(scan.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "000000\t\n");
    let output = scan.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let sandbox = Sandbox::new();
    sandbox.ok(&["put", "a", "1"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidebloom"));
    let output = command.arg("--db").arg(sandbox.store()).arg("scan").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("standard output"));
}
