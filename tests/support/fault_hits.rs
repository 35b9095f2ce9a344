//! What planned failures hit, and how many operations there were to hit.

use super::faults::{OpKind, Strike};
use super::sim_fs::SimFs;
use std::path::PathBuf;

impl SimFs {
    /// The planned failures that occurred, in order.
    pub fn strikes(&self) -> Vec<Strike> {
        self.disk().strikes.clone()
    }

    /// Whether a planned failure has occurred.
    pub fn has_struck(&self) -> bool {
        !self.disk().strikes.is_empty()
    }

    /// The files that were appended to or synced after such an operation had failed on them.
    pub fn written_again(&self) -> Vec<PathBuf> {
        self.disk().written_again.clone()
    }

    /// How many operations there were so far.
    pub fn ops(&self) -> u64 {
        self.disk().ops
    }

    /// How many operations of this kind there were so far.
    pub fn ops_of(&self, kind: OpKind) -> u64 {
        self.disk().ops_by_kind.get(&kind).copied().unwrap_or(0)
    }
}
