//! A hostile bucket: the objects of a published store and a published guard are changed, exchanged,
//! renumbered or made endless, with valid checksums where a reader would otherwise stop early. Readers,
//! clones and guards return, with or without an error, and touch only their own files.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use object_store::path::Path as Name;
use sidebloom::filter::Verdict;
use sidebloom_fuzz::bucket::{self, Objects, Swapped};
use sidebloom_fuzz::memory::Limited;
use sidebloom_remote::guard::{RemoteGuard, RemoteGuardOptions};
use sidebloom_remote::{Reader, Remote};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

#[global_allocator]
static MEMORY: Limited = Limited;

#[derive(Debug, Arbitrary)]
enum Change {
    /// An object, with a repaired checksum if it is a generation.
    Byte {
        object: u8,
        before_end: u16,
        xor: u8,
        repair: bool,
    },
    Cut {
        object: u8,
        to: u16,
    },
    Remove {
        object: u8,
    },
    /// The contents of one under the name of the other.
    Copy {
        from: u8,
        to: u8,
    },
    /// A generation under another number, in its name and in itself.
    Renumber {
        object: u8,
        number: Number,
    },
    Field {
        generation: u8,
        file: u8,
        field: Field,
        value: Value,
    },
    /// Other contents for what a generation names, with a valid hash.
    Contents {
        generation: u8,
        file: u8,
        before_end: u16,
        bytes: [u8; 3],
    },
    Hint {
        of_guard: bool,
        hint: Hint,
    },
    /// The object's answer claims this length, and never ends.
    Endless {
        object: u8,
        said: u64,
    },
}

#[derive(Debug, Arbitrary, Clone, Copy)]
enum Number {
    Small(u8),
    Largest(u8),
    Any(u64),
}

#[derive(Debug, Arbitrary, Clone, Copy)]
enum Field {
    Name,
    Object,
    Bytes,
    Sha256,
    Mark,
    TailAt,
    TailSha256,
    Id,
    Kind,
    Writer,
    Version,
    Suspended,
    Settings,
    Unfiltered,
    AsOf,
    Twice,
    Gone,
}

#[derive(Debug, Arbitrary)]
enum Value {
    Number(Number),
    Text(Text),
    /// The value of this field in another file.
    OfFile(u8),
}

#[derive(Debug, Arbitrary)]
enum Text {
    Any(String),
    Path(u8),
}

#[derive(Debug, Arbitrary)]
enum Hint {
    Number(Number),
    Text(Text),
}

#[derive(Debug, Arbitrary)]
struct Input {
    /// Changes before the first opening, and after it.
    before: Vec<Change>,
    after: Vec<Change>,
    read: Read,
}

#[derive(Debug, Arbitrary, PartialEq, Clone, Copy)]
enum Read {
    Store,
    Clone,
    Guard,
}

const PATHS: [&str; 10] = [
    "authorized_keys",
    "../authorized_keys",
    "segment/../../authorized_keys",
    "/etc/passwd",
    "LOCK",
    "MANIFEST",
    "PUBLISHED",
    "000009.segment",
    "000009.wal",
    "\u{1b}[2J",
];
/// A user's own files in the cache directory.
const THEIRS: [&str; 3] = ["authorized_keys", "manifest-2026.json", "segment-report.pdf"];

fn number(number: Number) -> u64 {
    match number {
        Number::Small(n) => n.into(),
        Number::Largest(n) => u64::MAX - u64::from(n),
        Number::Any(n) => n,
    }
}

fn text(text: &Text) -> String {
    match text {
        Text::Any(text) => text.clone(),
        Text::Path(n) => PATHS[usize::from(*n) % PATHS.len()].to_owned(),
    }
}

