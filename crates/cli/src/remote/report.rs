//! The reports of `publish` and `clone`.

#[derive(serde::Serialize)]
pub struct Published {
    pub generation: u64,
    /// Uploaded.
    pub files: u64,
    /// Uploaded.
    pub bytes: u64,
    /// Objects removed by --collect.
    pub collected: Option<u64>,
}

#[derive(serde::Serialize)]
pub struct Cloned {
    pub generation: u64,
    /// The directory.
    pub clone: String,
}
