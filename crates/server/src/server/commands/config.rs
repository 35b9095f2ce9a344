//! `CONFIG`: what the server was started with, under Redis' names, and what filters are created with.

use super::super::command::Call;
use super::super::state::{Defaults, Server};
use super::glob;
use super::numbers::{integer, rate};
use crate::filters::{Bloom, Cuckoo, DATABASES};
use crate::resp::Limits;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

/// One setting: its name, how it is shown, and how it is set, if it can be.
struct Setting {
    name: &'static str,
    get: fn(&Server) -> String,
    set: Option<Set>,
}

/// What can be set, before or after a change.
struct Values {
    slow_micros: i64,
    slow_len: usize,
    defaults: Defaults,
    /// `None` if the server has no filters of its own.
    max_expansions: Option<u64>,
}

impl Values {
    fn of(server: &Server) -> Self {
        Values {
            slow_micros: server.slow_log.threshold_micros.load(Relaxed),
            slow_len: server.slow_log.len_max.load(Relaxed),
            defaults: server.defaults(),
            max_expansions: server.catalog.own().map(|own| own.filters.max_expansions()),
        }
    }

    fn apply(self, server: &Server) {
        server.slow_log.threshold_micros.store(self.slow_micros, Relaxed);
        server.slow_log.len_max.store(self.slow_len, Relaxed);
        server.set_defaults(self.defaults);
        if let (Some(own), Some(max)) = (server.catalog.own(), self.max_expansions) {
            own.filters.set_max_expansions(max);
        }
    }
}

/// Sets it; `None` if that is no value that it can have.
type Set = fn(&mut Values, &[u8]) -> Option<()>;

const fn fixed(name: &'static str, get: fn(&Server) -> String) -> Setting {
    Setting { name, get, set: None }
}

const fn settable(name: &'static str, get: fn(&Server) -> String, set: Set) -> Setting {
    Setting { name, get, set: Some(set) }
}

static SETTINGS: &[Setting] = &[
    fixed("save", |_| String::new()),
    fixed("appendonly", |_| "yes".into()),
    fixed("appendfsync", |server| if server.settings.is_synced { "always" } else { "no" }.into()),
    fixed("maxclients", |server| server.settings.max_clients.to_string()),
    fixed("maxmemory-clients", |server| server.memory.max().to_string()),
    fixed("timeout", |server| server.settings.idle_timeout.map_or(0, |idle| idle.as_secs()).to_string()),
    fixed("port", |server| server.port.to_string()),
    fixed("databases", |server| if server.catalog.own().is_some() { DATABASES } else { 1 }.to_string()),
    fixed("proto-max-bulk-len", |_| Limits::FULL.bulk.to_string()),
    settable(
        "slowlog-log-slower-than",
        |server| server.slow_log.threshold_micros.load(Relaxed).to_string(),
        |values, value| {
            values.slow_micros = integer(value)?;
            Some(())
        },
    ),
    settable(
        "slowlog-max-len",
        |server| server.slow_log.len_max.load(Relaxed).to_string(),
        |values, value| {
            values.slow_len = usize::try_from(integer(value)?).ok().filter(|len| *len <= 10_000)?;
            Some(())
        },
    ),
    settable(
        "bf-error-rate",
        |server| server.defaults().bloom.error_rate().to_string(),
        |values, value| {
            set_bloom(values, |bloom| Bloom::new(rate(value)?, bloom.first_capacity(), bloom.expansion()))
        },
    ),
    settable(
        "bf-initial-size",
        |server| server.defaults().bloom.first_capacity().to_string(),
        |values, value| {
            set_bloom(values, |bloom| Bloom::new(bloom.error_rate(), number(value)?, bloom.expansion()))
        },
    ),
    settable(
        "bf-expansion-factor",
        |server| server.defaults().bloom.expansion().unwrap_or(0).to_string(),
        |values, value| {
            let expansion = u32::try_from(number(value)?).ok()?;
            let expansion = Some(expansion).filter(|expansion| *expansion > 0);
            set_bloom(values, |bloom| Bloom::new(bloom.error_rate(), bloom.first_capacity(), expansion))
        },
    ),
    settable(
        "cf-bucket-size",
        |server| server.defaults().cuckoo.bucket_size().to_string(),
        |values, value| {
            let size = u8::try_from(number(value)?).ok()?;
            set_cuckoo(values, |cuckoo| {
                Cuckoo::new(cuckoo.capacity(), size, cuckoo.max_iterations(), cuckoo.expansion()).ok()
            })
        },
    ),
    settable(
        "cf-initial-size",
        |server| server.defaults().cuckoo.capacity().to_string(),
        |values, value| {
            let capacity = number(value)?;
            set_cuckoo(values, |cuckoo| {
                Cuckoo::new(capacity, cuckoo.bucket_size(), cuckoo.max_iterations(), cuckoo.expansion()).ok()
            })
        },
    ),
    settable(
        "cf-max-iterations",
        |server| server.defaults().cuckoo.max_iterations().to_string(),
        |values, value| {
            let iterations = u16::try_from(number(value)?).ok()?;
            set_cuckoo(values, |cuckoo| {
                Cuckoo::new(cuckoo.capacity(), cuckoo.bucket_size(), iterations, cuckoo.expansion()).ok()
            })
        },
    ),
    settable(
        "cf-expansion-factor",
        |server| server.defaults().cuckoo.expansion().to_string(),
        |values, value| {
            let expansion = u16::try_from(number(value)?).ok()?;
            set_cuckoo(values, |cuckoo| {
                Cuckoo::new(cuckoo.capacity(), cuckoo.bucket_size(), cuckoo.max_iterations(), expansion).ok()
            })
        },
    ),
    settable(
        "cf-max-expansions",
        |server| server.catalog.own().map_or(0, |own| own.filters.max_expansions()).to_string(),
        |values, value| {
            let max = number(value).filter(|max| (1..=65_536).contains(max))?;
            *values.max_expansions.as_mut()? = max;
            Some(())
        },
    ),
];

