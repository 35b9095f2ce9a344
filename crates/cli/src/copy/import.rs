//! `sidebloom import`: a SlateDB to a store.

use super::Slate;
use crate::context::{Context, Failure, Outcome};
use crate::keyspace_arg::KeyspaceArg;

/// Copy a SlateDB on object storage to the store
///
/// The store, or the keyspace, must be empty. A missing store is created, but no keyspace. All rows become
/// visible at once, at the end. Expiry times are not copied.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    keyspace: KeyspaceArg,
    #[command(flatten)]
    from: Slate,
}

impl Args {
    #[cfg(feature = "slatedb")]
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        use super::object_url::{Copy, run};
        use sidebloom_slatedb::import;

        let (store, path) = self.from.open()?;
        let report = run(async {
            // Before the store is created: a reader creates no database.
            let reader = slatedb::DbReader::builder(path, store).build().await?;
            let db = self.keyspace.open_to_write(cx, true)?;
            let copy = Copy::start("importing");
            let copied = import(&reader, &db, |so_far| copy.at(so_far)).await?;
            reader.close().await?;
            Ok(copy.end(copied))
        })?;
        cx.report(&report, |out| report.write("imported", out))?;
        Ok(Outcome::Found)
    }

    #[cfg(not(feature = "slatedb"))]
    pub fn run(self, _: &Context) -> Result<Outcome, Failure> {
        self.from.refuse()
    }
}
