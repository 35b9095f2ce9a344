//! TLS errors.

use rustls::CertificateError;
use std::fmt;
use std::io;
use std::path::PathBuf;

#[derive(Debug)]
pub enum TlsError {
    /// A file of certificates or of a key.
    File {
        path: PathBuf,
        what: String,
    },
    /// The reason, or empty.
    NoSystemRoots(String),
    /// Not a host name for which a certificate can exist.
    HostName(String),
    Handshake(rustls::Error),
    Connection(io::Error),
}

impl From<io::Error> for TlsError {
    /// The error of a handshake, unwrapped.
    fn from(error: io::Error) -> Self {
        match error.downcast::<rustls::Error>() {
            Ok(error) => TlsError::Handshake(error),
            Err(error) => TlsError::Connection(error),
        }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::File { path, what } => write!(f, "cannot use {}: {what}", path.display()),
            TlsError::NoSystemRoots(why) => {
                write!(f, "the system has no root certificates{why}; give a file of them with sslrootcert")
            }
            TlsError::HostName(host) => write!(f, "\"{host}\" is not a host name"),
            TlsError::Handshake(rustls::Error::InvalidCertificate(why)) => match why {
                CertificateError::UnknownIssuer => {
                    f.write_str("the server's certificate is not trusted: no root certificate vouches for it")
                }
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    write!(f, "the server's certificate is for another host name: {why}")
                }
                why => write!(f, "the server's certificate is not trusted: {why}"),
            },
            TlsError::Handshake(error) => error.fmt(f),
            TlsError::Connection(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TlsError {}
