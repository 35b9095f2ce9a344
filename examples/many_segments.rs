//! What a store with as many segments as a large one costs, measured with small segments: opening, memory,
//! maps, descriptors, publishing a change of the set of segments, a compaction step, and rebuilding all
//! filters. `docs/durability.md` compares the output with what is computed for 1 and 10 TB.
//!
//! ```text
//! cargo run --release --features bench-support --example many_segments -- 16000 DIR
//! ```
//!
//! With the feature, prints how long background threads held the lock that they share with writers.
//! Interrupts count towards the thread they hit, so it also prints the longest of short idle loops at the
//! same time. Fails if the store takes more descriptors or maps than its options allow. DIR must not exist.
//! Put it in memory (`/dev/shm`), so that only the process's own cost counts.

use sidebloom::{Db, FilterPolicy, Options, Result};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// The smallest allowed.
const SEGMENT_BYTES: u64 = 4096;
const VALUE_BYTES: usize = 100;
/// Rows of a segment. Keys compress a little.
const ROWS_EACH: u64 = SEGMENT_BYTES / (24 + VALUE_BYTES as u64) + 5;
/// How often a change is published, for the median.
const PUBLICATIONS: u32 = 21;
/// The defaults of `max_open_files` and `max_mapped_filters`.
const OPEN_FILES_MAX: usize = 512;
const MAPPED_FILTERS_MAX: usize = 32_768;
/// Descriptors not of segments: log, manifest, lock, and files being written.
const OTHER_DESCRIPTORS: usize = 8;
/// How long to wait for the background to verify the filters.
const WAIT_MAX: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [segments, dir] => match segments.parse() {
            Ok(segments) => build(segments, Path::new(dir)).and_then(|()| measure_apart(dir)),
            Err(_) => return usage(),
        },
        ["measure", "", dir] => measure(Path::new(dir)),
        _ => return usage(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("many_segments: {why}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: many_segments SEGMENTS DIR");
    ExitCode::from(2)
}

fn options() -> Options {
    Options::new()
        .segment_bytes(SEGMENT_BYTES)
        .max_open_files(OPEN_FILES_MAX)
        .max_mapped_filters(MAPPED_FILTERS_MAX)
}

fn key(row: u64) -> String {
    format!("key-{row:020}") // 24 bytes
}

