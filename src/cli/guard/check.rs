//! `sidebloom guard check`: which lines may be keys.

use crate::cli::context::{Context, Failure, Outcome};
use crate::cli::filter::input::Lines;
use crate::cli::row::RowFormat;
use sidebloom::filter::Verdict;
use sidebloom::guard::GuardOptions;
use std::io::Write;
use std::path::PathBuf;

/// Print the lines that may be keys of the database
///
/// Exit codes as grep's: 0 lines were printed (or counted), 1 none, 2 error. With --json, each line is an object with `key`, or
/// `key_hex` when it is not UTF-8. The guard is opened read-only.
#[derive(clap::Args)]
pub struct Args {
    /// The guard's directory
    dir: PathBuf,
    /// The lines to ask for
    #[arg(default_value = "-")]
    lines: PathBuf,
    /// Print the lines that are surely no keys instead
    // Takes the place of the global -v, which it shares the letter with: clap skips a global option whose name is taken.
    #[arg(id = "verbose", short = 'v', long = "invert-match", action = clap::ArgAction::Count)]
    invert: u8,
    /// Print only how many there are
    #[arg(short, long)]
    count: bool,
    /// Settle a "maybe" from the guard's own disk: prints what is a key as far as the guard knows
    #[arg(long)]
    exact: bool,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let guard = GuardOptions::new().read_only(true).open(&self.dir)?;
        let wanted = if self.invert > 0 { Verdict::Absent } else { Verdict::Maybe };
        let json = RowFormat::new(true, false);
        let mut found = 0u64;
        let mut out = cx.out();
        let asked = Lines::open(&self.lines, "checking")?.for_each(|line| {
            let mut verdict = guard.may_contain(line);
            if self.exact && verdict == Verdict::Maybe && !guard.exact(line)? {
                verdict = Verdict::Absent;
            }
            if verdict != wanted {
                return Ok(());
            }
            found += 1;
            match (self.count, cx.json) {
                (true, _) => Ok(()),
                (false, true) => json.write(&mut *out, line, None),
                (false, false) => {
                    out.write_all(line)?;
                    Ok(out.write_all(b"\n")?)
                }
            }
        })?;
        drop(out);
        match (self.count, cx.json) {
            (true, true) => cx.print_json(&serde_json::json!({ "count": found, "lines": asked }))?,
            (true, false) => writeln!(cx.out(), "{found}")?,
            (false, _) => {}
        }
        Ok(Outcome::found(found > 0))
    }
}
