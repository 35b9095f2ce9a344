//! `Db::set_options`: each option's effect while the store is open.

mod errors;
mod filter_policy;
mod racing;
mod rate;
mod settings;
