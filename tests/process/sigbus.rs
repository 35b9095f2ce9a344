//! SIGBUS in mapped sidecars: what a truncated file does to a process, with and without the handler. Each
//! case runs in its own process, which is this test binary started again.

use crate::support::{Contents, assert_holds, contents, eventually, fast_dir, files_with, sized, tiny};
use crate::{assert_ran, command_for, exclusive};
use sidebloom::fs::catch_sigbus;
use sidebloom::{Compression, Db, Options, Residency};
use std::fs::OpenOptions;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

const CHILD: &str = "SIDEBLOOM_TEST_SIGBUS_CHILD";
const HOSTS_EXIT: i32 = 42;

/// In the child, runs `case`. In the parent, starts the child and returns its exit status.
fn in_child(test: &str, case: impl FnOnce()) -> Option<ExitStatus> {
    if std::env::var_os(CHILD).is_some() {
        case();
        return None;
    }
    let mut command = command_for(module_path!(), test);
    command.env(CHILD, "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = {
        let _exclusive = exclusive();
        command.spawn().unwrap()
    };
    let output = child.wait_with_output().unwrap();
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    assert_ran(&output.stdout);
    Some(output.status)
}

fn assert_ends_well(ended: Option<ExitStatus>) {
    assert!(ended.is_none_or(|status| status.success()), "{ended:?}");
}

fn assert_dies_of_sigbus(ended: Option<ExitStatus>) {
    assert_eq!(ended.and_then(|status| status.signal()), Some(libc::SIGBUS), "{ended:?}");
}

fn options() -> Options {
    tiny().memtable_bytes(32 << 10).background_threads(4)
}

fn filled(dir: &Path) -> Contents {
    filled_with(dir, options())
}

fn filled_with(dir: &Path, options: Options) -> Contents {
    let db = options.open(dir).unwrap();
    (0..4000u32).for_each(|i| db.put(format!("key{:05}", i * 7919 % 4000), [i as u8; 30]).unwrap());
    (0..4000).step_by(9).for_each(|i| db.delete(format!("key{i:05}")).unwrap());
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    contents(&db)
}

fn truncate(path: &Path, bytes: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

fn filters(db: &Db) -> usize {
    db.stats().levels.iter().map(|level| level.filters).sum()
}

fn segments(db: &Db) -> usize {
    db.stats().levels.iter().map(|level| level.segments).sum()
}

/// Stops the readers, even if a check fails.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads in several threads while sidecars are truncated to `left` bytes; with `warm`, after verification.
fn cut_under_readers(warm: bool, left: u64) {
    let dir = fast_dir();
    let expected = filled(dir.path());
    let sidecars = files_with(dir.path(), ".filter");
    assert!(sidecars.len() >= 4);
    let db = options().open(dir.path()).unwrap();
    if warm {
        db.warm().unwrap();
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..4 {
            let (db, expected, stop) = (&db, &expected, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    for (key, value) in expected.iter().skip(reader).step_by(4) {
                        assert_eq!(db.get(key).unwrap().as_deref(), Some(value.as_slice()));
                        let absent = [key.as_slice(), b"x"].concat();
                        assert_eq!(db.get(absent).unwrap(), None);
                    }
                }
            });
        }
        let _stop = SetAtEnd(&stop);
        sidecars.iter().for_each(|path| truncate(path, left));
        let is_longer = |path: &PathBuf| path.metadata().is_ok_and(|found| found.len() > left);
        eventually("every sidecar is rewritten", || sidecars.iter().all(is_longer));
        eventually("every sidecar answers again", || filters(&db) == segments(&db));
    });
    assert_eq!(db.stats().filters_unavailable as usize, sidecars.len(), "each is counted once");
    assert_holds(&db, &expected);
    let before = db.stats().filter_negatives;
    (0..50).for_each(|i| assert_eq!(db.get(format!("key{i:05}x")).unwrap(), None));
    assert!(db.stats().filter_negatives > before, "the rebuilt filters answer");
}

