//! The options that several commands share: where each has an effect, and there alone it is offered and taken.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

/// Commands that open a store for which filters learn prefixes.
const STORE: [&str; 14] = [
    "get", "put", "delete", "scan", "load", "stats", "verify", "compact", "rebuild-filters", "checkpoint", "publish", "export",
    "import", "repair",
];
/// Commands that read a published store.
const PUBLISHED: [&str; 5] = ["get", "scan", "stats", "verify", "export"];

/// Whether an option has an effect on a command, given by its path: `["guard", "check"]`.
fn applies(option: &str, path: &[&str]) -> bool {
    let first = path.first().copied().unwrap_or_default();
    match option {
        "db" => STORE.contains(&first) || matches!(first, "bench" | "demo"),
        "prefixes" => STORE.contains(&first) && first != "repair",
        "wait" => STORE.contains(&first) || matches!(first, "bench" | "guard"),
        "remote_cache" => PUBLISHED.contains(&first),
        _ => true,
    }
}

/// Adds the top command's options to each command on which they have an effect.
pub fn spread(command: Command) -> Command {
    let own = |arg: &&Arg| arg.get_long().is_some() && !matches!(arg.get_id().as_str(), "help" | "version");
    let options: Vec<Arg> = command.get_arguments().filter(own).cloned().collect();
    spread_below(command, &options, &[])
}

fn spread_below(command: Command, options: &[Arg], path: &[&str]) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.iter().fold(command, |command, name| {
        let path = [path, &[name.as_str()]].concat();
        let options_here = options.iter().filter(|option| applies(option.get_id().as_str(), &path)).cloned();
        command.mut_subcommand(name, |sub| spread_below(sub.args(options_here), options, &path))
    })
}

/// The options as given, before the command's name or after it.
pub struct Given<'m> {
    /// Of the top command, and of each command below it.
    levels: Vec<&'m ArgMatches>,
    path: Vec<&'m str>,
}

impl<'m> Given<'m> {
    /// From the matches of the top command.
    pub fn new(top: &'m ArgMatches) -> Self {
        let mut given = Given { levels: vec![top], path: Vec::new() };
        let mut at = top;
        while let Some((name, below)) = at.subcommand() {
            given.path.push(name);
            given.levels.push(below);
            at = below;
        }
        given
    }

    /// An error for an option that was given and has no effect on the command.
    pub fn check(&self, command: &mut Command) -> Result<(), clap::Error> {
        for option in ["db", "prefixes", "wait", "remote_cache"] {
            if !applies(option, &self.path) && self.named(option).next().is_some() {
                return Err(command.error(
                    ErrorKind::ArgumentConflict,
                    format!("--{} has no effect on `{}`", option.replace('_', "-"), self.path.join(" ")),
                ));
            }
        }
        Ok(())
    }

    /// Whether an option was given on the command line, rather than through the environment.
    pub fn is_named(&self, option: &str) -> bool {
        self.named(option).next().is_some()
    }

    /// How often a counted option was given.
    pub fn count(&self, option: &str) -> u8 {
        self.named(option).map(|level| level.get_count(option)).fold(0, u8::saturating_add)
    }

    /// The level whose value counts: the last one that names the option, or else the top, with the environment and the default.
    pub fn level(&self, option: &str) -> Option<&'m ArgMatches> {
        self.named(option).last().or(self.levels.first().copied())
    }

    fn named(&self, option: &str) -> impl Iterator<Item = &'m ArgMatches> {
        self.levels.iter().copied().filter(move |level| {
            level.try_contains_id(option).is_ok() && level.value_source(option) == Some(ValueSource::CommandLine)
        })
    }
}
