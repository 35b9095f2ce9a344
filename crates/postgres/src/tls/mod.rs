//! TLS, with libpq's parameters.

mod address;
mod binding;
mod connector;
mod error;
mod settings;
mod verify;

pub use address::split;
pub use connector::Connector;
pub use settings::{Mode, TlsSettings};
