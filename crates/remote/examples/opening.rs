//! What opening a published store and looking up keys costs. The bucket is a local directory; bytes are what
//! this process asked of the operating system (`rchar` in /proc/self/io).
//!
//!     cargo run --release -p sidebloom-remote --example opening -- [ROWS] [VALUE BYTES] [DIRECTORY]

use sidebloom::{Db, Options};
use sidebloom_remote::{Publisher, ReaderOptions, Remote, TakeOver};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rows: u64 = args.first().map_or(Ok(1_000_000), |text| text.parse())?;
    let value_bytes: usize = args.get(1).map_or(Ok(100), |text| text.parse())?;
    let dir = args.get(2).map_or_else(|| PathBuf::from("target/opening"), PathBuf::from);
    _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(dir.join("bucket"))?;
    let dir = dir.canonicalize()?;

    let db = Db::open(dir.join("store"))?;
    db.ingest((0..rows).map(|i| Ok((key(i), value(i, value_bytes)))))?;
    let url = format!("file://{}/bucket", dir.display());
    let started = Instant::now();
    let published = Publisher::new(&db, Remote::open(&url)?, TakeOver::No)?.publish()?;
    println!("published {} files, {} bytes, in {:.1?}", published.files, published.bytes, started.elapsed());
    drop(db);

    let (started, before) = (Instant::now(), bytes_read()?);
    // Keep no blocks in memory, so that each lookup of a present key is a request.
    let options = ReaderOptions::new().store(Options::new().block_cache_bytes(0));
    let reader = options.open(Remote::open(&url)?, dir.join("cache"))?;
    reader.db().warm()?;
    let (took, read) = (started.elapsed(), bytes_read()? - before);
    let local = size_of(&dir.join("cache"))?;
    println!(
        "opened in {took:.1?}: {local} bytes fetched and kept, {:.2} % of the published bytes; {read} bytes read in total",
        100.0 * local as f64 / published.bytes as f64
    );

    let lookups = 1_000_000.min(rows);
    let (started, before) = (Instant::now(), reader.db().stats());
    for i in 0..lookups {
        assert!(!reader.db().contains_key(format!("{}x", key(i * (rows / lookups))))?);
    }
    let false_positives = reader.db().stats().filter_false_positives - before.filter_false_positives;
    println!(
        "{lookups} missing keys: {} requests, {false_positives} false positives, {:.0} ns each",
        reader.data_gets(),
        started.elapsed().as_nanos() as f64 / lookups as f64
    );
    let (hits, gets) = (1000.min(rows), reader.data_gets());
    for i in 0..hits {
        let i = i * (rows / hits);
        assert_eq!(reader.db().get(key(i))?.as_deref(), Some(&*value(i, value_bytes)));
    }
    println!("{hits} present keys: {} requests", reader.data_gets() - gets);
    drop(reader);
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

fn key(i: u64) -> String {
    format!("key{i:021}")
}

/// Half of it is compressible.
fn value(i: u64, bytes: usize) -> Vec<u8> {
    let mut state = i;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..bytes).map(|at| if at % 16 < 8 { random() } else { b'v' }).collect()
}

fn bytes_read() -> Result<u64, Box<dyn Error>> {
    let io = std::fs::read_to_string("/proc/self/io")?;
    Ok(io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap_or("0").parse()?)
}

fn size_of(dir: &Path) -> Result<u64, Box<dyn Error>> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}
