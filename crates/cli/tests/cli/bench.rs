//! bench and demo, small: every workload finds what it should, and leaves no files.

use crate::sandbox::{Sandbox, field, number, part};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const READS: f64 = 3000.0;

fn bench(sandbox: &Sandbox, options: &[&str]) -> Vec<String> {
    let args = [&["bench", "--json", "--num", "5000", "--reads", "3000"], options].concat();
    sandbox.ok(&args).lines().map(str::to_owned).collect()
}

#[test]
fn every_workload_finds_what_it_should() {
    let sandbox = Sandbox::new();
    // Rows found for each operation.
    let workloads = [
        ("fillseq", None),
        ("fillrandom", None),
        ("overwrite", None),
        ("readrandom", Some(1.0)),
        ("readmissing", Some(0.0)),
        ("multireadrandom", Some(1.0)),
        ("readwhilewriting", Some(1.0)),
        ("seekrandom", Some(1.0)),
        ("scan", Some(1.0)),
        ("ycsb-a", Some(1.0)),
        ("ycsb-b", Some(1.0)),
        ("ycsb-c", Some(1.0)),
        ("ycsb-c-miss50", Some(0.5)),
        ("ycsb-c-miss90", Some(0.1)),
        ("ycsb-c-miss100", Some(0.0)),
        ("ycsb-f", Some(1.0)),
        ("ycsb-d", Some(1.0)),
        ("ycsb-e", Some(1.0)),
    ];
    let names: Vec<&str> = workloads.iter().map(|(name, _)| *name).collect();
    for options in [&[][..], &["--keyspaces", "7", "--batch", "3", "--threads", "2"]] {
        let lines = bench(&sandbox, &[&[&*names.join(",")], options].concat());
        check(&lines, &workloads);
    }
    assert_eq!(sandbox.left_behind(), Vec::<std::path::PathBuf>::new());
}

/// Checks reports against the rows found for each operation.
fn check(lines: &[String], workloads: &[(&str, Option<f64>)]) {
    assert_eq!(lines.len(), workloads.len());
    for (line, &(name, found)) in lines.iter().zip(workloads) {
        assert_eq!(field(line, "workload"), name);
        let ops = number(line, "ops");
        match name {
            "fillseq" | "fillrandom" | "overwrite" | "scan" => assert_eq!(ops, 5000.0, "{line}"),
            _ => assert_eq!(ops, if name == "multireadrandom" { 3008.0 } else { READS }, "{line}"),
        }
        match found {
            None => assert_eq!(field(line, "found"), "null", "{line}"),
            Some(share) => assert!((number(line, "found") / ops - share).abs() < 0.04, "{line}"),
        }
        assert!(number(line, "ops_per_second") > 0.0, "{line}");
        if found.is_none() {
            assert!(number(line, "write_amplification") > 1.0, "{line}");
            assert!(number(line, "settle_seconds") >= 0.0, "{line}");
        }
    }
}

#[test]
fn missing_keys_are_asked_of_filters_unless_they_are_off() {
    let sandbox = Sandbox::new();
    let on = bench(&sandbox, &["readmissing", "--bits-per-key", "12"]).pop().unwrap();
    assert!(number(&on, "filter_probes") >= READS * 0.99, "{on}");
    assert!(number(&on, "block_reads") < READS * 0.05, "{on}");
    // Compressed blocks, because those that are read in place count as read once only.
    let without = ["readmissing", "--filters", "off", "--cache-bytes", "0", "--compression", "lz4"];
    let off = bench(&sandbox, &without).pop().unwrap();
    assert_eq!(number(&off, "filter_probes"), 0.0, "{off}");
    assert!(number(&off, "block_reads") >= READS * 0.99, "{off}");
}

#[test]
fn threads_batches_sizes_and_cold_runs_work() {
    let sandbox = Sandbox::new();
    let options =
        ["readrandom", "--threads", "3", "--batch", "7", "--key-bytes", "40", "--value-bytes", "0", "--cold"];
    let lines = bench(&sandbox, &[&options[..], &["--compression", "none"]].concat());
    assert_eq!(lines.len(), 2, "filled first");
    assert_eq!(number(&lines[0], "ops"), 5000.0);
    assert_eq!(number(&lines[1], "found"), READS);
    assert_ne!(field(&lines[1], "page_cache"), "null");
}

