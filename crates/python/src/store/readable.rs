//! What keyspaces, snapshots and transactions have in common: reads of single keys, and views of rows.

/// Implements it for a class with the methods `value` and `view`.
macro_rules! readable {
    ($name:ident) => {
        #[pymethods]
        impl $name {
            fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                self.value(key)?.ok_or_else(|| PyKeyError::new_err((key.clone().unbind(),)))
            }

            /// The value of a key, or `default`.
            #[pyo3(signature = (key, default = None, /))]
            fn get<'py>(
                &self,
                key: &Bound<'py, PyAny>,
                default: Option<Bound<'py, PyAny>>,
            ) -> PyResult<Option<Bound<'py, PyAny>>> {
                Ok(self.value(key)?.or(default))
            }

            fn __iter__(&self, py: Python<'_>) -> PyResult<Rows> {
                self.view(None, None, None)?.rows(py, Part::Key, false)
            }

            fn __reversed__(&self, py: Python<'_>) -> PyResult<Rows> {
                self.view(None, None, None)?.rows(py, Part::Key, true)
            }

            /// The keys in order: all, those that begin with `prefix`, or those from `start` on and before
            /// `stop`. A view that can be walked forwards, and backwards with `reversed`; each walk sees the
            /// rows as of when it begins.
            #[pyo3(signature = (prefix = None, *, start = None, stop = None))]
            fn keys(
                &self,
                prefix: Option<&Bound<'_, PyAny>>,
                start: Option<&Bound<'_, PyAny>>,
                stop: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Keys> {
                self.view(prefix, start, stop).map(Keys)
            }

            /// The values, in the order of their keys; see `keys`.
            #[pyo3(signature = (prefix = None, *, start = None, stop = None))]
            fn values(
                &self,
                prefix: Option<&Bound<'_, PyAny>>,
                start: Option<&Bound<'_, PyAny>>,
                stop: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Values> {
                self.view(prefix, start, stop).map(Values)
            }

            /// The keys and values, in the order of the keys; see `keys`.
            #[pyo3(signature = (prefix = None, *, start = None, stop = None))]
            fn items(
                &self,
                prefix: Option<&Bound<'_, PyAny>>,
                start: Option<&Bound<'_, PyAny>>,
                stop: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Items> {
                self.view(prefix, start, stop).map(Items)
            }
        }
    };
}
pub(super) use readable;
