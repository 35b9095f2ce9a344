//! SIGBUS in our maps: what a thread gets when it touches a page that the file no longer has, or that the disk cannot read.
//!
//! Without [`catch_sigbus`] the process dies of it, as with every mapped file. With it:
//! 1. Every map has a slot in a table of fixed size: its range in one atomic word, and a flag.
//! 2. The handler looks for the faulting address. No map of ours: the handler that was there before gets the signal.
//! 3. Otherwise it sets the flag, *then* puts zero pages in the place of the whole map, and the thread goes on.
//! 4. Whoever concludes something from mapped bytes asks [`WatchedRange::has_faulted`] *after* reading them. Who can have read a zero page
//!    sees the flag.
//!
//! A file that is cut within a page gives no signal for that page: the kernel zeroes the rest of it. Only touching a later page tells.
//!
//! The handler takes no lock and allocates nothing: atomics, mmap and sigaction only. A range cannot go from the table while it looks: the
//! faulting thread itself holds the map.

use crate::error::{Error, Result};
use libc::{c_int, c_void, siginfo_t};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, PoisonError};

/// As many maps as Linux gives a process by default (vm.max_map_count is 65,530). A map beyond is not covered by the handler.
const SLOTS: usize = 1 << 16;
/// Of a slot's word: pages of 4 KiB in the map. The bits above hold the number of the first page.
const LENGTH_BITS: u32 = 27;
const PAGE_BITS: u32 = 12;

/// "Action optional": memory is bad, but the thread that gets the signal has not touched it (Linux, `asm-generic/siginfo.h`).
const BUS_MCEERR_AO: c_int = 5;

/// Ranges of maps; 0 for a free slot.
static RANGES: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];
static FAULTED: [AtomicBool; SLOTS] = [const { AtomicBool::new(false) }; SLOTS];
/// Slots from here on were never used.
static SLOTS_USED: AtomicUsize = AtomicUsize::new(0);
/// Used slots that are free again. Never locked in the handler.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// Faults in maps of ours since the process started.
static FAULTS: AtomicUsize = AtomicUsize::new(0);
/// The action that was there before; null until the handler is installed.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());
static INSTALLED: Mutex<bool> = Mutex::new(false);

/// Handles SIGBUS in the maps of this crate, for the rest of the process's life: a filter whose file is truncated or cannot be read then
/// answers "maybe", and is counted, warned of and rebuilt within a second or so, where the process would otherwise die.
///
/// **Not covered: a cut within a page.** The kernel fills the rest of that page with zeros and sends no signal, so a filter that has been verified
/// may answer "absent" for keys that are there, until a later page of the file is touched or the store is opened again. Where other
/// programs may truncate files of an open store, take [`Residency::Pinned`](crate::Residency::Pinned).
///
/// Signals that concern anything else go to the handler that was installed before; without one, the process dies of them as ever. Call it
/// once, after installing a handler of your own; a handler that is installed later gets all signals and should pass on what is not
/// its own. Calling it again does nothing.
///
/// # Errors
/// [`Error::Io`] when the operating system refuses the handler.
pub fn catch_sigbus() -> Result<()> {
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    let refused = || Error::io("handle", "SIGBUS", std::io::Error::last_os_error());
    // Known before the handler can run, and never freed: a handler may run at any time.
    let previous = Box::into_raw(Box::new(action(libc::SIG_DFL, 0)));
    // SAFETY: `previous` is valid for writing, and the other pointer may be null.
    if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), previous) } != 0 {
        return Err(refused());
    }
    PREVIOUS.store(previous, Ordering::Release);
    let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = on_sigbus;
    let ours = action(handler as libc::sighandler_t, libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART);
    // SAFETY: the handler does only what a handler may do (see the module's page), and has the signature that SA_SIGINFO asks for.
    if unsafe { libc::sigaction(libc::SIGBUS, &ours, ptr::null_mut()) } != 0 {
        return Err(refused());
    }
    *installed = true;
    Ok(())
}

/// Faults in maps of this crate that were caught since the process started; `None` without the handler.
pub(crate) fn sigbus_faults() -> Option<usize> {
    (!PREVIOUS.load(Ordering::Relaxed).is_null()).then(|| FAULTS.load(Ordering::Acquire))
}

fn action(handler: libc::sighandler_t, flags: c_int) -> libc::sigaction {
    // SAFETY: a plain C structure, of which all zeros is a value: no handler, no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    action
}

