//! Errors end the program, so only their text matters.

/// Any error, as the text that the user sees.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;
