//! What a file's first bytes tell: that it is not text, or that its first row looks like a header.

use super::format::Format;

/// Bytes to look at.
pub const HEAD_BYTES: usize = 64 << 10;

/// Files that are not text, by their first bytes, and what to do with them.
const SIGNATURES: [(&[u8], &str); 10] = [
    (b"PK\x03\x04", "a zip archive (or a spreadsheet, which is one): load the files in it"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x1f\x8b", "compressed twice, with gzip inside: decompress it first"),
    (b"\x28\xb5\x2f\xfd", NO_ZSTD),
    (b"\xfd7zXZ\0", "compressed with xz: decompress it first (xz -dc FILE | sidebloom load -)"),
    (b"BZh91AY&SY", "compressed with bzip2: decompress it first (bzip2 -dc FILE | sidebloom load -)"),
    (b"\x04\x22\x4d\x18", "compressed with lz4: decompress it first (lz4 -dc FILE | sidebloom load -)"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: load the files in it"),
    (b"SQLite format 3\0", "a SQLite database: export its table as csv first"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old spreadsheet or document: export it as csv first"),
];

#[cfg(feature = "zstd")]
const NO_ZSTD: &str = "compressed twice, with zstd inside: decompress it first";
#[cfg(not(feature = "zstd"))]
const NO_ZSTD: &str = "compressed with zstd, and this sidebloom was built without zstd support: decompress it first (zstd -dc FILE | \
                       sidebloom load -), or build it again with `--features zstd`";

/// Why a file with these first bytes cannot have rows of the format. `is_literal`: any bytes are valid lines.
pub fn refusal(head: &[u8], format: Format, is_literal: bool) -> Option<String> {
    if let Some((_, what)) = SIGNATURES.iter().find(|(signature, _)| head.starts_with(signature)) {
        return Some(format!("the file is {what}"));
    }
    if head.get(257..262) == Some(b"ustar") {
        return Some("the file is a tar archive: load the files in it".to_owned());
    }
    if is_literal {
        return None;
    }
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") || is_utf16(head) {
        return Some(
            "the file is UTF-16 text: convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8 FILE | sidebloom load -); if it is lines that end in NUL, give -0"
                .to_owned(),
        );
    }
    if is_cr_only(head) {
        return Some(
            "the file's lines end in CR alone, as on old Macs: convert them first (tr '\\r' '\\n' < FILE | sidebloom load -)"
                .to_owned(),
        );
    }
    (head.starts_with(b"PAR1") && head.contains(&0)).then(|| {
        format!(
            "the file is a Parquet file: export it as {} first",
            if format == Format::Lines { "csv" } else { format.name() }
        )
    })
}

/// Every other byte is often zero, and the ones between never are.
fn is_utf16(head: &[u8]) -> bool {
    let zeros = |from: usize| head.iter().skip(from).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    let many = (head.len() / 8).max(2);
    (even == 0 && odd >= many) || (odd == 0 && even >= many)
}

/// CRs inside, and no LF.
fn is_cr_only(head: &[u8]) -> bool {
    !head.contains(&b'\n') && head.iter().rev().skip(1).any(|byte| *byte == b'\r')
}

/// The first row, if it looks like column names: it has no number where the second row has one, or has words
/// that columns are often called.
pub fn header(head: &[u8], format: Format) -> Option<String> {
    const NAMES: [&str; 12] =
        ["id", "key", "name", "value", "title", "artist", "date", "year", "email", "url", "user", "count"];
    let separator = match format {
        Format::Csv => ',',
        Format::Tsv => '\t',
        Format::Lines | Format::Jsonl | Format::Scan => return None,
    };
    let text = String::from_utf8_lossy(head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head));
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let columns = |line: &str| -> Vec<String> {
        line.split(separator).map(|column| column.trim().trim_matches('"').to_owned()).collect()
    };
    let is_number = |text: &str| text.parse::<f64>().is_ok();
    let first_line = lines.next()?;
    let (first, second) = (columns(first_line), columns(lines.next()?));
    let are_names = first
        .iter()
        .all(|name| name.chars().any(char::is_alphabetic) && !is_number(name) && name.chars().count() <= 40);
    let are_distinct =
        first.iter().enumerate().all(|(i, name)| !first.iter().skip(i + 1).any(|other| other == name));
    let differs = second.iter().any(|column| is_number(column))
        || first.iter().any(|name| NAMES.contains(&&*name.to_lowercase()));
    (first.len() == second.len() && are_names && are_distinct && differs).then(|| first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_text_are_named() {
        let utf16: Vec<u8> = "title,artist\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut tar = vec![b'x'; 600];
        tar[257..262].copy_from_slice(b"ustar");
        for (head, what) in [
            (&b"PK\x03\x04..."[..], "zip"),
            (b"\x28\xb5\x2f\xfd", "zstd"),
            (b"\xfd7zXZ\0", "xz"),
            (b"\xff\xfea\0", "UTF-16"),
            (&utf16, "UTF-16"),
            (b"a\rb\rc\r", "CR alone"),
            (b"PAR1\0\x15", "Parquet"),
            (&tar, "tar"),
        ] {
            let said = refusal(head, Format::Lines, false).unwrap_or_default();
            assert!(said.contains(what), "{what}: {said}");
        }
        for text in [&b""[..], b"a\r\nb\r\n", b"one\r", b"PAR1,x\n", "Bj\u{f6}rk\n".as_bytes(), b"a\0b\n"] {
            assert_eq!(refusal(text, Format::Lines, false), None, "{}", text.escape_ascii());
        }
        assert_eq!(refusal(b"\xff\xfea\0\r", Format::Lines, true), None);
    }

    #[test]
    fn a_header_is_told_from_a_row() {
        let told = |text: &str| header(text.as_bytes(), Format::Csv);
        assert_eq!(told("\u{feff}\"Track\",Plays\r\nZombie,7\r\n"), Some("Track, Plays".to_owned()));
        assert_eq!(told("title,artist\nZombie,Cranberries\n"), Some("title, artist".to_owned()));
        for rows in
            ["a,b\nc,d\n", "Zombie,7\nOne,8\n", "k1,v1\nk2,v2\n", "title,title\na,1\n", "title,artist\n", ""]
        {
            assert_eq!(told(rows), None, "{rows}");
        }
        assert_eq!(header(b"title\nZombie\n", Format::Lines), None);
    }
}
