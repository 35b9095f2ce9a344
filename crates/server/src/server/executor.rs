//! Checks and executes the commands of one connection. Consecutive commands on items wait to be executed as
//! one [batch](super::batch); any other command first executes the waiting ones.

use super::batch::Batch;
use super::catalog::Target;
use super::command::{Action, Call, Command, ItemOp, KeyArgs};
use super::item_command::{ITEMS_AT_ONCE, ItemCommand};
use super::parts;
use super::pending::{FEW_ITEMS, PendingCommands};
use super::request::Request;
use super::state::{Server, Session};
use super::table;
use crate::filters::{ItemOutcome, Kind, Refusal};
use crate::resp::Replies;
use bytes::BytesMut;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::sync::RwLockReadGuard;
use tokio::task::yield_now;

pub struct Executor<'s> {
    server: &'s Server,
    pub session: Session,
    pending: PendingCommands,
    pub replies: Replies,
    /// Whether this connection holds the server's gate alone: no other changes anything.
    pub is_exclusive: bool,
    /// Held while changes of items are pending, so that no filter is deleted before they are written.
    gate: Option<RwLockReadGuard<'s, ()>>,
}

impl<'s> Executor<'s> {
    pub fn new(server: &'s Server, session: Session) -> Self {
        let (pending, replies) = (PendingCommands::default(), Replies::default());
        Executor { server, session, pending, replies, is_exclusive: false, gate: None }
    }

    /// Executes a well-formed command, or adds it to the batch.
    pub async fn run(&mut self, command: &'static Command, request: Request<'_>) {
        match command.run {
            Action::Items { what, items: form } => {
                if self.pending.what().is_some_and(|before| !before.joins(what)) {
                    self.execute_pending(request.input).await;
                }
                let done = match ItemCommand::parse(self.server, command, what, form, request) {
                    Ok(command) => self.run_on_items(&command).await,
                    Err(refusal) => Err(refusal),
                };
                if let Err(refusal) = done {
                    self.refuse(&refusal, request.input).await;
                }
            }
            Action::Now(run) => {
                self.execute_pending(request.input).await;
                if request.args.len() > FEW_ITEMS {
                    self.server.aside(|| self.call(command, run, request)).await;
                } else {
                    self.call(command, run, request);
                }
            }
            Action::Waiting(run) => {
                self.execute_pending(request.input).await;
                let waits = command.is_change() && !self.is_exclusive;
                let _gate = if waits { Some(self.server.gate.write().await) } else { None };
                self.server.aside(|| self.call(command, run, request)).await;
            }
            Action::Transaction(_) => {} // They control what is executed here.
        }
    }

    async fn run_on_items(&mut self, command: &ItemCommand<'_>) -> Result<(), String> {
        let is_change = command.what.is_change();
        if is_change && command.items.len() > ITEMS_AT_ONCE && !self.is_exclusive {
            return self.change_in_parts(command).await;
        }
        if is_change {
            self.share_gate().await;
        }
        let (target, what) = self.resolve(command).await?;
        if let Some(target) = &target {
            command.check_items(target).await?;
        }
        self.pending.push(command, target, what);
        Ok(())
    }

    /// Executes a change of many items. It is one write for each part of them, so that the changes of others
    /// do not wait for all. What ends it before the last item is the last element of the reply.
    async fn change_in_parts(&mut self, command: &ItemCommand<'_>) -> Result<(), String> {
        self.execute_pending(command.input).await;
        self.share_gate().await;
        let started = Instant::now();
        let (Some(target), what) = self.resolve(command).await? else { return Ok(()) };
        if matches!(target, Target::Guard(_)) {
            self.gate = None; // A guard stays.
            command.check_items(&target).await?;
        }
        let (mut outcomes, mut end) = (Vec::with_capacity(command.items.len()), None);
        for items in command.items.chunks(ITEMS_AT_ONCE) {
            self.share_gate().await;
            let is_rest = !outcomes.is_empty();
            let part = parts::Part { what, items, input: command.input, is_rest };
            let changed = parts::change(self.server, &target, &part).await;
            self.gate = None;
            match changed {
                Ok(more) => outcomes.extend(more),
                Err(error) if is_rest => end = Some(error),
                Err(error) => return Err(error),
            }
            let is_full = command.kind == Kind::Bloom && outcomes.last() == Some(&ItemOutcome::Full);
            if is_full || end.is_some() {
                break;
            }
            yield_now().await;
        }
        command.shape.reply(&mut self.replies, command.kind, outcomes, end.as_deref());
        self.note_calls(command.command, started.elapsed(), command.items.len());
        Ok(())
    }

    async fn share_gate(&mut self) {
        if self.gate.is_none() && !self.is_exclusive {
            self.gate = Some(self.server.gate.read().await);
        }
    }

