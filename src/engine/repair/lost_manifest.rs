//! Rebuilds the state of a store without its manifest.

use super::levels::assign_levels;
use super::workspace::Repair;
use crate::engine::storage::names::next_free_id;
use crate::error::{Error, Result};
use crate::hash::{KeyHash, KeyHasher, random_u64};
use crate::id::{FileId, FileKind};
use crate::key::Seq;
use crate::manifest::ManifestState;
use crate::segment::{StoreIdentity, is_damage};
use crate::wal::LogStart;

impl Repair<'_> {
    /// The state, from the segments and the logs alone.
    pub(super) fn gather(&mut self) -> Result<ManifestState> {
        let mut header = None;
        let (mut metas, mut damaged) = (Vec::new(), Vec::new());
        for id in self.files(FileKind::Segment) {
            let read = self.read_whole(id, header);
            self.note_read(id, FileKind::Segment)?;
            match read {
                Ok((meta, origin)) if *header.get_or_insert(origin) == origin => metas.push(meta),
                Ok(_) => {
                    let foreign =
                        Error::corruption(self.segment_path(id), 0, "this segment belongs to another store");
                    self.set_aside(&id.file_name(FileKind::Segment), foreign)?;
                }
                Err(error) if is_damage(&error) => {
                    header = header.or(self.properties(id)?.map(|own| own.store));
                    damaged.push((id, error));
                }
                Err(error) => return Err(error),
            }
        }
        let header = match header {
            Some(header) => header,
            None => {
                let logs = self.files(FileKind::Wal);
                let store_id = logs.iter().find_map(|id| Some(self.log_header(*id).ok()??.store_id));
                // The rows of a damaged segment get the new store's number, which a second run would trust.
                self.is_store_unknown = store_id.is_none() && damaged.is_empty();
                StoreIdentity {
                    store_id: store_id.unwrap_or_else(random_u64),
                    hasher: KeyHasher::random(KeyHash::default())?,
                }
            }
        };
        let mut state = ManifestState::new(header);
        self.next_id = FileId(next_free_id(&state, &self.names));
        let mut newest: Seq = metas.iter().map(|meta| meta.max_seq).max().unwrap_or(0);
        for (id, error) in damaged {
            // A segment without its end may be half of a flush: it lacks older operations with large keys.
            newest = newest.max(self.properties(id)?.map_or(0, |own| own.facts.max_seq));
            metas.extend(self.rescue(id, None, header, error)?);
        }
        self.in_segments = newest;
        // A log may repeat operations that a segment already has, under the same numbers.
        state.last_seq = self.first_seq(header.store_id)?.map_or(newest, |seq| seq.saturating_sub(1));
        assign_levels(&mut metas, state.last_seq);
        state.segments = metas.into_iter().map(|meta| (meta.id, meta)).collect();
        Ok(state)
    }

    /// The first sequence number in the logs. `None` without logs, or if the first one is damaged there: then
    /// it holds everything that no segment has. An earlier repair may have left a log with a high number and
    /// old operations.
    fn first_seq(&self, store_id: u64) -> Result<Option<Seq>> {
        let mut first: Option<Seq> = None;
        for id in self.files(FileKind::Wal) {
            match self.log_start(id, store_id)? {
                LogStart::At(seq) => first = Some(first.map_or(seq, |first| first.min(seq))),
                LogStart::Damaged if first.is_none() => return Ok(None),
                LogStart::Damaged | LogStart::Missing => {}
            }
        }
        Ok(first)
    }
}
