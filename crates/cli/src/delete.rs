//! `sidebloom delete`: removes keys, or ranges of them.

use crate::context::{Context, Failure, Outcome};
use crate::hex;
use crate::keyspace_arg::KeyspaceArg;
use sidebloom::{Batch, Keyspace};
use std::ffi::OsString;
use std::ops::Bound;

/// Delete keys, or all keys in a range, atomically
///
/// A range deletion writes one small entry, however many keys there are; compactions remove them later. Exits
/// 1 when a key was not found (the others are still deleted), or when a range has no key.
#[derive(clap::Args)]
#[command(
    override_usage = "sidebloom delete [OPTIONS] <KEY>...\n       sidebloom delete [OPTIONS] --prefix <PREFIX>\n       \
                            sidebloom delete [OPTIONS] [--from <KEY>] [--to <KEY>]"
)]
pub struct Args {
    #[command(flatten)]
    keyspace: KeyspaceArg,
    /// The keys
    #[arg(
        required_unless_present_any = ["prefix", "from", "to"],
        value_name = "KEY",
        allow_negative_numbers = true,
        conflicts_with_all = ["prefix", "from", "to"],
    )]
    keys: Vec<OsString>,
    /// Delete all keys that start with this
    #[arg(long, conflicts_with_all = ["from", "to"], value_name = "PREFIX", allow_hyphen_values = true)]
    prefix: Option<OsString>,
    /// Delete all keys from this one on
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    from: Option<OsString>,
    /// Delete all keys before this one
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    to: Option<OsString>,
    /// Keys are hex digits
    #[arg(long)]
    hex: bool,
    /// Return only when the deletion is on stable storage
    #[arg(long)]
    sync: bool,
}

#[derive(serde::Serialize)]
struct Report {
    deleted: usize,
    not_found: usize,
}

#[derive(serde::Serialize)]
struct RangeReport {
    /// Whether the range had a key.
    found: bool,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let argument = |name, text: &Option<OsString>| {
            text.as_ref().map(|text| hex::argument(name, text, self.hex)).transpose()
        };
        let (prefix, from, to) =
            (argument("prefix", &self.prefix)?, argument("from", &self.from)?, argument("to", &self.to)?);
        let mut keys: Vec<Vec<u8>> =
            self.keys.iter().map(|text| hex::argument("key", text, self.hex)).collect::<Result<_, _>>()?;
        keys.sort();
        keys.dedup();
        let db = self.keyspace.open_to_write(cx, false)?;
        let mut batch = Batch::new();
        let mut report = Report { deleted: 0, not_found: 0 };
        for key in &keys {
            if db.contains_key(key)? {
                batch.keyspace(&db).delete(key);
                report.deleted += 1;
            } else {
                report.not_found += 1;
            }
        }
        let found = match (prefix, from, to) {
            (None, None, None) => None,
            (Some(prefix), ..) => Some(delete_prefix(&db, &mut batch, &prefix)?),
            (None, from, to) => {
                let range = (
                    from.map_or(Bound::Unbounded, Bound::Included),
                    to.map_or(Bound::Unbounded, Bound::Excluded),
                );
                let found = db.range(range.clone()).keys().next().transpose()?.is_some();
                batch.keyspace(&db).delete_range(range);
                Some(found)
            }
        };
        db.write(batch)?;
        if self.sync {
            db.sync()?;
        }
        match found {
            Some(found) if cx.json => cx.print_json(&RangeReport { found })?,
            None if cx.json => cx.print_json(&report)?,
            _ => {}
        }
        Ok(Outcome::found(found.unwrap_or(report.not_found == 0)))
    }
}

fn delete_prefix(db: &Keyspace, batch: &mut Batch, prefix: &[u8]) -> Result<bool, Failure> {
    batch.keyspace(db).delete_prefix(prefix);
    Ok(db.prefix(prefix).keys().next().transpose()?.is_some())
}
