//! Notices forks: what was opened before one belongs to the parent process.

use crate::error::exception;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The forks between the first process that imported this module and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// The process in which something was opened.
#[derive(Clone, Copy)]
pub struct Opener(u64);

impl Opener {
    pub fn this_process() -> Self {
        Opener(FORKS.load(Relaxed))
    }

    /// Whether this is that process.
    pub fn is_current(self) -> bool {
        self.0 == FORKS.load(Relaxed)
    }

    /// # Errors
    /// `ForkedError` in a forked process.
    pub fn check(self) -> PyResult<()> {
        if self.is_current() { Ok(()) } else { Err(exception(sidebloom::Error::Forked)) }
    }
}

#[pyfunction]
fn note_fork() {
    FORKS.fetch_add(1, Relaxed);
}

/// Counts the forks from now on.
pub fn watch(py: Python<'_>) -> PyResult<()> {
    let callbacks = PyDict::new(py);
    callbacks.set_item("after_in_child", wrap_pyfunction!(note_fork, py)?)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&callbacks)).map(drop)
}
