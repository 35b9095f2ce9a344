//! The formats of `sidebloom load`. The first byte chooses one; what `scan` prints is read back.
#![no_main]
#![allow(dead_code, reason = "the command line uses all of it")]

use cli::escape::{unescape, write_escaped};
use cli::load::source::{Row, RowError, Rows};
use cli::load::{columns::Picked, csv::Csv, jsonl::Jsonl, lines::Lines, scanned::Scanned, tsv::Tsv};
use libfuzzer_sys::fuzz_target;

/// The parsers of the `sidebloom` binary, in their places.
#[path = "../../src/cli"]
mod cli {
    pub mod escape;
    pub mod hex;
    /// What `hex` needs of it.
    pub mod context {
        pub struct Failure;
        impl Failure {
            pub fn message(_: String) -> Self {
                Failure
            }
        }
    }
    pub mod load {
        pub mod columns;
        pub mod csv;
        pub mod jsonl;
        pub mod lines;
        pub mod scanned;
        pub mod source;
        pub mod tsv;
        pub use columns::Column;
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, text)) = bytes.split_first() else { return };
    let columns = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
    let picked = match choice / 5 % 4 {
        0 => Picked::default(),
        1 => Picked { header: true, ..Picked::default() },
        2 => Picked { key: columns(&["2", "1"]), value: columns(&["1"]), header: false },
        _ => Picked { key: columns(&["a"]), value: columns(&["b"]), header: true },
    };
    match choice % 5 {
        0 => read(&mut Lines::new(text), text),
        1 => read(&mut Tsv::new(text, picked), text),
        2 => read(&mut Csv::new(text, picked), text),
        3 => read(&mut Jsonl::new(text, picked), text),
        _ => read(&mut Scanned::new(text), text),
    }
    let mut escaped = Vec::new();
    write_escaped(&mut escaped, text).unwrap();
    assert_eq!(unescape(&escaped).unwrap(), text);
    if let Ok(plain) = unescape(text) {
        assert!(plain.len() <= text.len());
    }
    csv_reads_back(text);
});

/// To the end, past bad rows: each row begins on a later line than the one before.
fn read(rows: &mut dyn Rows, text: &[u8]) {
    let lines = 1 + text.iter().filter(|&&byte| byte == b'\n').count() as u64;
    let (mut row, mut last) = (Row::default(), 0);
    loop {
        let line = match rows.next(&mut row) {
            Ok(true) => row.line,
            Ok(false) | Err(RowError::Input(_)) => return,
            Err(RowError::Bad { line, .. }) => line,
        };
        assert!(
            last < line && line <= lines,
            "a row of line {line} after one of line {last}, of {lines} lines"
        );
        last = line;
    }
}

/// Any bytes are a column, when quoted.
fn csv_reads_back(column: &[u8]) {
    let mut text = b"\"".to_vec();
    column.iter().for_each(|&byte| {
        text.extend_from_slice(if byte == b'"' { b"\"\"" } else { std::slice::from_ref(&byte) })
    });
    text.extend_from_slice(b"\",rest");
    let mut row = Row::default();
    assert_eq!(Csv::new(&text[..], Picked::default()).next(&mut row), Ok(true));
    assert_eq!((&row.key[..], &row.value[..]), (column, &b"rest"[..]));
}
