//! `sidebloom man`: manual pages.

use crate::context::{Context, Failure, Outcome};
use clap::Command;
use clap_mangen::{Man, generate_to};
use std::io::Write;
use std::path::PathBuf;

/// Print the manual page, or write one page per command into a directory
#[derive(clap::Args)]
pub struct Args {
    /// Where to write the pages; created if missing
    dir: Option<PathBuf>,
}

impl Args {
    pub fn run(self, cx: &Context, command: Command) -> Result<Outcome, Failure> {
        cx.refuse_json("man")?;
        match &self.dir {
            Some(dir) => {
                std::fs::create_dir_all(dir).map_err(|e| Failure::file("create", dir, e))?;
                generate_to(command, dir).map_err(|e| Failure::file("write pages to", dir, e))?;
            }
            None => {
                let mut page = Vec::new();
                Man::new(command).render(&mut page)?;
                cx.out().write_all(&page)?;
            }
        }
        Ok(Outcome::Found)
    }
}