/// A map's slot, for as long as the map lives.
pub(super) struct WatchedRange(usize);

impl WatchedRange {
    /// Watches a mapped range. `None` when all slots are taken, or the range is none that the table can hold: it is not covered then.
    pub fn new(start: *const u8, bytes: usize) -> Option<Self> {
        let (page, pages) = (start.addr() as u64 >> PAGE_BITS, bytes.div_ceil(1 << PAGE_BITS) as u64);
        if page >> (u64::BITS - LENGTH_BITS) != 0 || pages >> LENGTH_BITS != 0 || pages == 0 {
            return None;
        }
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = match free.pop() {
            Some(slot) => slot,
            None => SLOTS_USED
                .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |n| (n < SLOTS).then_some(n + 1))
                .ok()?,
        };
        FAULTED.get(slot)?.store(false, Ordering::Relaxed);
        RANGES.get(slot)?.store(page << LENGTH_BITS | pages, Ordering::Release);
        Some(WatchedRange(slot))
    }

    /// Whether pages of the map were gone at any time before this call.
    #[inline]
    pub fn has_faulted(&self) -> bool {
        // Reads of the map stay before this; on the faulting thread itself the handler is a matter of the compiler's order alone.
        fence(Ordering::Acquire);
        FAULTS.load(Ordering::Acquire) != 0 && self.is_flagged()
    }

    #[cold]
    fn is_flagged(&self) -> bool {
        FAULTED.get(self.0).is_some_and(|flag| flag.load(Ordering::Acquire))
    }
}

impl Drop for WatchedRange {
    fn drop(&mut self) {
        if let Some(range) = RANGES.get(self.0) {
            range.store(0, Ordering::Release);
        }
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

extern "C" fn on_sigbus(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid structure to a handler with SA_SIGINFO, and SIGBUS fills the address.
    let (address, code) = unsafe { ((*info).si_addr().addr(), (*info).si_code) };
    // A signal that was sent (by kill, say), or a notice of bad memory that nobody reads right now, concerns no thread: our claim that the
    // one which runs here holds the map would be wrong.
    let is_fault = code > 0 && code != BUS_MCEERR_AO;
    if !(is_fault && blank(address)) {
        pass_on(signal, info, context, is_fault);
    }
}

/// Replaces the map of ours that has the address by zero pages. `false` when there is none.
fn blank(address: usize) -> bool {
    let page = address as u64 >> PAGE_BITS;
    let used = SLOTS_USED.load(Ordering::Acquire);
    for (range, faulted) in RANGES.iter().zip(&FAULTED).take(used) {
        let range = range.load(Ordering::Acquire);
        let (first, pages) = (range >> LENGTH_BITS, range & ((1 << LENGTH_BITS) - 1));
        if (first..first + pages).contains(&page) {
            // The flag first: who reads a zero page finds it set.
            faulted.store(true, Ordering::Release);
            FAULTS.fetch_add(1, Ordering::AcqRel);
            let start = ptr::with_exposed_provenance_mut((first as usize) << PAGE_BITS);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
            let bytes = (pages as usize) << PAGE_BITS;
            // SAFETY: the range is that of a live map of this crate, which the faulting thread reads: nothing else is replaced. The new
            // pages are as readable as the old, and unmapping the range takes them away as well.
            let blank = unsafe { libc::mmap(start, bytes, libc::PROT_READ, flags, -1, 0) };
            return blank != libc::MAP_FAILED;
        }
    }
    false
}

/// Does what would have been done without us.
fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void, is_fault: bool) {
    // SAFETY: stored before the handler was installed, and never freed or changed.
    let Some(previous) = (unsafe { PREVIOUS.load(Ordering::Acquire).as_ref() }) else { return };
    match previous.sa_sigaction {
        libc::SIG_IGN if !is_fault => {}
        // A fault cannot be ignored.
        libc::SIG_DFL | libc::SIG_IGN => {
            let default = action(libc::SIG_DFL, 0);
            // SAFETY: both functions may be called in a handler, and the pointers are valid or may be null. A fault happens again
            // when this returns; a signal that was sent is sent again and waits until then.
            unsafe {
                libc::sigaction(signal, &default, ptr::null_mut());
                if !is_fault {
                    libc::raise(signal);
                }
            }
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: with SA_SIGINFO, a handler has this signature.
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: without SA_SIGINFO, a handler has this signature.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}
