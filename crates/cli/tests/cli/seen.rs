//! seen: lines that are new, each once, also after crashes.

use crate::sandbox::{Outcome, Sandbox};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

fn seen(sandbox: &Sandbox, options: &[&str], input: &[u8]) -> Outcome {
    sandbox.run_with(&[&["seen"], options].concat(), input)
}

/// What it prints, and the exit code.
fn told(sandbox: &Sandbox, options: &[&str], input: &str) -> (i32, String) {
    let outcome = seen(sandbox, options, input.as_bytes());
    assert_eq!(outcome.err, "", "{options:?}");
    (outcome.code, outcome.text())
}

#[test]
fn a_line_is_printed_the_first_time_that_it_comes() {
    let sandbox = Sandbox::new();
    assert_eq!(told(&sandbox, &[], "a\nb\na\n\n\n b\r\na"), (0, "a\nb\n\n b\r\n".to_owned()));
    assert_eq!(told(&sandbox, &["-"], "b\na\n\nc"), (0, "c\n".to_owned()));
    assert_eq!(told(&sandbox, &[], "a\nb\n"), (1, String::new()));
    assert_eq!(told(&sandbox, &[], ""), (1, String::new()));
    assert_eq!(sandbox.ok(&["scan"]), "\t\n b\\r\t\na\t\nb\t\nc\t\n", "keys with empty values");
    sandbox.ok(&["delete", "a"]);
    assert_eq!(told(&sandbox, &["--sync"], "a\nb\n"), (0, "a\n".to_owned()));
    let bytes = seen(&sandbox, &[], b"\xff\x00\x1b\n");
    assert_eq!(bytes.out, b"\xff\x00\x1b\n");
}

#[test]
fn the_options_of_grep_are_taken() {
    let sandbox = Sandbox::new();
    assert_eq!(told(&sandbox, &["-c"], "a\nb\na\n"), (0, "2\n".to_owned()));
    assert_eq!(told(&sandbox, &["-c"], "a\n"), (1, "0\n".to_owned()));
    assert_eq!(told(&sandbox, &["-v"], "a\nc\nc\nd\n"), (0, "a\nc\n".to_owned()), "c the second time");
    assert_eq!(told(&sandbox, &["-v"], "e\n"), (1, String::new()));
    assert_eq!(told(&sandbox, &["-vc"], "e\na\nf\n"), (0, "2\n".to_owned()), "f is remembered");
    assert_eq!(
        told(&sandbox, &["--invert-match", "--count", "--json"], "f\ng\n").1,
        "{\"count\":1,\"lines\":2}\n"
    );
    assert_eq!(told(&sandbox, &["-0"], "a\nb\0a\0h\0"), (0, "a\nb\0h\0".to_owned()));
    assert_eq!(
        seen(&sandbox, &["--json"], b"i\n\xff\na\n").text(),
        "{\"key\":\"i\"}\n{\"key_hex\":\"ff\"}\n"
    );
}

#[test]
fn check_remembers_nothing() {
    let sandbox = Sandbox::new();
    let missing = seen(&sandbox, &["--check"], b"a\n");
    assert!(missing.code == 2 && missing.text().is_empty() && !sandbox.store().exists(), "{}", missing.err);
    told(&sandbox, &[], "a\nb\n");
    for _ in 0..2 {
        assert_eq!(told(&sandbox, &["--check"], "c\na\nc\n"), (0, "c\nc\n".to_owned()), "equal lines too");
    }
    assert_eq!(told(&sandbox, &["--check"], "a\nb\n"), (1, String::new()));
    assert_eq!(told(&sandbox, &["--check", "-v"], "c\na\na\n"), (0, "a\na\n".to_owned()));
    assert_eq!(told(&sandbox, &["--check", "-c"], "c\nd\n"), (0, "2\n".to_owned()));
    let writer = sidebloom::Db::open(sandbox.store()).unwrap();
    writer.put("d", "").unwrap();
    assert_eq!(told(&sandbox, &["--check"], "c\nd\n"), (0, "c\n".to_owned()), "while another process writes");
    assert!(sandbox.fails(&["seen"]).contains("locked"));
    assert!(sandbox.fails(&["seen", "--check", "--sync"]).contains("--sync"));
}

