//! The results as a table on the terminal.

use super::record::{StoreResult, WindowFigures, WindowRecord};
use super::stream::{ID_BYTES, VALUE_BYTES};
use crate::error::Result;
use crate::format::{DASH, bytes, count, nanos, number, shown, times};
use crate::table::{aligned, headed};
use crate::terminal::{self, print_notes};
use std::io::Write;

const HEAD: [&str; 14] = [
    "store",
    "ids/s",
    "window full, ids/s",
    "p50",
    "p99.9",
    "p99.99",
    "CPU of an id",
    "written per byte",
    "read by calls",
    "disk of an id, most",
    "filters of an id",
    "indexes of an id",
    "rows ÷ window",
    "wrong answers",
];

impl WindowRecord {
    /// The machine, the sizes and the configurations.
    pub fn print_head(&self) -> Result<()> {
        terminal::print_head(&self.date, &self.machine)?;
        let (mut out, stream) = (std::io::stdout().lock(), self.settings.stream);
        writeln!(
            out,
            "{} ids of {ID_BYTES} bytes with values of {VALUE_BYTES} bytes, {} of them in a {}; {} threads",
            count(stream.total as f64),
            count(stream.window as f64),
            if stream.mixed { "mean life" } else { "window" },
            self.settings.threads
        )?;
        let mut describe = |of: &StoreResult| writeln!(out, "{}: {}", of.store.name(), of.description);
        Ok(self.stores.iter().try_for_each(&mut describe)?)
    }

    /// The table of what was measured, and notes.
    pub fn print(&self) -> Result<()> {
        let rows = headed(HEAD, self.stores.iter().filter_map(|of| self.row(of)));
        writeln!(std::io::stdout().lock(), "\n{}", aligned(&rows))?;
        print_notes(&self.notes)
    }

    fn row(&self, of: &StoreResult) -> Option<Vec<String>> {
        let name = std::iter::once(of.store.name().to_owned());
        Some(name.chain(self.figures(of.figures.as_ref()?)).collect())
    }

    fn figures(&self, of: &WindowFigures) -> Vec<String> {
        let stream = self.settings.stream;
        let per_second = |ids: u64, ns: u64| count(ids as f64 * 1e9 / ns.max(1) as f64);
        let latency = |which: usize| shown(of.latencies.map(|all| all[which] as f64), nanos);
        let row_bytes = (ID_BYTES + VALUE_BYTES) as u64;
        let written = of.used.write_bytes as f64 / (of.inserted * row_bytes).max(1) as f64;
        let held = of.held.rows.map(|rows| rows.max(1) as f64);
        let of_id = |size: Option<u64>| shown(size.zip(held).map(|(size, rows)| size as f64 / rows), number);
        let of_server = |text: String| if of.held.server_bytes.is_some() { DASH.to_owned() } else { text };
        let disk = of.held.server_bytes.unwrap_or(of.disk_bytes_max) as f64;
        vec![
            per_second(stream.total, of.stream_ns),
            per_second(stream.total - stream.window, of.full_ns),
            latency(0),
            latency(1),
            latency(2),
            of_server(nanos(of.used.cpu_ns as f64 / stream.total as f64)),
            of_server(times(written)),
            of_server(bytes(of.used.read_call_bytes as f64)),
            format!("{} B", number(disk / stream.window as f64)),
            of_id(of.held.filter_bytes),
            of_id(of.held.index_bytes),
            shown(held.map(|rows| rows / stream.window as f64), number),
            count((of.wrongly_new + of.wrongly_seen) as f64),
        ]
    }
}
