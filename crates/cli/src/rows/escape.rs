//! The text form of a key or value: what `scan` prints and `load --format scan` reads back, byte for byte.
//!
//! Backslash, TAB, LF and CR are `\\`, `\t`, `\n`, `\r`. Other control characters (C1 included: they control
//! terminals too) and bytes that are not valid UTF-8 are `\xHH`. Everything else is unchanged.

use std::io::{self, Write};

/// Writes `bytes` in the text form.
pub fn write_escaped(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    if bytes.iter().all(|&b| (0x20..0x7f).contains(&b) && b != b'\\') {
        return out.write_all(bytes);
    }
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().try_for_each(|c| write_char(out, c))?;
        write_hex(out, chunk.invalid())?;
    }
    Ok(())
}

fn write_char(out: &mut impl Write, c: char) -> io::Result<()> {
    let mut buf = [0; 4];
    let utf8 = c.encode_utf8(&mut buf).as_bytes();
    match c {
        '\\' => out.write_all(b"\\\\"),
        '\t' => out.write_all(b"\\t"),
        '\n' => out.write_all(b"\\n"),
        '\r' => out.write_all(b"\\r"),
        _ if c.is_control() => write_hex(out, utf8),
        _ => out.write_all(utf8),
    }
}

fn write_hex(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    bytes.iter().try_for_each(|b| write!(out, "\\x{b:02x}"))
}

/// Reads the text form back. Bytes that [`write_escaped`] would have escaped are accepted unescaped, but a
/// backslash must begin an escape. The error says what is wrong and where.
pub fn unescape(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&b| b == b'\\') {
        let (plain, escape) = rest.split_at(at);
        bytes.extend_from_slice(plain);
        let (byte, len) = read_escape(escape).ok_or_else(|| {
            let column = text.len() - escape.len() + 1;
            format!("invalid escape at byte {column}: a backslash must be followed by \\, t, n, r or xHH")
        })?;
        bytes.push(byte);
        rest = escape.get(len..).unwrap_or_default();
    }
    bytes.extend_from_slice(rest);
    Ok(bytes)
}

/// The byte for an escape, and the length of the escape.
fn read_escape(escape: &[u8]) -> Option<(u8, usize)> {
    match escape.get(1)? {
        b'\\' => Some((b'\\', 2)),
        b't' => Some((b'\t', 2)),
        b'n' => Some((b'\n', 2)),
        b'r' => Some((b'\r', 2)),
        b'x' => Some((crate::hex::byte(*escape.get(2)?, *escape.get(3)?)?, 4)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn escaped(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write_escaped(&mut out, bytes).unwrap();
        out
    }

    #[test]
    fn text_stands_as_it_is_and_the_rest_is_escaped() {
        assert_eq!(escaped("Björk — Jóga".as_bytes()), "Björk — Jóga".as_bytes());
        assert_eq!(escaped(b"AC\\DC\ta\nb\rc\0\x1b[2J\xff"), br"AC\\DC\ta\nb\rc\x00\x1b[2J\xff");
        assert_eq!(escaped("\u{9b}2J".as_bytes()), br"\xc2\x9b2J");
    }

    #[test]
    fn a_bad_escape_is_named_with_its_place() {
        for bad in [&br"ab\"[..], br"ab\q", br"ab\x0", br"ab\xg0"] {
            assert!(unescape(bad).unwrap_err().contains("byte 3"), "{}", bad.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn unescape_gives_back_the_bytes_and_no_separator_is_left(bytes: Vec<u8>) {
            let text = escaped(&bytes);
            prop_assert!(!text.iter().any(|b| matches!(b, b'\t' | b'\n' | b'\r' | 0x1b)));
            prop_assert!(std::str::from_utf8(&text).is_ok());
            prop_assert_eq!(unescape(&text).unwrap(), bytes);
        }
    }
}
