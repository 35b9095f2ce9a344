//! Figures and dates as people read them.

use std::time::{SystemTime, UNIX_EPOCH};

/// A count with thousands separators: `2,000,000`.
pub fn count(n: f64) -> String {
    let digits = format!("{n:.0}");
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size in bytes: `312 B`, `1.46 MiB`.
pub fn bytes(n: f64) -> String {
    scaled(n, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// A duration in nanoseconds: `312 ns`, `1.46 µs`, `2.10 s`.
pub fn nanos(ns: f64) -> String {
    scaled(ns, 1000.0, &["ns", "µs", "ms", "s"])
}

/// Three significant digits: `0.00962`, `1.25`, `4,200`.
pub fn number(x: f64) -> String {
    if x == 0.0 {
        return "0".to_owned();
    }
    if x.abs() >= 999.5 {
        return count(x);
    }
    // Take the exponent after rounding, so that 0.9999 gives 1.00 instead of 1.000.
    let rounded = format!("{x:.2e}");
    let exponent: i32 = rounded.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let decimals = (2 - exponent).clamp(0, 6) as usize;
    format!("{x:.decimals$}")
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{} %", number(100.0 * share))
}

/// A ratio.
pub fn times(ratio: f64) -> String {
    format!("{} ×", number(ratio))
}

/// The placeholder for a figure that was not measured.
pub const DASH: &str = "–";

/// The text of a figure, or a dash if there is none.
pub fn shown(figure: Option<f64>, show: fn(f64) -> String) -> String {
    figure.map_or(DASH.to_owned(), show)
}

/// The minimum and maximum of the figures, or a dash if there are none.
pub fn range(figures: &[f64], show: fn(f64) -> String) -> String {
    let extreme = |of: fn(f64, f64) -> f64| figures.iter().copied().reduce(of);
    let ends = extreme(f64::min).zip(extreme(f64::max));
    ends.map_or(DASH.to_owned(), |(least, most)| format!("{}–{}", show(least), show(most)))
}

fn scaled(mut x: f64, base: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while x >= base.min(999.5) && unit + 1 < units.len() {
        x /= base;
        unit += 1;
    }
    format!("{} {}", number(x), units[unit])
}

/// The time, in the form of [`date`].
pub fn now() -> String {
    date(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// `2026-05-01 13:05 UTC`, from seconds since 1970 (the days-to-date algorithm is from Hinnant,
/// "chrono-compatible low-level date algorithms").
pub fn date(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", seconds / 3600 % 24, seconds / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_dates_read_as_people_write_them() {
        assert_eq!([count(999.0), count(2_000_640.0)], ["999", "2,000,640"]);
        assert_eq!([nanos(312.0), nanos(1460.0), nanos(999.9)], ["312 ns", "1.46 µs", "1.00 µs"]);
        assert_eq!([bytes(1495.0), number(0.009621), number(0.0)], ["1.46 KiB", "0.00962", "0"]);
        assert_eq!([percent(0.25), times(2.5), shown(None, nanos)], ["25.0 %", "2.50 ×", "–"]);
        assert_eq!([range(&[3.0, 1.0, 2.0], nanos), range(&[], nanos)], ["1.00 ns–3.00 ns", "–"]);
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_777_640_700), "2026-05-01 13:05 UTC");
    }
}
