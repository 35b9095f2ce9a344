//! The names of a store's files, apart from the numbered ones in [`FileKind`].

pub(crate) use crate::id::LOCK;
use crate::id::{FileKind, TEMPORARY};
use crate::manifest::{MANIFEST, MANIFEST_TMP, ManifestState};

/// Follows the name of a file that a repair has set aside.
pub(crate) const DAMAGED: &str = ".damaged";

/// Whether a file still has its temporary name: it is a sidecar or a manifest that was never completed.
pub(crate) fn is_unfinished(name: &str) -> bool {
    name == MANIFEST_TMP || name.strip_suffix(TEMPORARY).and_then(FileKind::parse).is_some()
}

/// Whether a store or its repair may have given a file this name.
pub(crate) fn is_of_a_store(name: &str) -> bool {
    let name = name.split_once(DAMAGED).map_or(name, |(name, _)| name);
    name == LOCK || name == MANIFEST || is_unfinished(name) || FileKind::parse(name).is_some()
}

/// The smallest file number above all that are in use or were ever reserved. A file with the greatest possible number is ignored: no store
/// creates one.
pub(crate) fn next_free_id(state: &ManifestState, names: &[String]) -> u64 {
    let seen =
        names.iter().filter_map(|name| FileKind::parse(name)).filter_map(|(id, _)| id.0.checked_add(1)).max();
    seen.unwrap_or(1).max(state.next_id.0).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::StoreIdentity;

    #[test]
    fn a_file_with_the_greatest_number_leaves_numbers_for_new_files() {
        let state = ManifestState::new(StoreIdentity { store_id: 1, hasher: 2.into() });
        let names = ["000041.wal", "18446744073709551615.wal"].map(String::from);
        assert_eq!(next_free_id(&state, &names), 42);
    }
}
