//! `sidebloom filter receive`: reads a filter in its wire format.

use super::files;
use super::input::is_stdin;
use crate::context::{Context, Failure, Outcome};
use crate::human::parse_bytes;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::PathBuf;

/// Read a filter in its wire format and write it to a file
///
/// Checks the whole input before it writes the file.
#[derive(clap::Args)]
pub struct Args {
    /// The filter in wire format; `-` is standard input
    #[arg(default_value = "-")]
    input: PathBuf,
    /// The file to write; an existing file is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The largest filter to accept, in bytes of memory; K, M and G stand for powers of 1024
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = parse_bytes)]
    limit: u64,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let input: Box<dyn Read> = if is_stdin(&self.input) {
            Box::new(io::stdin().lock())
        } else {
            Box::new(File::open(&self.input).map_err(|e| Failure::file("open", &self.input, e))?)
        };
        let mut input = BufReader::new(input);
        let filter = sidebloom::receive_filter(&mut input, self.limit)?;
        let mut more = [0];
        if input.read(&mut more).map_err(|e| Failure::file("read", &self.input, e))? > 0 {
            return Err(Failure::message(format!(
                "{}: trailing data after the filter",
                self.input.display()
            )));
        }
        files::write(cx, &self.output, &filter)?;
        Ok(Outcome::Found)
    }
}