fn number(value: &[u8]) -> Option<u64> {
    u64::try_from(integer(value)?).ok()
}

fn set_bloom(values: &mut Values, change: impl FnOnce(Bloom) -> Option<Bloom>) -> Option<()> {
    values.defaults.bloom = change(values.defaults.bloom)?;
    Some(())
}

fn set_cuckoo(values: &mut Values, change: impl FnOnce(Cuckoo) -> Option<Cuckoo>) -> Option<()> {
    values.defaults.cuckoo = change(values.defaults.cuckoo)?;
    Some(())
}

/// `CONFIG GET pattern …`, `CONFIG SET name value …`, `CONFIG RESETSTAT`
pub fn config(call: &mut Call<'_>) {
    if call.is(1, "GET") && call.args.len() > 2 {
        get(call);
    } else if call.is(1, "SET") && call.args.len() > 3 && call.args.len().is_multiple_of(2) {
        set(call);
    } else if call.is(1, "RESETSTAT") && call.args.len() == 2 {
        call.commands.iter().for_each(|command| command.calls.reset());
        call.replies.simple("OK");
    } else {
        call.unknown_subcommand();
    }
}

fn get(call: &mut Call<'_>) {
    let patterns: Vec<Vec<u8>> =
        call.args.get(2..).unwrap_or_default().iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
    if patterns.iter().any(|pattern| pattern.len() > glob::LEN_MAX) {
        return call.replies.error(glob::TOO_LONG);
    }
    let is_wanted =
        |setting: &&Setting| patterns.iter().any(|pattern| glob::matches(pattern, setting.name.as_bytes()));
    let found: Vec<&Setting> = SETTINGS.iter().filter(is_wanted).collect();
    call.replies.map(found.len());
    for setting in found {
        call.replies.bulk(setting.name);
        call.replies.bulk((setting.get)(call.server));
    }
}

/// Sets all of them, or none.
fn set(call: &mut Call<'_>) {
    let _setting = call.server.setting.lock().unwrap_or_else(PoisonError::into_inner);
    let mut values = Values::of(call.server);
    for pair in call.args.get(2..).unwrap_or_default().chunks(2) {
        let [name, value] = pair else { continue };
        if let Err(error) = set_one(&mut values, name, value) {
            return call.replies.error(&error);
        }
    }
    values.apply(call.server);
    call.replies.simple("OK");
}

fn set_one(values: &mut Values, name: &[u8], value: &[u8]) -> Result<(), String> {
    let shown = format!("{:.128}", name.escape_ascii().to_string());
    let setting = SETTINGS.iter().find(|setting| name.eq_ignore_ascii_case(setting.name.as_bytes()));
    let Some(setting) = setting else {
        return Err(format!("ERR Unknown option or number of arguments for CONFIG SET - '{shown}'"));
    };
    let why = match setting.set {
        None => "can't set immutable config",
        Some(set) if set(values, value).is_none() => "the value is not one that it can have",
        Some(_) => return Ok(()),
    };
    Err(format!("ERR CONFIG SET failed (possibly related to argument '{shown}') - {why}"))
}
