//! A change as an optimistic transaction.

use super::change::Change;
use super::kind::StoreKind;
use super::store::{OpenTransaction, Outcome};
use crate::error::Result;

/// Tries a change once, in a new transaction.
pub fn attempt<T: OpenTransaction>(
    kind: StoreKind,
    mut transaction: Box<T>,
    change: &mut Change<'_>,
) -> Result<Outcome> {
    let mut value = Vec::new();
    for (at, key) in change.keys().iter().enumerate() {
        let found = transaction.get(key, &mut value)?;
        change.see(kind, at, found.then_some(value.as_slice()))?;
    }
    for (key, value) in change.writes() {
        transaction.put(key, value)?;
    }
    transaction.commit()
}
