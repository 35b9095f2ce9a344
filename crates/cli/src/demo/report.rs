//! The demo's results.

use super::build::BuiltStore;
use super::by_name::LookedUp;
use super::measure::Costs;
use crate::system::PageCache;

/// What `--json` prints.
#[derive(serde::Serialize)]
pub struct Report {
    pub built: BuiltStore,
    pub page_cache: PageCache,
    pub by_name: Vec<LookedUp>,
    pub filters_on: Costs,
    pub filters_off: Costs,
}
