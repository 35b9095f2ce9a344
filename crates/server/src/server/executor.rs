//! Checks and executes the commands of one connection. Consecutive commands on items wait to be executed as
//! one [batch](super::batch); any other command first executes the waiting ones.

use super::batch::Batch;
use super::catalog::Target;
use super::command::{Action, Call, Command, ItemArgs, ItemOp};
use super::commands::insert_options::InsertOptions;
use super::commands::item_expiry;
use super::pending::{FEW_ITEMS, PendingCommands, ReplyShape};
use super::request::{Request, slice};
use super::state::{Server, Session};
use super::table;
use crate::filters::{Kind, Parameters, Refusal};
use crate::resp::Replies;
use bytes::BytesMut;
use sidebloom::Expiry;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tokio::task::block_in_place;

pub struct Executor<'s> {
    server: &'s Server,
    pub session: Session,
    pending: PendingCommands,
    pub replies: Replies,
    /// Whether this connection holds the gate: no other changes anything.
    pub is_exclusive: bool,
}

/// A command on items that has been checked.
struct Checked<'r> {
    target: Option<Target>,
    what: ItemOp,
    items: &'r [Range<usize>],
    shape: ReplyShape,
}

impl<'s> Executor<'s> {
    pub fn new(server: &'s Server, session: Session) -> Self {
        let (pending, replies) = (PendingCommands::default(), Replies::default());
        Executor { server, session, pending, replies, is_exclusive: false }
    }

    /// Executes a well-formed command, or adds it to the batch.
    pub async fn run(&mut self, command: &'static Command, request: Request<'_>) {
        match command.run {
            Action::Items { what, items } => match self.check(command, what, items, request).await {
                Ok(Checked { target, what, items, shape }) => {
                    if self.pending.what().is_some_and(|before| !before.joins(what)) {
                        self.execute_pending(request.input).await;
                    }
                    self.pending.push(command, target, what, items, shape);
                }
                Err(refusal) => self.refuse(&refusal, request.input).await,
            },
            Action::Now(run) => {
                self.execute_pending(request.input).await;
                if request.args.len() > FEW_ITEMS {
                    block_in_place(|| self.call(command, run, request));
                } else {
                    self.call(command, run, request);
                }
            }
            Action::Waiting(run) => {
                self.execute_pending(request.input).await;
                let waits = command.is_change() && !self.is_exclusive;
                let _gate = if waits { Some(self.server.gate.read().await) } else { None };
                block_in_place(|| self.call(command, run, request));
            }
            Action::Transaction(_) => {} // They control what is executed here.
        }
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
        let Some(what) = self.pending.what() else { return };
        self.server.counters.commands.fetch_add(self.pending.len() as u64, Relaxed);
        let (server, commands, replies) = (self.server, &self.pending, &mut self.replies);
        let (started, is_exclusive) = (Instant::now(), self.is_exclusive);
        Batch { server, commands, input, replies, is_exclusive }.execute(what).await;
        let time = started.elapsed();
        self.pending.note_time(time);
        if server.slow_log.is_slow(time) {
            self.note_slow(time, self.pending.summary());
        }
        self.pending.clear();
    }

    fn note_slow(&self, time: std::time::Duration, args: Vec<Vec<u8>>) {
        let client = &self.session.client;
        let name = client.text().name.clone();
        self.server.slow_log.push(time, args, client.address_text(), name);
    }

    /// Memory of the batch and of the replies, in bytes.
    pub fn bytes(&self) -> usize {
        self.pending.bytes() + self.replies.bytes.capacity()
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
        if !names.all(|name| user.may_use(name, changes)) {
            return Err("NOPERM No permissions to access a key".into());
        }
        Ok(command)
    }

