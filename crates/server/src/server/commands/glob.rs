//! Patterns of names, as `KEYS` and `SCAN … MATCH` have them.
//!
//! `*` matches any bytes, `?` one byte, `[ae]`, `[^e]` and `[a-c]` one byte of a set, and `\` makes the next
//! byte plain. An unclosed set ends with the pattern. Unlike Redis' own function, it never goes back further
//! than to the last `*`, so that no pattern takes longer than the product of both lengths.

/// Clients may send patterns up to this length, in bytes.
pub const LEN_MAX: usize = 1 << 10;
/// The error for a longer one.
pub const TOO_LONG: &str = "ERR the pattern is longer than 1024 bytes";

/// Whether all of `text` matches. Takes at most as many steps as the product of the lengths.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut rest, mut left) = (pattern, text);
    // Where to go on once something does not match: after the last `*`, with one byte more for it.
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        match rest.split_first() {
            Some((b'*', after)) => {
                again = Some((after, left));
                rest = after;
                continue;
            }
            None if left.is_empty() => return true,
            Some(_) if !left.is_empty() => {
                if let Some((after, true)) = one(rest, left.first().copied().unwrap_or_default()) {
                    rest = after;
                    left = left.get(1..).unwrap_or_default();
                    continue;
                }
            }
            _ => {}
        }
        match again {
            Some((after, [_, more @ ..])) => {
                again = Some((after, more));
                (rest, left) = (after, more);
            }
            _ => return false,
        }
    }
}

/// The pattern after its first part, which stands for one byte, and whether it matches `byte`.
fn one(pattern: &[u8], byte: u8) -> Option<(&[u8], bool)> {
    match pattern {
        [b'?', after @ ..] => Some((after, true)),
        [b'[', set @ ..] => Some(one_of(set, byte)),
        [b'\\', plain, after @ ..] => Some((after, *plain == byte)),
        [plain, after @ ..] => Some((after, *plain == byte)),
        [] => None,
    }
}

fn one_of(set: &[u8], byte: u8) -> (&[u8], bool) {
    let (mut rest, is_not) = match set.strip_prefix(b"^") {
        Some(rest) => (rest, true),
        None => (set, false),
    };
    let mut is_in = false;
    loop {
        rest = match rest {
            [] => return (rest, is_in != is_not),
            [b']', after @ ..] => return (after, is_in != is_not),
            [b'\\', plain, after @ ..] => {
                is_in |= *plain == byte;
                after
            }
            [first, b'-', last, after @ ..] => {
                is_in |= (*first.min(last)..=*first.max(last)).contains(&byte);
                after
            }
            [plain, after @ ..] => {
                is_in |= *plain == byte;
                after
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, is_match) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h*llo", "heeeell", false),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[c-a]llo", "hbllo", true),
            ("h[a-c]llo", "hdllo", false),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("[\\]]", "]", true),
            ("[abc", "c", true),
            ("\\", "\\", true),
            ("*a*b*c*", "xaxxbxxcx", true),
            ("*a*b*c*", "xaxxcxxbx", false),
            ("**a", "bba", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), is_match, "{pattern} {text}");
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_exponential_time() {
        let pattern = "*a".repeat(200) + "b";
        assert!(!matches(pattern.as_bytes(), "a".repeat(2000).as_bytes()));
    }
}
