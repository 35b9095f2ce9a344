//! The song catalogue: a service looks up titles, most of which do not exist, and queries its database each
//! time. What does a guard change? The database is at its best here: in the same process or on the same
//! machine, warm, with an index and a prepared statement.
//!
//! ```text
//! cargo run --release -p sidebloom-sqlite --example song_catalog [-- --titles N --lookups N --postgres URL]
//! ```
//!
//! Fills a SQLite database, and with `--postgres` a PostgreSQL table too, with the fixture's songs and N
//! generated ones, builds a guard from it, and looks up titles, 95 % of them missing, with and without the
//! guard. Removes the PostgreSQL table at the end.

mod catalogue;
mod on_postgres;
mod on_sqlite;

use catalogue::{Catalogue, Result};
use sidebloom::FilterPolicy;
use sidebloom::filter::Verdict;
use sidebloom::guard::{Guard, GuardOptions, Source};
use std::path::Path;
use std::time::Instant;

/// Share of the looked-up titles that do not exist.
const MISSING: f64 = 0.95;

fn main() -> Result<()> {
    let mut titles = 1_000_000;
    let mut lookups = 200_000;
    let mut postgres = None;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
        match arg.as_str() {
            "--titles" => titles = value.parse()?,
            "--lookups" => lookups = value.parse()?,
            "--postgres" => postgres = Some(value),
            // Used by this program on itself: the memory of an opened guard in a new process.
            "--memory-of" => return print_memory_of(Path::new(&value)),
            _ => return Err(format!("{arg}: only --titles, --lookups and --postgres are known").into()),
        }
    }
    let catalogue = Catalogue::new(titles)?;
    let dir = tempfile::tempdir()?;
    println!("SQLite, {} songs", catalogue.len());
    let mut sqlite = on_sqlite::Songs::create(&dir.path().join("songs.sqlite"), &catalogue)?;
    let mut source = sqlite.source()?;
    measure(&catalogue, lookups, dir.path(), &mut source, &mut |title| sqlite.year(title))?;
    match postgres {
        None => Ok(()),
        Some(url) => measure_postgres(&catalogue, lookups, &url),
    }
}

fn measure_postgres(catalogue: &Catalogue, lookups: u64, url: &str) -> Result<()> {
    println!("\nPostgreSQL, {} songs", catalogue.len());
    let dir = tempfile::tempdir()?;
    let mut songs = on_postgres::Songs::create(url, catalogue)?;
    let mut source = songs.source()?;
    measure(catalogue, lookups, dir.path(), &mut source, &mut |title| songs.year(title))
}

/// Builds guards from the database and looks up titles.
fn measure(
    catalogue: &Catalogue,
    lookups: u64,
    dir: &Path,
    source: &mut dyn Source,
    year: &mut dyn FnMut(&str) -> Result<Option<i64>>,
) -> Result<()> {
    let path = dir.join("songs.guard");
    let guard = build(&path, GuardOptions::new(), source)?;
    let stats = guard.stats();
    println!(
        "  filters {:.3} bytes a title; expected to pass {:.3} % of the missing titles",
        stats.filter_bytes as f64 / stats.keys as f64,
        100.0 * stats.expected_fpr
    );
    drop(guard);
    memory_of(&path, stats.keys)?;
    let guard = Guard::open(&path)?;
    print_saved("at default settings", catalogue, &guard);
    let ten = build(
        &dir.join("ten.guard"),
        GuardOptions::new().filter_policy(FilterPolicy::bits_per_key(10.0)),
        source,
    )?;
    print_saved("at 10 bits a title", catalogue, &ten);
    drop(ten);
    print_nanos(catalogue, &guard);

    let questions: Vec<(String, bool)> = catalogue.questions(lookups, MISSING).collect();
    println!("  {} lookups, {:.0} % of them of missing titles:", questions.len(), 100.0 * MISSING);
    let plain = look_up(&questions, &mut |title| year(title))?;
    plain.print("the database alone");
    let mut calls = 0;
    let mut false_positives = 0;
    let mut guarded = look_up(&questions, &mut |title| {
        if guard.may_contain(title) == Verdict::Absent {
            return Ok(None);
        }
        calls += 1;
        let found = year(title)?;
        if found.is_none() {
            false_positives += 1;
            guard.confirm_absent(title)?;
        }
        Ok(found)
    })?;
    guarded.calls = calls;
    guarded.false_positives = false_positives;
    guarded.print("with the guard in front");
    println!("  {:.1} times as fast", plain.seconds / guarded.seconds);
    Ok(())
}

