//! `versus pages`: writes measured figures into the documentation, between markers. Those of `versus run` go
//! into docs/measured.md and README.md, those of `versus writes` into this package's README.

use crate::engine::EngineKind;
use crate::error::Result;
use crate::format::{DASH, bytes, count, number, shown};
use crate::measures::{self, Measure};
use crate::report::{charts, plot};
use crate::results::{self, BenchRecord, RUN_FILE};
use crate::task::WorkerOutcome;
use crate::workload::CacheState;
use crate::writes::page::{self, WRITES_FILE};
use std::fs;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- versus:begin";
const END: &str = "<!-- versus:end -->";
const SUMMARY_BEGIN: &str = "<!-- versus-summary:begin";
const SUMMARY_END: &str = "<!-- versus-summary:end -->";
/// The workload that shows the sorted runs of a store that was just written.
const WRITTEN: &str = "written-count";

/// Write measured figures into the documentation
///
/// The results of `versus run` become the table and the two charts of docs/measured.md, and the short table
/// of README.md. Those of `versus writes` become a section of benches/versus/README.md. One of them is
/// enough.
#[derive(clap::Args)]
pub struct Args {
    /// Output directory of `versus run` or `versus writes`
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// File with the markers `versus` for all figures of `versus run`; the charts are written next to it
    #[arg(long, value_name = "FILE", default_value = "docs/measured.md")]
    measured: PathBuf,
    /// File with the markers `versus-summary` for the figures that decide
    #[arg(long, value_name = "FILE", default_value = "README.md")]
    readme: PathBuf,
    /// File with the markers `versus-writes` for the figures of `versus writes`
    #[arg(long, value_name = "FILE", default_value = "benches/versus/README.md")]
    writes: PathBuf,
}

impl Args {
    /// Writes the sections and the charts.
    pub fn run(self) -> Result<()> {
        let has_writes = self.dir.join(WRITES_FILE).exists();
        if has_writes {
            replace(&self.writes, page::BEGIN, page::END, &page::section_of(&self.dir)?)?;
            println!("{}", self.writes.display());
        }
        if has_writes && !self.dir.join(RUN_FILE).exists() { Ok(()) } else { self.write_run() }
    }

    fn write_run(&self) -> Result<()> {
        let run: BenchRecord = results::read(&self.dir.join(RUN_FILE))?;
        let missing = "the results lack a workload that the charts need: run all workloads";
        let pictures = [
            ("missing.svg", charts::against_missing(&run, CacheState::Warm)?.ok_or(missing)?),
            ("disk-reads.svg", charts::disk_reads(&run)?.ok_or(missing)?),
        ];
        replace(&self.measured, BEGIN, END, &section(&run))?;
        replace(&self.readme, SUMMARY_BEGIN, SUMMARY_END, &summary(&run))?;
        let dir = self.measured.parent().unwrap_or(Path::new(""));
        for (file, picture) in &pictures {
            fs::write(dir.join(file), plot::standalone(picture))?;
        }
        println!("{}, and two charts next to it", self.measured.display());
        println!("{}", self.readme.display());
        Ok(())
    }
}

/// Replaces what is between two markers of a file, with the first marker.
fn replace(file: &Path, begin: &str, end: &str, section: &str) -> Result<()> {
    let name = file.display();
    let text = fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    let (Some(from), Some(to)) = (text.find(begin), text.find(end)) else {
        return Err(format!(
            "{name} lacks the lines «{begin} -->» and «{end}»: add them where the section belongs"
        )
        .into());
    };
    if to < from {
        return Err(format!("{name}: «{end}» comes before «{begin} -->»").into());
    }
    Ok(fs::write(file, format!("{}{section}{}", &text[..from], &text[to..]))?)
}

/// The text between the markers: sizes, wins and losses, all figures, and each engine's configuration.
pub fn section(run: &BenchRecord) -> String {
    let settings = &run.settings;
    let mut text = format!(
        "{BEGIN}; written by `versus pages`, do not edit -->\n\
         Measured {} on {}. {} keys of {} bytes with half-compressible values of {} bytes ({} of keys and values); ranges and threads: {} \
         rows with values of {} bytes. Cache {} MiB, {}, batches of 100, no fsync per write. Each store is loaded once, its compactions \
         finish, and all engines read it in turn; {}, each workload in its own process. Without *cold*: the engine's cache is \
         full and the rest is in the page cache. *Cold*: empty page cache; each engine keeps its filters and indexes in memory, except when it is \
         opened. *Memory, page cache included*: the process's own memory and what the page cache has of the store's files, which without *cold* \
         is all of them. Engines that do not compress have larger files, and mapped ones have no cache but the page cache: the row *data* says \
         which.\n\n",
        run.date,
        run.machine.describe(),
        count(settings.num as f64),
        settings.key_bytes,
        settings.value_bytes,
        bytes(settings.data_bytes() as f64),
        count(settings.rows as f64),
        settings.row_bytes,
        settings.cache_mib,
        settings.describe_tables(),
        rounds(run),
    );
    if run.has(WRITTEN) {
        text += &format!(
            "*Just written*: {} rows of {} bytes, each written and then once more in random order, in batches of 100, and read at once: no \
             flush or compaction is waited for.\n\n",
            count(settings.written as f64),
            count((settings.for_written().data_bytes() / settings.written) as f64),
        );
    }
    let [ahead, level, behind] = measures::standings(run);
    for (title, list) in [
        ("Ahead of the best other engine", ahead),
        ("Level with it, within 5 %", level),
        ("Behind it", behind),
    ] {
        let list = if list.is_empty() { "nothing".to_owned() } else { list.join("; ") };
        text += &format!("**{title}**: {list}.\n\n");
    }
    text += &table(run);
    text += "\n![Mean lookup time by share of missing keys](missing.svg)\n\n";
    text += "![Disk reads per lookup of a missing key](disk-reads.svg)\n\n";
    text += "Configuration of each engine:\n\n";
    for (kind, settings) in &run.engines {
        text += &format!("- **{}**: {settings}\n", kind.name());
    }
    for note in run.notes.iter().cloned().chain(run.rejections()) {
        text += &format!("\n*{note}.*\n");
    }
    text + "\n"
}

