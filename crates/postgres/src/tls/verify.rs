//! Checks a server's certificate, as far as the mode demands.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

#[derive(Debug)]
pub struct Verifier {
    /// `None`: accept any certificate.
    pub roots: Option<RootCertStore>,
    pub checks_name: bool,
    pub algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    /// Whether a signature cannot be checked and need not be: if any certificate is accepted, nothing is
    /// known about the server, so its signature proves nothing. Servers often have version 1 certificates,
    /// which rustls does not read.
    fn is_opaque(&self, certificate: &CertificateDer<'_>) -> bool {
        self.roots.is_none() && !is_readable(certificate)
    }
}

/// Whether signatures by the certificate's key can be checked.
pub fn is_readable(certificate: &CertificateDer<'_>) -> bool {
    ParsedCertificate::try_from(certificate).is_ok()
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms)?;
            if self.checks_name {
                verify_server_name(&certificate, server_name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.is_opaque(certificate) {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            verify_tls12_signature(message, certificate, signed, &self.algorithms)
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.is_opaque(certificate) {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            verify_tls13_signature(message, certificate, signed, &self.algorithms)
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
