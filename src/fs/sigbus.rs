//! SIGBUS in our maps: raised when a thread touches a page that the file lost or the disk cannot read.
//!
//! Without [`catch_sigbus`] it kills the process, as with any mapped file. With it:
//! 1. Every map has a slot in a fixed-size table: its range in one atomic word, and a flag.
//! 2. The handler looks up the faulting address. If no map of ours has it, the previous handler gets the
//!    signal.
//! 3. Otherwise it sets the flag, *then* replaces the whole map with zero pages, and the thread continues.
//! 4. Code that relies on mapped bytes calls [`Map::has_faulted`](super::Map::has_faulted) *after* reading
//!    them. If it read a zero page, it sees the flag.
//!
//! A file truncated within a page raises no signal for that page: the kernel zeroes the rest of it. Only
//! touching a later page does.
//!
//! The handler takes no lock and allocates nothing; it uses only atomics, mmap and sigaction. A range cannot
//! leave the table during the lookup, because the faulting thread itself holds the map.

use crate::error::{Error, IoOp, Result};
use libc::{c_int, c_void, siginfo_t};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// More than Linux's default limit on mappings (65,530, vm.max_map_count). The handler covers no more maps.
const SLOTS: usize = 1 << 16;
/// Low bits of a slot's word: the map's length in 4 KiB pages. The bits above hold the first page's number.
const LENGTH_BITS: u32 = 27;
const PAGE_BITS: u32 = 12;
/// Slots per word of [`TAKEN`].
const WORD: usize = u64::BITS as usize;

/// "Action optional": memory is bad, but the signaled thread has not touched it (Linux,
/// `asm-generic/siginfo.h`).
const BUS_MCEERR_AO: c_int = 5;

/// The range of each map; 0 in a free slot.
static RANGES: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];
static FAULTED: [AtomicBool; SLOTS] = [const { AtomicBool::new(false) }; SLOTS];
/// One more than the highest slot ever used.
static SLOTS_USED: AtomicUsize = AtomicUsize::new(0);
/// One bit per taken slot. No lock: a forked process would find it locked for good if another thread held it.
static TAKEN: [AtomicU64; SLOTS / WORD] = [const { AtomicU64::new(0) }; SLOTS / WORD];
/// A word of `TAKEN` before which few slots are free.
static FREE_FROM: AtomicUsize = AtomicUsize::new(0);
/// Faults in our maps since the process started.
pub(super) static FAULTS: AtomicUsize = AtomicUsize::new(0);
/// The previous action; null until our handler is installed.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());
static INSTALLED: Mutex<bool> = Mutex::new(false);

/// Handles SIGBUS in the maps of this crate for the rest of the process's life. A filter whose file is
/// truncated or unreadable then answers "maybe" instead of killing the process; it is counted, logged as a
/// warning, and rebuilt within about a second.
///
/// **Not covered: truncation within a page.** The kernel fills the rest of that page with zeros and sends no
/// signal, so a verified filter may answer "absent" for existing keys until a later page of the file is
/// touched or the store is reopened. If other programs may truncate files of an open store, use
/// [`Residency::Pinned`](crate::Residency::Pinned).
///
/// Other SIGBUS signals go to the previous handler; without one, they kill the process as usual. Call this
/// function once, after installing a handler of your own. A handler installed later receives all signals and
/// should pass on those that it does not handle. Further calls do nothing.
///
/// # Errors
/// [`Error::Io`] if the operating system refuses the handler.
pub fn catch_sigbus() -> Result<()> {
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    let refused = || Error::io(IoOp::Other("handle"), "SIGBUS", std::io::Error::last_os_error());
    // Stored before our handler can run and never freed, because a handler may run at any time.
    let previous = Box::into_raw(Box::new(action(libc::SIG_DFL, 0)));
    // SAFETY: `previous` is valid for writing, and the other pointer may be null.
    if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), previous) } != 0 {
        return Err(refused());
    }
    PREVIOUS.store(previous, Ordering::Release);
    let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = on_sigbus;
    let ours = action(handler as libc::sighandler_t, libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART);
    // SAFETY: the handler does only what a handler may do (see the module's documentation), and has the
    // signature that SA_SIGINFO asks for.
    if unsafe { libc::sigaction(libc::SIGBUS, &ours, ptr::null_mut()) } != 0 {
        return Err(refused());
    }
    *installed = true;
    Ok(())
}

/// Faults caught in maps of this crate since the process started; `None` without the handler.
pub(crate) fn sigbus_faults() -> Option<usize> {
    (!PREVIOUS.load(Ordering::Relaxed).is_null()).then(|| FAULTS.load(Ordering::Acquire))
}

fn action(handler: libc::sighandler_t, flags: c_int) -> libc::sigaction {
    // SAFETY: a plain C structure for which all zeros is valid: no handler, no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    action
}

