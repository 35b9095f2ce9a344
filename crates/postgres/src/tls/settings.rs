//! The TLS settings of a connection: libpq's `sslmode`, and the certificate files.

use super::address::TlsParameters;
use super::error::TlsError;
use super::verify::Verifier;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// libpq's values, except `allow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Mode {
    fn parse(name: &str) -> Result<Self, String> {
        Ok(match name {
            "disable" => Mode::Disable,
            "prefer" => Mode::Prefer,
            "require" => Mode::Require,
            "verify-ca" => Mode::VerifyCa,
            "verify-full" => Mode::VerifyFull,
            _ => {
                return Err(format!(
                    "invalid sslmode \"{name}\": use disable, prefer, require, verify-ca or verify-full"
                ));
            }
        })
    }
}

/// Whose certificates are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Roots {
    /// Everybody's.
    Unchecked,
    File(PathBuf),
    System,
}

/// How to use TLS.
#[derive(Debug, Clone)]
pub struct TlsSettings {
    pub mode: Mode,
    roots: Roots,
    /// The client's certificate and its key.
    client: Option<(PathBuf, PathBuf)>,
}

impl TlsSettings {
    /// From a connection string's parameters. Missing ones come from `env` and from the files under `home`,
    /// as in libpq.
    pub fn new(
        given: TlsParameters,
        env: impl Fn(&str) -> Option<String>,
        home: Option<&Path>,
    ) -> Result<Self, String> {
        let env = |name: &str| env(name).filter(|value| !value.is_empty());
        let file = |given: Option<String>, variable: &str, default: &str| {
            let default = || Some(home?.join(".postgresql").join(default)).filter(|file| file.exists());
            given.or_else(|| env(variable)).map(PathBuf::from).or_else(default)
        };
        let roots = match file(given.sslrootcert, "PGSSLROOTCERT", "root.crt") {
            Some(file) if file.as_os_str() == "system" => Roots::System,
            Some(file) => Roots::File(file),
            None => Roots::Unchecked,
        };
        let mode = match given.sslmode.or_else(|| env("PGSSLMODE")) {
            Some(name) => Mode::parse(&name)?,
            None if roots == Roots::System => Mode::VerifyFull,
            None => Mode::Prefer,
        };
        let roots = match (mode, roots) {
            (Mode::Disable, _) => Roots::Unchecked,
            // Anybody can get a certificate from a public authority, for their own name.
            (Mode::Prefer | Mode::Require | Mode::VerifyCa, Roots::System) => {
                return Err("sslrootcert=system needs sslmode=verify-full".to_owned());
            }
            (Mode::VerifyCa, Roots::Unchecked) => {
                return Err("sslmode=verify-ca needs a file of root certificates: sslrootcert".to_owned());
            }
            (Mode::VerifyFull, Roots::Unchecked) => Roots::System,
            (_, roots) => roots,
        };
        let certificate = file(given.sslcert, "PGSSLCERT", "postgresql.crt");
        let key = file(given.sslkey, "PGSSLKEY", "postgresql.key");
        let client = match (certificate, key) {
            _ if mode == Mode::Disable => None,
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (Some(_), None) => return Err("sslcert needs its key: sslkey".to_owned()),
            (None, _) => None,
        };
        Ok(TlsSettings { mode, roots, client })
    }

    /// Reads the files, so that a new connection uses renewed certificates.
    pub fn load(&self) -> Result<ClientConfig, TlsError> {
        let provider = Arc::new(default_provider());
        let verifier = Arc::new(self.verifier(&provider)?);
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Handshake)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &self.client {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => builder
                .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
                .map_err(|error| unusable(certificate, &error))?,
        };
        // Servers asked for direct TLS (sslnegotiation=direct) insist on it.
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(config)
    }

    fn verifier(&self, provider: &CryptoProvider) -> Result<Verifier, TlsError> {
        let mut roots = RootCertStore::empty();
        match &self.roots {
            Roots::Unchecked => {}
            Roots::File(file) => {
                for root in certificates(file)? {
                    roots.add(root).map_err(|error| unusable(file, &error))?;
                }
            }
            Roots::System => {
                let found = rustls_native_certs::load_native_certs();
                // Systems have some roots that rustls cannot read.
                roots.add_parsable_certificates(found.certs);
                if roots.is_empty() {
                    let why = found.errors.first().map_or(String::new(), |error| format!(": {error}"));
                    return Err(TlsError::NoSystemRoots(why));
                }
            }
        }
        Ok(Verifier {
            roots: (self.roots != Roots::Unchecked).then_some(roots),
            checks_name: self.mode == Mode::VerifyFull,
            algorithms: provider.signature_verification_algorithms,
        })
    }
}

