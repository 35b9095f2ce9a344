//! The time at the beginning of a line.

use chrono::DateTime;

/// Milliseconds of a second.
const SECOND: u64 = 1000;
/// The start of the year 10000: no timestamp is that late.
const TIME_END: u64 = 253_402_300_800 * SECOND;

/// A line's time in milliseconds since 1970, and what follows the blank or TAB after it.
pub fn split_timestamp(line: &[u8]) -> Result<(u64, &[u8]), String> {
    let blank = line.iter().position(|byte| matches!(byte, b' ' | b'\t'));
    let Some((word, rest)) = blank.and_then(|at| line.split_at_checked(at)) else {
        return Err("no blank or TAB after the timestamp".to_owned());
    };
    let shown = || format!("{:.64}", word.escape_ascii().to_string());
    let time = parse(word).ok_or_else(|| {
        format!(
            "'{}' is no timestamp: expected RFC 3339, such as 2026-11-29T18:30:00Z, or seconds since 1970",
            shown()
        )
    })?;
    match u64::try_from(time) {
        Ok(time) if time < TIME_END => Ok((time, rest.split_at(1).1)),
        _ => Err(format!("'{}' is outside the years 1970 to 9999", shown())),
    }
}

/// Milliseconds since 1970; `None` for a word that is no timestamp.
fn parse(word: &[u8]) -> Option<i64> {
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match word.split_at_checked(digits)? {
        (whole @ [_, ..], rest) if matches!(rest, [] | [b'.', ..]) => {
            // The sign of what is too large does not matter.
            let seconds = number(whole).unwrap_or(u64::MAX).min(TIME_END / SECOND);
            let (millis, rest) = fraction(rest)?;
            rest.is_empty().then_some((seconds * SECOND + millis) as i64)
        }
        // `DateTime` would take U+2212 for the sign of an offset.
        _ if !word.is_ascii() => None,
        // A leap second is the first second of the next minute.
        _ => DateTime::parse_from_rfc3339(std::str::from_utf8(word).ok()?)
            .ok()
            .map(|time| time.timestamp_millis()),
    }
}

/// The milliseconds of `.digits`, if there, and what follows.
fn fraction(text: &[u8]) -> Option<(u64, &[u8])> {
    let Some(text) = text.strip_prefix(b".") else { return Some((0, text)) };
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(digits)?;
    let milli = |i: usize| digits.get(i).map_or(0, |digit| u64::from(digit - b'0'));
    (!digits.is_empty()).then_some((100 * milli(0) + 10 * milli(1) + milli(2), rest))
}

/// Digits only: `parse` also takes a sign.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().all(u8::is_ascii_digit).then_some(())?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Option<u64> {
        split_timestamp(format!("{text} rest").as_bytes()).ok().map(|(time, _)| time)
    }

    /// The seconds are those of `date --date=TIME +%s`.
    #[test]
    fn timestamps_are_read_in_both_forms() {
        for (text, millis) in [
            ("0", 0),
            ("1796000000", 1_796_000_000_000),
            ("1796000000.25", 1_796_000_000_250),
            ("12.3456789", 12_345),
            ("007", 7000),
            ("253402300799.9999", 253_402_300_799_999),
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799_000),
            ("2024-02-29t12:00:00.5z", 1_709_208_000_500),
            ("2026-11-29T18:30:00+01:00", 1_795_973_400_000),
            ("2026-11-29T18:30:00.123456-00:30", 1_795_978_800_123),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000),
            ("1969-12-31T23:30:00-01:00", 1_800_000),
            ("9999-12-31T23:59:59Z", 253_402_300_799_000),
        ] {
            assert_eq!(time(text), Some(millis), "{text}");
        }
        assert_eq!(split_timestamp(b"5\ta b"), Ok((5000, &b"a b"[..])));
        assert_eq!(split_timestamp(b"5  "), Ok((5000, &b" "[..])));
    }

    #[test]
    fn every_day_is_one_after_the_day_before() {
        let mut days = 0;
        for year in 1970..=2800 {
            for month in 1..=12 {
                let day = |day: u64| time(&format!("{year}-{month:02}-{day:02}T00:00:00Z"));
                for millis in (1..=31).filter_map(day) {
                    assert_eq!(millis, days * 24 * 3600 * SECOND, "{year}-{month}");
                    days += 1;
                }
            }
        }
        assert_eq!(days, 303_517, "date -u --date=2801-01-01 +%s, in days");
    }

    #[test]
    fn what_is_no_timestamp_is_refused_with_its_text() {
        let mut bad = vec!["", "x", "-5", "+5", "1e9", "5.", "5.x", ".5", "0x10", "5s", "1,5", "２"];
        bad.extend(["2026-11-29", "2026-11-29T18:30", "2026-11-29T18:30:00", "2026-11-29T18:30:00 Z"]);
        bad.extend(["2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-02-29T00:00:00Z"]);
        bad.extend(["2100-02-29T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-32T00:00:00Z"]);
        bad.extend(["2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:61Z"]);
        bad.extend(["2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+0100", "2026-01-01T00:00:00Z+"]);
        bad.extend([
            "2026-01-01T00:00:00.Z",
            "12026-01-01T00:00:00Z",
            "2026-1-01T00:00:00Z",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:00\u{2212}01:00",
        ]);
        for text in bad {
            let refused = split_timestamp(format!("{text} rest").as_bytes()).unwrap_err();
            assert!(refused.contains("is no timestamp: expected RFC 3339"), "{text}: {refused}");
        }
        for text in
            ["253402300800", "99999999999999999999999", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+00:01"]
        {
            let refused = split_timestamp(format!("{text} rest").as_bytes()).unwrap_err();
            assert!(refused.contains("is outside the years 1970 to 9999"), "{text}: {refused}");
        }
        assert_eq!(split_timestamp(b"5").unwrap_err(), "no blank or TAB after the timestamp");
        assert!(split_timestamp(b"\x1b[2J\xff x").unwrap_err().starts_with("'\\x1b[2J\\xff' is no"));
    }
}
