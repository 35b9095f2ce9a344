//! A maliciously made directory: the files of a store, changed as a list says, with corrected checksums.

use crate::disk::{Crash, SimFs};
use crate::repair;
use bytes::Bytes;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use sidebloom::Options;
use sidebloom::internal::fuzz::segment_format::{BlockHandle, FOOTER_BYTES, Footer, WRITES};
use sidebloom::internal::fuzz::{Decoder, Encode, Facts};
use sidebloom::internal::{FileId, FileKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// The path of the store.
pub const STORE: &str = "disk/store";
/// Its keys have numbers below this.
pub const KEYS: u64 = 60;
/// Changes of one directory.
const CHANGES: usize = 12;

/// A 64-bit number, mostly small or extreme.
#[derive(Debug, Arbitrary, Clone, Copy)]
pub enum Number {
    Small(u8),
    /// A power of two, with something added.
    Edge(u8, i8),
    Last(u8),
    Any(u64),
}

impl Number {
    pub fn value(self) -> u64 {
        match self {
            Number::Small(n) => u64::from(n),
            Number::Edge(power, more) => (1u64 << (power % 64)).wrapping_add_signed(i64::from(more % 4)),
            Number::Last(back) => u64::MAX - u64::from(back),
            Number::Any(n) => n,
        }
    }
}

/// One change of the directory. Files are numbered in the order of their names.
#[derive(Debug, Arbitrary)]
pub enum Change {
    /// Changes bytes, counted from the end of the file, where footers, last edits and last records are.
    Xor {
        file: u8,
        before_end: u16,
        bytes: [u8; 4],
    },
    /// Sets an integer of 4 or 8 bytes.
    Set {
        file: u8,
        before_end: u16,
        is_wide: bool,
        number: Number,
    },
    /// Appends an edit to the manifest, or makes it the only one.
    Edit {
        fields: Vec<Field>,
        is_only: bool,
    },
    /// Appends a record to a log.
    Record {
        file: u8,
        count: Number,
        first_seq: Number,
        synced: Number,
        payload: Vec<u8>,
    },
    /// Gives a top index separators that share most of their bytes.
    Top {
        file: u8,
        separators: u16,
        key_bytes: u16,
        block_bytes: u16,
    },
    /// Gives a file another number, in its name and inside.
    Renumber {
        file: u8,
        number: Number,
        keeps_old: bool,
    },
    /// Gives a file another name only.
    Rename {
        file: u8,
        number: Number,
        kind: u8,
    },
    Remove {
        file: u8,
    },
    Truncate {
        file: u8,
        bytes: u16,
    },
    /// Appends a hole.
    Lengthen {
        file: u8,
        length: Number,
    },
}

/// A field of an edit.
#[derive(Debug, Arbitrary)]
pub enum Field {
    Removed(Number),
    /// A segment of the store, with one of its numbers changed.
    Added {
        which: u8,
        level: u8,
        changed: Option<(u8, Number)>,
    },
    LogFloor(Number),
    NextId(Number),
    LastSeq(Number),
    LogMark(Number, Number, Number),
    Raw(u8),
}

type Files = Vec<(PathBuf, Vec<u8>)>;

pub fn options(fs: &SimFs) -> Options {
    Options::new()
        .memtable_bytes(4096)
        .segment_bytes(4096)
        .block_bytes(256)
        .block_cache_bytes(1 << 16)
        .filesystem(Arc::new(fs.clone()))
}

pub fn key(n: u64) -> String {
    format!("key {:03}", n * 7 % KEYS)
}

/// The files of a store whose process was killed: segments in two levels, range tombstones, and a log.
static FILES: LazyLock<Files> = LazyLock::new(|| {
    let fs = SimFs::new();
    let db = options(&fs).open(STORE).unwrap();
    for n in 0..90 {
        match n % 5 {
            0 => db.delete(key(n)).unwrap(),
            _ => db.put(key(n), n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).unwrap(),
        }
        match n {
            40 => db.compact().unwrap(),
            60 => db.delete_range("key 010".."key 013").unwrap(),
            70 => db.flush().unwrap(),
            _ => {}
        }
    }
    let left = fs.crash(Crash::Kill, 0);
    left.files().into_iter().filter_map(|path| left.read(&path).map(|bytes| (path, bytes))).collect()
});

/// Builds the directory.
pub fn build(changes: &[Change]) -> SimFs {
    let (mut files, mut holes) = (FILES.clone(), Vec::new());
    for change in changes.iter().take(CHANGES) {
        apply(change, &mut files, &mut holes);
    }
    let fs = SimFs::new();
    sidebloom::fs::create_dir_durably(&fs, Path::new(STORE)).unwrap();
    for (path, mut bytes) in files {
        mend(&path, &mut bytes);
        fs.write(path, bytes);
    }
    holes.into_iter().for_each(|(path, len)| fs.lengthen(path, len));
    fs
}

fn is_kind(path: &Path, kind: FileKind) -> bool {
    path.extension().is_some_and(|found| found == kind.extension())
}

fn apply(change: &Change, files: &mut Files, holes: &mut Vec<(PathBuf, u64)>) {
    let count = files.len().max(1);
    let pick = |file: u8| usize::from(file) % count;
    match *change {
        Change::Xor { file, before_end, bytes } => {
            let Some((_, contents)) = files.get_mut(pick(file)) else { return };
            let at = contents.len().saturating_sub(1 + usize::from(before_end) % contents.len().max(1));
            contents.iter_mut().skip(at).zip(bytes).for_each(|(byte, change)| *byte ^= change);
        }
        Change::Set { file, before_end, is_wide, number } => {
            let Some((_, contents)) = files.get_mut(pick(file)) else { return };
            let at = contents.len().saturating_sub(1 + usize::from(before_end) % contents.len().max(1));
            let width = if is_wide { 8 } else { 4 };
            let bytes = number.value().to_le_bytes().into_iter().take(width);
            contents.iter_mut().skip(at).zip(bytes).for_each(|(byte, new)| *byte = new);
        }
        Change::Edit { ref fields, is_only } => {
            let edit = edit(fields);
            if let Some((_, manifest)) = files.iter_mut().find(|(path, _)| path.ends_with("MANIFEST")) {
                manifest.truncate(if is_only { 44 } else { usize::MAX });
                manifest.put_u32(0);
                manifest.put_u32(edit.len() as u32);
                manifest.put_u64(0);
                manifest.extend(edit);
            }
        }
        Change::Record { file, count, first_seq, synced, ref payload } => {
            let Some((_, log)) = files.get_mut(pick(file)) else { return };
            log.put_u32(0);
            log.put_u32(payload.len() as u32);
            log.put_u32(count.value() as u32);
            log.put_u64(first_seq.value());
            log.put_u64(synced.value());
            log.put_u64(0);
            log.extend(payload);
            log.put_u8(0xff);
        }
        Change::Top { file, separators, key_bytes, block_bytes } => {
            let Some((path, segment)) = files.get_mut(pick(file)) else { return };
            if is_kind(path, FileKind::Segment) {
                _ = forge_top(segment, separators, key_bytes, block_bytes);
            }
        }
        Change::Renumber { file, number, keeps_old } => {
            let Some((path, mut contents)) = files.get(pick(file)).cloned() else { return };
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some((_, kind)) = FileKind::parse(name) else { return };
            let at = match kind {
                FileKind::Wal => 12,
                FileKind::Filter => 16,
                _ => contents.len().saturating_sub(FOOTER_BYTES),
            };
            let bytes = number.value().to_le_bytes();
            contents.iter_mut().skip(at).zip(bytes).for_each(|(byte, new)| *byte = new);
            if kind == FileKind::Segment {
                // It gets the right digest.
                contents.iter_mut().skip(at + 24).take(8).for_each(|byte| *byte = 0);
            }
            let renamed = path.with_file_name(FileId(number.value()).file_name(kind));
            if !keeps_old {
                files.swap_remove(pick(file));
            }
            files.push((renamed, contents));
        }
        Change::Rename { file, number, kind } => {
            const KINDS: [FileKind; 4] =
                [FileKind::Wal, FileKind::Segment, FileKind::Filter, FileKind::Obsolete];
            let Some((path, _)) = files.get_mut(pick(file)) else { return };
            let name = FileId(number.value()).file_name(KINDS[usize::from(kind) % KINDS.len()]);
            *path = path.with_file_name(name);
        }
        Change::Remove { file } => _ = files.swap_remove(pick(file)),
        Change::Truncate { file, bytes } => {
            files[pick(file)].1.truncate(usize::from(bytes));
        }
        Change::Lengthen { file, length } => {
            let Some((path, _)) = files.get(pick(file)) else { return };
            holes.push((path.clone(), length.value() >> 1)); // No file is longer than 2^63.
        }
    }
    if files.is_empty() {
        files.push((Path::new(STORE).join("MANIFEST"), Vec::new()));
    }
}

/// A segment in the manifest of the store.
#[derive(Clone)]
struct Listed {
    /// Its number, digest and two lengths, then the numbers of the facts.
    numbers: [u64; 4 + Facts::NUMBERS],
    smallest: Vec<u8>,
    largest: Bytes,
}

static LISTED: LazyLock<Vec<Listed>> = LazyLock::new(|| {
    let (_, manifest) = FILES.iter().find(|(path, _)| path.ends_with("MANIFEST")).unwrap();
    let (mut listed, mut at) = (Vec::new(), 44);
    while at < manifest.len() {
        let len = Decoder::new(&manifest[at + 4..]).u32().unwrap() as usize;
        let mut d = Decoder::new(&manifest[at + 16..at + 16 + len]);
        loop {
            match d.u8().unwrap() {
                2 => listed.push(listed_in(&mut d).unwrap()),
                0xff => break,
                6 => (0..3).for_each(|_| _ = d.varint()),
                _ => _ = d.varint(),
            }
        }
        at += 16 + len;
    }
    listed
});

fn listed_in(d: &mut Decoder<'_>) -> Option<Listed> {
    let (id, _place, _version, digest) = (d.varint()?, d.u8()?, d.varint()?, d.u64()?);
    let (file_bytes, data_bytes, facts) = (d.varint()?, d.varint()?, Facts::decode(d)?);
    let of_file = [id, digest, file_bytes, data_bytes];
    let mut numbers = [0; 4 + Facts::NUMBERS];
    numbers.iter_mut().zip(of_file.into_iter().chain(facts.numbers())).for_each(|(to, from)| *to = from);
    Some(Listed { numbers, smallest: facts.smallest, largest: facts.largest })
}

fn edit(fields: &[Field]) -> Vec<u8> {
    let mut edit = Vec::new();
    let put = |edit: &mut Vec<u8>, field: u8, numbers: &[Number]| {
        edit.put_u8(field);
        numbers.iter().for_each(|number| edit.put_varint(number.value()));
    };
    for field in fields.iter().take(20) {
        match *field {
            Field::Removed(id) => put(&mut edit, 1, &[id]),
            Field::Added { which, level, changed } => {
                let Listed { mut numbers, smallest, largest } =
                    LISTED[usize::from(which) % LISTED.len()].clone();
                if let Some((at, number)) = changed {
                    numbers[usize::from(at) % numbers.len()] = number.value();
                }
                let [id, digest, file_bytes, data_bytes, facts @ ..] = numbers;
                edit.put_u8(2);
                edit.put_varint(id);
                edit.put_u8(if level < 200 { level % 8 } else { level });
                edit.put_varint(WRITES.into());
                edit.put_u64(digest);
                edit.put_varint(file_bytes);
                edit.put_varint(data_bytes);
                Facts::new(smallest, largest, facts).encode(&mut edit);
            }
            Field::LogFloor(id) => put(&mut edit, 3, &[id]),
            Field::NextId(id) => put(&mut edit, 4, &[id]),
            Field::LastSeq(seq) => put(&mut edit, 5, &[seq]),
            Field::LogMark(log, bytes, seq) => put(&mut edit, 6, &[log, bytes, seq]),
            Field::Raw(byte) => put(&mut edit, byte, &[]),
        }
    }
    edit.put_u8(0xff);
    edit
}

/// Replaces a segment's index and data by a top index with long separators that share most bytes.
fn forge_top(segment: &mut Vec<u8>, separators: u16, key_bytes: u16, block_bytes: u16) -> Option<()> {
    let footer = segment.len().checked_sub(FOOTER_BYTES)?;
    let mut fields = Decoder::new(segment.get(footer..)?);
    let (id, _, at) = (fields.u64()?, fields.u64()?, fields.u64()? as usize);
    let mut old = Decoder::new(segment.get(at..footer)?);
    let identity = old.take(8 + 8 + 1 + 16)?.to_vec();
    let (compression, facts) = (old.bytes()?.to_vec(), Facts::decode(&mut old)?);
    let count = 1 + u32::from(separators % 2048);
    let (shared, block_bytes) = (usize::from(key_bytes % 4096), usize::from(block_bytes % 4096));
    let mut file = vec![0; 16 + count as usize * block_bytes];
    let top_at = file.len() as u64;
    file.put_u64(16);
    file.put_u32(count);
    for n in 0..count {
        file.put_varint(if n == 0 { 0 } else { shared as u64 });
        file.put_varint(if n == 0 { shared as u64 + 4 } else { 4 });
        file.put_varint(block_bytes as u64);
        file.extend(std::iter::repeat_n(b'k', if n == 0 { shared } else { 0 }));
        file.extend(n.to_be_bytes());
    }
    file.extend([0; 5]);
    let properties_at = file.len() as u64;
    file.extend(identity);
    file.put_bytes(&compression);
    let largest = [vec![b'k'; shared], (count - 1).to_be_bytes().to_vec()].concat();
    Facts { smallest: Vec::new(), largest: largest.into(), ..facts }.encode(&mut file);
    file.extend([0; 5]);
    let top = BlockHandle { offset: top_at, len: (properties_at - top_at) as u32 };
    let properties = BlockHandle { offset: properties_at, len: (file.len() as u64 - properties_at) as u32 };
    file.extend(
        Footer { id: FileId(id), version: WRITES, number: 0, top, properties, digest: 0 }.encode().ok()?,
    );
    *segment = file;
    Some(())
}

/// Corrects the checksums of a file.
fn mend(path: &Path, bytes: &mut Vec<u8>) {
    if path.ends_with("MANIFEST") {
        _ = repair::manifest(bytes);
    } else if is_kind(path, FileKind::Wal) {
        _ = repair::wal(bytes);
    } else if is_kind(path, FileKind::Segment) || is_kind(path, FileKind::Obsolete) {
        let at = bytes.len().saturating_sub(FOOTER_BYTES) + 24;
        let digest = bytes.get(at..).and_then(|rest| Decoder::new(rest).u64());
        _ = repair::segment(bytes, digest.filter(|digest| *digest > 0));
    } else if is_kind(path, FileKind::Filter) && bytes.len() > 4096 + 8 {
        let compact = [&bytes[..96], &bytes[4096..bytes.len() - 8]].concat();
        if let Some(mended) = repair::sidecar(&compact) {
            *bytes = mended;
        }
    }
}
