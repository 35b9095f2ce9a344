//! Repair of logs.

use super::Repair;
use crate::db::recover::TEMPORARY;
use crate::error::{Error, Result};
use crate::id::{FileId, FileKind};
use crate::key::Seq;
use crate::manifest::State;
use crate::wal;
use bytes::Bytes;
use std::path::Path;

impl Repair<'_> {
    /// Makes the logs replayable up to the first damage.
    pub(super) fn mend_logs(&mut self, state: &State) -> Result<()> {
        let mut next_seq = state.last_seq + 1;
        let mut damaged = false;
        for id in self.files(FileKind::Wal).into_iter().filter(|id| *id >= state.log_floor) {
            let (name, path) = (id.file_name(FileKind::Wal), self.path.join(id.file_name(FileKind::Wal)));
            if damaged {
                self.set_aside(
                    &name,
                    Error::corruption(&path, 0, "the log before it is damaged: it would leave a gap"),
                )?;
                continue;
            }
            match wal::replay(&*self.fs, &path, id, state.header.store_id, next_seq, &mut |_, _, _| Ok(())) {
                Ok(replay) => next_seq = replay.next_seq,
                Err(error @ Error::Corruption { .. }) => {
                    damaged = true;
                    let sound = self.path.join(format!("{name}{TEMPORARY}"));
                    self.copy_sound_part(&path, &sound, id, state.header.store_id, next_seq)?;
                    self.replace(&name, &sound, error)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes the batches before the damage as a log of the same number.
    fn copy_sound_part(
        &self,
        from: &Path,
        to: &Path,
        id: FileId,
        store_id: u64,
        next_seq: Seq,
    ) -> Result<()> {
        if self.fs.file_len(to)?.is_some() {
            self.fs.remove(to)?;
        }
        let mut writer = wal::Writer::create(&*self.fs, to, id, store_id, next_seq)?;
        let mut copy = |first_seq, payload: Bytes, count| {
            writer.append_group(&[wal::Record { first_seq, count, payload: &payload }])
        };
        match wal::replay(&*self.fs, from, id, store_id, next_seq, &mut copy) {
            Ok(_) | Err(Error::Corruption { .. }) => writer.sync(),
            Err(error) => Err(error),
        }
    }
}
