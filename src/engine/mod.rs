//! The store behind [`Db`](crate::Db). A get goes through `read`; a put through `write`, and later through `compact`.

pub(crate) mod compact;
pub(crate) mod control;
pub(crate) mod copies;
pub(crate) mod failure;
pub(crate) mod filters;
pub(crate) mod follow;
pub(crate) mod ingest;
pub(crate) mod metrics;
pub(crate) mod open;
pub(crate) mod publish;
pub(crate) mod read;
pub(crate) mod repair;
pub(crate) mod retry;
pub(crate) mod shared;
pub(crate) mod storage;
pub(crate) mod tasks;
pub(crate) mod verify;
pub(crate) mod write;

#[cfg(test)]
mod hostile_tests;
