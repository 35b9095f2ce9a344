//! What a command takes, as a line that people read, and as `COMMAND DOCS` tells it to programs.
//!
//! ```text
//! key capacity [BUCKETSIZE size] [NOCREATE] [field:SIZE|ITEMS] item…
//! ```
//!
//! Words in capitals are written as they are, other words stand for values. What is in brackets may be left
//! out, one of what is between bars is taken (the name of the choice comes before a colon), and `…` may be
//! repeated.

use crate::resp::Replies;

/// An argument, or a word with its value.
#[derive(Debug, PartialEq, Eq)]
struct Argument<'u> {
    name: String,
    /// The type, in Redis' words.
    kind: &'static str,
    /// What is written before the value, or instead of one.
    token: Option<&'u str>,
    is_optional: bool,
    is_repeated: bool,
    choices: Vec<Argument<'u>>,
}

/// The usage line of a command; empty if it takes no arguments.
pub fn of(command: &str) -> &'static str {
    match command {
        "BF.CARD" | "CF.INFO" | "CF.COMPACT" | "TYPE" | "PERSIST" | "TTL" | "PTTL" | "EXPIRETIME"
        | "PEXPIRETIME" => "key",
        "WATCH" | "DEL" | "UNLINK" | "EXISTS" => "key…",
        "BF.EXISTS" | "CF.EXISTS" | "CF.ADD" | "CF.ADDNX" | "CF.DEL" | "CF.COUNT" => "key item",
        "BF.MEXISTS" | "CF.MEXISTS" | "BF.MADD" => "key item…",
        "BF.ADD" => {
            "key item [expiration:EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds]"
        }
        "BF.INSERT" => {
            "key [CAPACITY capacity] [ERROR error_rate] [EXPANSION expansion] [NOCREATE] [NONSCALING] ITEMS item…"
        }
        "CF.INSERT" | "CF.INSERTNX" => "key [CAPACITY capacity] [NOCREATE] ITEMS item…",
        "BF.RESERVE" => "key error_rate capacity [EXPANSION expansion] [NONSCALING]",
        "CF.RESERVE" => "key capacity [BUCKETSIZE size] [MAXITERATIONS iterations] [EXPANSION expansion]",
        "BF.INFO" => "key [single_value:CAPACITY|SIZE|FILTERS|ITEMS|EXPANSION]",
        "BF.SCANDUMP" | "CF.SCANDUMP" => "key iterator",
        "BF.LOADCHUNK" | "CF.LOADCHUNK" => "key iterator data",
        "RENAME" | "RENAMENX" => "key newkey",
        "EXPIRE" => "key seconds [condition:NX|XX|GT|LT]",
        "PEXPIRE" => "key milliseconds [condition:NX|XX|GT|LT]",
        "EXPIREAT" => "key unix-time-seconds [condition:NX|XX|GT|LT]",
        "PEXPIREAT" => "key unix-time-milliseconds [condition:NX|XX|GT|LT]",
        "KEYS" => "pattern",
        "SCAN" => "cursor [MATCH pattern] [COUNT count] [TYPE type]",
        "SELECT" => "index",
        "FLUSHDB" | "FLUSHALL" => "[flush_type:ASYNC|SYNC]",
        "PING" => "[message]",
        "ECHO" => "message",
        "AUTH" => "[username] password",
        "INFO" => "[section…]",
        "BGSAVE" => "[SCHEDULE]",
        "HELLO" | "COMMAND" => "[argument…]",
        "CLIENT" | "MEMORY" | "CONFIG" | "MODULE" | "SLOWLOG" | "ACL" | "LATENCY" => "subcommand [argument…]",
        _ => "",
    }
}

/// Writes the arguments of a usage line.
pub fn reply(replies: &mut Replies, usage: &str) {
    reply_all(replies, &arguments(usage));
}

fn reply_all(replies: &mut Replies, arguments: &[Argument<'_>]) {
    replies.array(arguments.len());
    for argument in arguments {
        let flags = [(argument.is_optional, "optional"), (argument.is_repeated, "multiple")];
        let flags: Vec<_> = flags.into_iter().filter(|(is_so, _)| *is_so).collect();
        let is_key = argument.kind == "key";
        let more = [is_key, argument.token.is_some(), !flags.is_empty(), !argument.choices.is_empty()];
        replies.map(2 + more.into_iter().filter(|is_so| *is_so).count());
        replies.bulk("name");
        replies.bulk(&argument.name);
        replies.bulk("type");
        replies.bulk(argument.kind);
        if is_key {
            replies.bulk("key_spec_index");
            replies.int(0);
        }
        if let Some(token) = argument.token {
            replies.bulk("token");
            replies.bulk(token);
        }
        if !flags.is_empty() {
            replies.bulk("flags");
            replies.set(flags.len());
            flags.iter().for_each(|(_, flag)| replies.simple(flag));
        }
        if !argument.choices.is_empty() {
            replies.bulk("arguments");
            reply_all(replies, &argument.choices);
        }
    }
}

fn arguments(usage: &str) -> Vec<Argument<'_>> {
    let (mut arguments, mut rest) = (Vec::new(), usage.trim_start());
    while !rest.is_empty() {
        let (part, others, is_optional) = match rest.strip_prefix('[').and_then(|inner| inner.split_once(']'))
        {
            Some((part, others)) => (part, others, true),
            None => {
                let (part, others) = rest.split_once(' ').unwrap_or((rest, ""));
                (part, others, false)
            }
        };
        arguments.push(argument(part, is_optional));
        rest = others.trim_start();
    }
    arguments
}

