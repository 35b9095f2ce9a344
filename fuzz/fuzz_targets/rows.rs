//! The formats of `sidebloom load`, selected by the first byte. Escaped text reads back unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidebloom_cli::rows::escape::{unescape, write_escaped};
use sidebloom_cli::rows::{ColumnChoice, Row, RowError, Rows};
use sidebloom_cli::rows::{csv::Csv, jsonl::Jsonl, lines::LineRows, scanned::Scanned, tsv::Tsv};

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, text)) = bytes.split_first() else { return };
    let columns = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
    let chosen = match choice / 5 % 4 {
        0 => ColumnChoice::default(),
        1 => ColumnChoice { header: true, ..ColumnChoice::default() },
        2 => ColumnChoice { key: columns(&["2", "1"]), value: columns(&["1"]), header: false },
        _ => ColumnChoice { key: columns(&["a"]), value: columns(&["b"]), header: true },
    };
    match choice % 5 {
        0 => read(&mut LineRows::new(text), text),
        1 => read(&mut Tsv::new(text, chosen), text),
        2 => read(&mut Csv::new(text, chosen), text),
        3 => read(&mut Jsonl::new(text, chosen), text),
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

/// Reads to the end, past bad rows. Each row begins on a later line than the one before.
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

/// A quoted column may have any bytes except NUL. With a NUL it is refused, and the error gives the line of
/// the first one.
fn csv_reads_back(column: &[u8]) {
    let mut text = b"\"".to_vec();
    column.iter().for_each(|&byte| {
        text.extend_from_slice(if byte == b'"' { b"\"\"" } else { std::slice::from_ref(&byte) })
    });
    text.extend_from_slice(b"\",rest");
    let mut row = Row::default();
    let read = Csv::new(&text[..], ColumnChoice::default()).next(&mut row);
    if let Some(at) = column.iter().position(|&byte| byte == 0) {
        let line_of_nul = 1 + column[..at].iter().filter(|&&byte| byte == b'\n').count() as u64;
        assert!(matches!(read, Err(RowError::Bad { line, .. }) if line == line_of_nul), "{read:?}");
        return;
    }
    assert_eq!(read, Ok(true));
    assert_eq!((&row.key[..], &row.value[..]), (column, &b"rest"[..]));
}