#[test]
fn several_files_are_one_input() {
    let sandbox = Sandbox::new();
    let (first, second) = (sandbox.file("first", "a\nb"), sandbox.file("second", "b\nc\n"));
    assert!(sandbox.fails(&["seen", &first, "no/such/file"]).contains("no/such/file"));
    assert!(sandbox.fails(&["seen", "-", "-"]).contains("only once"));
    assert!(!sandbox.store().exists(), "before any line was remembered");
    assert_eq!(told(&sandbox, &[&first, "-", &second], "d\na\n").1, "a\nb\nd\nc\n");
}

#[test]
fn a_column_is_the_key_and_the_whole_line_is_printed() {
    let sandbox = Sandbox::new();
    let text = "1\ta\n\n2\tb \r\n3\ta\n4\ta\\t\n";
    assert_eq!(told(&sandbox, &["--key", "2"], text), (0, "1\ta\n2\tb \r\n4\ta\\t\n".to_owned()));
    assert_eq!(sandbox.ok(&["scan", "--keys-only"]), "a\na\\\\t\nb \n");
    assert_eq!(told(&sandbox, &["--key", "1", "--key", "2"], "1\ta\n1\tb\n1\ta\n").1, "1\ta\n1\tb\n");
    let json = seen(&sandbox, &["--json", "--key", "2"], b"1\tx\n\xff\ty\n").text();
    assert_eq!(json, "{\"key\":\"x\",\"line\":\"1\\tx\"}\n{\"key\":\"y\",\"line_hex\":\"ff0979\"}\n");

    let csv =
        sandbox.file("songs.csv", "\u{feff}title,year\n\"One, two\",1990\nOne,1991\n\"One, two\",1992\n");
    let options = ["--key", "title", csv.as_str(), csv.as_str()];
    assert_eq!(told(&sandbox, &options, "").1, "\"One, two\",1990\nOne,1991\n");
    let jsonl = "{\"n\": 1, \"url\": \"u\"}\n{ \"url\": \"u\" }\n{\"url\":\"w\"}\n";
    let options = ["--format", "jsonl", "--key", "url", "-"];
    assert_eq!(told(&sandbox, &options, jsonl).1, "{\"n\": 1, \"url\": \"u\"}\n{\"url\":\"w\"}\n");
    assert_eq!(told(&sandbox, &["--header", "--key", "1"], "key\nnew\n").1, "new\n");
    for (options, why) in [
        (&["--key", "1", "-0"][..], "--null"),
        (&["--header"], "--key"),
        (&["--format", "csv"], "--key"),
        (&["--key", "1", "--format", "scan"], "possible values: tsv, csv, jsonl"),
        (&["--key", "1", "--header", "--format", "jsonl"], "--header"),
    ] {
        assert!(sandbox.fails(&[&["seen"], options].concat()).contains(why), "{options:?}");
    }
}

#[test]
fn a_faulty_line_is_named_and_the_lines_before_it_are_told() {
    let long = "x".repeat(sidebloom::MAX_KEY_BYTES + 1);
    for (options, input, why) in [
        (&[][..], format!("a\nb\n{long}\nc\n"), "line 3 is longer than"),
        (&["--key", "2"], "k\ta\nk\tb\nk\nk\tc\n".to_owned(), "line 3: 1 columns"),
        (&["--key", "2"], format!("k\ta\nk\tb\nk\t{long}\n"), "line 3: key too large"),
        (&["--key", "2", "--format", "csv"], "k,a\nk,b\n\"k,\n\",c\n".to_owned(), "line 3: unclosed quote"),
    ] {
        let sandbox = Sandbox::new();
        let outcome = seen(&sandbox, options, input.as_bytes());
        assert!(outcome.code == 2 && outcome.err.contains(why), "{}", outcome.err);
        assert_eq!(outcome.text().lines().count(), 2, "{why}");
        assert_eq!(sandbox.ok(&["scan", "--keys-only"]), "a\nb\n");
        assert_eq!(seen(&Sandbox::new(), &[options, &["-c"]].concat(), input.as_bytes()).text(), "2\n");
    }
    let wide = format!("{long}\tkey\n");
    assert_eq!(told(&Sandbox::new(), &["--key", "2"], &wide).1, wide, "only the key has that limit");
}

