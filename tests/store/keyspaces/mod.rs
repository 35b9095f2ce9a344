//! Keyspaces: several sets of keys in one store.

mod basics;
mod demand;
mod dropped;
mod elsewhere;
mod options;
