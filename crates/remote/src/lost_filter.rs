//! Filters that a bucket does not have as its generation names them. They are derived data (invariant I2):
//! whoever reads the store does without them, and reads their segments instead.

use crate::error::Error;
use crate::generation::{File, Generation};
use sidebloom::internal::FileKind;

/// A filter that cannot be had, and why.
#[derive(Debug)]
pub(crate) struct LostFilter {
    name: String,
    why: Error,
}

impl LostFilter {
    /// The filter that an error lost. Any other error is given back: that of another file, or one that may
    /// pass, such as one of the network.
    pub fn from_error(file: &File, why: Error) -> Result<Self, Error> {
        let is_filter = matches!(FileKind::parse(&file.name), Some((_, FileKind::Filter)));
        match why {
            Error::Expired { .. } | Error::Damaged { .. } if is_filter => {
                Ok(LostFilter { name: file.name.clone(), why })
            }
            why => Err(why),
        }
    }

    /// Whether there is no such object. That is also so if the generation was collected.
    pub fn is_gone(&self) -> bool {
        matches!(self.why, Error::Expired { .. })
    }

    /// Why it cannot be had.
    pub fn into_error(self) -> Error {
        self.why
    }

    pub fn warn(&self) {
        let (file, reason) = (&self.name, &self.why);
        tracing::warn!(%file, %reason, "published filter is unusable; its segment is read instead");
    }
}

/// Takes lost filters out of a generation, each with a warning: a segment without a sidecar is read instead
/// of it.
pub(crate) fn leave_out(generation: &mut Generation, lost: &[LostFilter]) {
    for filter in lost {
        filter.warn();
        generation.files.retain(|file| file.name != filter.name);
    }
}
