//! Changes of many items, which are written part by part.

use super::catalog::Target;
use super::command::ItemOp;
use super::request::slice;
use super::state::Server;
use super::{on_filters, on_guard};
use crate::filters::{ItemCommands, ItemOutcome, Refusal};
use bytes::BytesMut;
use sidebloom::guard::Changes;
use std::ops::Range;

/// Some of the items of one command.
pub struct Part<'p> {
    pub what: ItemOp,
    /// Their positions in `input`.
    pub items: &'p [Range<usize>],
    pub input: &'p BytesMut,
    /// Whether another part was before it.
    pub is_rest: bool,
}

/// Applies a part as one write. Returns what became of its items, or the error of the whole command.
pub async fn change(server: &Server, target: &Target, part: &Part<'_>) -> Result<Vec<ItemOutcome>, String> {
    let items = part.items.iter().map(|item| slice(part.input, item));
    match target {
        Target::Guard(guard) => {
            let mut changes = Changes::new();
            items.for_each(|item| on_guard::push(&mut changes, part.what, item));
            let done = on_guard::write(guard, changes).await?;
            Ok(done.into_iter().map(on_guard::outcome).collect())
        }
        Target::Filter(filter) => {
            let mut commands = ItemCommands::default();
            let hashes = items.map(|item| filter.hash(item));
            commands.push(filter, on_filters::op_of(part.what), part.is_rest, hashes);
            let outcome = on_filters::write(server, commands).await?.pop();
            outcome.unwrap_or(Err(Refusal::NotFound)).map_err(|refusal| refusal.to_string())
        }
    }
}
