//! Numbers formatted for people, and parsed from their options.

use std::time::Duration;

/// With thousands separators: `2,000,000`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Binary units, three significant digits: `312 B`, `1.46 MiB`.
pub fn bytes(n: f64) -> String {
    scaled(n, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
}

/// A duration in nanoseconds, three significant digits: `312 ns`, `1.46 µs`, `2.10 s`.
pub fn nanos(ns: f64) -> String {
    if ns >= 100e9 {
        return format!("{:.0} s", ns / 1e9);
    }
    scaled(ns, 1000.0, &["ns", "µs", "ms", "s"])
}

/// A share as a percentage with three significant digits; `–` if the whole is 0.
pub fn percent(part: f64, whole: f64) -> String {
    if whole == 0.0 { "–".to_owned() } else { format!("{} %", digits3(100.0 * part / whole)) }
}

/// Events per operation: `0`, `0.00962`, `1.25`, `4,200`.
pub fn per_op(x: f64) -> String {
    if x >= 1000.0 { count(x.round() as u64) } else { digits3(x) }
}

/// How many times more: `1.25 ×`, `412 ×`.
pub fn ratio(x: f64) -> String {
    format!("{} ×", per_op(x))
}

fn scaled(x: f64, base: f64, units: &[&str]) -> String {
    let mut x = x;
    let mut unit = 0;
    // Half a unit in the last place below 1000, so that 999.9 ns is printed as 1.00 µs, never as 1000 ns.
    while x >= base.min(999.5) && unit + 1 < units.len() {
        x /= base;
        unit += 1;
    }
    let number = if unit == 0 && x.fract() == 0.0 { format!("{x:.0}") } else { digits3(x) };
    format!("{number} {}", units.get(unit).unwrap_or(&""))
}

/// Three significant digits, with an exponent only below 10^-6.
fn digits3(x: f64) -> String {
    let scientific = format!("{x:.2e}");
    // The exponent after rounding: 0.9999 is 1.00 and not 1.000.
    match scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0) {
        _ if x == 0.0 => "0".to_owned(),
        ..-6 => scientific,
        exponent => format!("{x:.*}", usize::try_from(2 - exponent).unwrap_or(0).min(6)),
    }
}

/// Bytes as a number with an optional K, M or G (powers of 1024): `64M`, `64MiB`.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let short = text.strip_suffix("iB").unwrap_or(text);
    let (digits, shift) = match short.as_bytes().last().map(u8::to_ascii_uppercase) {
        Some(b'K') => (&short[..short.len() - 1], 10),
        Some(b'M') => (&short[..short.len() - 1], 20),
        Some(b'G') => (&short[..short.len() - 1], 30),
        _ => (text, 0),
    };
    let number = whole(digits).ok_or("expected a number of bytes, such as 64M")?;
    number.checked_mul(1 << shift).ok_or_else(|| "too many bytes".to_owned())
}

/// Filter bits per key, within the range of [`sidebloom::FilterPolicy::bits_per_key`].
pub fn parse_bits(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(bits) if (2.0..=64.0).contains(&bits) => Ok(bits),
        _ => Err("must be between 2 and 64".to_owned()),
    }
}

/// A rate between 0 and 1, or a percentage.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse::<f64>().map(|p| p / 100.0),
        None => text.parse(),
    };
    match number {
        Ok(rate) if rate > 0.0 && rate < 1.0 => Ok(rate),
        _ => Err("must be between 0 and 1, or between 0% and 100%".to_owned()),
    }
}

/// A length of time, with a unit: `90m`, `24h`, `7d`. A bare number would leave it to be guessed.
pub fn parse_age(text: &str) -> Result<Duration, String> {
    let units = [('s', 1), ('m', 60), ('h', 60 * 60), ('d', 24 * 60 * 60)];
    let unit = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?, *seconds)));
    let (number, seconds) = unit
        .and_then(|(digits, seconds)| Some((whole(digits)?, seconds)))
        .ok_or("expected a number and a unit (s, m, h or d), such as 90m, 24h or 7d")?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(|| "too long".to_owned())
}

/// A whole number without a sign, which `parse` would take.
fn whole(digits: &str) -> Option<u64> {
    digits.parse().ok().filter(|_| !digits.starts_with('+'))
}

/// How long rows live, as [`parse_age`] reads it, at least a second.
pub fn parse_lifetime(text: &str) -> Result<Duration, String> {
    let lifetime = parse_age(text)?;
    if lifetime.is_zero() { Err("rows live at least one second".to_owned()) } else { Ok(lifetime) }
}

/// How long something is remembered, as [`parse_age`] reads it, at least a second.
pub fn parse_window(text: &str) -> Result<Duration, String> {
    let window = parse_age(text)?;
    if window.is_zero() { Err("a window is at least one second long".to_owned()) } else { Ok(window) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(["0", "999", "1,000", "2,000,640"], [0, 999, 1000, 2_000_640].map(count)[..]);
        assert_eq!(
            ["0 B", "312 B", "1.46 KiB", "512 MiB"],
            [0.0, 312.0, 1495.0, 536_870_912.0].map(bytes)[..]
        );
        assert_eq!(["5 ns", "1.46 µs", "1.00 µs", "340 s"], [5.0, 1460.0, 999.9, 340e9].map(nanos)[..]);
        assert_eq!(
            ["0 %", "9.31e-8 %", "0.960 %", "100 %"],
            [0.0, 9.3132e-10, 0.0096, 1.0].map(|x| percent(x, 1.0))[..]
        );
        assert_eq!(percent(0.0, 0.0), "–");
        assert_eq!(["0", "0.00962", "4,200"], [0.0, 0.00962, 4200.0].map(per_op)[..]);
    }

    #[test]
    fn ages_are_a_number_and_a_unit() {
        let seconds = |text| parse_age(text).map(|age| age.as_secs()).ok();
        assert_eq!(["0s", "90s", "2m", "24h", "7d"].map(seconds), [0, 90, 120, 86_400, 604_800].map(Some));
        assert!(parse_lifetime("0d").is_err() && parse_lifetime("30d") == parse_age("30d"));
        for bad in [
            "",
            "s",
            "7w",
            "30D",
            "P30D",
            "1h30m",
            "-1s",
            "+5s",
            "5",
            "0",
            "1.5h",
            "7 d",
            "é",
            "99999999999999999999",
            "900000000000000000d",
        ] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes_are_read_with_and_without_units() {
        assert_eq!(
            [parse_bytes("4096"), parse_bytes("64k"), parse_bytes("2G")],
            [Ok(4096), Ok(65536), Ok(2 << 30)]
        );
        for bad in ["", "M", "1T", "-1", "+1", "+1K", "99999999999G"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }
}