    /// Finds the target of a command on items, which is created where RedisBloom would create one. Returns
    /// what is done with the items there. For a change, the gate is shared.
    async fn resolve(&mut self, command: &ItemCommand<'_>) -> Result<(Option<Target>, ItemOp), String> {
        let catalog = &self.server.catalog;
        let has_filters = catalog.own().is_some();
        let pending = self.pending.target_of(command.input, command.name());
        let mut target = pending.or_else(|| catalog.find(self.session.database, command.name()));
        if command.is_expiring() && has_filters && !matches!(target, Some(Target::Guard(_))) {
            return Err("ERR items of this filter do not expire: let the filter expire, with EXPIRE".into());
        }
        if target.is_none() && has_filters && command.what.is_change() {
            target = Some(self.create(command).await?);
        }
        match target {
            Some(target) => command.check(&target).map(|what| (Some(target), what)),
            None if has_filters => Ok((None, command.what)), // A question.
            None => Err(Refusal::NotFound.to_string()),
        }
    }

    async fn create(&mut self, command: &ItemCommand<'_>) -> Result<Target, String> {
        let parameters = command.parameters(self.server)?;
        let server = self.server;
        let (database, name) = (self.session.database, command.name());
        let create = || server.catalog.create(database, name, parameters);
        let created = if self.is_exclusive {
            server.aside(create).await
        } else {
            self.execute_pending(command.input).await; // It shares the gate.
            let gate = server.gate.write().await;
            let created = server.aside(create).await;
            self.gate = Some(gate.downgrade());
            created
        };
        Ok(Target::Filter(created.map_err(|refusal| refusal.to_string())?.filter()))
    }

    fn call(&mut self, command: &'static Command, run: fn(&mut Call<'_>), request: Request<'_>) {
        let args: Vec<&[u8]> = request.words().collect();
        let (server, started) = (self.server, Instant::now());
        let (session, replies) = (&mut self.session, &mut self.replies);
        run(&mut Call { server, session, replies, commands: table::COMMANDS, args: &args });
        let time = started.elapsed();
        command.calls.note(1, time);
        server.counters.commands.fetch_add(1, Relaxed);
        // What a client says to log in is nobody else's business.
        if server.slow_log.is_slow(time) && !command.is_open {
            let args = args.into_iter().take(9).map(<[u8]>::to_vec).collect();
            self.note_slow(time, args);
        }
    }

    /// Replies with an error.
    pub async fn refuse(&mut self, refusal: &str, input: &BytesMut) {
        self.execute_pending(input).await;
        self.replies.error(refusal);
    }

    /// Executes the batch and writes its replies. `input` has the items.
    pub async fn execute_pending(&mut self, input: &BytesMut) {
        let Some(what) = self.pending.what() else {
            self.gate = None; // Of a change that was refused.
            return;
        };
        self.server.counters.commands.fetch_add(self.pending.len() as u64, Relaxed);
        let (server, commands, replies) = (self.server, &self.pending, &mut self.replies);
        let started = Instant::now();
        Batch { server, commands, input, replies }.execute(what).await;
        self.gate = None;
        let time = started.elapsed();
        self.pending.note_time(time);
        if server.slow_log.is_slow(time) {
            self.note_slow(time, self.pending.summary());
        }
        self.pending.clear();
    }

    /// Notes a call of a command on so many items.
    fn note_calls(&self, command: &Command, time: Duration, items: usize) {
        command.calls.note(1, time);
        self.server.counters.commands.fetch_add(1, Relaxed);
        if self.server.slow_log.is_slow(time) {
            self.note_slow(time, vec![command.name.into(), format!("({items} items)").into_bytes()]);
        }
    }

    /// Whether changes are pending.
    pub fn has_pending_changes(&self) -> bool {
        self.pending.what().is_some_and(ItemOp::is_change)
    }

    fn note_slow(&self, time: Duration, args: Vec<Vec<u8>>) {
        let client = &self.session.client;
        let name = client.text().name.clone();
        self.server.slow_log.push(time, args, client.address_text(), name);
    }

    /// Memory of the batch, of what is watched, and of the replies, in bytes.
    pub fn bytes(&self) -> usize {
        self.pending.bytes() + self.session.watched.bytes() + self.replies.bytes.capacity()
    }

    /// Looks up the command and checks the number of its arguments and the client's permission.
    pub fn check_form(&mut self, request: Request<'_>) -> Result<&'static Command, String> {
        let (arg, args) = (|n| request.arg(n).unwrap_or_default(), request.args.len());
        let Some((position, command)) = table::find(arg(0)) else {
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
        let Some(user) = self.session.user.as_deref().filter(|_| !command.is_open) else {
            let may_run = command.is_open;
            return may_run.then_some(command).ok_or_else(|| "NOAUTH Authentication required.".into());
        };
        if !user.may_run(position) {
            let (user, command) = (&user.name, command.name.to_ascii_lowercase());
            return Err(format!("NOPERM User {user} has no permissions to run the '{command}' command"));
        }
        let changes = command.is_change();
        let mut names = command.keys(args).filter_map(|n| request.arg(n));
        let reads_too = command.keys == KeyArgs::Two; // What is renamed is there under the new name.
        let from = request.arg(1).filter(|_| reads_too);
        if !names.all(|name| user.may_use(name, changes))
            || from.is_some_and(|from| !user.may_use(from, false))
        {
            return Err("NOPERM No permissions to access a key".into());
        }
        Ok(command)
    }
}
