//! `versus readme`: generates the README's performance section from a run.

use crate::engine::EngineKind;
use crate::error::Result;
use crate::format::{bytes, count, nanos, number};
use crate::report::{charts, plot};
use crate::results::{self, RUN_FILE, RunRecord};
use crate::table;
use crate::task::WorkerOutcome;
use crate::workload::{self, CacheState};
use std::fs;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- versus:begin";
const END: &str = "<!-- versus:end -->";

/// Write the README's performance section and its two charts from the results of a run
#[derive(clap::Args)]
pub struct Args {
    /// Output directory of `versus run`
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// File with the markers; the charts go to docs/ beside it
    #[arg(long, value_name = "FILE", default_value = "README.md")]
    readme: PathBuf,
}

impl Args {
    /// Writes the section and the charts.
    pub fn run(self) -> Result<()> {
        let run: RunRecord = results::read(&self.dir.join(RUN_FILE))?;
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
            let picture =
                picture.as_ref().ok_or("the run lacks a workload that the charts need: run all workloads")?;
            fs::write(docs.join(file), plot::standalone(picture))?;
        }
        fs::write(&self.readme, format!("{}{}{}", &text[..begin], section(&run), &text[end..]))?;
        println!("{name}, {0}/missing.svg, {0}/disk-reads.svg", docs.display());
        Ok(())
    }
}

fn section(run: &RunRecord) -> String {
    let settings = &run.settings;
    let mut text = format!(
        "{BEGIN}; written by `versus readme`, do not edit -->\n\
         Measured {} on {}. {} keys of {} bytes, values of {} bytes, LZ4, cache {} MiB, no fsync per write; medians of {} rounds, \
         engines in turn, each workload in its own process. *In memory*: all data in the engine's cache. *On disk*: empty page cache. \
         × is the speed relative to {}.\n\n",
        run.date,
        run.machine.describe(),
        count(settings.num as f64),
        settings.key_bytes,
        settings.value_bytes,
        settings.cache_mib,
        run.rounds,
        run.engines.first().map_or("the first engine", |(kind, _)| kind.name()),
    );
    if let Some(about) =
        workload::by_name("readmissing-limited").and_then(|limited| table::about(run, &limited))
    {
        text.truncate(text.trim_end().len());
        text += &format!(" *Limited*: {about}.\n\n");
    }
    text += "| | missing key, in memory | missing key, on disk | missing key, limited | disk reads per missing key | found key, in memory | found key, on disk | found key, limited | put, random order | scan, per row | filter bits per key | on disk |\n";
    text += "|---|---|---|---|---|---|---|---|---|---|---|---|\n";
    for (kind, _) in &run.engines {
        text += &row(run, *kind);
    }
    text += "\n![Mean lookup time by share of missing keys](docs/missing.svg)\n\n";
    text += "![Disk reads per lookup of a missing key](docs/disk-reads.svg)\n\n";
    text += "Configuration of each engine:\n\n";
    for (kind, settings) in &run.engines {
        text += &format!("- **{}**: {settings}\n", kind.name());
    }
    for note in &run.notes {
        text += &format!("\n*{note}.*\n");
    }
    text + "\n"
}

fn row(run: &RunRecord, kind: EngineKind) -> String {
    let cell = |workload: &str, show: fn(f64) -> String, figure: &dyn Fn(&WorkerOutcome) -> Option<f64>| {
        run.median(kind, workload, figure).map_or("–".to_owned(), show)
    };
    let mean = |workload: &str| {
        let speed =
            run.speedup(kind, workload).map_or(String::new(), |times| format!(" ({} ×)", number(times)));
        cell(workload, nanos, &|o| Some(o.mean_ns)) + &speed
    };
    let bits = |o: &WorkerOutcome| {
        Some(8.0 * o.facts.filter_bytes.filter(|&n| n > 0)? as f64 / run.settings.num as f64)
    };
    let cells = [
        mean("readmissing"),
        mean("readmissing-cold"),
        mean("readmissing-limited"),
        cell("readmissing-cold", number, &|o| o.disk_reads_per_op),
        mean("readrandom"),
        mean("readrandom-cold"),
        mean("readrandom-limited"),
        mean("fillrandom"),
        mean("scan"),
        cell("count", number, &bits),
        cell("load", bytes, &|o| Some(o.disk_bytes as f64)),
    ];
    let name =
        if kind == EngineKind::Sidebloom { format!("**{}**", kind.name()) } else { kind.name().to_owned() };
    format!("| {name} | {} |\n", cells.join(" | "))
}
