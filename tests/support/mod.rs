//! What the integration tests share. Each of them uses a part of it.
#![allow(dead_code, unused_imports, reason = "every test binary compiles all of it and uses some of it")]

mod crash;
mod disk;
mod faults;
mod rng;
mod sim_fs;

pub use crash::Crash;
pub use faults::{Errno, Fault, OpKind};
pub use rng::Rng;
pub use sim_fs::SimFs;
