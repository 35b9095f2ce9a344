//! `sidebloom export` and `sidebloom import`: a store to a SlateDB on object storage, and back.

pub mod export;
pub mod import;
#[cfg(feature = "slatedb")]
mod object_url;

#[cfg(not(feature = "slatedb"))]
use crate::context::Failure;

/// Where the SlateDB is.
#[derive(clap::Args)]
pub struct Slate {
    /// URL of the SlateDB or of a directory above it: s3://BUCKET/PATH, gs://, az://, file:///PATH.
    /// Credentials and other options come from the environment: AWS_…, GOOGLE_…, AZURE_… (needs a build with
    /// the feature slatedb)
    #[arg(long = "slatedb", value_name = "URL")]
    url: String,
    /// Path of the SlateDB below the URL
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
}

#[cfg(not(feature = "slatedb"))]
impl Slate {
    /// Names the missing feature.
    fn refuse<T>(&self) -> Result<T, Failure> {
        Err(Failure::not_built_in("SlateDB", "slatedb"))
    }
}
