//! Questions to filters, and changes of them.

use super::catalog::{OwnFilters, Target};
use super::command::ItemOp as Asked;
use super::item_command::ITEMS_AT_ONCE;
use super::pending::{FEW_ITEMS, PendingCommand, Run};
use super::request::slice;
use super::state::Server;
use crate::filters::{Filter, ItemCommands, ItemOp, ItemOutcome, Refusal};
use crate::resp::Replies;
use bytes::BytesMut;
use std::sync::Arc;
use tokio::task::coop::consume_budget;
use tokio::task::yield_now;

/// Answers questions, all of the same kind.
pub async fn ask(
    server: &Server,
    filter: &Arc<Filter>,
    run: &Run<'_>,
    input: &BytesMut,
    replies: &mut Replies,
) {
    let Some(OwnFilters { filters, .. }) = server.catalog.own() else { return };
    let is_count = run.commands.first().is_some_and(|command| command.what == Asked::Count);
    let hashes = hashes(filter, run, input).await;
    let (mut counts, mut found) = (Vec::new(), Vec::new());
    for hashes in hashes.chunks(ITEMS_AT_ONCE) {
        if !(counts.is_empty() && found.is_empty()) {
            yield_now().await;
        }
        let mut ask = || {
            if is_count {
                filters.counts(filter, hashes).map(|more| counts.extend(more))
            } else {
                filters.contains_hashes(filter, hashes).map(|more| found.extend(more))
            }
        };
        let asked = if hashes.len() > FEW_ITEMS { server.aside(ask).await } else { ask() };
        if let Err(refusal) = asked {
            return run.refuse(replies, &refusal.to_string());
        }
    }
    if is_count {
        run.reply(replies, counts, Replies::int);
    } else {
        run.reply(replies, found, Replies::boolean);
    }
}

async fn hashes(filter: &Filter, run: &Run<'_>, input: &BytesMut) -> Vec<u128> {
    let mut hashes = Vec::with_capacity(run.items.len());
    for item in run.items {
        hashes.push(filter.hash(slice(input, item)));
        if hashes.len() % ITEMS_AT_ONCE == 0 {
            yield_now().await;
        }
    }
    hashes
}

/// Applies the changes of consecutive commands as one write.
pub async fn change(server: &Server, runs: &[Run<'_>], input: &BytesMut, replies: &mut Replies) {
    let mut commands = ItemCommands::default();
    for run in runs {
        let Some(Target::Filter(filter)) = run.target() else { continue };
        consume_budget().await; // There may be many runs.
        let mut hashes = hashes(filter, run, input).await.into_iter();
        for (command, items) in run.each() {
            commands.push(filter, op_of(command.what), false, hashes.by_ref().take(items.len()));
        }
    }
    match write(server, commands).await {
        Ok(outcomes) => {
            let asked = runs.iter().flat_map(|run| run.commands);
            for (PendingCommand { command, shape, .. }, outcome) in asked.zip(outcomes) {
                match outcome {
                    Ok(outcomes) => shape.reply(replies, command.kind(), outcomes, None),
                    Err(refusal) => replies.error(&refusal.to_string()),
                }
            }
        }
        Err(error) => runs.iter().for_each(|run| run.refuse(replies, &error)),
    }
}

/// The outcome of each command, or why nothing was changed.
pub async fn write(
    server: &Server,
    commands: ItemCommands,
) -> Result<Vec<Result<Vec<ItemOutcome>, Refusal>>, String> {
    let own = server.catalog.own().ok_or_else(|| Refusal::NotFound.to_string())?;
    let written = own.writer.write(commands).await;
    written.map_err(|error| format!("MISCONF Errors writing to the store: {error}"))
}

pub fn op_of(what: Asked) -> ItemOp {
    match what {
        Asked::Insert => ItemOp::Add,
        Asked::Remove => ItemOp::Remove,
        Asked::InsertNew | Asked::InsertExpiring(_) | Asked::Ask | Asked::Count => ItemOp::AddNew,
    }
}
