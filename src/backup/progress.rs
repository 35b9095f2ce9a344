//! How far a backup, a restore or a check has come.

use crate::progress::Progress;
use std::cell::RefCell;

/// Is told how far the work is.
pub(super) type OnProgress<'a> = dyn FnMut(&Progress) + 'a;

/// Counts bytes. A file that has to be read twice counts once.
pub(super) struct Counter<'a> {
    state: RefCell<State<'a>>,
}

struct State<'a> {
    /// Up to the current file.
    before: u64,
    /// Of the current file.
    file: u64,
    shown: u64,
    total: u64,
    show: &'a mut OnProgress<'a>,
}

impl<'a> Counter<'a> {
    pub fn new(total: u64, show: &'a mut OnProgress<'a>) -> Self {
        show(&so_far(0, total));
        Counter { state: RefCell::new(State { before: 0, file: 0, shown: 0, total, show }) }
    }

    /// A file is read from its start.
    pub fn rewind(&self) {
        self.state.borrow_mut().file = 0;
    }

    /// So many more bytes of it were read.
    pub fn advance(&self, bytes: usize) {
        let state = &mut *self.state.borrow_mut();
        state.file += bytes as u64;
        let done = state.before.saturating_add(state.file).min(state.total);
        if done > state.shown {
            state.shown = done;
            (state.show)(&so_far(done, state.total));
        }
    }

    /// The file is done. The next one follows.
    pub fn end_file(&self) {
        let state = &mut *self.state.borrow_mut();
        state.before = state.before.saturating_add(std::mem::take(&mut state.file));
    }
}

fn so_far(done: u64, total: u64) -> Progress {
    Progress { bytes_done: done, bytes_left: Some(total - done) }
}
