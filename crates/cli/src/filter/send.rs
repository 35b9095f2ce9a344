//! `sidebloom filter send`: writes a filter in its wire format.

use super::input::is_stdin;
use crate::context::{Context, Failure, Outcome};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Write a filter in its compressed wire format
///
/// Filters with room left and counting filters get smaller. Full Bloom filters and parity filters are random
/// bits, which do not compress. `sidebloom filter send a.filter | ssh host sidebloom filter receive -o
/// a.filter`
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
                "refusing to write binary data to a terminal: redirect it, or name a file with -o",
            ));
        }
        let filter = sidebloom::read_filter(&self.filter)?;
        if is_stdin(&self.output) {
            sidebloom::send_filter(&filter, &mut *cx.out()).map_err(to_stdout)?;
        } else {
            let created = File::create_new(&self.output);
            let is_new = created.is_ok();
            let file = created.or_else(|_| File::create(&self.output));
            let mut file = BufWriter::new(file.map_err(|e| Failure::file("create", &self.output, e))?);
            let sent = sidebloom::send_filter(&filter, &mut file)
                .map_err(Failure::from)
                .and_then(|_| file.flush().map_err(|e| Failure::file("write", &self.output, e)));
            if sent.is_err() && is_new {
                let _ = std::fs::remove_file(&self.output); // A partial filter is useless.
            }
            sent?;
        }
        Ok(Outcome::Found)
    }
}

/// Reports a failed write to standard output as such, so that a closed pipe ends the command quietly.
fn to_stdout(error: sidebloom::filter::Error) -> Failure {
    match error {
        sidebloom::filter::Error::Io { source, .. } => Failure::Output(source.kind().into()),
        other => other.into(),
    }
}
