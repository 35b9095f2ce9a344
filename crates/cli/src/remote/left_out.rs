//! This build has no object storage.

use super::report::{Cloned, Published};
use crate::context::{Context, Failure};
use sidebloom::Db;
use std::path::Path;
use std::time::Duration;

fn refusal<T>() -> Result<T, Failure> {
    Err(Failure::not_built_in("object storage", "remote"))
}

pub fn open(_: &Context, _: &str) -> Result<Db, Failure> {
    refusal()
}

pub fn publish(_: &Context, _: &str, _: Option<Duration>, _: bool) -> Result<Published, Failure> {
    refusal()
}

pub fn clone(_: &str, _: &Path) -> Result<Cloned, Failure> {
    refusal()
}
