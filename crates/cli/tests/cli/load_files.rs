//! load: several files, compressed files, and files without rows.

use crate::sandbox::{Sandbox, number};
use std::io::Write;

/// Compressed, with one member per part.
fn gzip(parts: &[&[u8]]) -> Vec<u8> {
    parts
        .iter()
        .flat_map(|part| {
            let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            member.write_all(part).unwrap();
            member.finish().unwrap()
        })
        .collect()
}

#[test]
fn extensions_in_capitals_name_their_format() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("SONGS.CSV", "a,1\n");
    let more = sandbox.file("MORE.Tsv", "b\t2\n");
    sandbox.ok(&["load", &file, &more]);
    assert_eq!(sandbox.run(&["scan"]).text(), "a\t1\nb\t2\n");
}

#[test]
fn files_that_are_no_rows_are_refused_by_what_they_are() {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let with_mark = [&b"\xff\xfe"[..], &utf16("a\nb\n")].concat();
    for (name, content, what, way_out) in [
        ("songs.zip", &b"PK\x03\x04\x14\0\0\0"[..], "a zip archive", "load the files"),
        ("songs.xz", b"\xfd7zXZ\0\0\x04", "compressed with xz", "xz -dc"),
        ("songs.csv", &with_mark, "UTF-16 text", "iconv"),
        ("songs.txt", &utf16("title\nZombie\n"), "UTF-16 text", "iconv"),
        ("mac.txt", b"a\rb\rc\r", "CR alone", "tr '\\r' '\\n'"),
        ("mac.csv", b"a,1\rb,2\r", "CR alone", "tr '\\r' '\\n'"),
        ("nul.txt", b"a\nb\0c\n", "line 2: there is a NUL byte", "--format lines"),
        ("nul.tsv", b"a\tb\nb\0c\td\n", "line 2: there is a NUL byte", "-0"),
    ] {
        let sandbox = Sandbox::new();
        let file = sandbox.file(name, content);
        for options in [&[][..], &["--bulk"]] {
            let outcome = sandbox.run(&[&["load", &file], options].concat());
            assert_eq!((outcome.code, outcome.err.contains(name)), (2, true), "{name}: {}", outcome.err);
            assert!(outcome.err.contains(what) && outcome.err.contains(way_out), "{name}: {}", outcome.err);
        }
        if !what.contains("NUL") {
            assert!(!sandbox.store().exists(), "no store is made for nothing");
            let piped = sandbox.run_with(&["load", "-"], content);
            assert!(piped.code == 2 && piped.err.contains(what), "{name}: {}", piped.err);
        }
    }
}

#[test]
fn lines_of_any_bytes_are_loaded_on_demand_and_keys_may_end_in_nul() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("nul.txt", b"\xff\xfea\0\r\n\0");
    sandbox.ok(&["load", "--format", "lines", &file]);
    assert_eq!(sandbox.run(&["scan"]).text(), "\\x00\t\n\\xff\\xfea\\x00\\r\t\n");
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run_with(&["load", "-0", "-"], b"a\nb\0\0c").code, 0);
    assert_eq!(sandbox.run(&["scan"]).text(), "\t\na\\nb\t\nc\t\n");
    assert!(sandbox.fails(&["load", "-0", "a.csv"]).contains("--null does not apply to a.csv"));
}

#[test]
fn skip_bad_skips_a_line_with_a_nul_byte() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("nul.tsv", b"a\tb\nb\0c\td\ne\tf\n");
    let report = sandbox.ok(&["load", "--json", "--skip-bad", &file]);
    assert_eq!((number(&report, "loaded"), number(&report, "skipped")), (2.0, 1.0));
}

