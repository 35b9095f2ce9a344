//! The names of keyspaces, if their rows are lost.

use super::workspace::Repair;
use crate::engine::open::{OldFiles, open_writable};
use crate::engine::storage::names::DAMAGED;
use crate::error::Result;
use crate::id::FileKind;
use crate::key::Space;
use crate::manifest::ManifestState;
use crate::options::Options;
use crate::sync::WallClock;
use std::sync::Arc;

impl Repair<'_> {
    /// Gives keyspaces that have lost their names those that segments have for them. A catalog has all names,
    /// and what it does not name was dropped, unless something was lost or set aside.
    pub(super) fn restore_keyspace_names(
        &mut self,
        state: &ManifestState,
        clock: Arc<dyn WallClock>,
    ) -> Result<()> {
        let is_numbered = |stored: &[u8]| Space::of(stored).and_then(Space::number).is_some();
        let are_in_segments =
            state.segments.values().any(|s| is_numbered(&s.smallest) || is_numbered(&s.largest));
        let report = &self.report;
        // An earlier repair may have failed here.
        let is_file = |name: &str| FileKind::parse(name.split_once(DAMAGED)?.0);
        let was_sound = self.fs.list(self.path)?.iter().all(|name| is_file(name).is_none());
        let is_sound =
            was_sound && report.lost.is_empty() && report.set_aside.is_empty() && report.logs.is_none();
        // Nobody has looked into the logs: what is salvaged of them may have rows of keyspaces, too.
        let may_be_in_logs = !was_sound || report.logs.is_some();
        if !are_in_segments && !may_be_in_logs || is_sound && !self.is_manifest_lost {
            return Ok(());
        }
        for id in state.segments.keys() {
            let named = self.properties(*id)?.and_then(|own| own.keyspace);
            self.keyspace_names.extend(named.map(|of| (of.number, of.name)));
        }
        let options = Options { fs: Arc::clone(&self.fs), clock, ..Options::new() };
        let restored = open_writable(self.path, options, OldFiles::Keep)
            .and_then(|engine| engine.restore_keyspace_names(&self.keyspace_names, is_sound));
        match restored {
            Ok(names) => self.report.keyspaces_named = names,
            // What is repaired stays repaired.
            Err(error) => tracing::warn!(%error, "cannot give keyspaces their lost names back"),
        }
        Ok(())
    }
}