fn apply(objects: &mut Objects, change: &Change) {
    match change {
        Change::Byte { object, before_end, xor, repair } => objects.change(*object, |bytes| {
            let at = bytes.len().checked_sub(1 + usize::from(*before_end) % bytes.len().max(1));
            at.and_then(|at| bytes.get_mut(at)).into_iter().for_each(|byte| *byte ^= xor);
            *repair
        }),
        Change::Cut { object, to } => objects.change(*object, |bytes| {
            bytes.truncate((*to).into());
            false
        }),
        Change::Remove { object } => objects.remove(*object),
        Change::Copy { from, to } => objects.copy(*from, *to),
        Change::Renumber { object, number: to } => objects.renumber(*object, number(*to)),
        Change::Field { generation, file, field, value } => objects.edit(*generation, *file, |body, file| {
            let name = match field {
                Field::Name => "name",
                Field::Object => "object",
                Field::Bytes => "bytes",
                Field::Sha256 => "sha256",
                Field::Mark => "mark",
                Field::TailAt => "at",
                Field::TailSha256 => "sha256",
                Field::Id => "id",
                Field::Kind => "kind",
                Field::Writer => "writer",
                Field::Version => "version",
                Field::Suspended => "suspended",
                Field::Settings => "settings",
                Field::Unfiltered => "unfiltered",
                Field::AsOf => "as_of_ms",
                Field::Twice | Field::Gone => "",
            };
            let files = body["files"].as_array().cloned().unwrap_or_default();
            let in_file = |file: &serde_json::Value| match field {
                Field::TailAt | Field::TailSha256 => file["tail"][name].clone(),
                _ => file[name].clone(),
            };
            let value = match value {
                Value::Number(n) => number(*n).into(),
                Value::Text(t) => text(t).into(),
                Value::OfFile(n) => {
                    files.get(usize::from(*n) % files.len().max(1)).map(in_file).unwrap_or_default()
                }
            };
            match field {
                // A guard's lists have numbers.
                Field::Settings | Field::Unfiltered => body[name] = vec![value; file].into(),
                Field::Id | Field::Kind | Field::Writer | Field::Version | Field::Suspended | Field::AsOf => {
                    body[name] = value;
                }
                Field::Twice => body["files"].as_array_mut().unwrap().push(files[file % files.len()].clone()),
                Field::Gone => _ = body["files"].as_array_mut().unwrap().pop(),
                Field::TailAt | Field::TailSha256 => bucket::file_of(body, file)["tail"][name] = value,
                _ => bucket::file_of(body, file)[name] = value,
            }
        }),
        Change::Contents { generation, file, before_end, bytes } => {
            objects.replace_contents(*generation, *file, (*before_end).into(), bytes);
        }
        Change::Hint { of_guard, hint } => {
            let hint = match hint {
                Hint::Number(n) => number(*n).to_string(),
                Hint::Text(t) => text(t),
            };
            objects.hint(*of_guard, hint.into_bytes());
        }
        Change::Endless { object, said } => objects.endless(*object, *said),
    }
}

static STORE: LazyLock<Arc<Swapped>> = LazyLock::new(Arc::default);
static REMOTE: LazyLock<Remote> =
    LazyLock::new(|| Remote::new(STORE.clone(), Name::from(bucket::PREFIX)).unwrap());
static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    base.join(format!("sidebloom-fuzz-bucket-{}", std::process::id()))
});

fuzz_target!(|input: Input| {
    let is_sound = input.before.is_empty() && input.after.is_empty();
    let root = &*ROOT;
    _ = std::fs::remove_dir_all(root);
    let cache = root.join("cache");
    std::fs::create_dir_all(&cache).unwrap();
    THEIRS.iter().for_each(|name| std::fs::write(cache.join(name), "mine").unwrap());
    let mut objects = Objects::published();
    input.before.iter().take(8).for_each(|change| apply(&mut objects, change));
    STORE.set(&objects);
    let mut after = || {
        input.after.iter().take(8).for_each(|change| apply(&mut objects, change));
        STORE.set(&objects);
    };
    match input.read {
        Read::Store => read(&cache, is_sound, &mut after),
        Read::Guard => ask(&cache, is_sound, &mut after),
        Read::Clone => {
            let cloned = sidebloom_remote::clone(&REMOTE, root.join("clone"), &mut |_, _| ());
            assert!(cloned.is_ok() || !is_sound);
        }
    }
    let is_theirs = |name: &&str| std::fs::read(cache.join(name)).is_ok_and(|bytes| bytes == b"mine");
    assert!(THEIRS.iter().all(is_theirs), "a file of the user is gone");
    let mut left: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.retain(|name| name != "cache" && name != "clone");
    assert!(left.is_empty(), "files outside: {left:?}");
});

fn read(cache: &Path, is_sound: bool, after: &mut dyn FnMut()) {
    let reader = Reader::open(REMOTE.clone(), cache);
    assert!(reader.is_ok() || !is_sound);
    let Ok(reader) = reader else {
        after();
        drop(Reader::open(REMOTE.clone(), cache));
        return;
    };
    let look = |reader: &Reader| {
        for n in 0..bucket::ROWS {
            let found = reader.db().get(bucket::key(n));
            assert!(!is_sound || found.unwrap().as_deref() == Some(bucket::value(n).as_bytes()));
        }
        assert!(!is_sound || reader.db().iter().filter(|row| row.is_ok()).count() == bucket::ROWS);
    };
    look(&reader);
    let generation = reader.generation();
    after();
    _ = reader.refresh();
    assert!(reader.generation() >= generation, "it went back");
    look(&reader);
    drop(reader);
    drop(Reader::open(REMOTE.clone(), cache));
}

fn ask(cache: &Path, is_sound: bool, after: &mut dyn FnMut()) {
    let open = || RemoteGuard::open(REMOTE.clone(), cache, RemoteGuardOptions::new().poll(None));
    let guard = open();
    assert!(guard.is_ok() || !is_sound);
    after();
    let Ok(guard) = guard else {
        drop(open());
        return;
    };
    let state = guard.stats().state;
    _ = guard.refresh();
    assert!(guard.stats().state >= state, "it went back");
    for n in 0..bucket::ROWS {
        let verdict = guard.may_contain(bucket::key(n));
        assert!(!is_sound || verdict == Verdict::Maybe);
    }
    drop(open());
}
