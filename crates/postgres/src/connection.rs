//! Connecting to a server, and its errors.

use crate::tls::{Connector, Mode, TlsSettings, split};
use postgres::config::{Host, SslMode};
use postgres::{Client, Config};
use sidebloom::{Error, Result};
use std::str::FromStr;

/// The search path set by the role or the address.
#[derive(Debug, Clone)]
pub struct SearchPath {
    /// In the form that `SET` takes.
    pub setting: String,
    /// Its schemas that exist.
    pub schemas: Vec<String>,
}

/// Connects. On this connection, rows that a policy hides from the role are an error, not missing keys. Names
/// without a schema are the server's own. Otherwise, a role that may create objects in a schema of the path
/// could put a better match for a function or an operator there, and it would run as the connecting role.
pub fn open_session(
    connect: impl FnOnce() -> Result<Client, postgres::Error>,
) -> Result<(Client, SearchPath), postgres::Error> {
    let mut client = connect()?;
    let row = client.query_one(
        "SELECT pg_catalog.current_setting('search_path'), pg_catalog.current_schemas(false)",
        &[],
    )?;
    let path = SearchPath { setting: row.get(0), schemas: row.get(1) };
    client.batch_execute("SET row_security = off; SET search_path = pg_catalog, pg_temp")?;
    Ok((client, path))
}

/// Where a server is, and how to connect.
#[derive(Clone)]
pub struct Address {
    /// Its name for errors.
    pub name: String,
    config: Config,
    tls: Connector,
}

impl Address {
    /// A password missing from `url` comes from `PGPASSWORD`, and TLS parameters from their variables.
    pub fn parse(url: &str) -> Result<Self> {
        let invalid = |what: String| Error::InvalidArgument(format!("PostgreSQL address: {what}"));
        let (url, tls) = split(url);
        let mut config =
            Config::from_str(&url).map_err(|error| invalid(without_secrets(&url, message(&error))))?;
        if config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(host) if host.contains('@'))) {
            // The part before it belongs to the password, and would be shown with the host.
            return Err(invalid("an @ in the user or the password must be written as %40".into()));
        }
        let env = |name: &str| std::env::var_os(name).and_then(|value| value.into_string().ok());
        let tls = TlsSettings::new(tls, env, std::env::home_dir().as_deref()).map_err(invalid)?;
        let is_local = |host: &Host| matches!(host, Host::Unix(_));
        config.ssl_mode(match tls.mode {
            Mode::Disable => SslMode::Disable,
            // Unix sockets have no TLS, whatever the mode.
            _ if !config.get_hosts().is_empty() && config.get_hosts().iter().all(is_local) => {
                SslMode::Disable
            }
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
        if config.get_hosts().is_empty() {
            // Then the certificate is for the address.
            for address in config.get_hostaddrs().to_vec() {
                config.host(&address.to_string());
            }
        }
        if config.get_password().is_none()
            && let Some(password) = std::env::var_os("PGPASSWORD")
        {
            config.password(password.as_encoded_bytes());
        }
        let host = match (config.get_hosts().first(), config.get_ports().first()) {
            (Some(Host::Tcp(host)), Some(port)) => format!("{host}:{port}"),
            (Some(Host::Tcp(host)), None) => host.clone(),
            (Some(Host::Unix(path)), _) => path.display().to_string(),
            (None, _) => "an unnamed host".to_owned(),
        };
        let name = format!("{} at {host}", config.get_dbname().or(config.get_user()).unwrap_or("postgres"));
        Ok(Address { name, config, tls: Connector::new(tls) })
    }

    pub fn connect(&self) -> Result<Client, postgres::Error> {
        self.config.connect(self.tls.clone())
    }
}

/// Connects to the server at `url` as [`PostgresSource::connect`](crate::PostgresSource::connect) does, with
/// TLS if the parameters ask for it or the server offers it. For the transactions of
/// [`commit`](crate::commit).
///
/// # Errors
/// [`Error::InvalidArgument`] for a malformed `url`, [`Error::Database`] if the connection fails.
pub fn connect(url: &str) -> Result<Client> {
    let address = Address::parse(url)?;
    address.connect().map_err(|error| failed(&address.name, &error))
}

/// The parser's message, which names unknown options. Such an option may be part of an unquoted password.
fn without_secrets(url: &str, message: String) -> String {
    if url.contains("password") || url.contains('@') {
        "it cannot be parsed, perhaps because a value must be quoted or percent-encoded (the address is not shown, because it has a password)".into()
    } else {
        message
    }
}

/// An error of the server or the connection.
pub fn failed(name: &str, error: &postgres::Error) -> Error {
    wrong(name, message(error))
}

/// An error of this crate.
pub fn wrong(name: &str, what: impl Into<String>) -> Error {
    Error::Database { name: name.to_owned(), what: what.into() }
}

/// The server's message, or what is wrong with the connection.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_malformed_address_is_not_echoed() {
        for address in [
            "host=h password=hun ter2=x dbname=d",
            "host=h password=hun ter2 dbname=d",
            "host=h password='hunter2",
            "postgres://me:hun@ter2@host/db",
            "postgres://me:hunter2@host:port/db",
            "postgres://me:x@host/db?hunter2=1",
            "postgres://me@host/db?password=hunter2&ter2=1",
        ] {
            let error = Address::parse(address).err().map(|error| error.to_string());
            assert!(error.as_ref().is_some_and(|error| !error.contains("ter2")), "{address}: {error:?}");
        }
        let error = Address::parse("host=h tabel=x").err().map(|error| error.to_string());
        assert!(error.as_ref().is_some_and(|error| error.contains("tabel")), "{error:?}");
    }
}
