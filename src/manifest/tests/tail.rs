//! A reader of appended edits agrees with a reader of the whole manifest.

use super::*;
use crate::fs::Fs;
use crate::support::Rng;

fn read(tail: &mut ManifestTail, fs: &SimFs) -> Result<ManifestState> {
    let stamp = fs.stamp(Path::new("db/MANIFEST"))?;
    tail.read(fs, Path::new("db"), stamp).cloned()
}

#[test]
fn edits_that_were_read_are_not_read_again() {
    let fs = disk();
    let (states, lens) = store(&fs, 20).unwrap();
    let (whole, before) = (fs.read("db/MANIFEST").unwrap(), lens[18]);
    let shorter = with_bytes(&whole[..before]);
    let mut tail = ManifestTail::default();
    assert!(read(&mut tail, &shorter).unwrap() == states[18]);
    shorter.make_unreadable("db/MANIFEST", 100..lens[17] as u64);
    assert!(read_state(&shorter, Path::new("db")).is_err());
    let mut file = shorter.append(Path::new("db/MANIFEST")).unwrap();
    file.append(&whole[before..lens[19]]).unwrap();
    assert!(read(&mut tail, &shorter).unwrap() == states[19]);
    // An edit that is cut short does not exist yet.
    for at in lens[19]..lens[20] {
        file.append(&whole[at..=at]).unwrap();
        let edits = if at + 1 < lens[20] { 19 } else { 20 };
        assert!(read(&mut tail, &shorter).unwrap() == states[edits]);
    }
}

/// Writers append, die within an edit, and replace the file with one that has its number.
#[test]
fn a_tail_says_what_a_reader_of_the_whole_manifest_says() {
    for seed in 0..200 {
        let (fs, mut rng) = (disk(), Rng::new(seed));
        let (mut n, mut tail) = (0, ManifestTail::default());
        let mut state = ManifestState::new(HEADER);
        let open = |state: &ManifestState| Manifest::create(Arc::new(fs.clone()), Path::new("db"), state);
        let mut manifest = open(&state).unwrap();
        for step in 0..60 {
            match rng.below(8) {
                0 => manifest = open(&state).unwrap(), // Another writer, after a crash that lost nothing.
                1 => {
                    // It has not seen the last edits: the previous writer could not sync them.
                    (n, state) = (0, ManifestState::new(HEADER));
                    state.next_id = FileId(1 + rng.below(3));
                    manifest = open(&state).unwrap();
                }
                2 => {
                    let encoded = encode_edit(&edit(n + 1), tag(HEADER)).unwrap();
                    let mut file = fs.append(Path::new("db/MANIFEST")).unwrap();
                    file.append(&encoded[..rng.below(encoded.len() as u64) as usize]).unwrap();
                    if rng.percent(50) {
                        assert!(read(&mut tail, &fs).unwrap() == state, "seed {seed}, step {step}");
                    }
                    manifest = open(&state).unwrap();
                }
                _ => {
                    n += 1;
                    manifest.append(&edit(n), &mut state).unwrap();
                }
            }
            if rng.percent(60) {
                assert!(read_state(&fs, Path::new("db")).unwrap() == state, "seed {seed}, step {step}");
                assert!(read(&mut tail, &fs).unwrap() == state, "seed {seed}, step {step}");
            }
        }
    }
}

#[test]
fn damage_behind_what_was_read_is_that_of_the_whole_manifest() {
    let fs = disk();
    let (_, lens) = store(&fs, 3).unwrap();
    let mut tail = ManifestTail::default();
    read(&mut tail, &fs).unwrap();
    let mut bytes = fs.read("db/MANIFEST").unwrap();
    bytes.extend(encode_edit(&edit(4), tag(HEADER)).unwrap());
    bytes.extend(encode_edit(&edit(5), tag(HEADER)).unwrap());
    bytes[lens[3] + 20] ^= 1;
    fs.write("db/MANIFEST", bytes.clone());
    assert!(is_corruption(&read(&mut tail, &fs)) && is_corruption(&read(&mut tail, &fs)));
    bytes[lens[3] + 20] ^= 1;
    fs.write("db/MANIFEST", bytes);
    assert!(read(&mut tail, &fs).unwrap() == read_state(&fs, Path::new("db")).unwrap());
}
