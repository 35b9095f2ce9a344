//! Comments are no wider than code may be.

use crate::{Files, workspace};

/// `max_width` of rustfmt.toml.
fn max_width() -> usize {
    let settings = &workspace("toml")["rustfmt.toml"];
    let width = settings.lines().find_map(|line| line.strip_prefix("max_width = "));
    width.unwrap().parse().unwrap()
}

/// The text of a comment line.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.strip_prefix(['/', '!']).unwrap_or(text).trim_start())
}

/// The comment lines that are too wide. Table rows and addresses cannot be wrapped.
fn too_wide(files: &Files, max: usize) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in files {
        for (number, line) in (1..).zip(text.lines()) {
            let is_wide = comment(line).is_some_and(|text| !text.starts_with('|') && !text.contains("://"));
            if is_wide && line.chars().count() > max {
                found.push(format!("{path}:{number}: a comment of more than {max} characters"));
            }
        }
    }
    found
}

#[test]
fn comments_are_no_wider_than_code() {
    assert_eq!(too_wide(&workspace("rs"), max_width()), [""; 0]);
}

#[test]
fn wide_comments_are_found() {
    let max = max_width();
    let found = |line: String| too_wide(&Files::from([("src/a.rs".to_owned(), line)]), max).len();
    for mark in ["//", "    ///", "//!", "// -", "/// #"] {
        let fits = format!("{mark} {}", "é".repeat(max - mark.len() - 1));
        assert_eq!((found(fits.clone()), found(fits + "x")), (0, 1), "{mark}");
    }
    let words = "x".repeat(max);
    for line in [format!("/// | {words} |"), format!("// https://{words}"), format!("let s = \"{words}\";")] {
        assert_eq!(found(line.clone()), 0, "{line}");
    }
}