fn argument(part: &str, is_optional: bool) -> Argument<'_> {
    let (part, is_repeated) = match part.strip_suffix('…') {
        Some(repeated) => (repeated, true),
        None => (part, false),
    };
    let plain = |name: &str, kind, token| Argument {
        name: name.to_ascii_lowercase(),
        kind,
        token,
        is_optional,
        is_repeated,
        choices: Vec::new(),
    };
    if let Some((name, choices)) = part.split_once(':') {
        let choices = choices.split('|').map(|choice| argument(choice, false)).collect();
        return Argument { choices, ..plain(name, "oneof", None) };
    }
    match part.split_once(' ') {
        Some((token, value)) => plain(token, kind_of(value), Some(token)),
        None if part.bytes().any(|byte| byte.is_ascii_uppercase()) => plain(part, "pure-token", Some(part)),
        None => plain(part, kind_of(part), None),
    }
}

fn kind_of(value: &str) -> &'static str {
    match value {
        "key" | "newkey" => "key",
        "error_rate" => "double",
        "pattern" => "pattern",
        "capacity" | "expansion" | "size" | "iterations" | "iterator" | "seconds" | "milliseconds"
        | "count" | "cursor" | "index" => "integer",
        "unix-time-seconds" | "unix-time-milliseconds" => "unix-time",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::COMMANDS;
    use super::*;

    fn plain(name: &str, kind: &'static str) -> Argument<'static> {
        let name = name.to_owned();
        Argument { name, kind, token: None, is_optional: false, is_repeated: false, choices: Vec::new() }
    }

    #[test]
    fn usage_lines_are_taken_apart() {
        assert_eq!(arguments(""), []);
        let token = |name, kind, token| Argument { token: Some(token), ..plain(name, kind) };
        let optional = |argument| Argument { is_optional: true, ..argument };
        let choice = |name, choices| optional(Argument { choices, ..plain(name, "oneof") });
        assert_eq!(
            arguments("key [BUCKETSIZE size] [NOCREATE] [field:SIZE|EX seconds] ITEMS item…"),
            [
                plain("key", "key"),
                optional(token("bucketsize", "integer", "BUCKETSIZE")),
                optional(token("nocreate", "pure-token", "NOCREATE")),
                choice("field", vec![token("size", "pure-token", "SIZE"), token("ex", "integer", "EX")]),
                token("items", "pure-token", "ITEMS"),
                Argument { is_repeated: true, ..plain("item", "string") },
            ]
        );
    }

    /// Clients decide by the arity, people by the usage.
    #[test]
    fn usage_lines_agree_with_the_number_of_arguments() {
        for command in COMMANDS {
            let usage = of(command.name);
            let arguments = arguments(usage);
            let required = arguments.iter().filter(|argument| !argument.is_optional).count() as i64;
            let is_open = arguments.iter().any(|argument| argument.is_optional || argument.is_repeated);
            let words = if is_open { -1 - required } else { 1 + required };
            let agrees = if usage.is_empty() { command.arity.abs() == 1 } else { words == command.arity };
            assert!(agrees, "{} takes {}: {usage}", command.name, command.arity);
            let keys = arguments.iter().filter(|argument| argument.kind == "key").count();
            assert_eq!(keys > 0, !command.keys(2).is_empty(), "{}", command.name);
        }
    }

    #[test]
    fn programs_are_told_in_both_versions_of_the_protocol() {
        let mut replies = Replies::default();
        reply(&mut replies, "key [EX seconds]");
        let text = String::from_utf8(replies.bytes).unwrap().replace("\r\n", " ");
        assert_eq!(
            text,
            "*2 *6 $4 name $3 key $4 type $3 key $14 key_spec_index :0 \
             *8 $4 name $2 ex $4 type $7 integer $5 token $2 EX $5 flags *1 +optional "
        );
        let mut replies = Replies { resp3: true, ..Replies::default() };
        reply(&mut replies, "[of:A|B]");
        let text = String::from_utf8(replies.bytes).unwrap().replace("\r\n", " ");
        assert_eq!(
            text,
            "*1 %4 $4 name $2 of $4 type $5 oneof $5 flags ~1 +optional $9 arguments \
             *2 %3 $4 name $1 a $4 type $10 pure-token $5 token $1 A \
             %3 $4 name $1 b $4 type $10 pure-token $5 token $1 B "
        );
    }
}