/// The text between the markers of the README: the measures that decide, for each engine in one
/// configuration, and where sidebloom loses.
pub fn summary(run: &BenchRecord) -> String {
    let settings = &run.settings;
    let is_shown = |kind: &EngineKind| *kind == EngineKind::Sidebloom || !kind.is_sidebloom();
    let engines: Vec<EngineKind> = run.engines.iter().map(|(kind, _)| *kind).filter(is_shown).collect();
    let decide: Vec<Measure> = measures::all(run).into_iter().filter(Measure::decides).collect();
    let [_, _, behind] = measures::standings(run);
    format!(
        "{SUMMARY_BEGIN}; written by `versus pages`, do not edit -->\n{}\n\
         {} keys of {} bytes with values of {} bytes, cache {} MiB; {}, {}, on {}, {} cores.\n\n\
         **Where another engine is better** (0.5 × lmdb: half as good as LMDB): {}.\n\n",
        measures_table(run, &engines, &decide),
        count(settings.num as f64),
        settings.key_bytes,
        settings.value_bytes,
        settings.cache_mib,
        rounds(run),
        run.date,
        run.machine.processor,
        run.machine.cores,
        if behind.is_empty() { "nowhere".to_owned() } else { behind.join("; ") },
    )
}

fn rounds(run: &BenchRecord) -> String {
    if run.rounds == 1 { "one round".to_owned() } else { format!("medians of {} rounds", run.rounds) }
}

fn row(engines: &[EngineKind], name: &str, cell: impl Fn(EngineKind) -> String) -> String {
    let cells: Vec<String> = engines.iter().map(|kind| cell(*kind)).collect();
    format!("| {name} | {} |\n", cells.join(" | "))
}

/// A row for each measure, a column for each engine.
fn measures_table(run: &BenchRecord, engines: &[EngineKind], measures: &[Measure]) -> String {
    let strong = |kind: EngineKind, text: String| match kind {
        EngineKind::Sidebloom => format!("**{text}**"),
        _ => text,
    };
    let mut text = row(engines, "", |kind| strong(kind, kind.name().to_owned()));
    text += &format!("|---|{}\n", "---|".repeat(engines.len()));
    for measure in measures {
        text += &row(engines, &measure.name, |kind| strong(kind, measure.cell(run, kind)));
    }
    text
}

/// All measures, and what explains them.
fn table(run: &BenchRecord) -> String {
    let engines: Vec<EngineKind> = run.engines.iter().map(|(kind, _)| *kind).collect();
    let row = |name: &str, cell: &dyn Fn(EngineKind) -> String| row(&engines, name, cell);
    let mut text = measures_table(run, &engines, &measures::all(run));
    text += &row("data", &|kind| kind.data().to_owned());
    text += &row("filter bits per key", &|kind| {
        let bits = |o: &WorkerOutcome| o.filter_bits_per_key(run.settings.num);
        shown(run.median(kind, "load", bits), number)
    });
    text += &row("sorted runs by level", &|kind| run.runs_by_level(kind, "load").unwrap_or(DASH.to_owned()));
    if run.has(WRITTEN) {
        text += &row("sorted runs by level, just written", &|kind| {
            run.runs_at_start(kind, WRITTEN).unwrap_or(DASH.to_owned())
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// Only what is between the markers changes, and a file without them stays as it is.
    #[test]
    fn a_section_replaces_what_is_between_its_markers() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("README.md");
        let (begin, end) = (page::BEGIN, page::END);
        fs::write(&file, format!("before\n{begin} -->\nold\n{end}\nafter\n")).unwrap();
        replace(&file, begin, end, &format!("{begin}; new -->\nnew\n")).unwrap();
        let expected = format!("before\n{begin}; new -->\nnew\n{end}\nafter\n");
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
        assert!(replace(&file, BEGIN, END, "").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    }

    /// The table of a section, by the names of rows and columns.
    fn cells(file: &str, begin: &str, end: &str) -> BTreeMap<(String, String), String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = fs::read_to_string(root.join(file)).unwrap();
        let section = &text[text.find(begin).unwrap()..text.find(end).unwrap()];
        let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
        let mut rows = rows.map(|row| row.split(" | ").map(str::to_owned).collect::<Vec<_>>());
        let head = rows.next().unwrap();
        let cells = rows.flat_map(|row| {
            assert_eq!(row.len(), head.len(), "{row:?}");
            let name = row[0].clone();
            head.iter().cloned().zip(row).skip(1).map(move |(engine, cell)| ((name.clone(), engine), cell))
        });
        cells.collect()
    }

    /// Both come from the same results, also after somebody has edited one of them.
    #[test]
    fn the_readme_shows_the_figures_of_docs_measured() {
        let all = cells("docs/measured.md", BEGIN, END);
        let short = cells("README.md", SUMMARY_BEGIN, SUMMARY_END);
        for (of, cell) in &short {
            assert_eq!(all.get(of), Some(cell), "{of:?}");
        }
        let rows: BTreeSet<&str> = short.keys().map(|(row, _)| &**row).collect();
        assert_eq!(rows, BTreeSet::from(measures::DECIDING));
    }
}
