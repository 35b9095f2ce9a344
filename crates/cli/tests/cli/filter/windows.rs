//! `filter dedup --window`: lines that are forgotten after a while.

use super::*;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command as Process, Stdio};

#[test]
fn lines_are_printed_again_after_the_window() {
    let case = Case::new();
    let text = "0 a\n0 b\n3600 a\n3601\ta\n7200 c\n7300 b\n11500 a\n11501 a b\n20000 a\n";
    let ran = case.run_with("dedup --window 1h --timestamps", text);
    let printed = "0 a\n0 b\n7200 c\n7300 b\n11500 a\n11501 a b\n20000 a\n";
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, printed, ""));
    let text = "2026-11-29T18:30:00Z a\n2026-11-29T19:31:00+01:00 a\n2026-11-30T18:29:59.999Z a\n";
    let ran = case.run_with("dedup --window 1d --timestamps", text);
    assert_eq!((ran.code, ran.out.as_str()), (0, "2026-11-29T18:30:00Z a\n"), "late, and just in time");
    // A line that comes late is remembered as long as one in time.
    let ran = case.run_with("dedup --window 100s --timestamps", "1000 a\n0 b\n1099 b\n1090 b\n");
    assert_eq!((ran.code, ran.out.as_str()), (0, "1000 a\n0 b\n"));
    // After a line from the future, time stands still until it has come.
    let text = "5 a\n6 b\n99999 x\n7 a\n50000 a\n99999 a\n100200 a\n";
    let ran = case.run_with("dedup --window 100s --timestamps", text);
    assert_eq!((ran.code, ran.out.as_str()), (0, "5 a\n6 b\n99999 x\n7 a\n100200 a\n"));
}

#[test]
fn by_arrival_lines_are_new_once_and_forms_of_output_stay() {
    let case = Case::new();
    case.lines("in", numbered(0..30_000).chain(numbered(10_000..40_000)));
    let out = case.ok("dedup in --window 24h --rate 1e-7 --memory 16M");
    assert!(out.lines().eq(numbered(0..40_000).collect::<Vec<_>>().iter().map(String::as_str)));
    let ran = case.run_with("dedup --window 7d -0", "a\nb\0a\0a\nb\0a\n\0");
    assert_eq!((ran.code, ran.out.as_str()), (0, "a\nb\0a\0a\n\0"));
    let ran = case.run_with("dedup --window 7d --timestamps --json", "1 a\n2 a\n2 b\n");
    assert_eq!(ran.out, "{\"key\":\"1 a\"}\n{\"key\":\"2 b\"}\n");
    let ran = case.run_with("dedup --window 7d --verbose", "a\nb\na\n");
    assert!(
        ran.err.contains("2 of 3 lines are new") && ran.err.contains("2 lines in 1 filters"),
        "{}",
        ran.err
    );
}

/// The rate is below the one asked for, and near the one that is reported.
#[test]
fn so_many_new_lines_are_taken_for_seen_as_verbose_says() {
    let case = Case::new();
    case.lines("in", numbered(0..400_000).enumerate().map(|(i, line)| format!("{} {line}", i / 1000)));
    let ran = case.run("dedup in --window 100s --timestamps --rate 3% --verbose");
    let lost = 400_000 - ran.out.lines().count();
    let rate = ran.err.split("of new lines, ").nth(1).and_then(|rest| rest.split(" %").next()).unwrap();
    let expected = rate.parse::<f64>().unwrap() * 4000.0;
    println!("{lost} lost, {expected} expected, {} allowed", 0.03 * 400_000.0);
    assert!(
        lost as f64 > 0.4 * expected && (lost as f64) < 2.5 * expected && expected < 12_000.0,
        "{}",
        ran.err
    );
}

#[test]
fn a_new_line_is_printed_before_the_next_one_is_waited_for() {
    for options in [&["--window", "1h"][..], &[]] {
        let mut command = Process::new(env!("CARGO_BIN_EXE_sidebloom"));
        command.args(["filter", "dedup"]).args(options).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut input, mut printed) =
            (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        for line in ["a\n", "b\n"] {
            input.write_all(line.as_bytes()).unwrap();
            let mut back = String::new();
            printed.read_line(&mut back).unwrap();
            assert_eq!(back, line);
        }
        drop(input);
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn windows_rates_and_timestamps_that_make_no_sense_are_refused() {
    let case = Case::new();
    case.lines("in", numbered(0..10));
    for window in ["30D", "P30D", "1.5h", "500ms", "x", "", "99999999999999999999d"] {
        let ran = case.run(&format!("dedup in --window={window}"));
        assert!(ran.code == 2 && ran.out.is_empty() && ran.err.contains("--window"), "{window}: {}", ran.err);
    }
    case.refused("dedup in --window 0s", "a window is at least one second long");
    for window in ["-1h", "+1h", "30", "0"] {
        case.refused(&format!("dedup in --window={window}"), "expected a number and a unit (s, m, h or d)");
    }
    case.refused("dedup in --window 30 d", "unexpected argument 'd'");
    case.refused("dedup in --rate 1%", "--window <TIME>");
    case.refused("dedup in --timestamps", "--window <TIME>");
    case.refused("dedup in --window 1h --rate 0", "between 0 and 1");
    case.refused("dedup in --window 1h --rate 1e-11", "false-positive rate 1e-11 (allowed: 1e-10");
    case.refused("dedup in --window 1h --memory 15M", "at least 16M is needed");
    case.refused("dedup missing --window 1h", "cannot open missing: No such file");
    case.refused(
        "dedup in --window 1h --timestamps",
        "in: line 1: 'line' is no timestamp: expected RFC 3339",
    );
    for (text, why) in [
        ("1 a\n2\n", "-: line 2: no blank or TAB after the timestamp"),
        ("1 a\n\n", "-: line 2: no blank or TAB after the timestamp"),
        ("1 a\n-5 b\n", "-: line 2: '-5' is no timestamp"),
        ("1 a\n2026-02-30T00:00:00Z b\n", "-: line 2: '2026-02-30T00:00:00Z' is no timestamp"),
        (
            "1 a\n2026-11-29T18:30:00\u{2212}01:00 b\n",
            "-: line 2: '2026-11-29T18:30:00\\xe2\\x88\\x9201:00' is no",
        ),
        ("1 a\n999999999999 b\n", "-: line 2: '999999999999' is outside the years 1970 to 9999"),
    ] {
        let ran = case.run_with("dedup --window 1h --timestamps", text);
        assert_eq!((ran.code, ran.out.as_str()), (2, "1 a\n"), "the lines before are printed");
        assert!(ran.err.contains(why), "{text}: {}", ran.err);
    }
}

#[test]
fn lines_that_do_not_fit_the_memory_are_an_error_by_name() {
    let case = Case::new();
    case.lines("in", numbered(0..1_800_000));
    let ran = case.run("dedup in --window 1h --rate 1e-5 --memory 16M");
    let printed = ran.out.lines().count();
    assert!(ran.code == 2 && (800_000..1_800_000).contains(&printed), "{printed}: {}", ran.err);
    let (line, why) = ran.err.split_once("in: line ").and_then(|(_, at)| at.split_once(": ")).unwrap();
    // Few lines were taken for seen: 9 are expected at most.
    let taken = line.parse::<usize>().unwrap() - 1 - printed;
    assert!(taken <= 40, "{taken}");
    assert!(why.starts_with("too many lines in the window: --memory 16777216 has room for "), "{why}");
    assert!(why.contains("at a rate of 0.00100 %"), "{why}");
}
