//! Shared by the tests of guards.

use sidebloom::FilterPolicy;
use sidebloom::guard::GuardOptions;

/// Filters so fine that a "maybe" for a missing key does not happen by chance: 1 in 65,000.
pub fn fine() -> GuardOptions {
    GuardOptions::new().filter_policy(FilterPolicy::bits_per_key(19.0))
}
