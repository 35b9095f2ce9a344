//! Short tests by default, long ones for CI.

/// The length of a test: the second value with `SIDEBLOOM_TEST_LONG` set, as CI does, otherwise the first.
pub fn sized<T>(short: T, full: T) -> T {
    if std::env::var_os("SIDEBLOOM_TEST_LONG").is_some() { full } else { short }
}
