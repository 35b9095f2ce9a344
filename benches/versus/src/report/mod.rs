//! `versus report`: an HTML page with all results, in one self-contained file.

pub mod charts;
pub mod plot;
#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::filters;
use crate::format;
use crate::results::{self, BenchRecord, FILTERS_FILE, FiltersRecord, RUN_FILE, SWEEP_FILE, SweepRecord};
use crate::sweep;
use crate::workload::WORKLOADS;
use crate::workload_table;
use std::fs;
use std::path::PathBuf;

const STYLE: &str = include_str!("style.css");

/// Write an HTML page with all results: DIR/report.html, one self-contained file
#[derive(clap::Args)]
pub struct Args {
    /// Output directory of `versus run`, `versus sweep` and `versus filters`
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl Args {
    /// Writes the page.
    pub fn run(self) -> Result<()> {
        let run: Option<BenchRecord> = read_if_there(&self.dir.join(RUN_FILE))?;
        let swept: Option<SweepRecord> = read_if_there(&self.dir.join(SWEEP_FILE))?;
        let arena: Option<FiltersRecord> = read_if_there(&self.dir.join(FILTERS_FILE))?;
        if run.is_none() && swept.is_none() && arena.is_none() {
            let dir = self.dir.display();
            return Err(format!(
                "{dir} has none of {RUN_FILE}, {SWEEP_FILE} and {FILTERS_FILE}: create them, for example with versus run --out {dir}"
            )
            .into());
        }
        let mut body = String::new();
        if let Some(run) = &run {
            body += &run_section(run)?;
        }
        if let Some(swept) = &swept {
            body += &sweep_section(swept)?;
        }
        if let Some(arena) = &arena {
            body += &arena_section(arena)?;
        }
        let page = self.dir.join("report.html");
        let head = "<meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>sidebloom versus</title>";
        fs::write(
            &page,
            format!(
                "<!doctype html>\n<html lang=\"en\"><head>{head}<style>{STYLE}</style></head><body>\n{body}</body></html>\n"
            ),
        )?;
        println!("{}", page.display());
        Ok(())
    }
}

fn read_if_there<T: serde::de::DeserializeOwned>(path: &std::path::Path) -> Result<Option<T>> {
    if path.exists() { results::read(path).map(Some) } else { Ok(None) }
}

fn run_section(run: &BenchRecord) -> Result<String> {
    let settings = &run.settings;
    let mut html = format!(
        "<h1>sidebloom against other stores</h1>\n<p>{}; {}. {} keys of {} bytes with values of {} bytes, cache {} MiB, seed {}; \
         rounds: {}, engines in turn, each workload in its own process; medians. Speed is the mean time of {} divided by that of the engine: \
         the median of the ratios of each round.</p>\n",
        run.date,
        escape(&run.machine.describe()),
        format::count(settings.num as f64),
        settings.key_bytes,
        settings.value_bytes,
        settings.cache_mib,
        settings.seed,
        run.rounds,
        run.engines.first().map_or("the first engine", |(kind, _)| kind.name()),
    );
    html += "<ul>\n";
    for (kind, settings) in &run.engines {
        html += &format!("<li><b>{}</b>: {}</li>\n", kind.name(), escape(settings));
    }
    html += "</ul>\n";
    for note in run.notes.iter().cloned().chain(run.rejections()) {
        html += &format!("<p class=\"note\">{}</p>\n", escape(&note));
    }
    for chart in charts::of_run(run)? {
        html += &format!("<figure>{}</figure>\n", plot::inline(&chart));
    }
    for workload in WORKLOADS.iter().filter(|workload| run.has(workload.name)) {
        html += &format!("<h2>{}</h2>\n", workload.name);
        if let Some(about) = workload_table::about(run, workload) {
            html += &format!("<p>{}</p>\n", escape(&about));
        }
        html += &html_table(&workload_table::rows(run, workload.name));
    }
    Ok(html)
}

fn sweep_section(swept: &SweepRecord) -> Result<String> {
    let mut html = "<h1>Sorted runs and size</h1>\n".to_owned();
    if let Some(run) = swept.by_runs.first() {
        html += &format!(
            "<p>{}; {}. Sorted runs: {} keys, loaded in random order with one flush per run and compaction disabled, so that all runs stay in \
             level 0 of RocksDB, sidebloom and fjall. Each run spans the whole key range, so no lookup can skip a run by its range. \
             B-trees have no runs.</p>\n",
            run.date,
            escape(&run.machine.describe()),
            format::count(run.settings.num as f64)
        );
    }
    for note in sweep::notes(swept) {
        html += &format!("<p class=\"note\">{}</p>\n", escape(&note));
    }
    for chart in charts::of_sweep(swept)? {
        html += &format!("<figure>{}</figure>\n", plot::inline(&chart));
    }
    for (title, rows) in sweep::tables(swept) {
        html += &format!("<h2>{title}</h2>\n{}", html_table(&rows));
    }
    Ok(html)
}

fn arena_section(arena: &FiltersRecord) -> Result<String> {
    let mut html = format!(
        "<h1>Filters alone</h1>\n<p>{}; {}. CPU time of one thread, the best of several. ÷ bound: bits per key divided by \
         log2(1 / false-positive rate), the least that any filter can have. Probes are for absent keys, hits for present keys. Crowd: \
         copies of the filter fill {}, and each probe, or each batch of 32, goes to a random copy.</p>\n",
        arena.date,
        escape(&arena.machine.describe()),
        format::bytes(arena.crowd_bytes as f64)
    );
    if let Some(chart) = charts::of_filters(arena)? {
        html += &format!("<figure>{}</figure>\n", plot::inline(&chart));
    }
    Ok(html + &html_table(&filters::rows(&arena.results)))
}

fn html_table(rows: &[Vec<String>]) -> String {
    let mut html = "<div class=\"wide\"><table>\n".to_owned();
    for (i, row) in rows.iter().enumerate() {
        let tag = if i == 0 { "th" } else { "td" };
        let cells: String = row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
        let ours = row.first().is_some_and(|name| name == "sidebloom" || name.starts_with("Parity"));
        html += &format!("<tr{}>{cells}</tr>\n", if ours { " class=\"ours\"" } else { "" });
    }
    html + "</table></div>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
