//! Links between the documents.

use std::path::Path;

use crate::workspace;

/// The targets of a document's links to other files, without anchors.
pub(crate) fn targets(document: &str) -> impl Iterator<Item = &str> {
    let targets = document.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://"))
}

#[test]
fn links_lead_to_files_of_the_repository() {
    for (path, text) in workspace("md") {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(&path);
        for target in targets(&text) {
            assert!(
                dir.with_file_name("").join(target).exists(),
                "{path} links to {target}, which is not there"
            );
        }
    }
}

#[test]
fn links_are_found() {
    let document =
        "See [a](src/a.rs), ![b](docs/b.svg), [c](docs/c.md#d), [e](#e) and [f](https://example.org).";
    assert_eq!(targets(document).collect::<Vec<_>>(), ["src/a.rs", "docs/b.svg", "docs/c.md"]);
}
