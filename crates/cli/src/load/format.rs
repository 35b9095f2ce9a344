//! The formats, and how a file's name tells the format.

use std::path::Path;

/// Formats of files to load.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Lines,
    Tsv,
    Csv,
    Jsonl,
    Scan,
}

impl Format {
    /// By the extension, in any case, after that of a compression is removed.
    pub fn of(file: &Path) -> Self {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
        let name = [".gz", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
        match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("tsv" | "tab") => Format::Tsv,
            Some("csv") => Format::Csv,
            Some("jsonl" | "ndjson" | "json") => Format::Jsonl,
            _ => Format::Lines,
        }
    }

    /// As `--format` names it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Lines => "lines",
            Format::Tsv => "tsv",
            Format::Csv => "csv",
            Format::Jsonl => "jsonl",
            Format::Scan => "scan",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_format_in_any_case_and_compressed() {
        for (name, format) in [
            ("a.csv", "csv"),
            ("A.CSV", "csv"),
            ("a.b.Tsv.GZ", "tsv"),
            ("dir.csv/a", "lines"),
            ("a.jsonl.zst", "jsonl"),
            ("a.txt", "lines"),
            ("-", "lines"),
            (".csv", "csv"),
        ] {
            assert_eq!(Format::of(Path::new(name)).name(), format, "{name}");
        }
    }
}