#[test]
fn compressed_files_are_read_directly_and_from_standard_input() {
    let sandbox = Sandbox::new();
    let bytes = gzip(&[b"a,1\nb", b",2\n", b"c,3\n"]);
    let file = sandbox.file("songs.CSV.gz", &bytes);
    assert_eq!(number(&sandbox.ok(&["load", "--json", &file]), "loaded"), 3.0);
    assert_eq!(sandbox.run(&["scan"]).text(), "a\t1\nb\t2\nc\t3\n");
    let piped = sandbox.run_with(&["load", "--json", "--format", "csv", "-"], &bytes);
    assert_eq!(number(&piped.text(), "overwritten"), 3.0);
    let rows: String =
        (0..100_000u64).map(|i| format!("{i},{}\n", i.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
    let bytes = gzip(&[rows.as_bytes()]);
    let cut = sandbox.file("cut.csv.gz", &bytes[..bytes.len() / 2]);
    let said = sandbox.fails(&["load", "--blind", &cut]);
    assert!(said.contains("cut.csv.gz: cannot read") && said.contains("rows were loaded"), "{said}");
    let twice = sandbox.file("twice.gz", gzip(&[&gzip(&[b"a,1\n"])]));
    assert!(sandbox.fails(&["load", &twice]).contains("compressed twice"));
}

#[cfg(feature = "zstd")]
#[test]
fn files_compressed_with_zstd_are_read_directly() {
    let sandbox = Sandbox::new();
    let frame = |text: &[u8]| zstd::stream::encode_all(text, 1).unwrap();
    let file = sandbox.file("songs.tsv.zst", [frame(b"a\t1\n"), frame(b"b\t2\n")].concat());
    sandbox.ok(&["load", &file]);
    assert_eq!(sandbox.run(&["scan"]).text(), "a\t1\nb\t2\n");
}

#[cfg(not(feature = "zstd"))]
#[test]
fn a_file_compressed_with_zstd_is_named_and_so_is_the_way_out() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("songs.tsv.zst", b"\x28\xb5\x2f\xfd\x04\0");
    let said = sandbox.fails(&["load", &file]);
    assert!(said.contains("without zstd support") && said.contains("zstd -dc"), "{said}");
}

#[test]
fn several_files_are_loaded_in_order_and_counted_together() {
    let sandbox = Sandbox::new();
    let files = [("a.csv", "a,1\nb,1\n"), ("b.tsv", "b\t2\n"), ("c.txt", "c\nd\n")];
    let files = files.map(|(name, content)| sandbox.file(name, content));
    let report = sandbox.ok(&["load", "--json", &files[0], &files[1], &files[2]]);
    assert_eq!((number(&report, "loaded"), number(&report, "overwritten")), (5.0, 1.0));
    assert_eq!(sandbox.run(&["scan"]).text(), "a\t1\nb\t2\nc\t\nd\t\n");
    let bad = sandbox.file("bad.csv", "x,1\ny\n");
    let outcome = sandbox.run(&["load", &files[0], &bad, &files[2]]);
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.err.contains("bad.csv: line 2:") && outcome.err.contains("the 3 rows before it were loaded"),
        "{}",
        outcome.err
    );
    assert!(outcome.text().contains("loaded 3 rows"), "{}", outcome.text());
    let bulk = Sandbox::new();
    assert!(bulk.fails(&["load", "--bulk", &files[0], &bad]).contains("no row was loaded"));
    assert_eq!(bulk.run(&["scan"]).text(), "");
    assert_eq!(
        number(&bulk.ok(&["load", "--json", "--bulk", &files[0], &files[1], &files[2]]), "loaded"),
        5.0
    );
    let nothing = Sandbox::new();
    assert!(nothing.fails(&["load", &files[0], "no/such.csv"]).contains("no/such.csv"));
    assert!(nothing.fails(&["load", "-", &files[0], "-"]).contains("only once"));
    assert!(!nothing.store().exists());
}

#[test]
fn a_column_that_occurs_twice_is_an_error_before_any_row() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("s.csv", "title,artist,title\na,b,c\n");
    let outcome = sandbox.run(&["load", &file, "--key", "title"]);
    assert_eq!((outcome.code, outcome.text()), (2, String::new()), "no count before an error");
    assert!(outcome.err.contains("\"title\" more than once, as columns 1 and 3"), "{}", outcome.err);
    let file = sandbox.file("s.jsonl", "{\"k\":1,\"k\":2}\n");
    assert!(sandbox.fails(&["load", &file, "--key", "k"]).contains("\"k\" occurs twice"));
}

#[test]
fn a_first_row_that_looks_like_a_header_is_reported() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("s.csv", "track,plays\nZombie,7\n");
    let outcome = sandbox.run(&["load", &file]);
    assert_eq!(outcome.code, 0);
    assert!(
        outcome.err.contains("the first row (track, plays) looks like a header")
            && outcome.err.contains("--header"),
        "{}",
        outcome.err
    );
    for told in [&["--header"][..], &["--key", "plays"]] {
        assert_eq!(sandbox.run(&[&["load", &file], told].concat()).err, "");
    }
    let rows = sandbox.file("r.csv", "Zombie,7\nOne,8\n");
    assert_eq!(sandbox.run(&["load", &rows]).err, "");
}

#[test]
fn the_option_that_does_not_apply_is_the_one_that_was_given() {
    let sandbox = Sandbox::new();
    let said = sandbox.fails(&["load", "-", "--key", "x"]);
    assert!(said.contains("--key does not apply to standard input, read as lines"), "{said}");
    assert!(said.contains("give its --format") && !said.contains("--value"), "{said}");
    let said = sandbox.fails(&["load", "songs.txt", "--value", "2"]);
    assert!(said.contains("--value does not apply to songs.txt") && !said.contains("--key"), "{said}");
    assert!(
        sandbox
            .fails(&["load", "--format", "lines", "a", "--key", "1"])
            .contains("--key does not apply to --format lines")
    );
}

#[test]
fn nothing_is_counted_before_an_error_that_came_first() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("bad.jsonl", "not json\n");
    for options in [&[][..], &["--json"], &["--bulk"]] {
        let outcome = sandbox.run(&[&["load", &file], options].concat());
        assert_eq!((outcome.code, outcome.text()), (2, String::new()), "{options:?}");
    }
}
