//! The format is frozen: `fixtures/golden/segment.bin`, with the meaning of each byte in `segment.hex`. Only
//! `UPDATE_GOLDEN=1` rewrites them, which means a new format version.

use super::*;
use crate::codec::{Decoder, uint_at};
use crate::direction::Direction;
use format::{BlockHandle, FOOTER_BYTES};
use std::fmt::Write;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden").join(name)
}

/// Blocks, one with fixed-length keys and values; a tombstone, the empty key, a value larger than a block, a
/// put that expires.
fn model() -> Model {
    let mut model: Model =
        (0..20u8).map(|i| (format!("song:{i:02}").into_bytes(), put(300 + u64::from(i), "la"))).collect();
    model.insert(Vec::new(), put(7, "the empty key"));
    model.insert(b"artist:abba".to_vec(), tombstone(1_000_000));
    model.insert(b"title:waterloo".to_vec(), put(8, "1974 ".repeat(50)));
    model.insert(b"token".to_vec(), put_until(9, 1_800_000_000_000, "of a session"));
    model
}

/// Two ranges, one of them in two parts, and one without an end.
fn deleted() -> RangeTombstones {
    ranges(&[("artist:b", "artist:f", 900), ("artist:d", "artist:g", 1200), ("u", "", 5)])
}

fn must_equal_golden(name: &str, bytes: &[u8]) {
    let path = golden(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, bytes).unwrap();
    }
    let expected = std::fs::read(&path).unwrap();
    assert!(expected == bytes, "{} differs: the format has changed", path.display());
}

/// Values for symbols.
fn texts() -> Model {
    let text = |i: u64| format!("{{\"title\":\"song {i}\",\"year\":{},\"artist\":\"ABBA\"}}", 1950 + i % 70);
    (0..80u64).map(|i| (format!("song:{i:02}").into_bytes(), put(300 + i, text(i * i)))).collect()
}

/// Values for runs: noise and zeros.
fn binaries() -> Model {
    let mut seed = 1u64;
    let mut noise = |len: u64| -> Vec<u8> {
        let next = |_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 56) as u8
        };
        (0..len).map(next).collect()
    };
    let mut value = |i: u64| [noise(5 * (i % 9)), vec![0; 30], noise(2), vec![0; 8 * i as usize]].concat();
    (0..40u64).map(|i| (format!("song:{i:02}").into_bytes(), put(300 + i, value(i)))).collect()
}

fn must_hold(name: &str, model: Model) {
    let segment = open(&golden(name), 0).unwrap();
    let expected: Vec<_> = model.into_iter().collect();
    assert_eq!(collect(&segment, Direction::Forward, Bound::Unbounded, Access::Scan).unwrap(), expected);
    assert_eq!(segment.read_ranges().unwrap(), deleted());
    segment.verify(&mut |_, _, _| Ok(())).unwrap();
}

#[test]
fn written_bytes_are_frozen() {
    let Fixture { path, segment, .. } = &fixture_with(
        &model(),
        deleted(),
        WriterOptions { block_bytes: 256, compression: Compression::None },
    );
    must_equal_golden("segment.bin", &std::fs::read(path).unwrap());
    must_equal_golden("segment.hex", annotate(segment, &std::fs::read(path).unwrap()).as_bytes());
    must_hold("segment.bin", model());
}

/// Only read: a newer compressor may produce other bytes.
#[test]
fn compressed_golden_files_are_still_read() {
    for (name, model, compression) in [
        ("segment.lz4.bin", model(), Compression::Lz4),
        ("segment.fsst.bin", texts(), Compression::Fsst),
        ("segment.runs.bin", binaries(), Compression::Fsst),
    ] {
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            let options = WriterOptions { block_bytes: 256, compression };
            let Fixture { path, .. } = &fixture_with(&model, deleted(), options);
            std::fs::copy(path, golden(name)).unwrap();
        }
        let segment = open(&golden(name), 0).unwrap();
        let symbols = segment.tail.symbols.as_ref().map(|symbols| symbols.encoded()[0]);
        assert_eq!(symbols.is_some(), compression == Compression::Fsst);
        assert_eq!(symbols == Some(0), name == "segment.runs.bin");
        must_hold(name, model);
    }
}

struct Dump<'a> {
    fields: Decoder<'a>,
    text: String,
}

