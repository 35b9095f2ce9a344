//! A handle that one thread may close while others use it.

use crate::bytes::object;
use crate::error::{Code, Error, Failure};
use arc_swap::ArcSwapOption;
use std::sync::Arc;
use std::time::Duration;

/// What can be closed. Until its memory is freed, each use after that is an error.
pub struct Handle<T> {
    open: ArcSwapOption<T>,
    /// The process that opened it.
    process: u32,
}

impl<T> Handle<T> {
    /// A handle to what this process has opened.
    pub fn new(open: T) -> Self {
        Handle { open: ArcSwapOption::from_pointee(open), process: std::process::id() }
    }

    /// Calls `body` with what is open.
    ///
    /// # Errors
    /// [`Code::Closed`]; the errors of `body`.
    pub fn with<R>(&self, body: impl FnOnce(&T) -> Result<R, Failure>) -> Result<R, Failure> {
        match &*self.open.load() {
            Some(open) => body(open),
            None => Err(closed()),
        }
    }

    /// Takes out what is open, once the calls of other threads have ended. `None` in a forked process in
    /// which such a call will never end.
    ///
    /// # Errors
    /// [`Code::Closed`] if it is closed already.
    pub fn take(&self) -> Result<Option<T>, Failure> {
        let mut open = self.open.swap(None).ok_or_else(closed)?;
        loop {
            open = match Arc::try_unwrap(open) {
                Ok(open) => return Ok(Some(open)),
                Err(_) if std::process::id() != self.process => return Ok(None),
                Err(used) => used,
            };
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// [`Handle::with`], for a pointer from C.
///
/// # Errors
/// [`Code::InvalidArgument`] for null; the errors of [`Handle::with`].
pub fn with<T, R>(
    handle: Option<&Handle<T>>,
    name: &str,
    body: impl FnOnce(&T) -> Result<R, Failure>,
) -> Result<R, Failure> {
    object(handle, name)?.with(body)
}

fn closed() -> Failure {
    Error::new(Code::Closed, "the handle was closed; open it again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn closing_waits_for_the_calls_of_other_threads() {
        let (handle, has_ended) = (Handle::new(5), AtomicBool::new(false));
        let (began, waiting) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                handle.with(|five| {
                    began.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(50));
                    has_ended.store(true, Ordering::SeqCst);
                    assert_eq!(*five, 5);
                    Ok(())
                })
            });
            waiting.recv().unwrap();
            assert_eq!(handle.take().unwrap(), Some(5));
            assert!(has_ended.load(Ordering::SeqCst));
        });
        assert_eq!(handle.with(|_| Ok(())).unwrap_err().code(), Code::Closed);
        assert_eq!(handle.take().unwrap_err().code(), Code::Closed);
    }
}
