//! Following a store that another process writes.

mod catching_up;
mod no_reader_locks;
mod passes;
mod versions;
