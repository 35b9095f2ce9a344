//! `versus readme`: generates the README's performance section from the results of `versus run`, and that of
//! conditional writes from those of `versus writes`.

use crate::engine::EngineKind;
use crate::error::Result;
use crate::format::{DASH, bytes, count, number, shown};
use crate::measures;
use crate::report::{charts, plot};
use crate::results::{self, BenchRecord, RUN_FILE};
use crate::task::WorkerOutcome;
use crate::workload::CacheState;
use crate::writes::page::{self, WRITES_FILE};
use std::fs;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- versus:begin";
/// The workload that shows the sorted runs of a store that was just written.
const WRITTEN: &str = "written-count";
const END: &str = "<!-- versus:end -->";

/// Write the README's performance section and its two charts from the results of `versus run`, and the
/// section of this package's README from those of `versus writes`, whichever are there
#[derive(clap::Args)]
pub struct Args {
    /// Output directory of `versus run` or `versus writes`
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// File with the markers of `versus run`; the charts are written to docs/ next to it
    #[arg(long, value_name = "FILE", default_value = "README.md")]
    readme: PathBuf,
    /// File with the markers of `versus writes`
    #[arg(long, value_name = "FILE", default_value = "benches/versus/README.md")]
    writes_readme: PathBuf,
}

impl Args {
    /// Writes the sections and the charts.
    pub fn run(self) -> Result<()> {
        let has_writes = self.dir.join(WRITES_FILE).exists();
        if has_writes {
            replace(&self.writes_readme, page::BEGIN, page::END, &page::section_of(&self.dir)?)?;
            println!("{}", self.writes_readme.display());
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
        replace(&self.readme, BEGIN, END, &section(&run))?;
        let docs = self.readme.parent().unwrap_or(Path::new("")).join("docs");
        fs::create_dir_all(&docs)?;
        for (file, picture) in &pictures {
            fs::write(docs.join(file), plot::standalone(picture))?;
        }
        println!("{}, {1}/missing.svg, {1}/disk-reads.svg", self.readme.display(), docs.display());
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
        "{BEGIN}; written by `versus readme`, do not edit -->\n\
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
        if run.rounds == 1 { "one round".to_owned() } else { format!("medians of {} rounds", run.rounds) },
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
    text += "\n![Mean lookup time by share of missing keys](docs/missing.svg)\n\n";
    text += "![Disk reads per lookup of a missing key](docs/disk-reads.svg)\n\n";
    text += "Configuration of each engine:\n\n";
    for (kind, settings) in &run.engines {
        text += &format!("- **{}**: {settings}\n", kind.name());
    }
    for note in run.notes.iter().cloned().chain(run.rejections()) {
        text += &format!("\n*{note}.*\n");
    }
    text + "\n"
}

/// A row for each measure, a column for each engine.
fn table(run: &BenchRecord) -> String {
    let row = |name: &str, cell: &dyn Fn(EngineKind) -> String| {
        let cells: Vec<String> = run.engines.iter().map(|(kind, _)| cell(*kind)).collect();
        format!("| {name} | {} |\n", cells.join(" | "))
    };
    let strong = |kind: EngineKind, text: String| match kind {
        EngineKind::Sidebloom => format!("**{text}**"),
        _ => text,
    };
    let mut text = row("", &|kind| strong(kind, kind.name().to_owned()));
    text += &format!("|---|{}\n", "---|".repeat(run.engines.len()));
    for measure in measures::all(run) {
        text += &row(&measure.name, &|kind| strong(kind, measure.cell(run, kind)));
    }
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
}
