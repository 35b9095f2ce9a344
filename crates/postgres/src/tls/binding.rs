//! Binds a SCRAM login to the TLS session, so that nobody in between can relay the login (RFC 5929,
//! `tls-server-end-point`).

use super::verify::is_readable;
use postgres::tls::ChannelBinding;
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256, Sha384, Sha512};

const SEQUENCE: u8 = 0x30;
const OBJECT_ID: u8 = 0x06;

/// 1.2.840.113549.1.1, followed by the number of an RSA signature algorithm.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
/// 1.2.840.10045.4.3, followed by the number of an ECDSA algorithm.
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];

/// The hash of a server's certificate. `None` for a certificate that cannot prove that the server has its
/// key, and for signatures without a hash function (Ed25519).
pub fn channel_binding(certificate: &CertificateDer<'_>) -> ChannelBinding {
    match is_readable(certificate).then(|| hash(certificate)).flatten() {
        Some(hash) => ChannelBinding::tls_server_end_point(hash),
        None => ChannelBinding::none(),
    }
}

/// With the hash function of the certificate's own signature; with SHA-256 instead of MD5 and SHA-1.
fn hash(certificate: &[u8]) -> Option<Vec<u8>> {
    // SEQUENCE { what is signed, SEQUENCE { the signature's algorithm, … }, the signature }
    let (_, fields, _) = element(certificate)?;
    let (_, _, after_signed) = element(fields)?;
    let (SEQUENCE, algorithm, _) = element(after_signed)? else { return None };
    let (OBJECT_ID, id, _) = element(algorithm)? else { return None };
    let (number, family) = id.split_last()?;
    match (family, number) {
        (RSA, 4 | 5 | 11) | (ECDSA, 2) => Some(Sha256::digest(certificate).to_vec()),
        (RSA, 12) | (ECDSA, 3) => Some(Sha384::digest(certificate).to_vec()),
        (RSA, 13) | (ECDSA, 4) => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// The first DER element: its tag, its content, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, length], rest) = der.split_first_chunk()?;
    let (length, rest) = match length {
        0..0x80 => (usize::from(length), rest),
        _ => {
            let (digits, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            let digit = |length: usize, digit: &u8| length.checked_mul(256)?.checked_add(usize::from(*digit));
            (digits.iter().try_fold(0, digit)?, rest)
        }
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    #[test]
    fn the_hash_is_that_of_the_certificates_signature() {
        for (algorithm, length) in
            [(&PKCS_ECDSA_P256_SHA256, Some(32)), (&PKCS_ECDSA_P384_SHA384, Some(48)), (&PKCS_ED25519, None)]
        {
            let key = KeyPair::generate_for(algorithm).unwrap();
            let certificate =
                CertificateParams::new(["a.example".to_owned()]).unwrap().self_signed(&key).unwrap();
            assert_eq!(hash(certificate.der()).map(|hash| hash.len()), length);
            let whole: &[u8] = certificate.der();
            assert!((0..whole.len()).all(|cut| hash(&whole[..cut]).is_none()));
        }
    }
}