/// Noise, which does not compress.
fn value(row: u64) -> Vec<u8> {
    let words = (0..).map(|i: u64| {
        let mixed = (row * 16 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    });
    words.flat_map(u64::to_le_bytes).take(VALUE_BYTES).collect()
}

/// Loads rows until the store has this many segments.
fn build(segments: u64, dir: &Path) -> Result<()> {
    let began = Instant::now();
    let db = options().create_if_missing(true).open(dir)?;
    db.ingest((0..segments * ROWS_EACH).map(|row| Ok((key(row), value(row)))))?;
    println!("built in {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// Measures in its own process, whose memory the building has not touched.
fn measure_apart(dir: &str) -> Result<()> {
    let program = std::env::current_exe().unwrap_or_default();
    match Command::new(program).args(["measure", "", dir]).status() {
        Ok(status) if status.success() => Ok(()),
        outcome => Err(sidebloom::Error::Internal(format!("the measuring process: {outcome:?}"))),
    }
}

fn measure(dir: &Path) -> Result<()> {
    let before = Process::now();
    let began = Instant::now();
    let db = options().open(dir)?;
    let opened = began.elapsed();
    let at_open = Process::now();
    let segments: usize = db.stats().levels.iter().map(|level| level.segments).sum();
    println!("{segments} segments, manifest {} bytes", bytes_of(&dir.join("MANIFEST")));
    println!("open: {:.3} s, {} more", opened.as_secs_f64(), at_open.since(&before));

    let (mut now, every) = (Duration::ZERO, Duration::from_millis(100));
    watch_lock(&db, || {
        while db.stats().levels.iter().any(|level| level.filters < level.segments) && now < WAIT_MAX {
            std::thread::sleep(every);
            now = began.elapsed();
        }
    });
    let stats = db.stats();
    let verified: usize = stats.levels.iter().map(|level| level.filters).sum();
    let filter_bytes: u64 = stats.levels.iter().map(|level| level.filter_bytes).sum();
    println!("{verified} filters verified after {:.2} s, {} bytes of them", now.as_secs_f64(), filter_bytes);
    println!("then: {} more", Process::now().since(&before));
    println!("segments open {}, filters mapped {}", stats.segments_open, stats.filters_mapped);

    let began = Instant::now();
    let asked = 100_000u64;
    for n in 0..asked {
        let row = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (segments as u64 * 30);
        if db.get(key(row) + "?")?.is_some() {
            return Err(sidebloom::Error::Internal("a key that was never written".into()));
        }
    }
    println!("missing key: {:.2} µs", began.elapsed().as_secs_f64() * 1e6 / asked as f64);
    within(
        "descriptors",
        Process::now().descriptors - before.descriptors,
        OPEN_FILES_MAX + OTHER_DESCRIPTORS,
    )?;
    within("maps of filters", db.stats().filters_mapped as usize, MAPPED_FILTERS_MAX)?;

    let here = publish(&db)?;
    println!("flush of one row: {here}");
    steps(&db, segments as u64)?;
    rebuild(&db)?;
    let began = Instant::now();
    drop(db);
    println!("close: {:.3} s", began.elapsed().as_secs_f64());
    let small = dir.join("../many_segments_small");
    let there = publish(&options().open(&small)?)?;
    std::fs::remove_dir_all(&small).ok();
    println!("flush of one row in an empty store: {there}");
    Ok(())
}

fn within(what: &str, found: usize, limit: usize) -> Result<()> {
    if found <= limit {
        Ok(())
    } else {
        Err(sidebloom::Error::Internal(format!("{found} {what}, more than {limit}")))
    }
}

/// Compacts rows that overlap every fifth segment's worth of all others, and prints what one step takes. A
/// step merges one segment with those that it overlaps: about five others.
fn steps(db: &Db, segments: u64) -> Result<()> {
    let upper = |db: &Db| {
        let levels = db.stats().levels;
        let above = levels.len().saturating_sub(1);
        levels.iter().take(above).map(|level| level.segments).sum::<usize>()
    };
    db.wait_for_compaction()?;
    db.ingest((0..segments * ROWS_EACH).step_by(5).map(|row| Ok((key(row) + "x", value(row)))))?;
    let (before, cpu) = (upper(db), Process::now().cpu_ticks);
    let began = Instant::now();
    watch_lock(db, || db.wait_for_compaction())?;
    let done = before.saturating_sub(upper(db)).max(1);
    let cpu = (Process::now().cpu_ticks - cpu) as f64 * TICK_MS / done as f64;
    let each = began.elapsed().as_secs_f64() * 1e3 / done as f64;
    println!("compaction: {done} steps of {each:.2} ms ({cpu:.2} ms of the CPU)");
    Ok(())
}

/// Gives all segments wider filters.
fn rebuild(db: &Db) -> Result<()> {
    let began = Instant::now();
    let report = watch_lock(db, || db.rebuild_filters(FilterPolicy::bits_per_key(14.0)))?;
    let each = began.elapsed().as_secs_f64() * 1e6 / report.segments.max(1) as f64;
    println!("rebuild_filters: {} filters, {each:.0} µs each", report.segments);
    Ok(())
}

#[cfg(not(feature = "bench-support"))]
fn watch_lock<T>(_: &Db, work: impl FnOnce() -> T) -> T {
    work()
}

/// Prints how long a thread worked under the lock at most during this work.
#[cfg(feature = "bench-support")]
fn watch_lock<T>(db: &Db, work: impl FnOnce() -> T) -> T {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    let is_over = AtomicBool::new(false);
    db.take_longest_under_lock();
    let (done, idle) = std::thread::scope(|scope| {
        let loops = scope.spawn(|| {
            let mut longest = 0;
            while !is_over.load(Relaxed) {
                longest = (0..LOOPS_AT_ONCE).map(|_| loop_nanos()).fold(longest, u64::max);
                std::thread::sleep(Duration::from_millis(1));
            }
            longest
        });
        let done = work();
        is_over.store(true, Relaxed);
        (done, loops.join().unwrap_or(0))
    });
    let under_lock = db.take_longest_under_lock() as f64 / 1e3;
    let idle = idle as f64 / 1e3;
    println!(
        "longest under the lock: {under_lock:.0} µs of the CPU; of a loop that does nothing: {idle:.0} µs"
    );
    done
}

/// With this many loops every millisecond, they take one or two hundredths of a core.
#[cfg(feature = "bench-support")]
const LOOPS_AT_ONCE: u32 = 20;

/// CPU time, in nanoseconds, of a loop of a microsecond or less, about as long as the lock is held.
#[cfg(feature = "bench-support")]
fn loop_nanos() -> u64 {
    use sidebloom::internal::bench::cpu_nanos;
    let since = cpu_nanos();
    (0..500).for_each(|n| _ = std::hint::black_box(n));
    cpu_nanos().saturating_sub(since)
}

/// The time of a flush of one row: the median, and the mean CPU time of all threads.
fn publish(db: &Db) -> Result<String> {
    let (mut took, cpu) = (Vec::new(), Process::now().cpu_ticks);
    for n in 0..PUBLICATIONS {
        db.put(format!("new {n}"), "value")?;
        let began = Instant::now();
        db.flush()?;
        took.push(began.elapsed());
    }
    took.sort();
    let median = took.get(took.len() / 2).map_or(0.0, Duration::as_secs_f64);
    let cpu = (Process::now().cpu_ticks - cpu) as f64 * TICK_MS / f64::from(PUBLICATIONS);
    Ok(format!("{:.2} ms ({cpu:.1} ms of the CPU)", median * 1e3))
}

fn bytes_of(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

/// This process's figures from the kernel.
struct Process {
    /// Resident memory not backed by a file.
    anonymous: u64,
    maps: usize,
    descriptors: usize,
    cpu_ticks: u64,
}

/// A tick of the CPU accounting (`USER_HZ` is 100).
const TICK_MS: f64 = 10.0;

impl Process {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kilobytes = anonymous.and_then(|size| size.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default().lines().count();
        let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        // After the name in parentheses: the 12th and 13th fields are the ticks in user and in kernel mode.
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default().split_whitespace();
        let cpu_ticks = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Process { anonymous: kilobytes.unwrap_or(0) << 10, maps, descriptors, cpu_ticks }
    }

    fn since(&self, before: &Process) -> String {
        let bytes = self.anonymous.saturating_sub(before.anonymous);
        let maps = self.maps.saturating_sub(before.maps);
        let descriptors = self.descriptors.saturating_sub(before.descriptors);
        let cpu = (self.cpu_ticks - before.cpu_ticks) as f64 * TICK_MS / 1e3;
        format!(
            "{:.1} MB of memory, {maps} maps, {descriptors} descriptors, {cpu:.2} s of the CPU",
            bytes as f64 / 1e6
        )
    }
}
