//! Rust source as tokens: without comments, literals and items under `#[cfg(test)]`.

/// Identifiers, `::`, `#` and single punctuation marks, in order. Comments, lifetimes and literals are
/// dropped, except a number after a dot, which may be a tuple field.
pub(crate) fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => 1 + string(&rest[1..]),
            '\'' => char_or_lifetime(rest),
            'b' if rest.starts_with("b\"") => 2 + string(&rest[2..]),
            'b' if rest.starts_with("b'") => 1 + char_or_lifetime(&rest[1..]),
            'b' | 'r' if raw_string(rest).is_some() => raw_string(rest).unwrap_or_default(),
            _ if is_ident(first) => {
                let length = prefix(rest, is_ident);
                if !first.is_ascii_digit() || found.last() == Some(&".") {
                    found.push(&rest[..length]);
                }
                length
            }
            _ if first.is_whitespace() => first.len_utf8(),
            _ => {
                let length = if rest.starts_with("::") { 2 } else { first.len_utf8() };
                found.push(&rest[..length]);
                length
            }
        };
        rest = &rest[length..];
    }
    found
}

pub(crate) fn is_ident(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn prefix(text: &str, belongs: fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

/// The length of a string literal's content and its closing quote.
fn string(content: &str) -> usize {
    let mut escaped = false;
    for (at, c) in content.char_indices() {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    content.len()
}

/// The length of a raw string such as `r#"…"#`, if `text` begins with one.
fn raw_string(text: &str) -> Option<usize> {
    let after_r = text.strip_prefix('b').unwrap_or(text).strip_prefix('r')?;
    let hashes = prefix(after_r, |c| c == '#');
    let content = after_r[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = content.find(&close).map_or(content.len(), |at| at + close.len());
    Some(text.len() - content.len() + end)
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let step = match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => (1, 2),
            [b'*', b'/', ..] => (-1, 2),
            _ => (0, 1),
        };
        depth += step.0;
        at += step.1;
        if depth == 0 {
            break;
        }
    }
    at
}

/// `'a'` is a character, `'a` a lifetime.
fn char_or_lifetime(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            let escaped = chars.next().map_or(text.len(), |(at, c)| at + c.len_utf8());
            text[escaped..].find('\'').map_or(text.len(), |at| escaped + at + 1)
        }
        Some((at, c)) if text[at + c.len_utf8()..].starts_with('\'') => at + c.len_utf8() + 1,
        _ => 1 + prefix(&text[1..], is_ident),
    }
}

/// The index after the token that closes the bracket at `open`.
pub(crate) fn closing(tokens: &[&str], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The index after the `>` that closes the `<` at `open`, in a type.
pub(crate) fn closing_angle(tokens: &[&str], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match *token {
            "<" => depth += 1,
            ">" if tokens[at - 1] != "-" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The parts of a list of types, parameters or branches of a `use`, without the commas.
pub(crate) fn split_by_comma<'t, 'a>(list: &'t [&'a str]) -> Vec<&'t [&'a str]> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while at < list.len() {
        match list[at] {
            "(" | "[" | "{" => at = closing(list, at),
            "<" => at = closing_angle(list, at),
            "," => {
                parts.push(&list[start..at]);
                at += 1;
                start = at;
            }
            _ => at += 1,
        }
    }
    parts.push(&list[start..]);
    parts
}

/// Whether a name or path begins at `at`. Fields, methods and later path parts do not; those after `..` do.
pub(crate) fn begins_path(tokens: &[&str], at: usize) -> bool {
    tokens[at].starts_with(is_ident)
        && match tokens[..at] {
            [.., ".", "."] => true,
            [.., "." | "::"] => false,
            _ => true,
        }
}

/// The rest of a file without its tests, and the names of the modules declared only for tests.
pub(crate) fn without_tests<'a>(tokens: &[&'a str]) -> (Vec<&'a str>, Vec<&'a str>) {
    let (mut code, mut test_modules, mut at) = (Vec::new(), Vec::new(), 0);
    while at < tokens.len() {
        if !tokens[at..].starts_with(&["#", "[", "cfg", "(", "test", ")", "]"]) {
            code.push(tokens[at]);
            at += 1;
            continue;
        }
        while tokens.get(at) == Some(&"#") {
            at = closing(tokens, at + 1);
        }
        let end = item_end(tokens, at);
        if let Some(place) = tokens[at..end].iter().position(|token| *token == "mod") {
            test_modules.extend(tokens.get(at + place + 1));
        }
        at = end;
    }
    (code, test_modules)
}

/// The index after the item, field, variant or statement that begins at `start`.
fn item_end(tokens: &[&str], start: usize) -> usize {
    const ITEMS: [&str; 13] = [
        "pub",
        "fn",
        "struct",
        "enum",
        "trait",
        "type",
        "const",
        "static",
        "impl",
        "mod",
        "use",
        "unsafe",
        "macro_rules",
    ];
    let begin = tokens.get(start).copied().unwrap_or_default();
    let is_item = ITEMS.contains(&begin);
    // After `pub(in …)` at most, and not in the first line of a module's body.
    let mut head = tokens[start..].iter().take(5).take_while(|token| **token != "{");
    let is_use = head.any(|token| *token == "use");
    let mut at = start;
    while let Some(token) = tokens.get(at) {
        match *token {
            ";" => return at + 1,
            "," if !is_item => return at + 1,
            "}" => return at,
            "{" if !is_use => return closing(tokens, at),
            "(" | "[" | "{" => at = closing(tokens, at),
            _ => at += 1,
        }
    }
    at
}

#[test]
fn comments_literals_and_test_code_are_no_tokens() {
    let text = r##"
        //! crate::a
        use crate::b; /* use /* nested */ crate::c; */
        const C: char = '"'; const D: &str = "\" use crate::d"; const E: &[u8] = br#"" crate::e"#;
        fn f<'x>(x: &'x str) -> char { '\'' }
        #[cfg(test)]
        #[path = "other.rs"]
        mod tests;
        #[cfg(test)]
        use crate::{f, g};
        #[cfg(test)]
        mod inline { use super::*; }
        struct G { #[cfg(test)] hits: crate::Hits, misses: u64 }
        #[cfg(test)]
        impl<A, B> H<A, B> { fn h() {} }
        fn i(k: (u8, (u8, f32))) -> bool { k.1.0 > 0.5 }
        type End = u8;"##;
    let expected = "use crate :: b ; const C : char = ; const D : & str = ; const E : & [ u8 ] = ; \
        fn f < > ( x : & str ) -> char { } struct G { misses : u64 } \
        fn i ( k : ( u8 , ( u8 , f32 ) ) ) -> bool { k . 1 . 0 > . 5 } type End = u8 ;";
    let tokens = tokens(text);
    let (code, test_modules) = without_tests(&tokens);
    assert_eq!(code.join(" ").replace("- >", "->"), expected);
    assert_eq!(test_modules, ["tests", "inline"]);
}
