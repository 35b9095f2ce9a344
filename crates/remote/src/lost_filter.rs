//! Filters that a bucket lacks or has damaged. They are derived data (invariant I2): readers do without them,
//! and read their segments instead.

use crate::error::Error;
use crate::generation::{File, Generation};
use sidebloom::internal::FileKind;

/// An unavailable filter, and why.
#[derive(Debug)]
pub(crate) struct LostFilter {
    name: String,
    why: Error,
}

impl LostFilter {
    /// The filter that an error lost. Gives back any other error: another file's, or one that may pass, such
    /// as a network error.
    pub fn from_error(file: &File, why: Error) -> Result<Self, Error> {
        let is_filter = matches!(FileKind::parse(&file.name), Some((_, FileKind::Filter)));
        match why {
            Error::Expired { .. } | Error::Damaged { .. } if is_filter => {
                Ok(LostFilter { name: file.name.clone(), why })
            }
            why => Err(why),
        }
    }

    /// Whether there is no such object. That is also true if the generation was collected.
    pub fn is_gone(&self) -> bool {
        matches!(self.why, Error::Expired { .. })
    }

    /// Why it is unavailable.
    pub fn into_error(self) -> Error {
        self.why
    }

    pub fn warn(&self) {
        let (file, reason) = (&self.name, &self.why);
        tracing::warn!(%file, %reason, "published filter is unusable; its segment is read instead");
    }
}

/// Removes lost filters from a generation, each with a warning: their segments are read instead.
pub(crate) fn leave_out(generation: &mut Generation, lost: &[LostFilter]) {
    for filter in lost {
        filter.warn();
        generation.files.retain(|file| file.name != filter.name);
    }
}
