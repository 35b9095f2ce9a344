//! TLS for clients over TCP.

use super::records::Records;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Time for a client's handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The server's certificate, and whose clients it accepts.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl Tls {
    /// From files in PEM form: a chain of certificates, the server's first; its private key; and, if clients
    /// must have certificates, those that sign them. TLS 1.2 and 1.3.
    ///
    /// # Errors
    /// What is wrong with which file.
    pub fn new(certificates: &Path, key: &Path, clients: Option<&Path>) -> Result<Self, String> {
        let in_file = |file: &Path, why: String| format!("{}: {why}", file.display());
        let chain = certificates_of(certificates)?;
        let private = PrivateKeyDer::from_pem_file(key).map_err(|e| in_file(key, e.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?;
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates_of(file)? {
                    roots.add(certificate).map_err(|e| in_file(file, e.to_string()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|e| in_file(file, e.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config =
            builder.with_single_cert(chain, private).map_err(|e| in_file(certificates, e.to_string()))?;
        Ok(Tls(TlsAcceptor::from(Arc::new(config))))
    }

    /// The client's handshake.
    ///
    /// # Errors
    /// What went wrong.
    pub async fn accept(&self, stream: TcpStream) -> Result<TlsStream<Records>, String> {
        match tokio::time::timeout(HANDSHAKE_TIMEOUT, self.0.accept(Records::of(stream))).await {
            Ok(accepted) => accepted.map_err(|e| e.to_string()),
            Err(_) => Err("no handshake in time".into()),
        }
    }
}

fn certificates_of(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(found) if found.is_empty() => Err(format!("{}: it has no certificate", file.display())),
        other => other.map_err(|e| format!("{}: {e}", file.display())),
    }
}
