//! The demo's rows: real songs, plus generated titles.

use super::words::{ADJECTIVES, BAND_ADJECTIVES, BAND_NOUNS, FIRST_NAMES, LAST_NAMES, NOUNS, VERBS};
use crate::bench::mix;

/// Artist, title and year of real songs (facts), separated by TABs, under a header.
const SONGS: &str = include_str!("songs.tsv");

/// One row of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Song {
    /// The artist.
    pub artist: String,
    /// The title.
    pub title: String,
    /// The year of release.
    pub year: u32,
}

impl Song {
    /// The key: artist and title, so that a prefix scan lists an artist's songs.
    pub fn key(&self) -> String {
        format!("{} - {}", self.artist, self.title)
    }

    /// The value: a JSON object as in a catalogue service.
    pub fn value(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let code = mix(self.artist.len() as u64 ^ mix(self.title.bytes().fold(u64::from(self.year), fold)));
        format!(
            r#"{{"artist":{},"title":{},"year":{},"seconds":{},"plays":{},"isrc":"XX{:010}"}}"#,
            quoted(&self.artist),
            quoted(&self.title),
            self.year,
            120 + code % 240,
            code >> 44,
            code % 10_000_000_000,
        )
    }
}

fn fold(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// The real songs. Every fiftieth is left out of the store, so that some real songs are absent.
pub struct Songs {
    /// In the store.
    pub present: Vec<Song>,
    /// Not in the store.
    pub left_out: Vec<Song>,
}

/// One real song in this many is left out.
const LEFT_OUT: usize = 50;

impl Songs {
    /// From the built-in list.
    pub fn new() -> Self {
        let songs = SONGS.lines().skip(1).filter_map(parse);
        let (left_out, present): (Vec<_>, Vec<_>) =
            songs.enumerate().partition(|(i, _)| i % LEFT_OUT == LEFT_OUT / 2);
        let strip = |songs: Vec<(usize, Song)>| songs.into_iter().map(|(_, song)| song).collect();
        Songs { present: strip(present), left_out: strip(left_out) }
    }
}

fn parse(line: &str) -> Option<Song> {
    let mut columns = line.split('\t').map(str::to_owned);
    Some(Song { artist: columns.next()?, title: columns.next()?, year: columns.next()?.parse().ok()? })
}

/// Bits of an index: one for the kind of artist, 13 for the name, 3 for the title's form, 13 for its words.
const INDEX_BITS: u32 = 30;
/// Maximum number of titles in the store: half of all titles. The other half is absent.
pub const TITLES_MAX: u64 = 1 << (INDEX_BITS - 1);

/// The `i`-th generated title, for `i` below twice [`TITLES_MAX`]. All differ. The first `n` and the next `n`
/// are spread evenly over all artists and words, so absent titles lie between present ones everywhere.
pub fn generated(i: u64) -> Song {
    let index = scatter(i);
    let code = mix(i);
    Song { artist: artist(index & 0x3fff), title: title(index >> 14), year: 1956 + (code % 70) as u32 }
}

/// A bijection on `INDEX_BITS` bits: an odd factor and xor with the high bits are reversible.
fn scatter(i: u64) -> u64 {
    const MASK: u64 = (1 << INDEX_BITS) - 1;
    let x = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & MASK;
    let x = (x ^ (x >> 15)).wrapping_mul(0xd6e8_feb8_6659_fd93) & MASK;
    x ^ (x >> 15)
}

fn artist(bits: u64) -> String {
    let (kind, first, last) = (bits & 1, bits >> 1, bits >> 7);
    match kind {
        0 => format!("{} {}", word(&FIRST_NAMES, first), word(&LAST_NAMES, last)),
        _ => format!("The {} {}", word(&BAND_ADJECTIVES, first), word(&BAND_NOUNS, last)),
    }
}

fn title(bits: u64) -> String {
    let (form, first, last) = (bits & 7, bits >> 3, bits >> 9);
    let (adjective, noun, verb) = (word(&ADJECTIVES, first), word(&NOUNS, last), word(&VERBS, first));
    match form {
        0 => format!("{adjective} {noun}"),
        1 => format!("The {adjective} {noun}"),
        2 => format!("My {adjective} {noun}"),
        3 => format!("{adjective} {noun} Blues"),
        4 => format!("{verb} the {noun}"),
        5 => format!("{verb} My {noun}"),
        6 => format!("Don't {verb} the {noun}"),
        _ => format!("{verb} Me a {noun}"),
    }
}

/// The word selected by the lowest bits.
fn word<const N: usize>(words: &[&'static str; N], bits: u64) -> &'static str {
    const { assert!(N.is_power_of_two()) };
    words.get(bits as usize & (N - 1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn generated_titles_differ() {
        let keys: HashSet<String> = (0..200_000).map(|i| generated(i).key()).collect();
        assert_eq!(keys.len(), 200_000);
    }

    #[test]
    fn real_songs_are_parsed_and_some_are_left_out() {
        let songs = Songs::new();
        assert!(songs.present.len() >= 600);
        assert!(songs.left_out.len() >= 10);
        assert_eq!(songs.present.len() + songs.left_out.len(), SONGS.lines().count() - 1);
        let present: HashSet<String> = songs.present.iter().map(Song::key).collect();
        assert!(songs.left_out.iter().all(|song| !present.contains(&song.key())));
    }

    #[test]
    fn a_row_is_a_json_object() {
        let song = Song { artist: "Guns N' Roses".to_owned(), title: "\"Quoted\"".to_owned(), year: 1987 };
        let row: serde_json::Value = serde_json::from_str(&song.value()).unwrap();
        assert_eq!((&row["title"], &row["year"]), (&"\"Quoted\"".into(), &1987.into()));
        assert_eq!(song.key(), "Guns N' Roses - \"Quoted\"");
    }
}
