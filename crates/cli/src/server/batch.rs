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
            ItemOp::InsertNew | ItemOp::InsertExpiring(_) | ItemOp::Insert | ItemOp::Remove => {
                self.change().await;
            }
        }
    }

    async fn ask(&mut self) {
        if self.server.guard.may_expire() {
            // Filters may still have what has expired.
            return match self.counts().await {
                Ok(counts) => {
                    self.commands.reply(
                        self.replies,
                        counts.iter().map(|count| *count > 0),
                        Replies::boolean,
                    );
                }
                Err(error) => self.commands.refuse(self.replies, &format!("ERR {error}")),
            };
        }
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

    async fn count(&mut self) {
        match self.counts().await {
            Ok(counts) => self.commands.reply(self.replies, counts, Replies::int),
            Err(error) => self.commands.refuse(self.replies, &format!("ERR {error}")),
        }
    }

    /// Counts the items that may be present, in another thread, since that may read the disk.
    async fn counts(&self) -> Result<Vec<u64>, String> {
        // While the guard may lack rows, no item is reported as absent.
        let least = u64::from(self.server.guard.is_suspended());
        let verdicts = self.verdicts().await;
        let maybe = |(item, verdict): (&Range<usize>, &Verdict)| {
            (*verdict == Verdict::Maybe).then(|| slice(self.input, item).to_vec())
        };
        let items: Vec<Vec<u8>> = self.commands.items.iter().zip(&verdicts).filter_map(maybe).collect();
        let mut counts = Vec::new();
        if !items.is_empty() {
            let guard = self.server.guard.clone();
            let canonical = guard.canonical();
            // What the canonical form does not allow may be there.
            let count =
                move |item: &Vec<u8>| if canonical.apply(item).is_err() { Ok(1) } else { guard.count(item) };
            let count_all = move || items.iter().map(count).collect::<sidebloom::Result<_>>();
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

    async fn change(&mut self) {
        let mut changes = Changes::new();
        for (n, (what, item)) in self.commands.each().enumerate() {
            if n % ITEMS_AT_ONCE == ITEMS_AT_ONCE - 1 {
                yield_now().await;
            }
            let item = slice(self.input, item);
            match what {
                ItemOp::Insert => changes.insert(item),
                ItemOp::InsertExpiring(expiry) => changes.insert_new_with(item, expiry),
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
