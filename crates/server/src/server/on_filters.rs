//! Questions to filters, and changes of them.

use super::catalog::{OwnFilters, Target};
use super::command::ItemOp as Asked;
use super::pending::{FEW_ITEMS, ITEMS_AT_ONCE, PendingCommand, ReplyShape, Run};
use super::request::slice;
use super::state::Server;
use crate::filters::{Filter, ItemCommands, ItemOp, ItemOutcome, Kind, Refusal};
use crate::resp::Replies;
use bytes::BytesMut;
use std::sync::Arc;
use tokio::task::{block_in_place, yield_now};

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
        let asked = if hashes.len() > FEW_ITEMS { block_in_place(ask) } else { ask() };
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
    let Some(OwnFilters { writer, .. }) = server.catalog.own() else { return };
    let mut commands = ItemCommands::default();
    for run in runs {
        let Some(Target::Filter(filter)) = run.target() else { continue };
        let mut hashes = hashes(filter, run, input).await.into_iter();
        for (command, items) in run.each() {
            commands.push(filter, op_of(command.what), hashes.by_ref().take(items.len()));
        }
    }
    match writer.write(commands).await {
        Ok(outcomes) => {
            let asked = runs.iter().flat_map(|run| run.commands);
            asked.zip(outcomes).for_each(|(command, outcome)| reply(replies, command, outcome));
        }
        Err(error) => {
            let error = format!("MISCONF Errors writing to the store: {error}");
            runs.iter().for_each(|run| run.refuse(replies, &error));
        }
    }
}

fn op_of(what: Asked) -> ItemOp {
    match what {
        Asked::Insert => ItemOp::Add,
        Asked::Remove => ItemOp::Remove,
        Asked::InsertNew | Asked::InsertExpiring(_) | Asked::Ask | Asked::Count => ItemOp::AddNew,
    }
}

fn reply(replies: &mut Replies, command: &PendingCommand, outcome: Result<Vec<ItemOutcome>, Refusal>) {
    let outcomes = match outcome {
        Ok(outcomes) => outcomes,
        Err(refusal) => return replies.error(&refusal.to_string()),
    };
    let is_bloom = matches!(&command.target, Some(Target::Filter(filter)) if filter.kind() == Kind::Bloom);
    if command.shape != ReplyShape::One {
        replies.array(outcomes.len());
    }
    for outcome in outcomes {
        match (outcome, command.shape) {
            (ItemOutcome::Full, _) if is_bloom => replies.error(&Refusal::Full.to_string()),
            (ItemOutcome::Full, ReplyShape::One) => replies.error("ERR Filter is full"),
            (ItemOutcome::Full, ReplyShape::Array) if replies.resp3 => replies.boolean(false),
            (ItemOutcome::Full, _) => replies.signed(-1),
            (changed, ReplyShape::Numbers) => replies.int(u64::from(changed == ItemOutcome::Changed)),
            (changed, _) => replies.boolean(changed == ItemOutcome::Changed),
        }
    }
}