/// Sidecars truncated during reads are rebuilt, and every answer is right, when SIGBUS is caught.
#[test]
fn sidecars_cut_under_readers_are_rebuilt_when_sigbus_is_caught() {
    assert_ends_well(in_child("sidecars_cut_under_readers_are_rebuilt_when_sigbus_is_caught", || {
        catch_sigbus().unwrap();
        catch_sigbus().unwrap();
        for &left in sized(&[0, 4096][..], &[0, 4096, 4096, 0]) {
            cut_under_readers(true, left);
        }
    }));
}

/// Sidecars truncated before they are verified are rebuilt when SIGBUS is caught.
#[test]
fn sidecars_cut_before_verification_are_rebuilt_when_sigbus_is_caught() {
    assert_ends_well(in_child("sidecars_cut_before_verification_are_rebuilt_when_sigbus_is_caught", || {
        catch_sigbus().unwrap();
        for _ in 0..sized(2, 5) {
            cut_under_readers(false, 4096);
        }
    }));
}

/// Looks up keys until their sidecars, truncated after they were verified, have been touched.
fn touch_cut_sidecars(residency: Residency) {
    let dir = fast_dir();
    let expected = filled(dir.path());
    let db = options().residency(residency).open(dir.path()).unwrap();
    db.warm().unwrap();
    files_with(dir.path(), ".filter").iter().for_each(|path| truncate(path, 0));
    expected.keys().for_each(|key| assert!(db.get(key).unwrap().is_some()));
}

/// A truncated sidecar kills the process unless SIGBUS is caught, as documented.
#[test]
fn a_cut_sidecar_kills_the_process_unless_sigbus_is_caught() {
    assert_dies_of_sigbus(in_child("a_cut_sidecar_kills_the_process_unless_sigbus_is_caught", || {
        touch_cut_sidecars(Residency::Mapped)
    }));
}

#[test]
fn a_pinned_sidecar_that_is_cut_does_not_matter() {
    assert_ends_well(in_child("a_pinned_sidecar_that_is_cut_does_not_matter", || {
        touch_cut_sidecars(Residency::Pinned);
    }));
}

/// Rows of uncompressed segments, which are read in place.
fn uncompressed(residency: Residency) -> Options {
    options().compression(Compression::None).residency(residency)
}

/// Looks up keys of uncompressed segments that were cut after their blocks had been verified: each returns
/// its value or an error. Returns how many errors there were.
fn touch_cut_segments(residency: Residency) -> usize {
    let dir = fast_dir();
    drop(filled_with(dir.path(), uncompressed(residency)));
    let db = uncompressed(residency).block_cache_bytes(0).open(dir.path()).unwrap();
    let expected = contents(&db);
    expected.iter().for_each(|(key, value)| assert_eq!(db.get(key).unwrap().as_deref(), Some(&**value)));
    files_with(dir.path(), ".segment").iter().for_each(|path| truncate(path, 0));
    let mut failed = 0;
    for (key, value) in &expected {
        match db.get(key) {
            Ok(found) => assert_eq!(found.as_deref(), Some(&**value)),
            Err(error) => {
                assert!(error.to_string().contains(".segment"), "{error}");
                failed += 1;
            }
        }
    }
    assert!(db.iter().any(|row| row.is_err()), "a walk fails as well");
    failed
}

/// After a fault, rows come from the file, whose errors name it. No row is wrong.
#[test]
fn a_cut_segment_gives_errors_when_sigbus_is_caught() {
    assert_ends_well(in_child("a_cut_segment_gives_errors_when_sigbus_is_caught", || {
        catch_sigbus().unwrap();
        assert!(touch_cut_segments(Residency::Mapped) > 1000);
    }));
}

#[test]
fn a_cut_segment_kills_the_process_unless_sigbus_is_caught() {
    assert_dies_of_sigbus(in_child("a_cut_segment_kills_the_process_unless_sigbus_is_caught", || {
        touch_cut_segments(Residency::Mapped);
    }));
}

