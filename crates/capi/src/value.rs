//! Bytes that a function returns, to be freed by the caller.

use crate::boundary::run_or;
use crate::bytes::Slice;

/// A value of a store, or text that a function returns. It shares the memory of what it was read from, and
/// may outlive the store. Free it with sb_value_free.
pub struct Value(Kept);

enum Kept {
    Shared(sidebloom::Value),
    Own(Vec<u8>),
}

impl Value {
    /// A value of a store.
    pub fn shared(value: sidebloom::Value) -> Self {
        Value(Kept::Shared(value))
    }

    /// Bytes that were made for the caller.
    pub fn own(bytes: Vec<u8>) -> Self {
        Value(Kept::Own(bytes))
    }

    /// For an array of results: null for what does not exist.
    pub fn pointer(value: Option<sidebloom::Value>) -> *mut Value {
        value.map_or(std::ptr::null_mut(), |value| Box::into_raw(Box::new(Value::shared(value))))
    }
}

/// The bytes. They live as long as the value, and do not end in NUL. For NULL, an empty slice whose `data` is
/// NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sb_value_bytes(value: Option<&Value>) -> Slice {
    match value {
        None => Slice::EMPTY,
        Some(Value(Kept::Shared(value))) => Slice::of(value),
        Some(Value(Kept::Own(bytes))) => Slice::of(bytes),
    }
}

/// Frees a value. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn sb_value_free(value: Option<Box<Value>>) {
    run_or((), || drop(value));
}
