//! `sidebloom filter send`: the wire form of a filter.

use super::input::is_stdin;
use crate::cli::context::{Context, Failure, Outcome};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Write a filter in its compressed wire form
///
/// Filters that are not full, and counting filters, get smaller; a full Bloom filter and a parity filter are random bits, which
/// nothing makes smaller. `sidebloom filter send a.filter | ssh host sidebloom filter receive -o a.filter`
#[derive(clap::Args)]
pub struct Args {
    /// The filter
    filter: PathBuf,
    /// The file to write; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        cx.refuse_json("filter send")?;
        if is_stdin(&self.output) && cx.out_is_terminal() {
            return Err(Failure::message(
                "the wire form is not for a terminal: redirect it, or name a file with -o",
            ));
        }
        let filter = sidebloom::read_filter(&self.filter)?;
        if is_stdin(&self.output) {
            let mut wire = Vec::new();
            sidebloom::send_filter(&filter, &mut wire)?;
            cx.out().write_all(&wire)?;
        } else {
            let failed = |e| Failure::file("write", &self.output, e);
            let mut file = BufWriter::new(create(&self.output)?);
            sidebloom::send_filter(&filter, &mut file)?;
            file.flush().map_err(failed)?;
        }
        Ok(Outcome::Found)
    }
}

fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|e| Failure::file("create", path, e))
}
