//! `sidebloom filter send`: the wire form of a filter.

use super::input::is_stdin;
use crate::context::{Context, Failure, Outcome};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

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
            sidebloom::send_filter(&filter, &mut *cx.out()).map_err(to_stdout)?;
        } else {
            let file = File::create(&self.output).map_err(|e| Failure::file("create", &self.output, e))?;
            let mut file = BufWriter::new(file);
            let sent = sidebloom::send_filter(&filter, &mut file)
                .map_err(Failure::from)
                .and_then(|_| file.flush().map_err(|e| Failure::file("write", &self.output, e)));
            if sent.is_err() && self.output.is_file() {
                let _ = std::fs::remove_file(&self.output); // A part of a filter is of no use to anybody.
            }
            sent?;
        }
        Ok(Outcome::Found)
    }
}

/// A reader that went away is no error of the filter.
fn to_stdout(error: sidebloom::filter::Error) -> Failure {
    match error {
        sidebloom::filter::Error::Io { source, .. } => Failure::Output(source.kind().into()),
        other => other.into(),
    }
}
