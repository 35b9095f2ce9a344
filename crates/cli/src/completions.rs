//! `sidebloom completions`: shell completion scripts.

use crate::context::{Context, Failure, Outcome};
use clap::Command;
use clap_complete::{Shell, generate};
use std::io::Write;

/// Print a completion script for a shell
///
/// For bash: `sidebloom completions bash > ~/.local/share/bash-completion/completions/sidebloom`
#[derive(clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

impl Args {
    pub fn run(self, cx: &Context, mut command: Command) -> Result<Outcome, Failure> {
        cx.refuse_json("completions")?;
        // Into memory first: `generate` panics when writing fails, for example on a closed pipe.
        let mut script = Vec::new();
        generate(self.shell, &mut command, "sidebloom", &mut script);
        cx.out().write_all(&script)?;
        Ok(Outcome::Found)
    }
}
