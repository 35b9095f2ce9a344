//! The whole store at once, under random work, many threads, races and panics.

mod concurrent;
mod everything;
mod model;
mod panics;
mod races;