#[test]
fn a_cut_segment_gives_errors_when_nothing_is_mapped() {
    assert_ends_well(in_child("a_cut_segment_gives_errors_when_nothing_is_mapped", || {
        assert!(touch_cut_segments(Residency::Pinned) > 1000);
    }));
}

/// Touches a map of a truncated file that is not the store's.
fn fault_elsewhere() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(4096).unwrap();
    // SAFETY: nobody else uses the file, and its truncation is what is tested.
    let map = unsafe { memmap2::Mmap::map(&file) }.unwrap();
    file.set_len(0).unwrap();
    std::hint::black_box(map.first().copied());
}

/// Runs with a store whose sidecars are mapped.
fn beside_a_store(case: impl FnOnce()) {
    let dir = fast_dir();
    filled(dir.path());
    let db = options().open(dir.path()).unwrap();
    db.warm().unwrap();
    case();
    drop(db);
}

extern "C" fn plain(_: libc::c_int) {
    // SAFETY: may be called in a handler.
    unsafe { libc::_exit(HOSTS_EXIT) }
}

extern "C" fn with_information(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: may be called in a handler, and a fault has an address.
    unsafe { libc::_exit(if (*info).si_addr().is_null() { 1 } else { HOSTS_EXIT }) }
}

fn install(handler: libc::sighandler_t, flags: libc::c_int) {
    // SAFETY: all zeros is valid for this plain C structure.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    // SAFETY: both handlers only end the process.
    assert_eq!(unsafe { libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) }, 0);
}

#[test]
fn a_fault_elsewhere_goes_to_the_host_s_handler() {
    let ended = in_child("a_fault_elsewhere_goes_to_the_host_s_handler", || {
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = with_information;
        install(handler as libc::sighandler_t, libc::SA_SIGINFO);
        catch_sigbus().unwrap();
        cut_under_readers(true, 0);
        beside_a_store(fault_elsewhere);
    });
    assert!(ended.is_none_or(|status| status.code() == Some(HOSTS_EXIT)), "{ended:?}");
}

#[test]
fn a_fault_elsewhere_goes_to_the_host_s_plain_handler() {
    let ended = in_child("a_fault_elsewhere_goes_to_the_host_s_plain_handler", || {
        let handler: extern "C" fn(libc::c_int) = plain;
        install(handler as libc::sighandler_t, 0);
        catch_sigbus().unwrap();
        beside_a_store(fault_elsewhere);
    });
    assert!(ended.is_none_or(|status| status.code() == Some(HOSTS_EXIT)), "{ended:?}");
}

#[test]
fn a_fault_elsewhere_kills_as_ever_when_nobody_handles_it() {
    assert_dies_of_sigbus(in_child("a_fault_elsewhere_kills_as_ever_when_nobody_handles_it", || {
        catch_sigbus().unwrap();
        beside_a_store(fault_elsewhere);
    }));
}

/// An ignored signal stays ignored when sent, but a fault still kills.
#[test]
fn an_ignored_signal_stays_ignored_and_a_fault_kills_all_the_same() {
    let name = "an_ignored_signal_stays_ignored_and_a_fault_kills_all_the_same";
    assert_dies_of_sigbus(in_child(name, || {
        install(libc::SIG_IGN, 0);
        catch_sigbus().unwrap();
        // SAFETY: raises a signal that is ignored.
        assert_eq!(unsafe { libc::raise(libc::SIGBUS) }, 0);
        beside_a_store(fault_elsewhere);
    }));
}

#[test]
fn a_signal_that_is_sent_kills_by_default() {
    assert_dies_of_sigbus(in_child("a_signal_that_is_sent_kills_by_default", || {
        install(libc::SIG_DFL, 0);
        catch_sigbus().unwrap();
        // SAFETY: raises a signal.
        unsafe { libc::raise(libc::SIGBUS) };
    }));
}
