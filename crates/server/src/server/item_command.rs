//! A command on items: what its arguments say, and whether a filter or guard takes it.

use super::catalog::Target;
use super::command::{Command, ItemArgs, ItemOp};
use super::commands::insert_options::InsertOptions;
use super::commands::item_expiry;
use super::request::{Request, slice};
use super::state::Server;
use crate::filters::{ItemOutcome, Kind, Parameters, Refusal};
use crate::resp::Replies;
use bytes::BytesMut;
use std::ops::Range;
use tokio::task::yield_now;

/// Items processed before yielding to other connections; about a third of a millisecond.
pub const ITEMS_AT_ONCE: usize = 4096;

/// The form of a command's reply.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ReplyShape {
    One,
    Array,
    /// An array of integers, even in version 3 of the protocol: that of `CF.INSERTNX`.
    Numbers,
}

impl ReplyShape {
    /// Replies to a command that changes items, given the kind of filter that it is for, and the error that
    /// has ended it, if there is one.
    pub fn reply(self, replies: &mut Replies, kind: Kind, outcomes: Vec<ItemOutcome>, end: Option<&str>) {
        if self != ReplyShape::One {
            replies.array(outcomes.len() + usize::from(end.is_some()));
        }
        for outcome in outcomes {
            match (outcome, self) {
                (ItemOutcome::Full, _) if kind == Kind::Bloom => replies.error(&Refusal::Full.to_string()),
                (ItemOutcome::Full, ReplyShape::One) => replies.error("ERR Filter is full"),
                (ItemOutcome::Full, ReplyShape::Array) if replies.resp3 => replies.boolean(false),
                (ItemOutcome::Full, _) => replies.signed(-1),
                (changed, ReplyShape::Numbers) => replies.int(u64::from(changed == ItemOutcome::Changed)),
                (changed, _) => replies.boolean(changed == ItemOutcome::Changed),
            }
        }
        if let Some(error) = end {
            replies.error(error);
        }
    }
}

/// A command on items whose form is right.
pub struct ItemCommand<'r> {
    pub command: &'static Command,
    pub what: ItemOp,
    /// The kind of filter that it is for.
    pub kind: Kind,
    /// The position of the name in `input`.
    pub name: Range<usize>,
    /// The items' positions in `input`.
    pub items: &'r [Range<usize>],
    pub shape: ReplyShape,
    pub input: &'r BytesMut,
    /// The positions of what says when the item expires.
    expiry: &'r [Range<usize>],
    /// What it says about the filter, if it can say something.
    options: Option<InsertOptions>,
}

impl<'r> ItemCommand<'r> {
    pub fn parse(
        server: &Server,
        command: &'static Command,
        what: ItemOp,
        form: ItemArgs,
        request: Request<'r>,
    ) -> Result<Self, String> {
        let kind = command.kind();
        let (mut options, mut items_at) = (None, 2);
        if form == ItemArgs::Listed {
            let given = InsertOptions::parse(defaults(server, kind, what), |n| request.arg(n))?;
            (options, items_at) = (Some(given), given.items_at);
        }
        let mut items = request.args.get(items_at..).unwrap_or_default();
        let mut expiry: &[Range<usize>] = &[];
        if form == ItemArgs::OneExpiring {
            (items, expiry) = items.split_at_checked(1).unwrap_or_default();
        }
        let shape = match form {
            ItemArgs::One | ItemArgs::OneExpiring => ReplyShape::One,
            ItemArgs::Listed if kind == Kind::Cuckoo && what == ItemOp::InsertNew => ReplyShape::Numbers,
            ItemArgs::Many | ItemArgs::Listed => ReplyShape::Array,
        };
        let (name, input) = (request.args.get(1).cloned().unwrap_or_default(), request.input);
        Ok(ItemCommand { command, what, kind, name, items, shape, input, expiry, options })
    }

    pub fn name(&self) -> &'r [u8] {
        slice(self.input, &self.name)
    }

    /// The parameters of the filter that it creates if there is none, or why it creates none.
    pub fn parameters(&self, server: &Server) -> Result<Parameters, String> {
        let options = self.options.unwrap_or_else(|| defaults(server, self.kind, self.what));
        match self.what {
            ItemOp::Remove => Err("ERR Not found".into()),
            _ if options.creates => Ok(options.parameters),
            _ => Err(Refusal::NotFound.to_string()),
        }
    }

    /// Whether it says when the item expires, which only items of guards do.
    pub fn is_expiring(&self) -> bool {
        !self.expiry.is_empty()
    }

    /// Whether the target takes the command. Returns what is done with the items there.
    pub fn check(&self, target: &Target) -> Result<ItemOp, String> {
        let named = match target {
            Target::Filter(filter) if filter.kind() == self.kind => return Ok(self.what),
            Target::Filter(_) => return Err(Refusal::WrongType.to_string()),
            Target::Guard(named) => named,
        };
        let words: Vec<&[u8]> = self.expiry.iter().map(|word| slice(self.input, word)).collect();
        let expiry = item_expiry::expiry_of(&named.guard, &words)?;
        if self.what.is_change() && named.writer.is_none() {
            return Err("READONLY this guard follows a database: change the database instead".into());
        }
        Ok(expiry.map_or(self.what, ItemOp::InsertExpiring))
    }

    /// Whether the target takes the items: a guard may demand a form of them.
    pub async fn check_items(&self, target: &Target) -> Result<(), String> {
        let Target::Guard(named) = target else { return Ok(()) };
        if self.what == ItemOp::Ask {
            return Ok(());
        }
        let canonical = named.guard.canonical();
        for (n, item) in self.items.iter().enumerate() {
            canonical.apply(slice(self.input, item)).map_err(|e| format!("ERR {e}"))?;
            if n % ITEMS_AT_ONCE == ITEMS_AT_ONCE - 1 {
                yield_now().await;
            }
        }
        Ok(())
    }
}

/// What a command does without options if there is no such filter.
fn defaults(server: &Server, kind: Kind, what: ItemOp) -> InsertOptions {
    let defaults = server.defaults();
    let parameters = match kind {
        Kind::Bloom => Parameters::Bloom(defaults.bloom),
        Kind::Cuckoo => Parameters::Cuckoo(defaults.cuckoo),
    };
    InsertOptions { creates: what.adds(), parameters, items_at: 2 }
}
