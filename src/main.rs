//! The `sidebloom` command.

fn main() {}
