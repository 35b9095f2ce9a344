//! The names of tests: short enough for a list, and at least one for each rule of the design.

use std::collections::BTreeSet;

use crate::links::targets;
use crate::source::tokens;
use crate::{Files, resolved, workspace};

const CHARACTERS_MAX: usize = 70;

/// Which tests check which rule.
const TABLE: &str = "tests/store/README.md";
/// The prefix of a line that states a rule, in docs/design.md and in the table.
const LISTED: &str = "- **";
const TABULATED: &str = "| **";

/// The functions under `#[test]` in a file, including `proptest!`.
fn test_functions(text: &str) -> Vec<&str> {
    let tokens = tokens(text);
    let marks = (0..tokens.len()).filter(|at| tokens[*at..].starts_with(&["#", "[", "test", "]"]));
    marks.filter_map(|at| Some(tokens[at..].windows(2).find(|pair| pair[0] == "fn")?[1])).collect()
}

fn too_long(files: &Files) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in files {
        for name in test_functions(text) {
            if name.chars().count() > CHARACTERS_MAX {
                found.push(format!("{path}: {name} has more than {CHARACTERS_MAX} characters"));
            }
        }
    }
    found
}

/// The number of the rule that a line states, such as I1.
fn rule<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    let word = line.strip_prefix(start)?.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    let digits = word.strip_prefix('I')?;
    (!digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())).then_some(word)
}

fn rules<'a>(document: &'a str, start: &str) -> BTreeSet<&'a str> {
    document.lines().filter_map(|line| rule(line, start)).collect()
}

/// Whether a file has a test such as `i1_…` or `i4_i5_…`.
fn holds(text: &str, rule: &str) -> bool {
    let rule = rule.to_lowercase();
    test_functions(text).iter().any(|name| name.split('_').any(|part| part == rule))
}

/// The errors of the table of tests, in words.
fn violations(design: &str, table: &str, files: &Files) -> Vec<String> {
    let mut found = Vec::new();
    let (stated, tabulated) = (rules(design, LISTED), rules(table, TABULATED));
    found.extend(
        stated
            .symmetric_difference(&tabulated)
            .map(|rule| format!("docs/design.md or {TABLE} lacks {rule}, which the other has")),
    );
    for rule in stated.union(&tabulated) {
        if !files.values().any(|text| holds(text, rule)) {
            found.push(format!("no test has {}_ in its name", rule.to_lowercase()));
        }
    }
    for line in table.lines() {
        let Some(rule) = rule(line, TABULATED) else { continue };
        for path in targets(line).map(|target| resolved(TABLE, target)) {
            if !files.iter().any(|(file, text)| file.starts_with(&path) && holds(text, rule)) {
                found.push(format!("{TABLE}: no test in {path} has {}_ in its name", rule.to_lowercase()));
            }
        }
    }
    found
}

#[test]
fn names_of_tests_fit_a_line() {
    assert_eq!(too_long(&workspace("rs")), [""; 0]);
}

#[test]
fn each_rule_of_the_design_has_tests_of_its_name() {
    let documents = workspace("md");
    let design = &documents["docs/design.md"];
    assert!(rules(design, LISTED).len() >= 13, "the rules are found");
    assert_eq!(violations(design, &documents[TABLE], &workspace("rs")), [""; 0]);
}

#[test]
fn long_names_are_found() {
    let long = "x".repeat(CHARACTERS_MAX + 1);
    let planted = [
        format!("#[test]\nfn {long}() {{}}"),
        format!("#[test]\n#[ignore = \"fn a()\"]\nfn {long}() {{}}"),
        format!("proptest! {{ #[test] fn {long}(n in 0..9) {{}} }}"),
        format!("#[test] fn a() {{}} fn b() {{}} mod tests {{ #[test]\n    fn {long}() {{}} }}"),
    ];
    for text in planted {
        let files = Files::from([("crates/cli/src/lib.rs".to_owned(), text)]);
        assert_eq!(too_long(&files).len(), 1, "{files:?}");
    }
    let fits = "x".repeat(CHARACTERS_MAX);
    for text in
        [format!("#[test]\nfn {fits}() {{}}"), format!("fn {long}() {{}}"), format!("// #[test] fn {long}")]
    {
        assert_eq!(too_long(&Files::from([("tests/a.rs".to_owned(), text)])), [""; 0]);
    }
}

#[test]
fn rules_without_a_test_are_found() {
    let design = "- **I1 No false negative.**\n- **I12 Bounds.** As I3 says.\n- **Impossible.**\n- **I x";
    let table =
        "| rule |\n| **I1** No false negative | [a](reads/a.rs), [b](../guard) |\n| **I12** Bounds | |";
    let files = |named: [&str; 3]| -> Files {
        let test = |name| format!("#[test] fn {name}() {{}}");
        let paths = ["tests/store/reads/a.rs", "tests/guard/b.rs", "src/c.rs"];
        paths.into_iter().zip(named).map(|(path, name)| (path.to_owned(), test(name))).collect()
    };
    let fine = files(["i1_a", "i2_i1_b", "i12_c"]);
    assert_eq!(violations(design, table, &fine), [""; 0]);
    let planted = [
        (design, table, files(["i1_a", "i1_b", "i120_c"])),
        (design, table, files(["i1_a", "i11_b", "i12_c"])),
        (design, "| **I1** |", fine.clone()),
        ("- **I1 No false negative.**", table, fine.clone()),
        ("- **I1", "| **I1** | [a](reads/a.rs), [gone](reads/gone.rs) |", fine),
    ];
    for (design, table, files) in planted {
        assert_eq!(violations(design, table, &files).len(), 1, "{design}\n{table}\n{files:?}");
    }
}