#[test]
fn an_existing_store_is_used_only_when_asked_and_only_if_it_fits() {
    let sandbox = Sandbox::new();
    let dir = sandbox.path("bench").to_str().unwrap().to_owned();
    bench(&sandbox, &["--db", &dir, "fillrandom"]);
    let again = ["bench", "--db", &dir, "--num", "5000", "--reads", "100"];
    assert!(sandbox.fails(&again).contains("not empty"));
    sandbox.ok(&[&again[..], &["--use-existing", "readrandom"]].concat());
    let other = ["bench", "--db", &dir, "--use-existing", "--num", "4999", "readrandom"];
    assert!(sandbox.fails(&other).contains("--num"));
}

#[test]
fn the_table_has_a_line_for_each_workload() {
    let sandbox = Sandbox::new();
    let table = sandbox.ok(&["bench", "--num", "2000", "fillseq", "readmissing"]);
    for word in ["ops/s", "p99.9", "fillseq", "readmissing", "write amplification", "peak memory"] {
        assert!(table.contains(word), "{table}");
    }
    for bad in [&["bench", "--num", "0"][..], &["bench", "--key-bytes", "3"], &["bench", "nosuch"]] {
        sandbox.fails(bad);
    }
}

#[test]
fn the_demo_shows_both_ways_and_cleans_up() {
    let sandbox = Sandbox::new();
    let json = sandbox.ok(&["demo", "--json", "--titles", "20000", "--lookups", "2000"]);
    for (kind, found) in [("absent", 0.0), ("present", 2000.0)] {
        for filters in ["filters_on", "filters_off"] {
            let cost = part(part(&json, filters), kind);
            assert_eq!((number(cost, "lookups"), number(cost, "found")), (2000.0, found), "{filters} {kind}");
        }
    }
    assert!(number(part(&json, "filters_on"), "block_reads_per_lookup") < 0.1, "{json}");
    assert_eq!(number(part(&json, "filters_off"), "false_positives"), 0.0, "{json}");
    assert_eq!(json.matches("\"year\":null").count(), 4, "four songs were left out: {json}");
    assert!(sandbox.left_behind().is_empty());
}

#[test]
fn a_kept_demo_is_a_store_and_the_next_commands_work() {
    let sandbox = Sandbox::new();
    let dir = sandbox.path("songs").to_str().unwrap().to_owned();
    let screen = sandbox.ok(&["demo", "--titles", "2000", "--lookups", "100", "--keep", &dir]);
    let commands: Vec<&str> = screen.lines().skip_while(|line| *line != "Next:").skip(1).collect();
    assert_eq!(commands.len(), 3, "{screen}");
    for command in commands {
        let output = Command::new("sh").arg("-c").arg(command).output().unwrap();
        assert!(output.status.success() && !output.stdout.is_empty(), "{command}: {output:?}");
    }
    assert!(sandbox.ok(&["--db", &dir, "get", "Queen - Bohemian Rhapsody"]).contains("\"year\":1975"));
    assert!(sandbox.fails(&["demo", "--titles", "10", "--keep", &dir]).contains("not empty"));
    assert!(sandbox.fails(&["--db", &dir, "demo"]).contains("--keep"));
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let sandbox = Sandbox::new();
    let temporary = sandbox.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut demo = Command::new(env!("CARGO_BIN_EXE_sidebloom"))
        .args(["demo", "--titles", "50000000"])
        .env("TMPDIR", &temporary)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    // If the temporary directory is in memory, the demo works in /var/tmp; then skip the wait.
    while sandbox.left_behind().is_empty() && begun.elapsed() < Duration::from_secs(3) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    Command::new("kill").args(["-INT", &demo.id().to_string()]).status().unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(130));
    assert!(sandbox.left_behind().is_empty());
}

#[test]
fn a_store_with_keyspaces_is_read_again_with_as_many() {
    let sandbox = Sandbox::new();
    let db = sandbox.path("kept").to_str().unwrap().to_owned();
    bench(&sandbox, &["--db", &db, "--keyspaces", "7", "fillrandom"]);
    let again = ["bench", "--num", "5000", "--db", &db, "--use-existing", "scan"];
    let lines = sandbox.ok(&[&again[..], &["--json", "--keyspaces", "7"]].concat());
    assert_eq!(number(&lines, "found"), 5000.0, "{lines}");
    assert!(sandbox.fails(&again).contains("--keyspaces"));
    assert!(sandbox.fails(&["bench", "--num", "5", "--keyspaces", "6"]).contains("at most --num"));
}
