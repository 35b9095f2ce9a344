//! Numbers as Redis reads them.

/// A signed integer: no plus sign, no leading zeros, no blanks.
pub fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = !matches!(digits, [b'0', _, ..] | [b'+', ..]) && text != b"-0";
    std::str::from_utf8(text).ok().filter(|_| is_plain)?.parse().ok()
}

/// A finite number.
pub fn rate(text: &[u8]) -> Option<f64> {
    let is_number = text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    std::str::from_utf8(text).ok().filter(|_| is_number)?.parse().ok().filter(|rate: &f64| rate.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_redis_reads_them() {
        for (text, number) in [("0", 0), ("-1", -1), ("9223372036854775807", i64::MAX)] {
            assert_eq!(integer(text.as_bytes()), Some(number));
        }
        for text in ["", "-", "+1", "01", "-0", " 1", "1 ", "1.0", "9223372036854775808", "a"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
        assert_eq!(rate(b"1e-6"), Some(0.000_001));
        for text in ["", "nan", "inf", "1e999", "0.1 ", "big"] {
            assert_eq!(rate(text.as_bytes()), None, "{text}");
        }
    }
}
