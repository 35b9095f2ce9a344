//! Options that several commands share. Each is offered where it has an effect, and refused elsewhere.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

/// Commands whose store has filters that learn prefixes.
const STORE: [&str; 16] = [
    "get",
    "put",
    "delete",
    "scan",
    "load",
    "seen",
    "keyspaces",
    "stats",
    "verify",
    "compact",
    "rebuild-filters",
    "checkpoint",
    "publish",
    "export",
    "import",
    "repair",
];
/// Commands that read a published store.
const PUBLISHED: [&str; 6] = ["get", "scan", "seen", "stats", "verify", "export"];

/// Whether an option has an effect on a command, given by its path: `["guard", "check"]`.
fn applies(option: &str, path: &[&str]) -> bool {
    let first = path.first().copied().unwrap_or_default();
    match option {
        "db" => STORE.contains(&first) || matches!(first, "bench" | "report") || path == ["backup"],
        "prefixes" => STORE.contains(&first) && !matches!(first, "repair" | "keyspaces"),
        "wait" => STORE.contains(&first) || matches!(first, "bench" | "guard" | "backup" | "restore"),
        "remote_cache" => PUBLISHED.contains(&first) || path == ["keyspaces"],
        _ => true,
    }
}

/// The command line as it is offered: a command has the top command's options that have an effect on it.
pub fn offered(command: Command) -> Command {
    spread(command, |option, path| applies(option.get_id().as_str(), path).then(|| option.clone()))
}

/// The command line as it is parsed: each command has all options, so [`Given::check`] can explain refusals.
pub fn understood(command: Command) -> Command {
    spread(command, |option, path| Some(option.clone().hide(!applies(option.get_id().as_str(), path))))
}

/// Adds options of the top command to the commands below it; `here` chooses them for a path.
fn spread(command: Command, here: impl Fn(&Arg, &[&str]) -> Option<Arg>) -> Command {
    let own = |arg: &&Arg| arg.get_long().is_some() && !matches!(arg.get_id().as_str(), "help" | "version");
    let options: Vec<Arg> = command.get_arguments().filter(own).cloned().collect();
    spread_below(command, &options, &[], &here)
}

fn spread_below(
    command: Command,
    options: &[Arg],
    path: &[&str],
    here: &impl Fn(&Arg, &[&str]) -> Option<Arg>,
) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.iter().fold(command, |command, name| {
        let path = [path, &[name.as_str()]].concat();
        let added = options.iter().filter_map(|option| here(option, &path));
        command.mut_subcommand(name, |sub| {
            let own: Vec<Option<String>> = sub.get_arguments().map(long_name).collect();
            let added = added.filter(|option| !own.contains(&long_name(option)));
            spread_below(sub.args(added), options, &path, here)
        })
    })
}

fn long_name(arg: &Arg) -> Option<String> {
    arg.get_long().map(str::to_owned)
}

/// The shared options, given before or after the command's name.
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

    /// An error for a given option that has no effect on the command. `all` is the whole command line.
    pub fn check(&self, all: impl FnOnce() -> Command) -> Result<(), clap::Error> {
        let has_no_effect = |option: &&str| !applies(option, &self.path) && self.is_named(option);
        match ["db", "prefixes", "wait", "remote_cache"].into_iter().find(has_no_effect) {
            Some(option) => {
                let (option, path) = (option.replace('_', "-"), self.path.join(" "));
                let instead = match (&*option, &*path) {
                    ("db", "demo") => ", which builds its own store: choose its directory with --keep",
                    ("prefixes", "keyspaces create" | "keyspaces set") => {
                        ": give it after the command, to store it with the keyspace"
                    }
                    _ => "",
                };
                Err(self.error(all(), format!("--{option} has no effect on `{path}`{instead}")))
            }
            None => Ok(()),
        }
    }

    /// With the usage of the command that refuses it.
    fn error(&self, mut command: Command, message: String) -> clap::Error {
        command.build();
        for name in &self.path {
            command = command.find_subcommand(name).cloned().unwrap_or(command);
        }
        command.error(ErrorKind::ArgumentConflict, message)
    }

    /// Whether an option was given on the command line, rather than through the environment.
    pub fn is_named(&self, option: &str) -> bool {
        self.named(option).next().is_some()
    }

    /// How often a flag that counts was given.
    pub fn count(&self, option: &str) -> u8 {
        self.named(option).map(|level| level.get_count(option)).fold(0, u8::saturating_add)
    }

    /// The level whose value counts: the last one that names the option, or else the top, with the
    /// environment and the default.
    pub fn level(&self, option: &str) -> Option<&'m ArgMatches> {
        self.named(option).last().or(self.levels.first().copied())
    }

    fn named(&self, option: &str) -> impl Iterator<Item = &'m ArgMatches> {
        self.levels.iter().copied().filter(move |level| {
            level.try_contains_id(option).is_ok()
                && level.value_source(option) == Some(ValueSource::CommandLine)
        })
    }
}
