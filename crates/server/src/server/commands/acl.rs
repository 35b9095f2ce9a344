//! `ACL`: who the client is, and what users may do. Users are set when the server starts, by a file.

use super::super::command::{CATEGORIES, Call};
use super::super::users::DEFAULT;

/// `ACL WHOAMI | USERS | LIST | CAT [category]`
pub fn acl(call: &mut Call<'_>) {
    let users = &call.server.settings.users;
    match call.args {
        [_, word] if word.eq_ignore_ascii_case(b"WHOAMI") => {
            let name = call.session.user.as_ref().map_or(DEFAULT.to_owned(), |user| user.name.clone());
            call.replies.bulk(name);
        }
        [_, word] if word.eq_ignore_ascii_case(b"USERS") => {
            call.replies.array(users.all().count());
            users.all().for_each(|user| call.replies.bulk(&user.name));
        }
        [_, word] if word.eq_ignore_ascii_case(b"LIST") => {
            call.replies.array(users.all().count());
            users.all().for_each(|user| call.replies.bulk(user.describe(call.commands)));
        }
        [_, word] if word.eq_ignore_ascii_case(b"CAT") => {
            call.replies.array(CATEGORIES.len());
            CATEGORIES.iter().for_each(|category| call.replies.bulk(category));
        }
        [_, word, category] if word.eq_ignore_ascii_case(b"CAT") => {
            let category = String::from_utf8_lossy(category).into_owned();
            let found: Vec<_> = call.commands.iter().filter(|command| command.is_in(&category)).collect();
            if found.is_empty() {
                return call.replies.error("ERR Unknown category");
            }
            call.replies.array(found.len());
            found.iter().for_each(|command| call.replies.bulk(command.name.to_ascii_lowercase()));
        }
        _ => call.unknown_subcommand(),
    }
}
