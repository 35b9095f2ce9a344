//! Which process this is: a store acts only in the process that opened it (I13).
//!
//! A forked process has a copy of the memory and shares the open files. It has none of the other threads, and
//! a lock that one of them held stays locked. So before a store does more than read, it checks that it is
//! still in its own process.
//!
//! 1. A word in memory holds the number of this process. The kernel zeroes it in a forked process
//!    (MADV_WIPEONFORK). So does a handler of `pthread_atfork`, for kernels and sandboxes without it.
//! 2. Whoever opens something keeps that number. The check costs one load and one comparison, where getpid is
//!    a system call. Besides, the kernel reuses its numbers.
//! 3. A forked process that opens something gives itself a new number, from a counter that it has inherited.
//!
//! `vfork`, and `clone` with CLONE_VM, share the memory itself. The child must call exec or _exit (POSIX).

use super::file::AppendFile;
use crate::error::{Error, Result};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of the mapping; the kernel rounds up to a page.
const PAGE_BYTES: usize = 4096;

/// The number of this process; 0 until it is first needed.
static WORD: OnceLock<&'static AtomicU64> = OnceLock::new();
/// The last number that this process or an ancestor was given.
static LAST: AtomicU64 = AtomicU64::new(0);
/// The word if no page can be mapped. Only the handler zeroes it.
static UNMAPPED: AtomicU64 = AtomicU64::new(0);

/// A process, as distinct from those forked from it.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    word: &'static AtomicU64,
    number: u64,
}

impl Process {
    /// The calling process.
    pub fn current() -> Self {
        let word = WORD.get_or_init(watched_word);
        let number = match word.load(Relaxed) {
            0 => {
                let fresh = LAST.fetch_add(1, Relaxed) + 1;
                word.compare_exchange(0, fresh, Relaxed, Relaxed).map_or_else(|other| other, |_| fresh)
            }
            known => known,
        };
        Process { word, number }
    }

    /// Whether the caller is in this process, and not in one forked from it.
    #[inline]
    pub fn is_current(&self) -> bool {
        self.word.load(Relaxed) == self.number
    }

    /// Fails in a process forked from this one.
    ///
    /// # Errors
    /// [`Error::Forked`].
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_current() { Ok(()) } else { Err(Error::Forked) }
    }
}

/// A word that a fork zeroes in the child.
fn watched_word() -> &'static AtomicU64 {
    let word = wiped_word().unwrap_or(&UNMAPPED);
    // SAFETY: the handler only loads and stores atomics, which is allowed after a fork.
    let failed = unsafe { libc::pthread_atfork(None, None, Some(on_fork)) };
    if failed != 0 {
        tracing::warn!(code = failed, "cannot watch for forks of this process by pthread_atfork");
    }
    word
}

/// A word in its own page, which the kernel zeroes in forked processes if it can.
fn wiped_word() -> Option<&'static AtomicU64> {
    let page = Box::leak(Box::new(memmap2::MmapMut::map_anon(PAGE_BYTES).ok()?));
    #[cfg(target_os = "linux")]
    // SAFETY: the mapping is private, anonymous and of this length. A kernel that refuses the advice leaves
    // the page to the handler.
    let _ = unsafe { libc::madvise(page.as_mut_ptr().cast(), page.len(), libc::MADV_WIPEONFORK) };
    // SAFETY: the page is zeroed, aligned, never unmapped, and used by nothing else.
    Some(unsafe { AtomicU64::from_ptr(page.as_mut_ptr().cast()) })
}

extern "C" fn on_fork() {
    if let Some(word) = WORD.get() {
        word.store(0, Relaxed);
    }
}

/// A file for appending. Refuses in a forked process: both processes would write at the same end.
#[derive(Debug)]
pub(crate) struct ProcessFile {
    file: Box<dyn AppendFile>,
    process: Process,
}

impl ProcessFile {
    /// A file of this process.
    pub fn new(file: Box<dyn AppendFile>, process: Process) -> Self {
        ProcessFile { file, process }
    }
}

impl AppendFile for ProcessFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.process.check()?;
        self.file.append(bytes)
    }

    fn sync(&mut self) -> Result<()> {
        self.process.check()?;
        self.file.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_the_same_until_a_fork_zeroes_its_word() {
        let here = Process::current();
        assert!(here.is_current() && Process::current().is_current());
        assert_eq!(Process::current().number, here.number);
        here.check().unwrap();
        static WIPED: AtomicU64 = AtomicU64::new(0);
        let child = Process { word: &WIPED, ..here };
        assert!(matches!(child.check(), Err(Error::Forked)));
    }
}
