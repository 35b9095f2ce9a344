//! Several processes follow a store while another one writes it. Prints how late they see writes, whether
//! they ever saw a wrong answer, and how much memory the filters take: the processes share one copy in the
//! page cache, so the proportional sizes (PSS) of all processes add up to about the filters' size.
//!
//!     cargo run --release --example followers -- [PROCESSES] [SECONDS] [KEYS] [DIRECTORY]

use sidebloom::{Batch, Db, Error, IoOp, Options, Result};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The key whose value says when it was written, in microseconds since 1970.
const CLOCK: &str = "clock";
/// A write changes this many keys, in addition to the clock.
const BATCH: u64 = 50;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [command, dir, seconds, keys] = &args[..]
        && command == "follow"
    {
        return follow(Path::new(dir), Duration::from_secs(number(seconds)), number(keys));
    }
    let arg = |at: usize, default| args.get(at).map_or(default, |text| number(text));
    let (processes, seconds, keys) = (arg(0, 8), arg(1, 10), arg(2, 1_000_000));
    let dir = args.get(3).map_or_else(|| PathBuf::from("target/followers"), PathBuf::from);
    let io = |op| move |e| Error::io(IoOp::Other(op), "the example's directory", e);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).map_err(io("remove"))?;
    }
    let db = Db::open(&dir)?;
    db.ingest((0..keys).map(|i| Ok((key(i), value(0)))))?;
    write(&db, 0, keys)?;
    db.warm()?;
    let program = std::env::current_exe().map_err(io("find"))?;
    let children: std::io::Result<Vec<Child>> = (0..processes)
        .map(|_| {
            let mut command = Command::new(&program);
            command.arg("follow").arg(&dir).arg(seconds.to_string()).arg(keys.to_string());
            command.stdout(Stdio::piped()).spawn()
        })
        .collect();
    let mut children = children.map_err(io("start a process beside"))?;
    let (mut round, mut written, mut longest) = (0, 0, Duration::ZERO);
    while children.iter_mut().any(|child| matches!(child.try_wait(), Ok(None))) {
        round += 1;
        let before = Instant::now();
        written += write(&db, round, keys)?;
        longest = longest.max(before.elapsed());
        if round.is_multiple_of(5000) {
            db.flush()?;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let filters: u64 = db.stats().levels.iter().map(|level| level.filter_bytes).sum();
    println!("{processes} processes, {keys} keys and {written} rows written; filters of {filters} bytes");
    println!("a row's time is taken before it is written; the longest write took {longest:.1?}");
    println!("lag p50 ms  p99 ms  max ms   answers   wrong   filters RSS      PSS");
    let (mut pss, mut wrong) = (0, 0);
    for child in children {
        let output = child.wait_with_output().map_err(io("wait beside"))?;
        let line = String::from_utf8_lossy(&output.stdout);
        let fields: Vec<f64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        let [p50, p99, max, answers, its_wrong, rss, its_pss] = fields[..] else {
            return Err(Error::Internal(format!("a follower failed: {}", output.status)));
        };
        println!("{p50:10.1} {p99:7.1} {max:7.1} {answers:9} {its_wrong:7} {rss:13} {its_pss:8}");
        (pss, wrong) = (pss + its_pss as u64, wrong + its_wrong as u64);
    }
    println!("PSS of the filters in all followers: {pss} bytes, {:.2} copies", pss as f64 / filters as f64);
    assert_eq!(wrong, 0);
    drop(db);
    std::fs::remove_dir_all(&dir).map_err(io("remove"))
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| {
        eprintln!("{text} is not a number");
        std::process::exit(2)
    })
}

fn key(i: u64) -> String {
    format!("key{i:012}")
}

fn value(round: u64) -> [u8; 32] {
    let mut value = [b'v'; 32];
    value[..8].copy_from_slice(&round.to_be_bytes());
    value
}

fn now_micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// One batch: the same number in all of its rows.
fn write(db: &Db, round: u64, keys: u64) -> Result<u64> {
    let mut batch = Batch::new();
    batch.put(CLOCK, now_micros().to_be_bytes());
    batch.put("round", round.to_be_bytes());
    for i in 0..BATCH {
        batch.put(key((round * BATCH + i) * 7919 % keys), value(round));
    }
    db.write(batch)?;
    Ok(BATCH + 2)
}

/// Follows for some time and prints what it measured.
fn follow(dir: &Path, lasts: Duration, keys: u64) -> Result<()> {
    let db = Options::new().follow(true).open(dir)?;
    let (until, mut lags, mut answers, mut wrong) = (Instant::now() + lasts, Vec::new(), 0u64, 0u64);
    let (mut last_clock, mut last_round, mut state) = (0, 0, u64::from(std::process::id()));
    let number = |value: &[u8]| value.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    while Instant::now() < until {
        let clock = db.get(CLOCK)?.map_or(0, |value| number(&value));
        if clock != last_clock && last_clock != 0 {
            lags.push(now_micros().saturating_sub(clock));
        }
        let snapshot = db.snapshot();
        let round = snapshot.get("round")?.map_or(0, |value| number(&value));
        let in_round = snapshot.get(key(round * BATCH * 7919 % keys))?.map(|value| number(&value));
        wrong += u64::from(clock < last_clock || round < last_round || in_round != Some(round));
        (last_clock, last_round) = (clock, round);
        for _ in 0..100 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let present = key((state >> 20) % keys);
            wrong += u64::from(!db.contains_key(&present)?);
            wrong += u64::from(db.contains_key(format!("{present}x"))?);
        }
        answers += 203;
        std::thread::sleep(Duration::from_millis(4)); // Leaves two cores some time for eight processes.
    }
    lags.sort_unstable();
    let lag = |share: f64| {
        lags.get((lags.len() as f64 * share) as usize).or(lags.last()).map_or(0.0, |us| *us as f64 / 1e3)
    };
    let (rss, pss) = filter_memory();
    println!("{} {} {} {answers} {wrong} {rss} {pss}", lag(0.5), lag(0.99), lag(1.0));
    Ok(())
}

/// Bytes of the mapped filters in memory: all of them, and this process's share.
fn filter_memory() -> (u64, u64) {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let (mut is_filter, mut rss, mut pss) = (false, 0, 0);
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("Rss:"), Some(kib)) if is_filter => rss += 1024 * number(kib),
            (Some("Pss:"), Some(kib)) if is_filter => pss += 1024 * number(kib),
            (Some(first), _) if !first.ends_with(':') => is_filter = line.contains(".filter"),
            _ => {}
        }
    }
    (rss, pss)
}
