//! `versus readme`: generates the README's performance section from the results of `versus run`.

use crate::engine::EngineKind;
use crate::error::Result;
use crate::format::{DASH, bytes, count, number, shown};
use crate::measures;
use crate::report::{charts, plot};
use crate::results::{self, BenchRecord, RUN_FILE};
use crate::task::WorkerOutcome;
use crate::workload::CacheState;
use std::fs;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- versus:begin";
const END: &str = "<!-- versus:end -->";

/// Write the README's performance section and its two charts from the results of `versus run`
#[derive(clap::Args)]
pub struct Args {
    /// Output directory of `versus run`
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// File with the markers; the charts are written to docs/ next to it
    #[arg(long, value_name = "FILE", default_value = "README.md")]
    readme: PathBuf,
}

impl Args {
    /// Writes the section and the charts.
    pub fn run(self) -> Result<()> {
        let run: BenchRecord = results::read(&self.dir.join(RUN_FILE))?;
        let name = self.readme.display();
        let text = fs::read_to_string(&self.readme).map_err(|error| format!("{name}: {error}"))?;
        let places = (text.find(BEGIN), text.find(END));
        let (Some(begin), Some(end)) = places else {
            return Err(format!(
                "{name} lacks the lines «{BEGIN} -->» and «{END}»: add them where the section belongs"
            )
            .into());
        };
        if end < begin {
            return Err(format!("{name}: «{END}» comes before «{BEGIN} -->»").into());
        }
        let docs = self.readme.parent().unwrap_or(Path::new("")).join("docs");
        fs::create_dir_all(&docs)?;
        let pictures = [
            ("missing.svg", charts::against_missing(&run, CacheState::Warm)?),
            ("disk-reads.svg", charts::disk_reads(&run)?),
        ];
        for (file, picture) in &pictures {
            let picture = picture
                .as_ref()
                .ok_or("the results lack a workload that the charts need: run all workloads")?;
            fs::write(docs.join(file), plot::standalone(picture))?;
        }
        fs::write(&self.readme, format!("{}{}{}", &text[..begin], section(&run), &text[end..]))?;
        println!("{name}, {0}/missing.svg, {0}/disk-reads.svg", docs.display());
        Ok(())
    }
}

/// The text between the markers: sizes, wins and losses, all figures, and each engine's configuration.
pub fn section(run: &BenchRecord) -> String {
    let settings = &run.settings;
    let mut text = format!(
        "{BEGIN}; written by `versus readme`, do not edit -->\n\
         Measured {} on {}. {} keys of {} bytes with half-compressible values of {} bytes ({} of keys and values); ranges and threads: {} \
         rows with values of {} bytes. Cache {} MiB, {}, LZ4, batches of 100, no fsync per write. Each store is loaded once, its compactions \
         finish, and all engines read it in turn; medians of {} rounds, each workload in its own process. Without *cold*: the engine's cache is \
         full and the rest is in the page cache. *Cold*: empty page cache; each engine keeps its filters and indexes in memory, except when it is \
         opened.\n\n",
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
        run.rounds,
    );
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
    text += &row("filter bits per key", &|kind| {
        let bits = |o: &WorkerOutcome| o.filter_bits_per_key(run.settings.num);
        shown(run.median(kind, "load", bits), number)
    });
    text + &row("sorted runs by level", &|kind| run.runs_by_level(kind, "load").unwrap_or(DASH.to_owned()))
}
