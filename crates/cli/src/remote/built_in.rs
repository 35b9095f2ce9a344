//! This build has object storage.

use super::cache;
use super::report::{Cloned, Published};
use crate::context::{Context, Failure};
use crate::progress;
use sidebloom::Db;
use sidebloom_remote::{Publisher, ReaderOptions, Remote, TakeOver};
use std::path::Path;
use std::time::Duration;

pub fn open(cx: &Context, url: &str) -> Result<Db, Failure> {
    let remote = Remote::open(url)?;
    let dir = cx.remote_cache.clone().map_or_else(cache::default_dir, Ok)?;
    Ok(ReaderOptions::new().store(cx.options()).open(remote, dir)?.db().clone())
}

pub fn publish(
    cx: &Context,
    url: &str,
    collect: Option<Duration>,
    take_over: bool,
) -> Result<Published, Failure> {
    let remote = Remote::open(url)?;
    let db = cx.open_to_write(false)?;
    let spinner = progress::spinner("publishing");
    let take_over = if take_over { TakeOver::Yes } else { TakeOver::No };
    let mut publisher = Publisher::new(&db, remote, take_over)?;
    let published = publisher.publish()?;
    let collected = collect.map(|age| publisher.collect(age)).transpose()?;
    spinner.finish_and_clear();
    Ok(Published {
        generation: published.generation,
        files: published.files,
        bytes: published.bytes,
        collected,
    })
}

pub fn clone(url: &str, dir: &Path) -> Result<Cloned, Failure> {
    let remote = Remote::open(url)?;
    let bar = progress::byte_bar("cloning", Some(0));
    let generation = sidebloom_remote::clone(&remote, dir, &mut |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    })?;
    bar.finish_and_clear();
    Ok(Cloned { generation, clone: dir.display().to_string() })
}
