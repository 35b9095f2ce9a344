//! The section of this package's README that `versus pages` writes.

use super::record::WritesRecord;
use crate::error::Result;
use crate::results;
use std::path::Path;

/// File of the results, in the output directory.
pub const WRITES_FILE: &str = "writes.json";
/// The line before the section.
pub const BEGIN: &str = "<!-- versus-writes:begin";
/// The line after the section.
pub const END: &str = "<!-- versus-writes:end -->";

/// The section from the results in a directory.
pub fn section_of(dir: &Path) -> Result<String> {
    let record: WritesRecord = results::read(&dir.join(WRITES_FILE))?;
    Ok(section(&record))
}

/// The text between the markers: sizes, all tables, and each store's configuration.
fn section(record: &WritesRecord) -> String {
    let mut text = format!(
        "{BEGIN}; written by `versus pages`, do not edit -->\nMeasured {} on {}. {}.\n\n",
        record.date,
        record.machine.describe(),
        record.sizes()
    );
    for table in record.tables() {
        for (at, row) in table.rows.iter().enumerate() {
            text += &format!("| {} |\n", row.join(" | "));
            if at == 0 {
                text += &format!("|---|{}\n", "---:|".repeat(row.len() - 1));
            }
        }
        text += "\n";
    }
    text += "Configuration of each store:\n\n";
    for of in &record.stores {
        text += &format!("- **{}**: {}\n", of.store.name(), of.configuration);
    }
    for note in &record.notes {
        text += &format!("\n*{note}.*\n");
    }
    text + "\n"
}
