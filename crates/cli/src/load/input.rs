//! A file's text, decompressed.

use super::format::Format;
use super::sniff::{self, HEAD_BYTES};
use crate::context::Failure;
use crate::notice::notice;
use crate::progress;
use flate2::read::MultiGzDecoder;
use indicatif::ProgressBar;
use std::fs::File;
use std::io::{self, BufReader, Chain, Cursor, Read};
use std::path::Path;

/// An input whose first bytes were read ahead.
type Peeked<R> = Chain<Cursor<Vec<u8>>, R>;
/// A file's text.
pub type Text = BufReader<Peeked<Box<dyn Read>>>;

/// Whether the path stands for standard input.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether the file may still be growing: a pipe, for example.
pub fn is_pipe(path: &Path) -> bool {
    is_stdin(path) || path.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
}

/// Opens a file, or standard input for `-`. Refuses files that are not text, and warns when the first row
/// looks like a header that `has_header` does not announce.
pub fn open(
    path: &Path,
    format: Format,
    is_literal: bool,
    has_header: bool,
) -> Result<(Text, ProgressBar), Failure> {
    let failed = |error| Failure::file("read", path, error);
    let (raw, bar): (Box<dyn Read>, _) = if is_stdin(path) {
        (Box::new(io::stdin().lock()), progress::byte_bar("loading", None))
    } else {
        let file = File::open(path).map_err(|e| Failure::file("open", path, e))?;
        let meta = file.metadata().map_err(failed)?;
        (Box::new(file), progress::byte_bar("loading", meta.is_file().then_some(meta.len())))
    };
    let text = decompressed(Box::new(bar.wrap_read(raw))).map_err(failed)?;
    let (head, text) = peek(text, HEAD_BYTES).map_err(failed)?;
    if let Some(why) = sniff::refusal(&head, format, is_literal) {
        return Err(Failure::message(format!("{}: {why}", path.display())));
    }
    if !has_header && let Some(names) = sniff::header(&head, format) {
        notice(format_args!(
            "{}: the first row ({names}) looks like a header, but is loaded as a row; if it is a header, give --header",
            path.display()
        ));
    }
    Ok((BufReader::with_capacity(1 << 18, text), bar))
}

/// Reads the first bytes, and puts them back.
fn peek<R: Read>(mut input: R, bytes: usize) -> io::Result<(Vec<u8>, Peeked<R>)> {
    let mut head = Vec::new();
    (&mut input).take(bytes as u64).read_to_end(&mut head)?;
    Ok((head.clone(), Cursor::new(head).chain(input)))
}

/// The decompressed content, or the input itself. The first bytes decide: standard input has no name.
fn decompressed(input: Box<dyn Read>) -> io::Result<Box<dyn Read>> {
    let (head, input) = peek(input, 4)?;
    Ok(match head.as_slice() {
        // Concatenated gzip files too.
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(input)),
        #[cfg(feature = "zstd")]
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::stream::read::Decoder::new(input)?),
        _ => Box::new(input),
    })
}
