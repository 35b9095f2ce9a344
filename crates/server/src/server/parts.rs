//! Changes of many items, which are written part by part.

use super::catalog::Target;
use super::command::ItemOp;
use super::pending::ReplyShape;
use super::request::slice;
use super::state::Server;
use super::{on_filters, on_guard};
use crate::filters::{ItemCommands, ItemOutcome, Kind, Refusal};
use crate::resp::Replies;
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

/// Replies to a command that changes items of a filter or guard for commands of this kind.
pub fn reply(
    replies: &mut Replies,
    kind: Kind,
    shape: ReplyShape,
    outcomes: impl IntoIterator<Item = ItemOutcome, IntoIter: ExactSizeIterator>,
) {
    let outcomes = outcomes.into_iter();
    if shape != ReplyShape::One {
        replies.array(outcomes.len());
    }
    for outcome in outcomes {
        match (outcome, shape) {
            (ItemOutcome::Full, _) if kind == Kind::Bloom => replies.error(&Refusal::Full.to_string()),
            (ItemOutcome::Full, ReplyShape::One) => replies.error("ERR Filter is full"),
            (ItemOutcome::Full, ReplyShape::Array) if replies.resp3 => replies.boolean(false),
            (ItemOutcome::Full, _) => replies.signed(-1),
            (changed, ReplyShape::Numbers) => replies.int(u64::from(changed == ItemOutcome::Changed)),
            (changed, _) => replies.boolean(changed == ItemOutcome::Changed),
        }
    }
}
