//! Checks and executes the commands of one connection. Consecutive commands on items wait to be executed as
//! one [batch](super::batch); any other command first executes the waiting ones.

use super::batch::Batch;
use super::command::{Action, Call, Command, ItemArgs, ItemOp};
use super::pending::{PendingCommands, ReplyShape};
use super::replies::Replies;
use super::request::{Request, slice};
use super::shared::{Server, Session};
use super::{expire, insert, table};
use bytes::BytesMut;
use sidebloom::Expiry;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

pub struct Executor<'s> {
    server: &'s Server,
    pub session: Session,
    pending: PendingCommands,
    pub replies: Replies,
}

impl<'s> Executor<'s> {
    pub fn new(server: &'s Server, session: Session) -> Self {
        Executor { server, session, pending: PendingCommands::default(), replies: Replies::default() }
    }

    /// Executes a well-formed command, or adds it to the batch.
    pub async fn run(&mut self, command: &'static Command, request: Request<'_>) {
        let (items, expiry) = match self.check_items(command, request) {
            Ok(checked) => checked,
            Err(refusal) => return self.refuse(&refusal, request.input).await,
        };
        match command.run {
            Action::Items { what, items: form } => {
                let what = expiry.map_or(what, ItemOp::InsertExpiring);
                if self.pending.what().is_some_and(|before| !before.joins(what)) {
                    self.execute_pending(request.input).await;
                }
                let shape = match form {
                    ItemArgs::One | ItemArgs::OneExpiring => ReplyShape::One,
                    ItemArgs::Many | ItemArgs::Listed => ReplyShape::Array,
                };
                self.pending.push(what, items, shape);
            }
            Action::Now(run) => {
                self.execute_pending(request.input).await;
                let args: Vec<&[u8]> = request.words().collect();
                let (server, session, replies) = (self.server, &mut self.session, &mut self.replies);
                run(&mut Call { server, session, replies, commands: table::COMMANDS, args: &args });
                self.server.counters.commands.fetch_add(1, Relaxed);
            }
            Action::Transaction(_) => {} // They control what is executed here.
        }
    }

    /// Replies with an error.
    pub async fn refuse(&mut self, refusal: &str, input: &BytesMut) {
        self.execute_pending(input).await;
        self.replies.error(refusal);
    }

    /// Executes the batch and writes its replies. `input` has the items.
    pub async fn execute_pending(&mut self, input: &BytesMut) {
        let Some(what) = self.pending.what() else { return };
        self.server.counters.commands.fetch_add(self.pending.commands.len() as u64, Relaxed);
        let (server, commands, replies) = (self.server, &self.pending, &mut self.replies);
        Batch { server, commands, input, replies }.execute(what).await;
        self.pending.clear();
    }

    /// Looks up the command and checks the number of its arguments and the client's permission.
    pub fn check_form(&mut self, request: Request<'_>) -> Result<&'static Command, String> {
        let (arg, args) = (|n| request.arg(n).unwrap_or_default(), request.args.len());
        let Some(command) = table::find(arg(0)) else {
            // A web page can make a browser send these. Redis also disconnects such clients.
            self.session.is_over |=
                [&b"POST"[..], b"Host:"].iter().any(|word| arg(0).eq_ignore_ascii_case(word));
            let shown = |n| format!("{:.128}", arg(n).escape_ascii().to_string());
            let rest: String = (1..args.min(4)).map(|n| format!("'{}' ", shown(n))).collect();
            return Err(format!("ERR unknown command '{}', with args beginning with: {rest}", shown(0)));
        };
        if !command.takes(args) {
            return Err(format!(
                "ERR wrong number of arguments for '{}' command",
                command.name.to_ascii_lowercase()
            ));
        }
        if !self.session.is_allowed && !command.is_open {
            return Err("NOAUTH Authentication required.".into());
        }
        Ok(command)
    }

    /// The items of a command and when they expire, or why it is refused.
    fn check_items<'r>(
        &self,
        command: &Command,
        request: Request<'r>,
    ) -> Result<(&'r [Range<usize>], Option<Expiry>), String> {
        if command.takes_filter && request.arg(1) != Some(&self.server.settings.name) {
            return Err(match command.name {
                "BF.RESERVE" | "CF.RESERVE" => {
                    let only = self.server.settings.name.escape_ascii();
                    format!("ERR could not create filter: this server only has '{only}'")
                }
                _ => "ERR not found".into(),
            });
        }
        let Action::Items { what, items: items_form } = command.run else { return Ok((&[], None)) };
        let first = match items_form {
            ItemArgs::One | ItemArgs::OneExpiring | ItemArgs::Many => 2,
            ItemArgs::Listed => insert::items_at(command.group == "bf", |n| request.arg(n))?,
        };
        let mut items = request.args.get(first..).unwrap_or_default();
        let mut expiry = None;
        if items_form == ItemArgs::OneExpiring {
            let (item, options) = items.split_at_checked(1).unwrap_or_default();
            let options: Vec<&[u8]> = options.iter().map(|option| slice(request.input, option)).collect();
            expiry = expire::expiry_of(&self.server.guard, &options)?;
            items = item;
        }
        if what != ItemOp::Ask {
            if self.server.settings.is_followed && what != ItemOp::Count {
                return Err("ERR this guard follows a database: change the database instead".into());
            }
            let canonical = self.server.guard.canonical();
            items
                .iter()
                .try_for_each(|item| canonical.apply(slice(request.input, item)).map(drop))
                .map_err(|e| format!("ERR {e}"))?;
        }
        Ok((items, expiry))
    }
}
