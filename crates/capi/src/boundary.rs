//! The one way through which every fallible function runs: no panic passes it, and no error is lost.

use crate::error::{Code, Error, Failure};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of a function. Returns its code, and sets `error` to the error object, or to null without
/// one. A panic becomes [`Code::Internal`].
///
/// # Safety
/// `error` is null or points to memory for a pointer.
pub unsafe fn run(error: *mut *mut Error, body: impl FnOnce() -> Result<(), Failure>) -> Code {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(failure),
        Err(panic) => Some(Error::new(Code::Internal, message_of(&*panic))),
    };
    let code = failure.as_ref().map_or(Code::Ok, |failure| failure.code());
    if !error.is_null() && error.is_aligned() {
        // SAFETY: the caller's promise.
        unsafe { error.write(failure.map_or(std::ptr::null_mut(), Box::into_raw)) };
    }
    code
}

/// Runs what cannot fail, such as freeing. Returns `otherwise` if it panics all the same.
pub fn run_or<R>(otherwise: R, body: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("internal error: {}; please report it", text.unwrap_or("a panic without a message"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{sb_error_code, sb_error_free};
    use std::ptr;

    /// What `run` returns, and the object that it makes.
    fn outcome(body: impl FnOnce() -> Result<(), Failure>) -> (Code, Option<Box<Error>>) {
        let mut error: *mut Error = ptr::dangling_mut();
        // SAFETY: it points to a pointer.
        let code = unsafe { run(&raw mut error, body) };
        // SAFETY: null, or made by `run`.
        (code, (!error.is_null()).then(|| unsafe { Box::from_raw(error) }))
    }

    #[test]
    fn a_panic_becomes_an_error_with_its_message() {
        let nothing: Option<u8> = None;
        let panics: [Box<dyn FnOnce() -> Result<(), Failure>>; 3] = [
            Box::new(|| panic!("a plain text")),
            Box::new(|| panic!("a formatted {}", "text")),
            Box::new(move || nothing.map(drop).ok_or("text").map_err(|text| panic!("a {text} in a closure"))),
        ];
        for body in panics {
            let (code, error) = outcome(body);
            let error = error.unwrap();
            assert_eq!((code, sb_error_code(Some(&error))), (Code::Internal, Code::Internal));
            assert!(error.message().to_str().unwrap().contains("text"), "{error:?}");
            sb_error_free(Some(error));
        }
        let (code, error) = outcome(|| std::panic::panic_any(5u8));
        assert_eq!(code, Code::Internal);
        assert!(error.unwrap().message().to_str().unwrap().contains("without a message"));
        assert_eq!(run_or(7, || panic!("in a drop")), 7);
    }

    #[test]
    fn success_clears_the_error_and_failure_sets_it() {
        let (code, error) = outcome(|| Ok(()));
        assert!(code == Code::Ok && error.is_none());
        let (code, error) = outcome(|| Err(Error::invalid("no")));
        assert_eq!((code, error.unwrap().code()), (Code::InvalidArgument, Code::InvalidArgument));
        // SAFETY: null is allowed.
        let code = unsafe { run(ptr::null_mut(), || Err(Error::invalid("no"))) };
        assert_eq!(code, Code::InvalidArgument);
    }
}
