//! The files of a release in `fixtures/releases`: stores with all features of their formats, a guard, and
//! filters on their own. What a release publishes is made in `crates/remote/tests/remote/releases.rs`.

use super::{filters, keyspaces};
use crate::archive::pack;
use crate::support::{Contents, Rng, contents, copy_store, fast_dir, files_with, tiny};
use sidebloom::guard::{Changes, GuardOptions};
use sidebloom::{Compression, Db, KeyHash, Options, PrefixExtractor};
use std::fmt::Write;
use std::path::Path;

/// Each store's name, key hash, and the codecs of its deepest level and of the levels above.
pub const STORES: &[(&str, KeyHash, [Compression; 2])] = &[
    ("siphash", KeyHash::SipHash13, [Compression::None, Compression::Lz4]),
    ("xxh3", KeyHash::Xxh3, [Compression::Lz4, Compression::None]),
    #[cfg(feature = "zstd")]
    ("zstd", KeyHash::SipHash13, [Compression::Zstd, Compression::Lz4]),
];
/// Rows of the guard: key number n has n modulo 3, plus 1.
pub const GUARDED: u64 = 300;
pub const NOTE: &str = "position 7";
/// A key that the guard knows to be absent, whatever its filters say.
pub const KNOWN_ABSENT: &str = "known to be absent";

pub fn options() -> Options {
    tiny().prefixes(PrefixExtractor::row_and_column(b'/'))
}

pub fn guarded(i: u64) -> String {
    format!("guarded{i:04}")
}

/// One line for each row.
pub fn listing(rows: &Contents) -> String {
    rows.iter().fold(String::new(), |mut text, (key, value)| {
        writeln!(text, "{}\t{}", key.escape_ascii(), value.escape_ascii()).unwrap();
        text
    })
}

/// Makes all archives of a release in `target`.
pub fn make(target: &Path) {
    std::fs::create_dir_all(target).unwrap();
    for (name, hash, codecs) in STORES {
        let dir = fast_dir();
        let rows = make_store(&dir.path().join("original"), &dir.path().join("kept/store"), *hash, *codecs);
        std::fs::write(dir.path().join("kept/rows.tsv"), listing(&rows)).unwrap();
        pack(&dir.path().join("kept"), &target.join(format!("{name}.tar.gz")));
    }
    type Make = fn(&Path);
    let others: [(&str, Make); 3] = [
        ("guard", |dir| make_guard(&dir.join("guard"))),
        (keyspaces::NAME, keyspaces::make),
        (filters::NAME, filters::make),
    ];
    for (name, make) in others {
        let dir = fast_dir();
        make(dir.path());
        pack(dir.path(), &target.join(format!("{name}.tar.gz")));
    }
}

/// A store in `kept` as a crash leaves it, with rows in a log. Returns its contents.
fn make_store(original: &Path, kept: &Path, hash: KeyHash, codecs: [Compression; 2]) -> Contents {
    let mut rng = Rng::new(7);
    let [deepest, above] = codecs.map(|codec| options().key_hash(hash).compression(codec));
    let db = deepest.open(original).unwrap();
    write(&db, &mut rng, 1200);
    db.compact().unwrap();
    drop(db);
    let db = above.open(original).unwrap();
    while !has_levels_and_ranges(&db) {
        write(&db, &mut rng, 5);
        db.delete_range("artist07/".."artist07/album2").unwrap();
        db.flush().unwrap();
        db.wait_for_compaction().unwrap();
    }
    drop(db);
    let db = options().memtable_bytes(1 << 20).open(original).unwrap();
    db.wait_for_compaction().unwrap();
    write(&db, &mut rng, 30);
    db.delete_range("artist11/album1".."artist12/").unwrap();
    db.sync().unwrap();
    copy_store(original, kept);
    assert_has_everything(&db, kept);
    contents(&db)
}

fn write(db: &Db, rng: &mut Rng, operations: u64) {
    for _ in 0..operations {
        let (artist, album, song) = (rng.below(20), rng.below(4), rng.below(8));
        let key = format!("artist{artist:02}/album{album}/song{song}");
        if rng.percent(15) {
            db.delete(key).unwrap();
        } else {
            db.put(key, format!("{:x}, the same again and again", rng.below(1 << 30)).repeat(2)).unwrap();
        }
    }
}

fn has_levels_and_ranges(db: &Db) -> bool {
    let levels = db.stats().levels;
    levels.iter().filter(|level| level.segments > 0).count() >= 2
        && levels.iter().any(|level| level.range_tombstones > 0)
}

#[track_caller]
fn assert_has_everything(db: &Db, kept: &Path) {
    assert!(has_levels_and_ranges(db), "{:?}", db.stats().levels);
    let (segments, filters) = (files_with(kept, ".segment"), files_with(kept, ".filter"));
    assert!(segments.len() > 5 && segments.len() == filters.len(), "{segments:?} {filters:?}");
    let logged: u64 = files_with(kept, ".wal").iter().map(|path| path.metadata().unwrap().len()).sum();
    assert!(logged > 1000, "{logged} bytes of logs");
}

fn make_guard(path: &Path) {
    let keys = (0..GUARDED).flat_map(|i| (0..=i % 3).map(move |_| guarded(i)));
    let guard = GuardOptions::new().known_absent(10).build(path, keys.skip(1)).unwrap();
    let mut changes = Changes::new();
    changes.insert(guarded(0)).note(NOTE);
    guard.write(&changes).unwrap();
    assert!(guard.confirm_absent(KNOWN_ABSENT).unwrap());
}
