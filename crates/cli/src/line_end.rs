//! `-0` where keys may be negative numbers.
//!
//! clap takes `-0` for a key wherever keys like `-5` need no `--` before them. When keys come from lines, no
//! argument is a key, so `-0` must be the option for how lines end.

use clap::{Arg, Command};
use std::ffi::OsString;

/// The command line with `-0` as an option, if `args` ask for lines.
pub fn told_from_keys(command: Command, args: &[OsString]) -> Command {
    let options = || args.iter().take_while(|arg| *arg != "--");
    if !options().any(|arg| arg == "-0") {
        return command;
    }
    let without_numbers =
        |command: Command| command.mut_arg("keys", |keys: Arg| keys.allow_negative_numbers(false));
    let command = if options().any(|arg| arg == "-") {
        command.mut_subcommand("get", without_numbers)
    } else {
        command
    };
    if options().any(|arg| arg == "--lines" || arg.as_encoded_bytes().starts_with(b"--lines=")) {
        command.mut_subcommand("guard", |guard| {
            guard.mut_subcommand("insert", without_numbers).mut_subcommand("remove", without_numbers)
        })
    } else {
        command
    }
}