impl<'a> Dump<'a> {
    fn take(&mut self, len: usize, what: &str) -> &'a [u8] {
        let (at, bytes) = (self.fields.position(), self.fields.take(len).unwrap());
        let lines = bytes.chunks(16).enumerate();
        lines.for_each(|(i, line)| {
            let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            let what = if i == 0 { what } else { "" };
            writeln!(self.text, "{:05x}  {:<47}  {what}", at + 16 * i, hex.join(" ")).unwrap();
        });
        bytes
    }

    fn u32(&mut self, what: &str) -> u32 {
        let value = self.fields.clone().u32().unwrap();
        self.take(4, &format!("{what} {value}"));
        value
    }

    fn u64(&mut self, what: &str) {
        let value = self.fields.clone().u64().unwrap();
        self.take(8, &format!("{what} {value}"));
    }

    /// Dumps several varints as one field, one per name.
    fn varints<const N: usize>(&mut self, names: [&str; N]) -> [usize; N] {
        let mut ahead = self.fields;
        let values = names.map(|_| ahead.length().unwrap());
        let what: Vec<String> =
            names.iter().zip(values).map(|(name, value)| format!("{name} {value}")).collect();
        self.take(ahead.position() - self.fields.position(), &what.join(", "));
        values
    }

    fn bytes(&mut self, what: &str) {
        let [len] = self.varints(["length"]);
        let bytes = self.fields.clone().take(len).unwrap().escape_ascii();
        self.take(len, &format!("{what} \"{bytes}\""));
    }

    fn block(&mut self, title: &str, payload: impl FnOnce(&mut Self)) {
        writeln!(self.text, "\n{title}").unwrap();
        payload(self);
        self.take(1, "type: as it is");
        self.take(4, "crc of payload, type, segment id and offset");
    }

    fn uint(&mut self, what: &str, width: u8) -> usize {
        let value = uint_at(self.fields.clone().take(width.into()).unwrap(), 0, width.into());
        self.take(width.into(), &format!("{what} {value}"));
        value as usize
    }

    /// The ends of some parts, or their common length. Returns their lengths.
    fn ends(&mut self, what: &str, count: u32, len: u32, width: u8) -> Vec<usize> {
        let ends: Vec<usize> =
            (0..count as usize)
                .map(|at| {
                    if width == 0 {
                        (at + 1) * len as usize
                    } else {
                        self.uint(&format!("{what} end"), width)
                    }
                })
                .collect();
        std::iter::once(0).chain(ends.iter().copied()).zip(&ends).map(|(start, end)| end - start).collect()
    }

    fn data(&mut self) {
        let header =
            block_layout::BlockHeader::decode(self.fields.clone().take(block_layout::HEADER_BYTES).unwrap())
                .unwrap();
        let count = header.count;
        ["count", "prefix", "keys", "values"].iter().for_each(|name| _ = self.u32(name));
        ["key width", "value width", "seq width", "tombstones + 2 * expiry width:"]
            .iter()
            .for_each(|name| _ = self.uint(name, 1));
        self.u64("smallest seq");
        self.take(count as usize, "fingerprints");
        self.text_of(header.prefix as usize, "prefix");
        let suffixes = self.ends("key", count, header.keys, header.key_width);
        let values = self.ends("value", count, header.values, header.value_width);
        (0..count).filter(|_| header.seq_width > 0).for_each(|_| _ = self.uint("seq +", header.seq_width));
        if header.has_tombstones() {
            self.take(count.div_ceil(8) as usize, "tombstone bits");
        }
        if header.expiry_width() > 0 {
            self.u64("first expiry");
            (0..count).for_each(|_| _ = self.uint("expiry: 0, or 1 +", header.expiry_width()));
        }
        suffixes.into_iter().for_each(|len| self.text_of(len, "suffix"));
        values.into_iter().for_each(|len| _ = self.take(len, "value"));
    }

    fn text_of(&mut self, len: usize, what: &str) {
        let bytes = self.fields.clone().take(len).unwrap().escape_ascii();
        self.take(len, &format!("{what} \"{bytes}\""));
    }

    fn index(&mut self) {
        self.u64("base");
        for _ in 0..self.u32("count") {
            let [_, rest, _] = self.varints(["shared", "rest", "length"]);
            let separator = self.fields.clone().take(rest).unwrap().escape_ascii();
            self.take(rest, &format!("     \"{separator}\""));
        }
    }

    fn ranges(&mut self) {
        self.u64("mark");
        let [count] = self.varints(["count"]);
        for _ in 0..count {
            self.bytes("from");
            self.varints(["seq"]);
        }
    }

    fn properties(&mut self) {
        ["mark", "store id"].iter().for_each(|name| self.u64(name));
        self.take(1, "hash code: siphash-1-3");
        self.take(16, "hash key");
        ["compression", "smallest key"].iter().for_each(|name| self.bytes(name));
        self.varints(["largest key: 1 + length, or 0 for the last key of all:"]);
        self.varints(["count"]);
        self.varints(["entries", "tombstones", "longest streak", "ranges"]);
        self.varints(["smallest seq", "largest seq", "raw bytes"]);
        self.varints(["expiring", "first expiry", "quarter", "half", "three quarters", "last expiry"]);
        self.varints(["bucket end"]);
    }

    fn footer(&mut self) {
        writeln!(self.text, "\nfooter").unwrap();
        self.u64("segment id");
        self.u64("number of all rows, or 0");
        self.u64("properties at");
        self.take(8, "digest");
        self.u32("top index length");
        self.u32("properties length");
        self.u32("version");
        self.take(8, "magic");
        self.take(4, "crc of the footer");
    }
}

fn annotate(segment: &Segment, file: &[u8]) -> String {
    let text = "A segment, byte by byte (src/segment/format.rs says what the fields mean)\n".to_string();
    let mut dump = Dump { fields: Decoder::new(file), text };
    let partitions: Vec<_> = (0..segment.top.len()).map(|at| segment.partition(at, true).unwrap()).collect();
    let data: Vec<BlockHandle> =
        partitions.iter().flat_map(|p| (0..p.len()).map(|at| p.handle(at))).collect();
    for handle in data {
        assert_eq!(handle.offset, dump.fields.position() as u64);
        dump.block("data block", Dump::data);
    }
    partitions.iter().for_each(|_| dump.block("index partition", Dump::index));
    dump.block("range tombstones", Dump::ranges);
    dump.block("top index", Dump::index);
    dump.block("properties", Dump::properties);
    assert_eq!(dump.fields.remaining(), FOOTER_BYTES);
    dump.footer();
    dump.text
}
