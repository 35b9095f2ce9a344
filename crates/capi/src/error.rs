//! Error codes and error objects.

use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a call returns. The numbers never change; later versions may add some.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The call did what it says. A key that does not exist is no error.
    Ok = 0,
    /// A null pointer, an impossible length, or a value out of range. The message says which.
    InvalidArgument = 1,
    /// The program was compiled with the header of another interface.
    InterfaceMismatch = 2,
    /// The handle was closed, or its store is closing.
    Closed = 3,
    /// The store or the guard was opened before this process was forked, and belongs to the parent.
    Forked = 4,
    /// The operating system refused an operation on a file.
    Io = 5,
    /// The store or the guard is already open for writing, in this or another process.
    Locked = 6,
    /// The lock file of an open store was removed or replaced, so another process may be writing it.
    LockLost = 7,
    /// A checksum or a structural check of a file failed. Nothing wrong was returned.
    Corruption = 8,
    /// The file is of a version that this library does not read. It is not damaged.
    OtherVersion = 9,
    /// This build of the library lacks an optional feature.
    FeatureMissing = 10,
    /// The path is not a store, or there is none and it may not be created.
    NotAStore = 11,
    /// The path is not a guard, or the guard does not match the request.
    NotAGuard = 12,
    /// The target of a copy already exists.
    AlreadyExists = 13,
    /// A write to what was opened read-only.
    ReadOnly = 14,
    /// The store is read-only after a failed write or sync. Fix the cause and reopen it.
    Poisoned = 15,
    /// A key, a value, a batch or a filter is larger than it may be.
    TooLarge = 16,
    /// A key does not have the value that a batch expects. Nothing was written.
    Conflict = 17,
    /// The store has no keyspace of this name.
    UnknownKeyspace = 18,
    /// The store already has a keyspace of this name.
    KeyspaceExists = 19,
    /// The keyspace of this handle was dropped.
    KeyspaceDropped = 20,
    /// The keyspace is one of another store.
    ForeignKeyspace = 21,
    /// The filter holds as many keys as its false-positive rate allows.
    FilterFull = 22,
    /// Filters of different sizes or hashes cannot be combined.
    FilterMismatch = 23,
    /// The memory for a filter could not be allocated.
    OutOfMemory = 24,
    /// The store has used all sequence numbers.
    NumbersExhausted = 25,
    /// A bug in the library. Please report it.
    Internal = 26,
}

impl Code {
    /// All codes, in order.
    pub const ALL: [(Code, &CStr); 27] = [
        (Code::Ok, c"SB_OK"),
        (Code::InvalidArgument, c"SB_INVALID_ARGUMENT"),
        (Code::InterfaceMismatch, c"SB_INTERFACE_MISMATCH"),
        (Code::Closed, c"SB_CLOSED"),
        (Code::Forked, c"SB_FORKED"),
        (Code::Io, c"SB_IO"),
        (Code::Locked, c"SB_LOCKED"),
        (Code::LockLost, c"SB_LOCK_LOST"),
        (Code::Corruption, c"SB_CORRUPTION"),
        (Code::OtherVersion, c"SB_OTHER_VERSION"),
        (Code::FeatureMissing, c"SB_FEATURE_MISSING"),
        (Code::NotAStore, c"SB_NOT_A_STORE"),
        (Code::NotAGuard, c"SB_NOT_A_GUARD"),
        (Code::AlreadyExists, c"SB_ALREADY_EXISTS"),
        (Code::ReadOnly, c"SB_READ_ONLY"),
        (Code::Poisoned, c"SB_POISONED"),
        (Code::TooLarge, c"SB_TOO_LARGE"),
        (Code::Conflict, c"SB_CONFLICT"),
        (Code::UnknownKeyspace, c"SB_UNKNOWN_KEYSPACE"),
        (Code::KeyspaceExists, c"SB_KEYSPACE_EXISTS"),
        (Code::KeyspaceDropped, c"SB_KEYSPACE_DROPPED"),
        (Code::ForeignKeyspace, c"SB_FOREIGN_KEYSPACE"),
        (Code::FilterFull, c"SB_FILTER_FULL"),
        (Code::FilterMismatch, c"SB_FILTER_MISMATCH"),
        (Code::OutOfMemory, c"SB_OUT_OF_MEMORY"),
        (Code::NumbersExhausted, c"SB_NUMBERS_EXHAUSTED"),
        (Code::Internal, c"SB_INTERNAL"),
    ];