/// A map's slot, held while the map exists.
pub(super) struct WatchedRange(usize);

impl WatchedRange {
    /// Watches a mapped range. `None` if all slots are taken or the range does not fit a slot; in both cases
    /// the handler does not cover it.
    pub fn new(start: *const u8, bytes: usize) -> Option<Self> {
        let (page, pages) = (start.addr() as u64 >> PAGE_BITS, bytes.div_ceil(1 << PAGE_BITS) as u64);
        if page >> (u64::BITS - LENGTH_BITS) != 0 || pages >> LENGTH_BITS != 0 || pages == 0 {
            return None;
        }
        let slot = take_slot()?;
        SLOTS_USED.fetch_max(slot + 1, Ordering::AcqRel);
        FAULTED.get(slot)?.store(false, Ordering::Relaxed);
        RANGES.get(slot)?.store(page << LENGTH_BITS | pages, Ordering::Release);
        Some(WatchedRange(slot))
    }

    /// Whether an access to the map has faulted.
    #[cold]
    pub fn is_flagged(&self) -> bool {
        FAULTED.get(self.0).is_some_and(|flag| flag.load(Ordering::Acquire))
    }
}

impl Drop for WatchedRange {
    fn drop(&mut self) {
        if let Some(range) = RANGES.get(self.0) {
            range.store(0, Ordering::Release);
        }
        give_back(self.0);
    }
}

/// Takes a free slot, one of the lowest.
fn take_slot() -> Option<usize> {
    let from = FREE_FROM.load(Ordering::Relaxed);
    for (number, word) in TAKEN.iter().enumerate().cycle().skip(from).take(TAKEN.len()) {
        let with_one_more = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
        if let Ok(before) = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, with_one_more) {
            FREE_FROM.store(number, Ordering::Relaxed);
            return Some(number * WORD + before.trailing_ones() as usize);
        }
    }
    None
}

fn give_back(slot: usize) {
    if let Some(word) = TAKEN.get(slot / WORD) {
        word.fetch_and(!(1 << (slot % WORD)), Ordering::AcqRel);
        FREE_FROM.fetch_min(slot / WORD, Ordering::Relaxed);
    }
}

extern "C" fn on_sigbus(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid structure to a handler with SA_SIGINFO, and SIGBUS fills the address.
    let (address, code) = unsafe { ((*info).si_addr().addr(), (*info).si_code) };
    // A sent signal (by kill, say) and a notice of bad memory that nobody has read do not concern the current
    // thread, so it need not hold the map.
    let is_fault = code > 0 && code != BUS_MCEERR_AO;
    if !(is_fault && blank(address)) {
        pass_on(signal, info, context, is_fault);
    }
}

/// Replaces our map that includes the address with zero pages. `false` if there is none.
fn blank(address: usize) -> bool {
    let page = address as u64 >> PAGE_BITS;
    let used = SLOTS_USED.load(Ordering::Acquire);
    for (range, faulted) in RANGES.iter().zip(&FAULTED).take(used) {
        let range = range.load(Ordering::Acquire);
        let (first, pages) = (range >> LENGTH_BITS, range & ((1 << LENGTH_BITS) - 1));
        if (first..first + pages).contains(&page) {
            // The flag comes first, so that a thread that reads a zero page finds it set.
            faulted.store(true, Ordering::Release);
            FAULTS.fetch_add(1, Ordering::AcqRel);
            let start = ptr::with_exposed_provenance_mut((first as usize) << PAGE_BITS);
            // SAFETY: the range belongs to a live map of this crate, which the faulting thread is reading.
            return unsafe { zero_pages(start, (pages as usize) << PAGE_BITS) };
        }
    }
    false
}

/// Replaces a map with pages that read as zeros and take no memory. `false` if the kernel refuses.
///
/// # Safety
/// The range is the whole range of a live map, and its readers do not rely on what they read from now on.
pub(super) unsafe fn zero_pages(start: *mut c_void, bytes: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: nothing else is replaced. The new pages are readable, and unmapped with the range.
    unsafe { libc::mmap(start, bytes, libc::PROT_READ, flags, -1, 0) != libc::MAP_FAILED }
}

/// Does what would have happened without our handler.
fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void, is_fault: bool) {
    // SAFETY: stored before our handler was installed, and never freed or changed.
    let Some(previous) = (unsafe { PREVIOUS.load(Ordering::Acquire).as_ref() }) else { return };
    match previous.sa_sigaction {
        libc::SIG_IGN if !is_fault => {}
        // A fault cannot be ignored.
        libc::SIG_DFL | libc::SIG_IGN => {
            let default = action(libc::SIG_DFL, 0);
            // SAFETY: both functions may be called in a handler, and the pointers are valid or may be null. A
            // fault recurs when this returns; a sent signal is raised again and stays pending until then.
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
