//! Executes a batch: one question, or one change, for all commands with the same target.

use super::catalog::Target;
use super::command::ItemOp;
use super::pending::{PendingCommands, Run};
use super::state::Server;
use super::{on_filters, on_guard};
use crate::resp::Replies;
use bytes::BytesMut;
use tokio::task::coop::consume_budget;

/// Commands of one kind, with the buffer that has their items.
pub struct Batch<'b> {
    pub server: &'b Server,
    pub commands: &'b PendingCommands,
    pub input: &'b BytesMut,
    pub replies: &'b mut Replies,
}

impl Batch<'_> {
    /// Executes the commands, all of kind `what`, and writes their replies.
    pub async fn execute(self, what: ItemOp) {
        let Batch { server, commands, input, replies } = self;
        let runs = commands.runs();
        if !what.is_change() {
            for run in &runs {
                consume_budget().await; // There may be many runs.
                match run.target() {
                    None => nothing_is_there(run, replies),
                    Some(Target::Guard(guard)) => {
                        on_guard::ask(server, &guard.guard, run, input, replies).await
                    }
                    Some(Target::Filter(filter)) => {
                        on_filters::ask(server, filter, run, input, replies).await
                    }
                }
            }
            return;
        }
        let is_filter = |run: &Run<'_>| matches!(run.target(), Some(Target::Filter(_)));
        let groups: Vec<&[Run<'_>]> = runs.chunk_by(|a, b| is_filter(a) && is_filter(b)).collect();
        for runs in groups {
            match runs.first().and_then(Run::target) {
                Some(Target::Guard(guard)) => {
                    for run in runs {
                        on_guard::change(guard, run, input, replies).await;
                    }
                }
                // Changes of different filters are one write.
                _ => on_filters::change(server, runs, input, replies).await,
            }
        }
    }
}

/// Answers questions about a filter that does not exist.
fn nothing_is_there(run: &Run<'_>, replies: &mut Replies) {
    let answers = run.each().flat_map(|(command, items)| items.iter().map(|_| command.what));
    run.reply(replies, answers, |replies, what| match what {
        ItemOp::Count => replies.int(0),
        _ => replies.boolean(false),
    });
}
