//! Keyspaces: several sets of keys in one store.

mod basics;
mod dropped;
mod elsewhere;
mod options;
