//! Golden files: the bytes of each format as they were released, with a dump that names every field.
//!
//! `UPDATE_GOLDEN=1 cargo test` writes them anew; that is right only for a format that was never released.

use std::fmt::Write;
use std::path::Path;

/// Compares `bytes` with `fixtures/golden/NAME.bin`, and their dump by `fields` (length in bytes and meaning, in order, covering
/// everything) with `NAME.hex`.
pub(crate) fn check(name: &str, bytes: &[u8], fields: &[(usize, &str)]) {
    let dump = annotate(bytes, fields);
    let file =
        |ending| Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/golden/{name}.{ending}"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file("bin"), bytes).unwrap();
        std::fs::write(file("hex"), &dump).unwrap();
    }
    assert_eq!(dump, std::fs::read_to_string(file("hex")).unwrap(), "{name}.hex");
    assert!(bytes == std::fs::read(file("bin")).unwrap(), "{name}.bin");
}

/// Lines of up to 16 bytes: offset, bytes in hex, and on a field's first line what it is.
fn annotate(bytes: &[u8], fields: &[(usize, &str)]) -> String {
    let mut dump = String::new();
    let mut at = 0;
    for &(len, meaning) in fields {
        for (i, line) in bytes[at..at + len].chunks(16).enumerate() {
            let hex: String = line.iter().map(|byte| format!("{byte:02x} ")).collect();
            let row = format!("{:06x}  {hex:48}  {}", at + 16 * i, if i == 0 { meaning } else { "" });
            writeln!(dump, "{}", row.trim_end()).unwrap();
        }
        at += len;
    }
    assert_eq!(at, bytes.len(), "the fields cover the file");
    dump
}
