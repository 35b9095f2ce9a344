//! Open files of a simulated disk.

use super::disk::File;
use super::faults::{Errno, OpKind};
use super::sim_fs::SimFs;
use sidebloom::IoOp;
use sidebloom::fs::{AppendFile, ReadFile};
use sidebloom::{Error, Result};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open file. Follows the file, not its name.
#[derive(Debug)]
pub struct Handle {
    pub fs: SimFs,
    pub path: PathBuf,
    pub file: Arc<File>,
}

impl AppendFile for Handle {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let (mut disk, fault) = self.fs.begin_or_fault(OpKind::Append, &self.path);
        let room = disk.space.map_or(bytes.len(), |space| bytes.len().min(space as usize));
        let (written, errno) = match fault {
            Some(fault) if fault.short => (room / 2, Some(fault.errno)),
            Some(fault) => (0, Some(fault.errno)),
            None if room < bytes.len() => (room, Some(Errno::NoSpace)),
            None => (room, None),
        };
        disk.space = disk.space.map(|space| space - written as u64);
        let mut contents = self.file.contents();
        if written > 0 {
            contents.append(&bytes[..written]);
        }
        disk.note_write(&mut contents, &self.path, errno.is_some());
        errno.map_or(Ok(()), |errno| Err(Error::io(IoOp::Write, &self.path, errno.error())))
    }

    fn sync(&mut self) -> Result<()> {
        let (mut disk, fault) = self.fs.begin_or_fault(OpKind::Sync, &self.path);
        let mut contents = self.file.contents();
        disk.note_write(&mut contents, &self.path, fault.is_some());
        if let Some(fault) = fault {
            contents.sync_failed = true;
            return Err(Error::io(IoOp::Sync, &self.path, fault.errno.error()));
        }
        contents.sync();
        Ok(())
    }
}

impl ReadFile for Handle {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let (disk, fault) = self.fs.begin_or_fault(OpKind::Read, &self.path);
        let end = offset.saturating_add(buf.len() as u64);
        let is_bad =
            |(path, bad): &(PathBuf, Range<u64>)| *path == self.path && offset < bad.end && bad.start < end;
        let bad = disk.unreadable.iter().any(is_bad).then_some(Errno::Io);
        let ends_early = fault.is_some_and(|fault| fault.short);
        if let Some(errno) = fault.filter(|fault| !fault.short).map(|fault| fault.errno).or(bad) {
            return Err(Error::io(OpKind::Read.op(), &self.path, errno.error()));
        }
        drop(disk);
        let part = if ends_early { buf.len() / 2 } else { buf.len() };
        if self.file.contents().copy_to(&mut buf[..part], offset) == buf.len() {
            return Ok(());
        }
        let what = format!("the file ends before the {} bytes that should stand here", buf.len());
        Err(Error::corruption(&self.path, offset, what))
    }

    fn will_need(&self, _offset: u64, _bytes: u64) {
        let ending = self.path.extension().unwrap_or_default().to_owned();
        *self.fs.0.advised.lock().unwrap().entry(ending).or_default() += 1;
    }

    fn len(&self) -> Result<u64> {
        Ok(self.file.contents().len())
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
