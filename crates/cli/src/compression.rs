//! The option `--compression`: how blocks are compressed.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use sidebloom::Compression;

/// Takes the names of all compressions.
pub fn parser() -> impl TypedValueParser<Value = Compression> {
    let by_name = |name: String| Compression::ALL.iter().copied().find(|known| known.name() == name);
    PossibleValuesParser::new(Compression::ALL.iter().map(|known| known.name()))
        .map(move |name| by_name(name).unwrap_or_default())
}