/// At least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|error| unusable(file, &error))?;
    if found.is_empty() {
        return Err(unusable(file, &"it has no certificate in PEM format"));
    }
    Ok(found)
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(file).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => {
            unusable(file, &"it has no private key in PEM format without a passphrase")
        }
        error => unusable(file, &error),
    })
}

fn unusable(file: &Path, error: &dyn std::fmt::Display) -> TlsError {
    TlsError::File { path: file.to_path_buf(), what: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(words: &str, env: &[(&str, &str)], home: Option<&Path>) -> Result<TlsSettings, String> {
        let find = |name: &str| env.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned());
        TlsSettings::new(super::super::address::split(words).1, find, home)
    }

    fn roots(words: &str) -> (Mode, Roots) {
        settings(words, &[], None).map(|settings| (settings.mode, settings.roots)).unwrap()
    }

    #[test]
    fn modes_and_roots_are_those_of_libpq() {
        let file = || Roots::File("a.crt".into());
        assert_eq!(roots("host=x"), (Mode::Prefer, Roots::Unchecked));
        assert_eq!(roots("sslrootcert=a.crt"), (Mode::Prefer, file()));
        assert_eq!(roots("sslmode=require sslrootcert=a.crt"), (Mode::Require, file()));
        assert_eq!(roots("sslmode=disable sslrootcert=a.crt"), (Mode::Disable, Roots::Unchecked));
        assert_eq!(roots("sslmode=verify-ca sslrootcert=a.crt"), (Mode::VerifyCa, file()));
        assert_eq!(roots("sslmode=verify-full sslrootcert=a.crt"), (Mode::VerifyFull, file()));
        assert_eq!(roots("sslmode=verify-full"), (Mode::VerifyFull, Roots::System));
        assert_eq!(roots("sslrootcert=system"), (Mode::VerifyFull, Roots::System));
        for (words, named) in [
            ("sslmode=allow", "invalid sslmode \"allow\""),
            ("sslmode=verify-ca", "sslrootcert"),
            ("sslmode=verify-ca sslrootcert=system", "needs sslmode=verify-full"),
            ("sslmode=require sslrootcert=system", "needs sslmode=verify-full"),
            ("sslcert=a.crt", "sslkey"),
        ] {
            let error = settings(words, &[], None).unwrap_err();
            assert!(error.contains(named), "{words}: {error}");
        }
    }

    /// Parameters missing from the address come from the environment, then from the home directory.
    #[test]
    fn what_the_address_lacks_comes_from_the_environment_and_then_from_home() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".postgresql")).unwrap();
        let file = |name: &str| home.path().join(".postgresql").join(name);
        ["root.crt", "postgresql.crt", "postgresql.key"]
            .iter()
            .for_each(|name| std::fs::write(file(name), "").unwrap());
        let all = settings("host=x", &[], Some(home.path())).unwrap();
        assert_eq!((all.mode, all.roots), (Mode::Prefer, Roots::File(file("root.crt"))));
        assert_eq!(all.client, Some((file("postgresql.crt"), file("postgresql.key"))));
        let env =
            [("PGSSLMODE", "verify-full"), ("PGSSLROOTCERT", "system"), ("PGSSLCERT", "a"), ("PGSSLKEY", "")];
        let all = settings("host=x", &env, Some(home.path())).unwrap();
        assert_eq!((all.mode, all.roots), (Mode::VerifyFull, Roots::System));
        assert_eq!(all.client, Some(("a".into(), file("postgresql.key"))));
        let all = settings("sslmode=verify-ca sslrootcert=b", &env, None);
        assert!(all.unwrap_err().contains("sslkey"));
        let all = settings("sslmode=verify-ca sslrootcert=b sslkey=c", &env, None).unwrap();
        assert_eq!((all.mode, all.roots), (Mode::VerifyCa, Roots::File("b".into())));
    }
}
