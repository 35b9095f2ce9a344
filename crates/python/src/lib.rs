//! `sidebloom` for Python. The classes and functions are documented in their docstrings, the types in
//! `_sidebloom.pyi`.

mod error;
mod filter;
mod fork;
mod guard;
mod keys;
mod store;
mod verdicts;

use pyo3::prelude::*;

/// The native part of `sidebloom`.
#[pymodule]
mod _sidebloom {
    #[pymodule_export]
    use crate::filter::Filter;
    #[pymodule_export]
    use crate::guard::{Guard, GuardTransaction};
    #[pymodule_export]
    use crate::store::{
        Batch, Items, Keys, Keyspace, KeyspaceTransaction, Rows, Snapshot, Store, Transaction, Values,
    };
    use pyo3::prelude::*;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// Runs a command line, and returns its exit code. One that asks for help, or is wrong, ends the process.
    #[pyfunction]
    #[pyo3(name = "_main")]
    fn main(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
        py.detach(|| match sidebloom::fs::fill_standard_descriptors() {
            Ok(()) => sidebloom_cli::run(arguments),
            Err(_) => 2, // There is nowhere to say so.
        })
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::fork::watch(module.py())
    }
}
