//! load: every format, good lines and bad ones.

use crate::sandbox::{Sandbox, number};

/// Loads `content` from a file of this name, and returns the rows as `scan` prints them.
fn loaded(name: &str, content: &[u8], options: &[&str]) -> String {
    let sandbox = Sandbox::new();
    let file = sandbox.file(name, content);
    sandbox.ok(&[&["load", &file], options].concat());
    sandbox.run(&["scan"]).text()
}

#[test]
fn lines_are_keys() {
    assert_eq!(loaded("keys.txt", b"b\na\tx\r\n\nc", &[]), "\t\na\\tx\\r\t\nb\t\nc\t\n");
    assert_eq!(loaded("keys", b"one line\n", &[]), "one line\t\n");
}

#[test]
fn tsv_by_number_and_by_name() {
    let songs = b"artist\ttitle\tyear\nQueen\tInnuendo\t1991\nAC/DC\tT.N.T.\t1975\n";
    assert_eq!(loaded("a.tsv", b"k1\tv1\nk2\tv2\n", &[]), "k1\tv1\nk2\tv2\n");
    assert_eq!(
        loaded("s.tsv", songs, &["--header", "--key", "2", "--value", "3"]),
        "Innuendo\t1991\nT.N.T.\t1975\n"
    );
    assert_eq!(
        loaded("s.tsv", songs, &["--key", "title", "--value", "artist"]),
        "Innuendo\tQueen\nT.N.T.\tAC/DC\n"
    );
    let joined = loaded("s.tsv", songs, &["--key", "artist", "--key", "title"]);
    assert_eq!(joined, "AC/DC\\tT.N.T.\t1975\nQueen\\tInnuendo\t1991\n");
}

#[test]
fn csv_with_quotes() {
    let songs = b"title,artist,note\r\n\"Hello, Goodbye\",The Beatles,\"two\nlines\"\r\nJoga,Bj\xf6rk,\r\n";
    let rows = loaded("s.csv", songs, &["--key", "title", "--value", "note"]);
    assert_eq!(rows, "Hello, Goodbye\ttwo\\nlines\nJoga\t\n");
    let rows = loaded("s.csv", songs, &["--key", "artist"]);
    assert_eq!(rows, "Bj\\xf6rk\tJoga,\nThe Beatles\t\"Hello, Goodbye\",\"two\\nlines\"\n");
}

#[test]
fn json_lines_by_field() {
    let songs = b"{\"id\": 7, \"title\": \"Innuendo\"}\n\n{\"id\": 8, \"title\": \"T.N.T.\"}\n";
    assert_eq!(loaded("s.jsonl", songs, &["--key", "title", "--value", "id"]), "Innuendo\t7\nT.N.T.\t8\n");
    let whole = loaded("s.ndjson", songs, &["--key", "id"]);
    assert_eq!(whole, "7\t{\"id\": 7, \"title\": \"Innuendo\"}\n8\t{\"id\": 8, \"title\": \"T.N.T.\"}\n");
}

#[test]
fn the_real_song_catalogue_loads() {
    let sandbox = Sandbox::new();
    let songs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/songs.tsv");
    let lines = std::fs::read_to_string(songs).unwrap().lines().count();
    let report = sandbox.ok(&["load", "--json", songs, "--key", "artist", "--key", "title", "--sync"]);
    assert_eq!(number(&report, "loaded") as usize, lines - 1);
    assert_eq!(sandbox.ok(&["get", "Queen\tBohemian Rhapsody"]), "1975");
}

/// A file's name, content and options, the bad line's number, a word of the error, the good rows.
type Bad = (&'static str, &'static [u8], &'static [&'static str], usize, &'static str, usize);

/// A bad line in each format.
const BAD: [Bad; 7] = [
    ("bad.tsv", b"a\t1\nb\nc\t3\n", &[], 2, "columns", 2),
    ("bad.csv", b"k,v\na,1\nb\nc,3\n", &["--header"], 3, "columns", 2),
    ("quote.csv", b"a,1\n\"b\"x,2\nc,3\n", &[], 2, "quote", 2),
    ("open.csv", b"a,1\nb,2\n\"c,3\n", &[], 3, "unclosed quote", 2),
    ("bad.jsonl", b"{\"k\":1}\n{\"k\":\n{\"k\":2}\n", &["--key", "k"], 2, "JSON", 2),
    ("bad.txt", b"a\t1\nb\\q\t2\nc\t3\n", &["--format", "scan"], 2, "escape", 2),
    ("hex.txt", b"61\nxx\n62\n", &["--hex"], 2, "hex", 2),
];

