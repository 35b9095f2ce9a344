//! `NAME.tar.gz`: the files of a directory, small, and readable with any `tar`.

use crate::support::files_with;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

const BLOCK_BYTES: usize = 512;
/// Offsets in a header of the file size, in octal digits, and of the header's checksum.
const SIZE_AT: usize = 124;
const SUM_AT: usize = 148;

/// All files below `dir`, in order.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = files_with(dir, "").into_iter();
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// The header of a file, in the format "ustar".
fn header(name: &str, size: usize) -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    let mut put = |at: usize, text: &str| block[at..at + text.len()].copy_from_slice(text.as_bytes());
    assert!(name.len() < 100, "{name}");
    put(0, name);
    put(100, &["0000644", "0000000", "0000000"].join("\0")); // Permissions, user, group.
    // And the time, so that equal files make equal archives.
    put(SIZE_AT, &format!("{size:011o}\0{:011o}", 0));
    put(SUM_AT, "        0"); // And the type: a file.
    put(257, "ustar\x0000");
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[SUM_AT..SUM_AT + 7].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    block
}

/// Packs all files below `dir`.
pub fn pack(dir: &Path, archive: &Path) {
    let mut tar = Vec::new();
    for path in files_below(dir) {
        let (name, contents) = (path.strip_prefix(dir).unwrap().to_str().unwrap(), fs::read(&path).unwrap());
        tar.extend(header(name, contents.len()));
        tar.extend(&contents);
        tar.resize(tar.len().next_multiple_of(BLOCK_BYTES), 0);
    }
    tar.resize(tar.len() + 2 * BLOCK_BYTES, 0);
    let mut packed = GzEncoder::new(fs::File::create(archive).unwrap(), Compression::best());
    packed.write_all(&tar).unwrap();
    packed.finish().unwrap();
}

/// Unpacks what [`pack`] has packed.
pub fn unpack(archive: &Path, dir: &Path) {
    let mut tar = Vec::new();
    GzDecoder::new(fs::File::open(archive).unwrap()).read_to_end(&mut tar).unwrap();
    let mut rest = &tar[..];
    while rest[0] != 0 {
        let (header, behind) = rest.split_at(BLOCK_BYTES);
        let text = |at: usize| header[at..].split(|&byte| byte == 0).next().unwrap().to_vec();
        let [name, size] = [0, SIZE_AT].map(|at| String::from_utf8(text(at)).unwrap());
        let size = usize::from_str_radix(&size, 8).unwrap();
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &behind[..size]).unwrap();
        rest = &behind[size.next_multiple_of(BLOCK_BYTES)..];
    }
}