    /// Finds the target of a command on items, which is created where RedisBloom would create one.
    async fn check<'r>(
        &mut self,
        command: &Command,
        what: ItemOp,
        form: ItemArgs,
        request: Request<'r>,
    ) -> Result<Checked<'r>, String> {
        let kind = if command.group == "bf" { Kind::Bloom } else { Kind::Cuckoo };
        let (mut given, mut items_at) = (None, 2);
        if form == ItemArgs::Listed {
            let options = InsertOptions::parse(self.defaults(kind, what), |n| request.arg(n))?;
            (given, items_at) = (Some(options), options.items_at);
        }
        let mut items = request.args.get(items_at..).unwrap_or_default();
        let mut expiry: &[Range<usize>] = &[];
        if form == ItemArgs::OneExpiring {
            (items, expiry) = items.split_at_checked(1).unwrap_or_default();
        }
        let name = request.arg(1).unwrap_or_default();
        let mut target = self.server.catalog.find(self.session.database, name);
        if !expiry.is_empty()
            && !matches!(target, Some(Target::Guard(_)))
            && self.server.catalog.own().is_some()
        {
            return Err("ERR items of this filter do not expire: let the filter expire, with EXPIRE".into());
        }
        if target.is_none() && self.server.catalog.own().is_some() && what.is_change() {
            let options = given.unwrap_or_else(|| self.defaults(kind, what));
            target = Some(self.create(name, what, options).await?);
        }
        let words: Vec<&[u8]> = expiry.iter().map(|word| slice(request.input, word)).collect();
        let expiry = self.check_target(target.as_ref(), kind, what, request.input, items, &words)?;
        let shape = match form {
            ItemArgs::One | ItemArgs::OneExpiring => ReplyShape::One,
            ItemArgs::Listed if kind == Kind::Cuckoo && what == ItemOp::InsertNew => ReplyShape::Numbers,
            ItemArgs::Many | ItemArgs::Listed => ReplyShape::Array,
        };
        Ok(Checked { target, what: expiry.map_or(what, ItemOp::InsertExpiring), items, shape })
    }

    /// What a command does without options if there is no such filter.
    fn defaults(&self, kind: Kind, what: ItemOp) -> InsertOptions {
        let defaults = self.server.defaults();
        let parameters = match kind {
            Kind::Bloom => Parameters::Bloom(defaults.bloom),
            Kind::Cuckoo => Parameters::Cuckoo(defaults.cuckoo),
        };
        InsertOptions { creates: what.adds(), parameters, items_at: 2 }
    }

    async fn create(&mut self, name: &[u8], what: ItemOp, options: InsertOptions) -> Result<Target, String> {
        if what == ItemOp::Remove {
            return Err("ERR Not found".into());
        }
        if !options.creates {
            return Err(Refusal::NotFound.to_string());
        }
        let _gate = if self.is_exclusive { None } else { Some(self.server.gate.read().await) };
        let create = || self.server.catalog.create(self.session.database, name, options.parameters);
        let created = block_in_place(create).map_err(|refusal| refusal.to_string())?;
        Ok(Target::Filter(created.filter()))
    }

    /// Whether the target takes such a command; and when the item expires.
    fn check_target(
        &self,
        target: Option<&Target>,
        kind: Kind,
        what: ItemOp,
        input: &BytesMut,
        items: &[Range<usize>],
        expiry: &[&[u8]],
    ) -> Result<Option<Expiry>, String> {
        match target {
            None if self.server.catalog.own().is_some() => Ok(None), // A question.
            None => Err(Refusal::NotFound.to_string()),
            Some(Target::Filter(filter)) if filter.kind() != kind => Err(Refusal::WrongType.to_string()),
            Some(Target::Filter(_)) => Ok(None),
            Some(Target::Guard(named)) => {
                let guard = &named.guard;
                let expiry = item_expiry::expiry_of(guard, expiry)?;
                if what.is_change() && named.writer.is_none() {
                    return Err("READONLY this guard follows a database: change the database instead".into());
                }
                if what != ItemOp::Ask {
                    let canonical = guard.canonical();
                    let mut each = items.iter().map(|item| slice(input, item));
                    each.try_for_each(|item| canonical.apply(item).map(drop))
                        .map_err(|e| format!("ERR {e}"))?;
                }
                Ok(expiry)
            }
        }
    }
}
