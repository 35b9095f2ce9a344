//! Types as written in code.

use crate::source::{closing, closing_angle, is_ident};

/// A call on one of these reaches the type in its angle brackets.
const POINTERS: [&str; 11] = [
    "Arc",
    "Rc",
    "Box",
    "Pin",
    "Cow",
    "Ref",
    "RefMut",
    "MutexGuard",
    "RwLockReadGuard",
    "RwLockWriteGuard",
    "ShortGuard",
];

/// The path of the type at the start of the tokens, without references, `dyn`, `impl` and [`POINTERS`]. An
/// `Option` or a `Mutex` is its own type. `None` for slices, tuples and functions.
pub(crate) fn path_of_type<'a>(tokens: &[&'a str]) -> Option<Vec<&'a str>> {
    let start = tokens.iter().position(|token| !matches!(*token, "&" | "mut" | "dyn" | "impl" | ","))?;
    let path = path(&tokens[start..]);
    let behind = start + (2 * path.len()).saturating_sub(1);
    match (path.last(), tokens.get(behind)) {
        (Some(name), Some(&"<")) if POINTERS.contains(name) => path_of_type(&tokens[behind + 1..]),
        (Some(_), _) => Some(path),
        (None, _) => None,
    }
}

/// The names in the path at the start of the tokens.
pub(crate) fn path<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let pairs = tokens.chunks(2).take_while(|pair| pair[0].starts_with(is_ident));
    let length = pairs.clone().take_while(|pair| pair.get(1) == Some(&"::")).count() + 1;
    pairs.take(length).map(|pair| pair[0]).collect()
}

/// The index after the generic parameters at `at`, if any.
pub(crate) fn after_generics(tokens: &[&str], at: usize) -> usize {
    if tokens.get(at) == Some(&"<") { closing_angle(tokens, at) } else { at }
}

/// A field or a parameter without its attributes and visibility.
pub(crate) fn bare<'t, 'a>(mut declaration: &'t [&'a str]) -> &'t [&'a str] {
    loop {
        let skipped = match declaration {
            ["#", ..] => closing(declaration, 1),
            ["pub", "(", ..] => closing(declaration, 1),
            ["pub" | "mut", ..] => 1,
            _ => return declaration,
        };
        declaration = &declaration[skipped..];
    }
}

#[test]
fn references_and_pointers_are_looked_through() {
    let types = [
        ("&'a mut Inner", "Inner"),
        ("&Arc<Inner>", "Inner"),
        ("Box<dyn crate::fs::Fs + Send>", "crate::fs::Fs"),
        ("std::sync::MutexGuard<'a, Control>", "Control"),
        ("impl Source", "Source"),
        ("Inner<'_> = &self.inner", "Inner"),
        ("Option<Inner>", "Option"),
        ("Mutex<Inner>", "Mutex"),
    ];
    for (text, path) in types {
        let found = path_of_type(&crate::source::tokens(text)).unwrap_or_default();
        assert_eq!(found.join("::"), path, "{text}");
    }
    for text in ["(Inner, u8)", "[Inner]", "<A as B>::Inner"] {
        assert_eq!(path_of_type(&crate::source::tokens(text)), None, "{text}");
    }
}
