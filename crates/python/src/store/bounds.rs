//! Which rows: `prefix`, `start` and `stop`.

use crate::error::invalid;
use crate::keys::row_bytes;
use pyo3::prelude::*;
use sidebloom::prefix_end;
use std::ops::Bound as End;

/// A range of keys, from the first on and before the last.
#[derive(Clone, Default)]
pub struct Bounds {
    pub lower: Option<Vec<u8>>,
    pub upper: Option<Vec<u8>>,
    /// They contain no key.
    pub is_empty: bool,
}

impl Bounds {
    /// # Errors
    /// `TypeError` for keys of another type; `InvalidArgumentError` for a prefix together with the others.
    pub fn of(
        prefix: Option<&Bound<'_, PyAny>>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        is_text: bool,
    ) -> PyResult<Self> {
        let bytes = |object: Option<&Bound<'_, PyAny>>| -> PyResult<Option<Vec<u8>>> {
            object.map(|object| Ok(row_bytes(object, is_text)?.into_owned())).transpose()
        };
        let (lower, upper) = (bytes(start)?, bytes(stop)?);
        match bytes(prefix)? {
            Some(_) if lower.is_some() || upper.is_some() => {
                Err(invalid("prefix excludes start and stop: start at the prefix, or stop before its end"))
            }
            Some(prefix) if prefix.is_empty() => Ok(Bounds::default()),
            Some(prefix) => Ok(Bounds { upper: prefix_end(&prefix), lower: Some(prefix), is_empty: false }),
            None => {
                // Python's ranges are empty if they run backwards.
                let is_empty =
                    lower.as_ref().zip(upper.as_ref()).is_some_and(|(lower, upper)| lower >= upper);
                Ok(Bounds { lower, upper, is_empty })
            }
        }
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        !self.is_empty
            && self.lower.as_deref().is_none_or(|lower| lower <= key)
            && self.upper.as_deref().is_none_or(|upper| key < upper)
    }

    pub fn ends(&self) -> (End<&[u8]>, End<&[u8]>) {
        let lower = self.lower.as_deref().map_or(End::Unbounded, End::Included);
        let upper = self.upper.as_deref().map_or(End::Unbounded, End::Excluded);
        (lower, upper)
    }
}
