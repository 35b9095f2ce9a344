//! `sidebloom export`: a store to a SlateDB.

use super::Slate;
use crate::context::{Context, Failure, Outcome};
use crate::keyspace_arg::KeyspaceArg;

/// Copy the store to a SlateDB on object storage
///
/// The SlateDB must be empty or missing; a missing one is created. Its SST files get parity filters, which
/// programs use that open it with the policy of the crate sidebloom-slatedb; other programs ignore them.
/// Before retrying an interrupted export, delete what it left.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    keyspace: KeyspaceArg,
    #[command(flatten)]
    to: Slate,
    /// Filter bits per key; the widest filter that fits is chosen
    #[arg(long, value_name = "BITS", default_value_t = 10.0)]
    bits_per_key: f64,
}

impl Args {
    #[cfg(feature = "slatedb")]
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        use super::object_url::{Copy, run};
        use sidebloom_slatedb::{ParityFilterPolicy, export};

        let policy = ParityFilterPolicy::new(self.bits_per_key);
        let policy = policy.map_err(|error| Failure::message(format!("--bits-per-key: {error}")))?;
        let (store, path) = self.to.open()?;
        let from = self.keyspace.open_to_read(cx)?;
        let report = run(async {
            let builder =
                slatedb::Db::builder(path, store).with_filter_policies(vec![std::sync::Arc::new(policy)]);
            let db = builder.build().await?;
            let copy = Copy::start("exporting");
            let copied = export(&from.snapshot(), &db, |so_far| copy.at(so_far)).await?;
            db.close().await?;
            Ok(copy.end(copied))
        })?;
        cx.report(&report, |out| report.write("exported", out))?;
        Ok(Outcome::Found)
    }

    #[cfg(not(feature = "slatedb"))]
    pub fn run(self, _: &Context) -> Result<Outcome, Failure> {
        self.to.refuse()
    }
}