#[test]
fn a_bad_line_ends_the_load_and_keeps_the_rows_before_it() {
    for (name, content, options, line, why, _) in BAD {
        let sandbox = Sandbox::new();
        let file = sandbox.file(name, content);
        let said = sandbox.fails(&[&["load", &file], options].concat());
        assert!(said.contains(&format!("line {line}:")) && said.contains(why), "{name}: {said}");
        let before = line - 1 - usize::from(options.contains(&"--header"));
        assert!(said.contains(&format!("the {before} rows before it were loaded")), "{name}: {said}");
        assert_eq!(sandbox.ok(&["scan"]).lines().count(), before, "{name}");
    }
}

#[test]
fn skip_bad_goes_on_and_names_the_lines() {
    for (name, content, options, line, why, good) in BAD {
        let sandbox = Sandbox::new();
        let file = sandbox.file(name, content);
        let outcome = sandbox.run(&[&["load", "--json", "--skip-bad", &file], options].concat());
        assert_eq!(outcome.code, 0, "{name}: {}", outcome.err);
        assert!(
            outcome.err.contains(&format!("line {line}:")) && outcome.err.contains(why),
            "{name}: {}",
            outcome.err
        );
        assert_eq!(
            (number(&outcome.text(), "loaded"), number(&outcome.text(), "skipped")),
            (good as f64, 1.0),
            "{name}"
        );
        assert_eq!(sandbox.ok(&["scan"]).lines().count(), good, "{name}");
    }
}

#[test]
fn many_bad_lines_do_not_flood_the_screen() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("bad.jsonl", "not json\n".repeat(1000));
    let outcome = sandbox.run(&["load", "--skip-bad", "--key", "k", &file]);
    assert_eq!(outcome.code, 0);
    assert!(outcome.err.lines().count() < 20, "{}", outcome.err);
    assert!(outcome.text().contains("skipped 1,000"), "{}", outcome.text());
}

#[test]
fn a_column_that_is_not_there_is_an_error_before_any_row() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("s.csv", "artist,title\na,b\n");
    assert!(sandbox.fails(&["load", &file, "--key", "year"]).contains("artist, title"));
    assert!(sandbox.fails(&["load", &file, "--key", "3"]).contains("no column 3"));
}

#[test]
fn options_without_meaning_are_refused() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("keys.txt", "a\n");
    assert!(sandbox.fails(&["load", &file, "--key", "1"]).contains("lines"));
    assert!(sandbox.fails(&["load", &file, "--format", "jsonl", "--header"]).contains("--header"));
    assert!(sandbox.fails(&["load", &file, "--format", "jsonl", "--value", "v"]).contains("--key"));
    assert!(sandbox.fails(&["load", &file, "--bulk", "--sync"]).contains("--sync"));
    assert!(sandbox.fails(&["load", &file, "--bulk", "--blind"]).contains("--blind"));
    assert!(!sandbox.store().exists());
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let sandbox = Sandbox::new();
    assert!(sandbox.fails(&["load", "no/such/file.tsv"]).contains("no/such/file.tsv"));
    assert!(!sandbox.store().exists(), "no store is made for nothing");
}

#[test]
fn later_rows_replace_earlier_ones_of_the_same_key() {
    assert_eq!(loaded("a.tsv", b"k\t1\nk\t2\n", &[]), "k\t2\n");
}

#[test]
fn load_of_lines_keeps_the_bytes_that_filter_keeps() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("keys.txt", b"\xef\xbb\xbfmark\r\n\nplain\n");
    let filter = sandbox.path("f").to_str().unwrap().to_owned();
    sandbox.ok(&["filter", "build", "--kind", "bloom", "--fpp", "0.000001", &file, "-o", &filter]);
    sandbox.ok(&["load", &file]);
    let keys = sandbox.ok(&["scan", "--json"]);
    assert_eq!(keys.lines().count(), 3, "{keys}");
    for (line, in_both) in [("\u{feff}mark\r", true), ("", true), ("plain", true), ("mark", false)] {
        let asked = sandbox.run_with(&["filter", "check", &filter], format!("{line}\n").as_bytes());
        assert_eq!(
            (asked.code, sandbox.run(&["get", line]).code),
            if in_both { (0, 0) } else { (1, 1) },
            "{line:?}"
        );
    }
}

#[test]
fn a_first_key_that_begins_with_a_byte_order_mark_comes_back_from_scan() {
    let from = Sandbox::new();
    from.ok(&["put", "\u{feff}k", "v"]);
    let file = from.file("rows.txt", from.ok(&["scan"]));
    let to = Sandbox::new();
    to.ok(&["load", "--format", "scan", &file]);
    assert_eq!(to.ok(&["get", "\u{feff}k"]), "v");
}