fn build(path: &Path, options: GuardOptions, source: &mut dyn Source) -> Result<Guard> {
    let started = Instant::now();
    let guard = options.build_from(path, source)?;
    let (keys, seconds) = (guard.stats().keys, started.elapsed().as_secs_f64());
    println!(
        "  guard of {keys} titles built in {seconds:.2} s: {:.2} M titles/s",
        keys as f64 / seconds / 1e6
    );
    Ok(guard)
}

/// The share of missing titles that never reach the database.
fn print_saved(settings: &str, catalogue: &Catalogue, guard: &Guard) {
    let asked = 2_000_000;
    let absent = catalogue.missing(asked).filter(|title| guard.may_contain(title) == Verdict::Absent).count();
    println!(
        "  {settings}, {:.3} % of {asked} missing titles need no database call",
        100.0 * absent as f64 / asked as f64
    );
}

/// How long a missing title takes, one at a time and 64 in one call.
fn print_nanos(catalogue: &Catalogue, guard: &Guard) {
    let titles: Vec<String> = catalogue.missing(1_000_000).collect();
    let one_by_one = best_nanos(&titles, || titles.iter().map(|title| guard.may_contain(title)).collect());
    let together =
        best_nanos(&titles, || titles.chunks(64).flat_map(|titles| guard.may_contain_many(titles)).collect());
    println!(
        "  a missing title: {one_by_one:.0} ns, 64 in one call {together:.0} ns each (best of 5 × {})",
        titles.len()
    );
}

fn best_nanos(titles: &[String], ask: impl Fn() -> Vec<Verdict>) -> f64 {
    let nanos = (0..5).map(|_| {
        let started = Instant::now();
        let verdicts = ask();
        let nanos = started.elapsed().as_nanos() as f64 / titles.len() as f64;
        let maybe = verdicts.iter().filter(|verdict| **verdict == Verdict::Maybe).count();
        assert!(
            verdicts.len() == titles.len() && maybe < titles.len() / 10,
            "nearly all of them are missing"
        );
        nanos
    });
    nanos.fold(f64::INFINITY, f64::min)
}

/// The cost of the lookups.
struct LookedUp {
    lookups: u64,
    calls: u64,
    false_positives: u64,
    seconds: f64,
}

fn look_up(
    questions: &[(String, bool)],
    year: &mut dyn FnMut(&str) -> Result<Option<i64>>,
) -> Result<LookedUp> {
    let started = Instant::now();
    for (title, exists) in questions {
        if year(title)?.is_some() != *exists {
            return Err(format!("a wrong answer for \"{title}\"").into());
        }
    }
    let lookups = questions.len() as u64;
    Ok(LookedUp { lookups, calls: lookups, false_positives: 0, seconds: started.elapsed().as_secs_f64() })
}

impl LookedUp {
    fn print(&self, what: &str) {
        let micros = 1e6 * self.seconds / self.lookups as f64;
        println!(
            "    {what:20} {:>9} database calls, {micros:>8.3} µs a lookup, {:>5} false positives",
            self.calls, self.false_positives
        );
    }
}

/// Opens the guard in a new process, which prints how much its resident memory grew.
fn memory_of(guard: &Path, keys: u64) -> Result<()> {
    let output =
        std::process::Command::new(std::env::current_exe()?).arg("--memory-of").arg(guard).output()?;
    let bytes: f64 = String::from_utf8(output.stdout)?.trim().parse()?;
    println!("  resident memory of an opened guard: {bytes} bytes, {:.3} a title", bytes / keys as f64);
    Ok(())
}

fn print_memory_of(guard: &Path) -> Result<()> {
    // Code takes memory when it first runs, which is not the guard's: run it with a tiny guard first.
    let dir = tempfile::tempdir()?;
    let tiny = dir.path().join("tiny.guard");
    drop(Guard::build(&tiny, ["Sinnerman"])?);
    assert_eq!(Guard::open(&tiny)?.may_contain("Sinnerman"), Verdict::Maybe);
    let before = resident_bytes()?;
    let guard = Guard::open(guard)?;
    let verdict = guard.may_contain("a title that nobody sings");
    println!("{}", resident_bytes()?.saturating_sub(before));
    drop((guard, verdict));
    Ok(())
}

/// This process's resident memory, including mapped files. Linux only.
fn resident_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}
