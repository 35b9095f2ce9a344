//! What a copy of a store has of the logs: one log with all of their batches that segments do not have.
//!
//! The logs are opened at one moment and read up to their lengths of that moment. So it does not matter that
//! the writer goes on, and removes logs that it has flushed. Their batches are written anew, so the copy has
//! neither torn records nor leftovers of earlier writers, whatever the logs look like.

use crate::engine::open::replay::replay_logs;
use crate::error::Result;
use crate::fs::ReadFile;
use crate::id::{FileId, FileKind};
use crate::key::Seq;
use crate::manifest::{LogMark, ManifestState};
use crate::wal::LogEncoder;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

/// Batches are handed over in pieces of at least this size, in bytes.
const PIECE_BYTES: usize = 1 << 20;

/// The logs of a store as of one moment.
pub(crate) struct OpenLogs {
    /// The store's directory, for messages.
    pub dir: PathBuf,
    /// The state whose segments the logs continue.
    pub state: ManifestState,
    /// Each log, and how many of its bytes there were.
    pub files: BTreeMap<FileId, (Arc<dyn ReadFile>, u64)>,
}

/// The log of a copy.
pub(crate) struct CopiedLog {
    logs: OpenLogs,
    id: FileId,
    /// Its length in bytes.
    pub bytes: u64,
    /// The operations in it.
    pub operations: u64,
    next_seq: Seq,
}

/// What one pass over the logs has found.
#[derive(Default)]
struct Pass {
    operations: u64,
    next_seq: Seq,
    /// Whether batches were left out, because some before them are missing.
    left_out: bool,
}

impl OpenLogs {
    /// Replays the logs and encodes log `id` of the copy. Passes its bytes to `each`.
    fn encode(&self, id: FileId, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<Pass> {
        let OpenLogs { dir, state, files } = self;
        let mut buffer = Vec::new();
        let mut log = LogEncoder::new(&mut buffer, id, state.header.store_id, state.last_seq + 1)?;
        let open = |id: FileId| {
            let missing = || {
                let path = dir.join(id.file_name(FileKind::Wal));
                crate::Error::io(crate::IoOp::Open, path, ErrorKind::NotFound.into())
            };
            files.get(&id).map(|(file, len)| (Arc::clone(file), *len)).ok_or_else(missing)
        };
        let mut operations = 0;
        let ids = files.keys().copied().collect();
        let outcome = replay_logs(dir, state, ids, &open, &mut |_, seq, payload, count| {
            log.push(&mut buffer, seq, count, &payload)?;
            operations += u64::from(count);
            if buffer.len() >= PIECE_BYTES {
                each(&buffer)?;
                buffer.clear();
            }
            Ok(())
        })?;
        each(&buffer)?;
        Ok(Pass { operations, next_seq: log.next_seq(), left_out: outcome.left_out })
    }
}

impl CopiedLog {
    /// The log of a copy with this number. `None` if segments have everything. Also returns whether batches
    /// were left out: a log begins with a gap while rows are being ingested, and after some power cuts.
    ///
    /// # Errors
    /// Those of a replay.
    pub fn new(logs: OpenLogs, id: FileId) -> Result<(Option<Self>, bool)> {
        let mut bytes = 0;
        let pass = logs.encode(id, &mut |piece| {
            bytes += piece.len() as u64;
            Ok(())
        })?;
        let Pass { operations, next_seq, left_out } = pass;
        let log = (operations > 0).then_some(CopiedLog { logs, id, bytes, operations, next_seq });
        Ok((log, left_out))
    }

    /// The name of its file.
    pub fn name(&self) -> String {
        self.id.file_name(FileKind::Wal)
    }

    /// Its number.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// What the copy's manifest says about it: if a part is missing, that is damage.
    pub fn mark(&self) -> LogMark {
        LogMark { log: self.id, bytes: self.bytes, next_seq: self.next_seq }
    }

    /// Passes its bytes to `each`, the same every time.
    ///
    /// # Errors
    /// Those of a replay and of `each`.
    pub fn read(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.logs.encode(self.id, each).map(drop)
    }
}
