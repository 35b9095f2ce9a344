//! Questions to a guard, and changes of it.

use super::catalog::NamedGuard;
use super::command::ItemOp;
use super::item_command::ITEMS_AT_ONCE;
use super::pending::{PendingCommand, Run};
use super::request::slice;
use super::state::Server;
use crate::filters::ItemOutcome;
use crate::resp::Replies;
use bytes::BytesMut;
use sidebloom::filter::Verdict;
use sidebloom::guard::{Changes, Guard};
use tokio::task::coop::consume_budget;
use tokio::task::yield_now;

/// Answers questions, all of the same kind.
pub async fn ask(server: &Server, guard: &Guard, run: &Run<'_>, input: &BytesMut, replies: &mut Replies) {
    let is_count = run.commands.first().is_some_and(|command| command.what == ItemOp::Count);
    // Filters may still have what has expired.
    if is_count || guard.may_expire() {
        return match counts(server, guard, run, input).await {
            Ok(counts) if is_count => run.reply(replies, counts, Replies::int),
            Ok(counts) => run.reply(replies, counts.iter().map(|count| *count > 0), Replies::boolean),
            Err(error) => run.refuse(replies, &format!("ERR {error}")),
        };
    }
    let is_maybe = |verdict: Verdict| verdict == Verdict::Maybe;
    if run.items.len() == 1 {
        let verdicts = run.items(input).map(|item| is_maybe(guard.may_contain(item)));
        return run.reply(replies, verdicts, Replies::boolean);
    }
    let verdicts = verdicts(guard, run, input).await;
    run.reply(replies, verdicts.into_iter().map(is_maybe), Replies::boolean);
}

async fn verdicts(guard: &Guard, run: &Run<'_>, input: &BytesMut) -> Vec<Verdict> {
    let all: Vec<&[u8]> = run.items(input).collect();
    let mut verdicts = Vec::with_capacity(all.len());
    for items in all.chunks(ITEMS_AT_ONCE) {
        if !verdicts.is_empty() {
            yield_now().await;
        }
        verdicts.extend(guard.may_contain_many(items));
    }
    verdicts
}

/// Counts the items that may be present, in another thread, since that may read the disk.
async fn counts(server: &Server, guard: &Guard, run: &Run<'_>, input: &BytesMut) -> Result<Vec<u64>, String> {
    // While the guard may lack rows, no item is reported as absent.
    let least = u64::from(guard.is_suspended());
    let verdicts = verdicts(guard, run, input).await;
    let maybe = |(item, verdict): (&[u8], &Verdict)| (*verdict == Verdict::Maybe).then(|| item.to_vec());
    let items: Vec<Vec<u8>> = run.items(input).zip(&verdicts).filter_map(maybe).collect();
    let mut counts = Vec::new();
    if !items.is_empty() {
        let guard = guard.clone();
        let canonical = guard.canonical();
        // What the canonical form does not allow may be there.
        let count =
            move |item: &Vec<u8>| if canonical.apply(item).is_err() { Ok(1) } else { guard.count(item) };
        let count_all = move || items.iter().map(count).collect::<sidebloom::Result<_>>();
        let _turn = server.turn().await;
        counts = tokio::task::spawn_blocking(count_all)
            .await
            .map_err(|_| "the server is stopping".to_owned())?
            .map_err(|e| e.to_string())?;
    }
    let mut counts = counts.into_iter();
    let answer = |verdict: &Verdict| match verdict {
        Verdict::Maybe => counts.next().unwrap_or(0).max(least),
        Verdict::Absent => 0,
    };
    Ok(verdicts.iter().map(answer).collect())
}

/// Applies changes as one write.
pub async fn change(guard: &NamedGuard, run: &Run<'_>, input: &BytesMut, replies: &mut Replies) {
    let mut changes = Changes::new();
    for (command, items) in run.each() {
        consume_budget().await; // There may be many.
        for items in items.chunks(ITEMS_AT_ONCE) {
            items.iter().for_each(|item| push(&mut changes, command.what, slice(input, item)));
            if items.len() == ITEMS_AT_ONCE {
                yield_now().await;
            }
        }
    }
    match write(guard, changes).await {
        Ok(done) => {
            let mut done = done.into_iter();
            for (PendingCommand { command, shape, .. }, items) in run.each() {
                let outcomes: Vec<ItemOutcome> = done.by_ref().take(items.len()).map(outcome).collect();
                shape.reply(replies, command.kind(), outcomes, None);
            }
        }
        Err(error) => run.refuse(replies, &error),
    }
}

pub fn push(changes: &mut Changes, what: ItemOp, item: &[u8]) {
    match what {
        ItemOp::Insert => changes.insert(item),
        ItemOp::InsertExpiring(expiry) => changes.insert_new_with(item, expiry),
        ItemOp::Remove => changes.remove(item),
        ItemOp::InsertNew | ItemOp::Ask | ItemOp::Count => changes.insert_new(item),
    };
}

/// Whether each change was one, or why nothing was changed.
pub async fn write(guard: &NamedGuard, changes: Changes) -> Result<Vec<bool>, String> {
    // Refused before, when the command was checked.
    let writer = guard.writer.as_ref().ok_or("ERR the guard is read-only")?;
    writer.write(changes).await.map_err(|error| format!("MISCONF Errors writing to the guard: {error}"))
}

pub fn outcome(is_changed: bool) -> ItemOutcome {
    if is_changed { ItemOutcome::Changed } else { ItemOutcome::Unchanged }
}
