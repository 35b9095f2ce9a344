//! Prints the demo's results.

use super::build::BuiltStore;
use super::by_name::LookedUp;
use super::catalogue::Songs;
use super::measure::{BLOCK_CACHE_BYTES, COLD_LOOKUPS, Cost};
use super::report::Report;
use crate::context::{Context, Failure};
use crate::human;
use comfy_table::{CellAlignment, Table, presets};
use std::io::Write;
use std::path::Path;

/// Announces the demo, before the bar.
pub fn begin(cx: &Context, titles: u64) -> Result<(), Failure> {
    if cx.json {
        return Ok(());
    }
    writeln!(cx.out(), "A song catalogue: real songs and {} generated titles\n", human::count(titles))?;
    cx.flush()
}

/// The store that was built.
pub fn built(cx: &Context, built: &BuiltStore) -> Result<(), Failure> {
    if cx.json {
        return Ok(());
    }
    let rate = human::count((built.rows as f64 / built.load_seconds) as u64);
    let [rows, songs] = [built.rows, built.songs].map(human::count);
    let [data, filters] = [built.data_bytes, built.filter_bytes].map(|n| human::bytes(n as f64));
    writeln!(
        cx.out(),
        "  {rows} rows ({songs} real songs) written in {:.1} s, {rate} rows/s",
        built.load_seconds
    )?;
    writeln!(
        cx.out(),
        "  compaction done {:.1} s later: {data} in {} sorted runs, {filters} of filters\n",
        built.settle_seconds,
        built.runs
    )?;
    cx.flush()
}

/// The lookups by name.
pub fn answers(cx: &Context, answers: &[LookedUp]) -> Result<(), Failure> {
    if cx.json {
        return Ok(());
    }
    writeln!(cx.out(), "Lookups by name (the last songs were left out of the store on purpose):\n")?;
    let mut table = Table::new(); // It knows the width of 좋은 날 on a terminal.
    table.load_style(presets::NOTHING);
    answers.iter().for_each(|answer| {
        table.add_row(answer.cells());
    });
    writeln!(cx.out(), "{table}\n")?;
    cx.flush()
}

/// Filters on and off, side by side.
pub fn comparison(cx: &Context, report: &Report) -> Result<(), Failure> {
    let (on, off) = (&report.filters_on, &report.filters_off);
    let cache = human::bytes(BLOCK_CACHE_BYTES as f64);
    let round = human::count(COLD_LOOKUPS as u64);
    writeln!(cx.out(), "The same store with filters on and off, with a block cache of {cache}.")?;
    writeln!(cx.out(), "Before every {round} lookups from disk: {}.\n", report.page_cache.describe())?;
    for (what, on, off) in
        [("absent titles", &on.absent, &off.absent), ("present titles", &on.present, &off.present)]
    {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED.with_rounded_corners());
        table.set_header([what, "filters on", "filters off", "off ÷ on"]);
        table.add_row(row("lookups", on, off, |c| Some(c.lookups as f64), |x| human::count(x as u64), false));
        for (name, value, show) in ROWS {
            table.add_row(row(name, on, off, *value, show, true));
        }
        table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        writeln!(cx.out(), "{table}")?;
    }
    let (absent, expected) = (&on.absent, on.absent.expected_false_positives);
    writeln!(
        cx.out(),
        "Disk reads are for the whole machine; bytes are for this process.\n\nOf {} absent titles, filters let {} through ({:.0} expected).",
        human::count(absent.lookups),
        human::count(absent.false_positives),
        expected,
    )?;
    Ok(())
}

type Value = fn(&Cost) -> Option<f64>;
type Show = fn(f64) -> String;

/// The table's rows: name, value and format.
const ROWS: &[(&str, Value, Show)] = &[
    ("time per lookup, from disk", |c| Some(c.cold_ns_per_lookup), human::nanos),
    ("disk reads per lookup", |c| c.disk_reads_per_lookup, human::per_op),
    ("bytes from disk per lookup", |c| c.disk_bytes_per_lookup, human::bytes),
    ("blocks read per lookup", |c| Some(c.block_reads_per_lookup), human::per_op),
    ("time per lookup, all in memory", |c| Some(c.warm_ns_per_lookup), human::nanos),
];

fn row(
    name: &str,
    on: &Cost,
    off: &Cost,
    value: Value,
    show: impl Fn(f64) -> String,
    ratio: bool,
) -> [String; 4] {
    let text = |value: Option<f64>| value.map_or("unknown".to_owned(), &show);
    let ratio = match (value(on), value(off)) {
        (Some(on), Some(off)) if ratio && on > 0.0 && off > 0.0 => human::ratio(off / on),
        _ => String::new(),
    };
    [name.to_owned(), text(value(on)), text(value(off)), ratio]
}

/// Three commands to try next.
pub fn next_commands(cx: &Context, kept: Option<&Path>, songs: &Songs) -> Result<(), Failure> {
    let program = std::env::args().next().unwrap_or_else(|| "sidebloom".to_owned());
    let artist =
        songs.present.iter().map(|song| song.artist.as_str()).find(|&artist| artist == "Nina Simone");
    let artist = artist.or(songs.present.first().map(|song| song.artist.as_str())).unwrap_or("Queen");
    let commands = match kept {
        Some(dir) => {
            let store = format!("{program} --db {}", dir.display());
            [
                format!("{store} scan --prefix '{artist} - '"),
                format!("{store} stats --probe 100000"),
                format!("{store} rebuild-filters --bits-per-key 16"),
            ]
        }
        None => [
            format!("{program} demo --keep songs.db"),
            format!("{program} --db songs.db scan --prefix '{artist} - '"),
            format!("{program} bench fillrandom,readrandom,readmissing --cold"),
        ],
    };
    writeln!(cx.out(), "\nNext:")?;
    Ok(commands.iter().try_for_each(|command| writeln!(cx.out(), "  {command}"))?)
}