#[test]
fn text_formats_take_crlf_a_byte_order_mark_and_blank_lines() {
    for (name, content) in [
        ("a.tsv", &b"\xef\xbb\xbfk\tv\r\n\r\nl\tw\r\n"[..]),
        ("a.csv", b"\xef\xbb\xbfk,v\r\n\r\nl,w\r\n"),
        (
            "a.jsonl",
            b"\xef\xbb\xbf{\"key\":\"k\",\"value\":\"v\"}\r\n\r\n{\"key\":\"l\",\"value\":\"w\"}\r\n",
        ),
    ] {
        assert_eq!(loaded(name, content, &[]), "k\tv\nl\tw\n", "{name}");
    }
}

#[test]
fn a_boolean_is_a_key_as_its_text_and_null_is_refused() {
    let text = b"{\"id\":1,\"b\":true}\n{\"id\":2,\"b\":false}\n";
    assert_eq!(loaded("a.jsonl", text, &["--key", "b", "--value", "id"]), "false\t2\ntrue\t1\n");
    let sandbox = Sandbox::new();
    let file = sandbox.file("a.jsonl", "{\"b\":null}\n");
    let said = sandbox.fails(&["load", &file, "--key", "b"]);
    assert!(said.contains("not a string, number or boolean"), "{said}");
}

#[test]
fn load_says_how_many_rows_overwrote_others() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("a.tsv", "k\t1\nl\t1\nk\t2\n");
    let report = sandbox.ok(&["load", "--json", &file]);
    assert_eq!((number(&report, "loaded"), number(&report, "overwritten")), (3.0, 1.0), "within the file");
    sandbox.ok(&["compact"]);
    sandbox.ok(&["delete", "l"]);
    let report = sandbox.ok(&["load", &file]);
    assert!(report.contains("3 rows") && report.contains("; 2 of them overwrote an earlier row"), "{report}");
    let other = sandbox.file("b.tsv", "m\t1\n");
    assert!(!sandbox.ok(&["load", &other]).contains("overwrote"));
    assert!(sandbox.ok(&["load", "--json", "--blind", &other]).contains("\"overwritten\":null"));
}

/// A bulk load gives the same rows in any format, and they replace rows of the store.
#[test]
fn a_bulk_load_gives_the_same_rows_in_any_format_and_replaces_older_ones() {
    for (name, content, options) in [
        ("a.tsv", &b"k2\tv2\nk1\tv1\nk3\tv3\nk1\tlast\n"[..], &[][..]),
        ("a.csv", b"k2,v2\nk1,v1\nk3,v3\nk1,last\n", &[]),
        ("a.txt", b"k2\tv2\nk1\tv1\nk3\tv3\nk1\tlast\n", &["--format", "scan"]),
    ] {
        let sandbox = Sandbox::new();
        let file = sandbox.file(name, content);
        for (key, value) in [("k1", "old"), ("k3", "old"), ("k4", "old")] {
            sandbox.ok(&["put", key, value]);
        }
        let report = sandbox.ok(&[&["load", "--json", "--bulk", &file], options].concat());
        assert_eq!(number(&report, "loaded"), 4.0);
        assert!(report.contains("\"overwritten\":null"), "{report}");
        assert_eq!(sandbox.run(&["scan"]).text(), "k1\tlast\nk2\tv2\nk3\tv3\nk4\told\n");
        sandbox.ok(&["verify"]);
    }
}

#[test]
fn a_bad_line_ends_a_bulk_load_without_any_row() {
    for (name, content, options, line, why, good) in BAD {
        let sandbox = Sandbox::new();
        let file = sandbox.file(name, content);
        sandbox.ok(&["put", "before", "1"]);
        let load = [&["load", "--bulk", &file], options].concat();
        let message = sandbox.fails(&load);
        assert!(message.contains(&format!("line {line}: ")) && message.contains(why), "{message}");
        assert!(message.contains("no row was loaded"), "{message}");
        assert_eq!(sandbox.run(&["scan"]).text(), "before\t1\n", "{name}");
        let report = sandbox.ok(&[&load[..], &["--skip-bad", "--json"]].concat());
        assert_eq!((number(&report, "loaded"), number(&report, "skipped")), (good as f64, 1.0), "{name}");
        assert_eq!(sandbox.ok(&["scan"]).lines().count(), good + 1, "{name}");
    }
}
