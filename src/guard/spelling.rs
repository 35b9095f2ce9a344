//! The spellings of integers and uuids that databases accept. Whatever any of them accepts must be
//! recognized; recognizing more is harmless.

use std::str;

/// What a key spells, where integers are expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// This integer.
    Integer(i64),
    /// A number that is not an integer, or one that a database may round to an integer.
    Other,
    /// Not a number.
    None,
}

/// Below this, every integer is exact as a floating-point number, and SQLite stores `5.0` as the integer 5
/// only below 2^51.
const ROUNDED_FROM: u64 = 1 << 51;

/// Parses a number as PostgreSQL (since version 16 with `0x`, `0o`, `0b` and `_`) and SQLite do: surrounding
/// white space, a sign, digits, a fraction, an exponent.
pub(super) fn integer(key: &[u8]) -> Number {
    // Both treat the vertical tab as white space; `is_ascii_whitespace` does not.
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let start = key.iter().position(|byte| !is_space(byte)).unwrap_or(key.len());
    let end = key.iter().rposition(|byte| !is_space(byte)).map_or(start, |last| last + 1);
    let Some(text) = key.get(start..end).and_then(|key| str::from_utf8(key).ok()) else {
        return Number::None;
    };
    let (is_negative, text) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let radixes = [("0x", 16), ("0X", 16), ("0o", 8), ("0O", 8), ("0b", 2), ("0B", 2)];
    for (prefix, radix) in radixes {
        if let Some(digits) = text.strip_prefix(prefix) {
            return match digits_of(digits, radix) {
                Some((digits, "")) if !digits.is_empty() => in_range(is_negative, &digits, radix),
                _ => Number::None,
            };
        }
    }
    let Some((digits, rest)) = digits_of(text, 10) else { return Number::None };
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => match digits_of(rest, 10) {
            Some((fraction, rest)) => (Some(fraction), rest),
            None => return Number::None,
        },
        None => (None, rest),
    };
    if digits.is_empty() && fraction.as_deref().unwrap_or_default().is_empty() {
        return Number::None;
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        return match digits_of(exponent, 10) {
            Some((digits, "")) if !digits.is_empty() => Number::Other,
            _ => Number::None,
        };
    }
    match (rest, fraction, in_range(is_negative, &digits, 10)) {
        ("", None, number) => number,
        ("", Some(fraction), Number::Integer(number))
            if !digits.is_empty()
                && fraction.bytes().all(|digit| digit == b'0')
                && number.unsigned_abs() < ROUNDED_FROM =>
        {
            Number::Integer(number)
        }
        ("", Some(_), _) => Number::Other,
        _ => Number::None,
    }
}

/// The leading digits of a text, without the `_` between them, and the rest. `None` for a `_` without a
/// digit.
fn digits_of(text: &str, radix: u32) -> Option<(String, &str)> {
    let end = text.find(|c: char| c != '_' && !c.is_digit(radix)).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    (!digits.ends_with('_')).then(|| (digits.replace('_', ""), rest))
}

fn in_range(is_negative: bool, digits: &str, radix: u32) -> Number {
    let sign = if is_negative { "-" } else { "" };
    i64::from_str_radix(&format!("{sign}{digits}"), radix).map_or(Number::Other, Number::Integer)
}

/// A uuid as PostgreSQL prints it: lower case, with hyphens. In `key`, the 32 digits may have hyphens
/// anywhere, braces around them, or `urn:uuid:` before them.
pub(super) fn uuid(key: &[u8]) -> Option<String> {
    let text = str::from_utf8(key).ok()?.trim_ascii();
    let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let text = match text.split_at_checked("urn:uuid:".len()) {
        Some((prefix, rest)) if prefix.eq_ignore_ascii_case("urn:uuid:") => rest,
        _ => text,
    };
    let mut digits = String::with_capacity(32);
    for c in text.chars().filter(|c| *c != '-') {
        if !c.is_ascii_hexdigit() || digits.len() == 32 {
            return None;
        }
        digits.push(c.to_ascii_lowercase());
    }
    let part = |range| digits.get(range);
    Some([part(0..8)?, part(8..12)?, part(12..16)?, part(16..20)?, part(20..32)?].join("-"))
}