    fn of(error: &sidebloom::Error) -> Code {
        use sidebloom::Error as E;
        match error {
            E::Io { .. } => Code::Io,
            E::Locked { .. } => Code::Locked,
            E::LockLost { .. } => Code::LockLost,
            E::Corruption { .. } => Code::Corruption,
            E::UnsupportedVersion { .. } | E::AmbiguousKeys { .. } | E::UnknownCode { .. } => {
                Code::OtherVersion
            }
            E::NotAStore { .. } => Code::NotAStore,
            E::NotAGuard { .. } => Code::NotAGuard,
            E::AlreadyExists { .. } => Code::AlreadyExists,
            E::ReadOnly => Code::ReadOnly,
            E::Poisoned { .. } => Code::Poisoned,
            E::Forked => Code::Forked,
            E::Closing => Code::Closed,
            E::KeyTooLarge { .. }
            | E::ValueTooLarge { .. }
            | E::BatchTooLarge { .. }
            | E::TransactionTooLarge { .. }
            | E::SegmentTooLarge { .. }
            | E::ManifestTooLarge { .. }
            | E::TooManyKeys { .. }
            | E::FilterTooLarge { .. } => Code::TooLarge,
            E::NumbersExhausted { .. } => Code::NumbersExhausted,
            E::Conflict { .. } => Code::Conflict,
            E::UnknownKeyspace { .. } => Code::UnknownKeyspace,
            E::KeyspaceExists { .. } => Code::KeyspaceExists,
            E::KeyspaceDropped { .. } => Code::KeyspaceDropped,
            E::ForeignKeyspace { .. } => Code::ForeignKeyspace,
            E::FilterFull { .. } => Code::FilterFull,
            E::FilterMismatch { .. } => Code::FilterMismatch,
            E::OutOfMemory { .. } => Code::OutOfMemory,
            E::FeatureMissing { .. } => Code::FeatureMissing,
            E::InvalidArgument(_)
            | E::InvalidRange { .. }
            | E::EmptyPrefix
            | E::Contradiction { .. }
            | E::InvalidKeyspaceName { .. }
            | E::Unencodable { .. }
            | E::KeyOutOfOrder { .. }
            | E::UnknownSavepoint => Code::InvalidArgument,
            _ => Code::Internal,
        }
    }
}

/// An error: its code, a message for people and, where there is one, the file. Free it with sb_error_free.
#[derive(Debug, Clone)]
pub struct Error {
    code: Code,
    message: CString,
    path: Option<CString>,
    offset: Option<u64>,
    os: i32,
}

/// Why a call fails. It becomes an error object if the caller wants one.
pub type Failure = Box<Error>;

/// Text for C. What follows a NUL would be lost, so there is none.
fn c_text(bytes: &[u8]) -> CString {
    let bytes: Vec<u8> = bytes.iter().map(|&byte| if byte == 0 { b'?' } else { byte }).collect();
    CString::new(bytes).unwrap_or_default()
}

impl Error {
    /// An error without a file.
    pub fn new(code: Code, message: impl AsRef<str>) -> Failure {
        let message = c_text(message.as_ref().as_bytes());
        Box::new(Error { code, message, path: None, offset: None, os: 0 })
    }

    /// [`Code::InvalidArgument`].
    pub fn invalid(what: impl AsRef<str>) -> Failure {
        Error::new(Code::InvalidArgument, format!("invalid argument: {}", what.as_ref()))
    }

    /// Its code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Its message.
    pub fn message(&self) -> &CStr {
        &self.message
    }
}

