//! Whom a store tells what happens in it.

use crate::event::Event;
use std::fmt;
use std::sync::Arc;

/// Is called with each event.
#[derive(Clone)]
pub(crate) struct EventCallback(Arc<dyn Fn(&Event) + Send + Sync>);

impl EventCallback {
    /// Calls this function.
    pub fn new(callback: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        EventCallback(Arc::new(callback))
    }

    /// Calls it.
    pub fn call(&self, event: &Event) {
        (self.0)(event);
    }
}

impl fmt::Debug for EventCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventCallback")
    }
}
