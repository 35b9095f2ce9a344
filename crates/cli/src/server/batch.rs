//! Executes a batch: one question to the guard, or one change of it, for all its commands.

use super::command::ItemOp;
use super::pending::PendingCommands;
use super::replies::Replies;
use super::request::slice;
use super::shared::Server;
use bytes::BytesMut;
use sidebloom::filter::Verdict;
use sidebloom::guard::Changes;
use std::ops::Range;
use tokio::task::yield_now;

/// Items processed before yielding to other connections; about a third of a millisecond.
const ITEMS_AT_ONCE: usize = 4096;

/// Commands of one kind, with the buffer that has their items.
pub struct Batch<'b> {
    pub server: &'b Server,
    pub commands: &'b PendingCommands,
    pub input: &'b BytesMut,
    pub replies: &'b mut Replies,
}

impl Batch<'_> {
    /// Executes the commands, all of kind `what`, and writes their replies.
    pub async fn execute(mut self, what: ItemOp) {
        match what {
            ItemOp::Ask => self.ask().await,
            ItemOp::Count => self.count().await,
            ItemOp::InsertNew | ItemOp::Insert | ItemOp::Remove => self.change().await,
        }
    }

    async fn ask(&mut self) {
        if let [item] = self.commands.items.as_slice() {
            let verdict = self.server.guard.may_contain(slice(self.input, item));
            return self.commands.reply(self.replies, [verdict == Verdict::Maybe], Replies::boolean);
        }
        let verdicts = self.verdicts().await;
        let answers = verdicts.into_iter().map(|verdict| verdict == Verdict::Maybe);
        self.commands.reply(self.replies, answers, Replies::boolean);
    }

    async fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for items in self.commands.items.chunks(ITEMS_AT_ONCE) {
            if !verdicts.is_empty() {
                yield_now().await;
            }
            let items: Vec<&[u8]> = items.iter().map(|item| slice(self.input, item)).collect();
            verdicts.extend(self.server.guard.may_contain_many(&items));
        }
        verdicts
    }

    /// Counts the items that may be present, in another thread, since that may read the disk.
    async fn count(&mut self) {
        // While the guard may lack rows, no item is reported as absent.
        let least = u64::from(self.server.guard.is_suspended());
        let verdicts = self.verdicts().await;
        let maybe = |(item, verdict): (&Range<usize>, &Verdict)| {
            (*verdict == Verdict::Maybe).then(|| slice(self.input, item).to_vec())
        };
        let items: Vec<Vec<u8>> = self.commands.items.iter().zip(&verdicts).filter_map(maybe).collect();
        let counts: Result<Vec<u64>, String> = if items.is_empty() {
            Ok(Vec::new())
        } else {
            let guard = self.server.guard.clone();
            let count = move || items.iter().map(|item| guard.count(item)).collect::<sidebloom::Result<_>>();
            match tokio::task::spawn_blocking(count).await {
                Ok(counts) => counts.map_err(|e| e.to_string()),
                Err(_) => Err("the server is stopping".into()),
            }
        };
        match counts {
            Ok(counts) => {
                let mut counts = counts.into_iter();
                let answer = |verdict: &Verdict| match verdict {
                    Verdict::Maybe => counts.next().unwrap_or(0).max(least),
                    Verdict::Absent => 0,
                };
                self.commands.reply(self.replies, verdicts.iter().map(answer), Replies::int);
            }
            Err(error) => self.commands.refuse(self.replies, &format!("ERR {error}")),
        }
    }

    async fn change(&mut self) {
        let mut changes = Changes::new();
        for (n, (what, item)) in self.commands.each().enumerate() {
            if n % ITEMS_AT_ONCE == ITEMS_AT_ONCE - 1 {
                yield_now().await;
            }
            let item = slice(self.input, item);
            match what {
                ItemOp::Insert => changes.insert(item),
                ItemOp::Remove => changes.remove(item),
                ItemOp::InsertNew | ItemOp::Ask | ItemOp::Count => changes.insert_new(item),
            };
        }
        match self.server.writer.write(changes).await {
            Ok(done) => self.commands.reply(self.replies, done, Replies::boolean),
            Err(error) => {
                let error = format!("MISCONF Errors writing to the guard: {error}");
                self.commands.refuse(self.replies, &error);
            }
        }
    }
}