/// Two rows must not have one key, and the bytes of a compressed file are no lines.
#[test]
fn what_would_be_remembered_wrongly_is_refused() {
    for (format, input) in [
        ("csv", "a,b\n\"x\ty\",z\nx,\"y\tz\"\n"),
        ("jsonl", "{\"1\":\"a\",\"2\":\"b\"}\n{\"1\":\"x\\ty\",\"2\":\"z\"}\n"),
    ] {
        let sandbox = Sandbox::new();
        let options = ["--format", format, "--key", "1", "--key", "2"];
        let outcome = seen(&sandbox, &options, input.as_bytes());
        assert_eq!((outcome.code, outcome.text().lines().count()), (2, 1));
        assert!(outcome.err.contains("line 2: a column of the key contains a TAB"), "{}", outcome.err);
        let one = seen(&sandbox, &["--format", format, "--key", "1"], input.as_bytes());
        assert_eq!(one.code, 0, "{}", one.err);
        let loading = [&["load", "-"], &options[..]].concat();
        assert!(sandbox.run_with(&loading, input.as_bytes()).err.contains("contains a TAB"));
    }
    let sandbox = Sandbox::new();
    for (bytes, tool) in [(&b"\x1f\x8b\x08\0line\n"[..], "gzip"), (b"\x28\xb5\x2f\xfdline\n", "zstd")] {
        let file = sandbox.file("lines", "");
        std::fs::write(&file, bytes).unwrap();
        let told = sandbox.fails(&["seen", &file]);
        assert!(told.contains("compressed") && told.contains(&format!("{tool} -dc")), "{told}");
    }
}

/// Lines of several chunks, about a third of which came before.
fn many_lines(count: u64) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(7);
    (0..count).map(|_| format!("https://example.org/page/{}", random.u64(..count))).collect()
}

#[test]
fn lines_of_many_chunks_are_told_as_a_set_tells_them() {
    let (sandbox, lines) = (Sandbox::new(), many_lines(50_000));
    let mut set = HashSet::new();
    let new: String = lines.iter().filter(|line| set.insert(*line)).map(|line| format!("{line}\n")).collect();
    let file = sandbox.file("lines", lines.join("\n"));
    assert!(sandbox.ok(&["seen", &file]) == new);
    assert_eq!(sandbox.run(&["seen", "--count", &file]).text(), "0\n");
    assert_eq!(sandbox.ok(&["seen", "--count", "-v", &file]), "50000\n");
}

fn spawn(sandbox: &Sandbox, args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidebloom"));
    command.env("SIDEBLOOM_DB", sandbox.store()).arg("seen").args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_line_does_not_wait_for_the_next_one() {
    for options in [&[][..], &["--key", "1"]] {
        let sandbox = Sandbox::new();
        let mut child = spawn(&sandbox, options);
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        for (input, output) in [("a\nb", "a\n"), ("b\na\nc", "bb\n"), ("\n", "c\n")] {
            stdin.write_all(input.as_bytes()).unwrap();
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            assert_eq!(line, output);
        }
        drop(stdin);
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn a_reader_that_stops_early_ends_the_command_quietly() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("lines", many_lines(50_000).join("\n"));
    let mut child = spawn(&sandbox, &[&file]);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn no_line_is_printed_twice_however_often_the_command_is_killed() {
    let sandbox = Sandbox::new();
    let lines = many_lines(200_000);
    let file = sandbox.file("lines", lines.join("\n"));
    let mut printed = HashSet::new();
    for kill in 1..=4 {
        let mut child = spawn(&sandbox, &[&file]);
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        while printed.len() + text.lines().count() < 20_000 * kill {
            let read = (&mut stdout).take(1 << 18).read_to_string(&mut text).unwrap();
            assert!(read > 0, "it was killed in mid-work");
        }
        child.kill().unwrap();
        stdout.read_to_string(&mut text).unwrap();
        child.wait().unwrap();
        // The last line may be cut.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        assert!(whole.lines().all(|line| printed.insert(line.to_owned())), "kill {kill}");
    }
    let last = sandbox.run(&["seen", &file]).text();
    assert!(last.lines().all(|line| printed.insert(line.to_owned())));
    let remembered = sandbox.ok(&["seen", "--check", "-v", "--count", &file]);
    assert_eq!(remembered, format!("{}\n", lines.len()));
}