impl From<sidebloom::Error> for Failure {
    fn from(error: sidebloom::Error) -> Self {
        use sidebloom::Error as E;
        let (path, offset): (Option<&Path>, _) = match &error {
            E::Corruption { file, offset, .. } | E::UnknownCode { file, offset, .. } => {
                (Some(file), Some(*offset))
            }
            E::UnsupportedVersion { file, .. } | E::AmbiguousKeys { file, .. } => (Some(file), None),
            E::Io { path, .. }
            | E::Locked { path }
            | E::LockLost { path }
            | E::NotAStore { path, .. }
            | E::NotAGuard { path, .. }
            | E::AlreadyExists { path } => (Some(path), None),
            _ => (None, None),
        };
        let os = match &error {
            E::Io { source, .. } => source.raw_os_error().unwrap_or(0),
            _ => 0,
        };
        Box::new(Error {
            code: Code::of(&error),
            message: c_text(error.to_string().as_bytes()),
            path: path.map(|path| c_text(path.as_os_str().as_bytes())),
            offset,
            os,
        })
    }
}

impl From<sidebloom::filter::Error> for Failure {
    fn from(error: sidebloom::filter::Error) -> Self {
        sidebloom::Error::from(error).into()
    }
}

/// The code of an error; SB_OK for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sb_error_code(error: Option<&Error>) -> Code {
    error.map_or(Code::Ok, |error| error.code)
}

/// The message, for people; "" for NULL. It lives as long as the error.
#[unsafe(no_mangle)]
pub extern "C" fn sb_error_message(error: Option<&Error>) -> *const c_char {
    error.map_or(c"", |error| &error.message).as_ptr()
}

/// The file or directory of the error, or NULL. It lives as long as the error.
#[unsafe(no_mangle)]
pub extern "C" fn sb_error_path(error: Option<&Error>) -> *const c_char {
    error.and_then(|error| error.path.as_deref()).map_or(std::ptr::null(), CStr::as_ptr)
}

/// Whether the error names a place in the file. If so, `offset` is set to it, in bytes from the start of the
/// file. `offset` may be NULL.
///
/// # Safety
/// `offset` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_error_offset(error: Option<&Error>, offset: *mut u64) -> bool {
    let Some(found) = error.and_then(|error| error.offset) else { return false };
    if !offset.is_null() && offset.is_aligned() {
        // SAFETY: the caller's promise.
        unsafe { offset.write(found) };
    }
    true
}

/// The `errno` of the operating system, for SB_IO; otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn sb_error_os(error: Option<&Error>) -> i32 {
    error.map_or(0, |error| error.os)
}

/// The name of a code: "SB_LOCKED". "SB_UNKNOWN" for a number that is no code. Do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn sb_code_name(code: i32) -> *const c_char {
    let named = Code::ALL.iter().find(|(known, _)| *known as i32 == code);
    named.map_or(c"SB_UNKNOWN", |(_, name)| name).as_ptr()
}

/// Frees an error. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn sb_error_free(error: Option<Box<Error>>) {
    drop(error);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_numbered_in_order_and_named_once() {
        for (number, (code, name)) in (0..).zip(Code::ALL) {
            assert_eq!(code as i32, number);
            // SAFETY: a static text.
            assert_eq!(unsafe { CStr::from_ptr(sb_code_name(number)) }, name);
        }
    }

    #[test]
    fn a_message_with_a_nul_is_passed_on_whole() {
        let error = Error::new(Code::Internal, "a\0b");
        assert_eq!(error.message(), c"a?b");
    }

    #[test]
    fn an_error_of_the_store_keeps_its_file_and_offset() {
        let error = Failure::from(sidebloom::Error::corruption("/x/000001.segment", 4096, "bad"));
        assert_eq!((error.code, error.offset), (Code::Corruption, Some(4096)));
        assert_eq!(error.path.as_deref(), Some(c"/x/000001.segment"));
        assert!(error.message().to_str().unwrap().contains("offset 4096"));
    }
}
