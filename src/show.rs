//! Makes text from outside fit for a message: removes what controls a terminal, and secrets.
//!
//! Names of objects and files, URLs, keys and other programs' error messages pass through here first.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// Replaces a secret.
const HIDDEN: &str = "***";
/// In URLs of these schemes, the user is the name of a container, not a secret.
const CONTAINERS: [&str; 5] = ["az", "adl", "azure", "abfs", "abfss"];

/// Text on one line, without characters that control a terminal or reorder what it shows: they become `
/// `, `\x1b` or `\u{202e}`. Backslashes stay, so text that was already escaped does not change.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(drives_a_terminal) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        _ = match c {
            '\n' => shown.write_str("\\n"),
            '\t' => shown.write_str("\\t"),
            '\r' => shown.write_str("\\r"),
            _ if !drives_a_terminal(c) => shown.write_char(c),
            _ if c.is_ascii() => write!(shown, "\\x{:02x}", u32::from(c)),
            _ => write!(shown, "\\u{{{:x}}}", u32::from(c)),
        };
    }
    Cow::Owned(shown)
}

/// [`escaped`], except line feeds, for messages of several lines.
pub fn escaped_lines(text: &str) -> String {
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

/// Control characters (including C1), line separators, and characters that change the direction of text.
fn drives_a_terminal(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The name of a file, [`escaped`].
pub fn path(path: &Path) -> String {
    match path.to_str() {
        Some(text) => escaped(text).into_owned(),
        None => escaped(&path.to_string_lossy()).into_owned(),
    }
}

/// A URL, [`escaped`], without its user, password, query and fragment, any of which may be a key. Anything
/// else is returned as it is, except the value of `password=` in PostgreSQL's connection strings.
pub fn url(url: &str) -> String {
    let shown = match url.split_once("://") {
        Some((scheme, rest)) => without_secrets(scheme, rest),
        None => without_password(url),
    };
    escaped(&shown).into_owned()
}

/// Another program's message, [`escaped`], with each [`url`] shown as above.
pub fn message(text: &str) -> String {
    if !text.contains("://") {
        return escaped(text).into_owned();
    }
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '(' | ')' | '`');
    let words = text.split_inclusive(is_end).map(|word| {
        let bare = word.trim_end_matches(is_end);
        let end = word.get(bare.len()..).unwrap_or_default();
        if bare.contains("://") { url(bare) + end } else { word.to_owned() }
    });
    escaped(&words.collect::<String>()).into_owned()
}

fn without_secrets(scheme: &str, rest: &str) -> String {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    // A password with a slash or a question mark that should have been written as `%2f` or `%3f`: the host
    // comes after the last `@`.
    let is_cut =
        !authority.contains('@') && !port.bytes().all(|b| b.is_ascii_digit()) && !port.ends_with(']');
    let (user, place) = match authority.rfind('@') {
        Some(at) => (authority.get(..at), rest.get(at + 1..)),
        None if is_cut => match rest.rfind('@') {
            Some(at) => (rest.get(..at), rest.get(at + 1..)),
            None => return format!("{scheme}://{HIDDEN}"),
        },
        None => (None, Some(rest)),
    };
    let place = place.unwrap_or_default();
    let user =
        match user.map(|user| user.split_once(':').map_or((user, None), |(user, key)| (user, Some(key)))) {
            Some((container, None)) if CONTAINERS.contains(&scheme) => format!("{container}@"),
            Some((container, Some(_))) if CONTAINERS.contains(&scheme) => format!("{container}:{HIDDEN}@"),
            Some(_) => format!("{HIDDEN}@"),
            None => String::new(),
        };
    match place.find(['?', '#']) {
        Some(at) => {
            let (path, mark) = (place.get(..at).unwrap_or_default(), place.get(at..=at).unwrap_or_default());
            format!("{scheme}://{user}{path}{mark}{HIDDEN}")
        }
        None => format!("{scheme}://{user}{place}"),
    }
}

/// `name=value` pairs, without the values of `password`, `passfile` and the like.
fn without_password(words: &str) -> String {
    let lower = words.to_ascii_lowercase();
    match lower.find("password") {
        // The rest cannot be told from a password that should have been quoted.
        Some(at) if lower.get(at..).is_some_and(|rest| rest.contains('=')) => {
            format!("{}password={HIDDEN}", words.get(..at).unwrap_or_default())
        }
        _ => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_a_terminal_is_escaped_and_nothing_else() {
        assert_eq!(escaped("Björk/Jóga \\ ok"), "Björk/Jóga \\ ok");
        assert_eq!(escaped("a\x1b[2J\x07\n\t\r\x7f"), "a\\x1b[2J\\x07\\n\\t\\r\\x7f");
        assert_eq!(escaped("a\u{9b}2J\u{202e}b\u{2028}"), "a\\u{9b}2J\\u{202e}b\\u{2028}");
        assert_eq!(escaped(&escaped("\x1b[2J")), "\\x1b[2J", "twice is once");
        assert_eq!(escaped_lines("one\ntwo\x1b"), "one\ntwo\\x1b");
        assert_eq!(path(Path::new("a\x1b]0;title\x07")), "a\\x1b]0;title\\x07");
    }

    #[test]
    fn secrets_in_urls_are_hidden() {
        for (given, shown) in [
            ("s3://bucket/songs", "s3://bucket/songs"),
            ("file:///tmp/a@b", "file:///tmp/a@b"),
            ("s3://AKIA:secret@bucket/songs", "s3://***@bucket/songs"),
            ("s3://secret@bucket", "s3://***@bucket"),
            ("s3://AKIA:se/cr@et@bucket/songs", "s3://***@bucket/songs"),
            ("s3://AKIA:se?cret@bucket/songs", "s3://***@bucket/songs"),
            ("s3://AKIA:secret", "s3://***"),
            ("http://[::1]:9000/x", "http://[::1]:9000/x"),
            ("http://[::1]/x", "http://[::1]/x"),
            ("http://localhost:9000/x", "http://localhost:9000/x"),
            ("https://h/b?sig=secret&x=1", "https://h/b?***"),
            ("https://h/b#secret", "https://h/b#***"),
            (
                "abfss://container@account.dfs.core.windows.net/x",
                "abfss://container@account.dfs.core.windows.net/x",
            ),
            ("abfss://container:secret@account/x", "abfss://container:***@account/x"),
            ("postgres://me:secret@host/db?sslmode=require&password=secret", "postgres://***@host/db?***"),
            ("host=h password=secret dbname=d", "host=h password=***"),
            ("host=h PASSWORD = 'sec ret'", "host=h password=***"),
            ("host=h dbname=d", "host=h dbname=d"),
            ("s3://bucket/\x1b[2J", "s3://bucket/\\x1b[2J"),
        ] {
            assert_eq!(url(given), shown, "{given}");
            assert!(!url(given).contains("secret"));
        }
        assert_eq!(
            message(
                "error sending request for url (https://k:secret@h/b?sig=secret): refused \"x://u:secret@h\""
            ),
            "error sending request for url (https://***@h/b?***): refused \"x://***@h\""
        );
    }
}
