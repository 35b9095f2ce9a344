//! Connecting to a server, and its errors.

use postgres::{Client, Config};
use sidebloom::{Error, Result};
use std::str::FromStr;

/// Connects. Rows that a policy hides from the role are an error on this connection, not missing keys.
pub fn open_session(
    connect: &mut impl FnMut() -> Result<Client, postgres::Error>,
) -> Result<Client, postgres::Error> {
    let mut client = connect()?;
    client.batch_execute("SET row_security = off")?;
    Ok(client)
}

/// A server's name for errors, and how to reach it. A password that `url` lacks is taken from `PGPASSWORD`.
pub fn parse(url: &str) -> Result<(String, Config)> {
    let mut config = Config::from_str(url)
        .map_err(|error| Error::InvalidArgument(format!("PostgreSQL address: {}", message(&error))))?;
    if config.get_password().is_none()
        && let Some(password) = std::env::var_os("PGPASSWORD")
    {
        config.password(password.as_encoded_bytes());
    }
    let host = match (config.get_hosts().first(), config.get_ports().first()) {
        (Some(postgres::config::Host::Tcp(host)), Some(port)) => format!("{host}:{port}"),
        (Some(postgres::config::Host::Tcp(host)), None) => host.clone(),
        (Some(postgres::config::Host::Unix(path)), _) => path.display().to_string(),
        (None, _) => "an unnamed host".to_owned(),
    };
    let name = format!("{} at {host}", config.get_dbname().or(config.get_user()).unwrap_or("postgres"));
    Ok((name, config))
}

/// An error of the server or the connection.
pub fn failed(name: &str, error: &postgres::Error) -> Error {
    wrong(name, message(error))
}

/// An error of this crate.
pub fn wrong(name: &str, what: impl Into<String>) -> Error {
    Error::Database { name: name.to_owned(), what: what.into() }
}

/// The server's message, or else what is wrong with the connection.
pub fn message(error: &postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        let detail = error.detail().map_or(String::new(), |detail| format!(" ({detail})"));
        return format!("{}{detail}", error.message());
    }
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
