//! Counts the warnings that this process logs, by the file that they name, with a minimal subscriber.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::sync::{Mutex, Once, PoisonError};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

static BY_FILE: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// Counts warnings from now on. Idempotent, and for the whole process, since the threads of a store warn too.
pub fn count_warnings() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Counter).unwrap());
}

/// Warnings so far whose field `file` is this path.
pub fn warnings_about(path: &Path) -> usize {
    let counts = BY_FILE.lock().unwrap_or_else(PoisonError::into_inner);
    counts.get(&path.display().to_string()).copied().unwrap_or(0)
}

struct Counter;

struct FileField(Option<String>);

impl Visit for FileField {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "file" {
            self.0 = Some(format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "file" {
            self.0 = Some(value.to_owned());
        }
    }
}

impl Subscriber for Counter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut file = FileField(None);
        event.record(&mut file);
        if let Some(file) = file.0 {
            *BY_FILE.lock().unwrap_or_else(PoisonError::into_inner).entry(file).or_default() += 1;
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}
