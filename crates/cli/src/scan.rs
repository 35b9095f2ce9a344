//! `sidebloom scan`: prints a range of rows in key order.

use crate::context::{Context, Failure, Outcome};
use crate::hex;
use crate::keyspace_arg::KeyspaceArg;
use crate::notice::notice;
use crate::print::RowFormat;
use sidebloom::{Skipped, Value};
use std::ffi::OsString;
use std::ops::Bound;

/// Print rows in key order
///
/// Prints one row per line as KEY TAB VALUE, escaped as described in `sidebloom --help`; `load --format scan`
/// reads it back exactly. Exits 1 if the range has no rows.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    keyspace: KeyspaceArg,
    /// Only keys that start with this
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    prefix: Option<OsString>,
    /// First key (inclusive)
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    from: Option<OsString>,
    /// End of the range (exclusive)
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    to: Option<OsString>,
    /// At most this many rows
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// From the last key to the first
    #[arg(long)]
    reverse: bool,
    /// Print keys without values
    #[arg(long)]
    keys_only: bool,
    /// Continue after unreadable parts. Reports each on standard error with the keys that may be missing, and
    /// exits 2. Older rows of these keys are left out, because the unreadable part may overwrite or delete
    /// them
    #[arg(long)]
    skip_damaged: bool,
    /// Range keys are given, and rows printed, as hex digits
    #[arg(long)]
    hex: bool,
}

type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let key = |name: &str, text: &Option<OsString>| {
            text.as_ref().map(|text| hex::argument(name, text, self.hex)).transpose()
        };
        let (from, to) = (key("--from", &self.from)?, key("--to", &self.to)?);
        let prefix = key("--prefix", &self.prefix)?;
        if let Some(why) = mistake(prefix.as_deref(), from.as_deref(), to.as_deref()) {
            notice(why);
        }
        let bounds = bounds(prefix, from, to);
        let db = self.keyspace.open_to_read(cx)?;
        let Some(bounds) = bounds else { return Ok(Outcome::NotFound) };
        let (mut range, mut damage) = (db.range(bounds), Damage::default());
        if self.skip_damaged {
            range = range.skip_damaged(&damage.skipped);
        }
        let rows = if self.reverse {
            self.print(cx, range.rev(), &mut damage)?
        } else {
            self.print(cx, range, &mut damage)?
        };
        let parts = match damage.parts {
            0 => return Ok(Outcome::found(rows > 0)),
            1 => "1 unreadable part".to_owned(),
            n => format!("{n} unreadable parts"),
        };
        Err(Failure::message(format!("{} is damaged: {rows} rows printed, {parts} skipped", cx.place())))
    }

    fn print<I>(&self, cx: &Context, rows: I, damage: &mut Damage) -> Result<u64, Failure>
    where
        I: Iterator<Item = sidebloom::Result<(Vec<u8>, Value)>>,
    {
        let format = RowFormat::new(cx.json, self.hex);
        let limit = usize::try_from(self.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let mut out = cx.out();
        let mut printed = 0;
        for row in rows.take(limit) {
            let (key, value) = row?;
            format.write(&mut *out, &key, (!self.keys_only).then_some(&*value))?;
            printed += 1;
            damage.report();
        }
        damage.report();
        Ok(printed)
    }
}

/// Why the range cannot contain any key, which nobody wants. An end that equals the start is not reported:
/// scripts that divide a range get there.
fn mistake(prefix: Option<&[u8]>, from: Option<&[u8]>, to: Option<&[u8]>) -> Option<&'static str> {
    if from.zip(to).is_some_and(|(from, to)| to < from) {
        return Some(
            "the range is empty: --from is after --to; swap them (with --reverse, too, --from is the smaller key)",
        );
    }
    let prefix = prefix?;
    let ends_before = to.is_some_and(|to| to <= prefix);
    let begins_after = from.is_some_and(|from| from > prefix && !from.starts_with(prefix));
    (ends_before || begins_after).then_some("the range is empty: no key with --prefix is in it")
}

/// What was skipped.
#[derive(Default)]
struct Damage {
    skipped: Skipped,
    /// How many skipped parts were reported.
    parts: usize,
}

impl Damage {
    /// Reports new skipped parts.
    fn report(&mut self) {
        for lost in self.skipped.take_keys() {
            notice(lost.error);
            self.parts += 1;
        }
    }
}

/// The intersection of all options; `None` if empty. An inverted range is empty, as in SQL.
fn bounds(prefix: Option<Vec<u8>>, from: Option<Vec<u8>>, to: Option<Vec<u8>>) -> Option<Bounds> {
    let prefix = prefix.unwrap_or_default();
    let start = from.unwrap_or_default().max(prefix.clone());
    let end = match (sidebloom::prefix_end(&prefix), to) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    match end {
        Some(end) if end <= start => None,
        Some(end) => Some((Bound::Included(start), Bound::Excluded(end))),
        None => Some((Bound::Included(start), Bound::Unbounded)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ops::RangeBounds;

    proptest! {
        #[test]
        fn bounds_hold_exactly_the_keys_that_every_option_allows(
            prefix in proptest::option::of("[a\u{ff}]{0,2}"), from in proptest::option::of("[abc]{0,3}"),
            to in proptest::option::of("[abc]{0,3}"), key in "[abc\u{ff}]{0,4}",
        ) {
            let bytes = |s: &str| s.chars().map(|c| c as u8).collect::<Vec<u8>>();
            let [prefix, from, to] = [prefix, from, to].map(|s| s.map(|s| bytes(&s)));
            let key = bytes(&key);
            let allowed = prefix.as_ref().is_none_or(|p| key.starts_with(p))
                && from.as_ref().is_none_or(|f| key >= *f)
                && to.as_ref().is_none_or(|t| key < *t);
            let within = bounds(prefix, from, to).is_some_and(|b| b.contains(&key));
            prop_assert_eq!(within, allowed);
        }
    }
}
