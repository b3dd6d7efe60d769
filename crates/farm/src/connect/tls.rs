//! TLS with rustls, without the process's default provider: a program that uses this library may have
//! chosen another one.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use warploom_lang::files::{self, Limit, Unit};

use super::error::ConnectError;
use crate::address::{Roots, Tls};

/// The size limit of a file of root certificates. Those of a whole system take a quarter of it.
const FILE: Limit = Limit { what: "a file of root certificates", most: 1 << 20, unit: Unit::Bytes };

/// The configuration of a client; `None` without encryption.
pub(super) fn client(tls: &Tls) -> Result<Option<ClientConfig>, ConnectError> {
    let (Tls::Chain(roots) | Tls::Full(roots)) = tls else { return Ok(None) };
    let failed = |error: &dyn std::error::Error| ConnectError::Other { message: format!("no TLS ({error})") };
    let provider: Arc<CryptoProvider> = ring::default_provider().into();
    let store = store(roots)?;
    let verifier = WebPkiServerVerifier::builder_with_provider(store.into(), Arc::clone(&provider));
    let verifier = verifier.build().map_err(|error| failed(&error))?;
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| failed(&error))?;
    let builder = match tls {
        Tls::Chain(_) => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyName { full: verifier }))
        }
        _ => builder.with_webpki_verifier(verifier),
    };
    Ok(Some(builder.with_no_client_auth()))
}

/// The certificates of authorities, at least one.
fn store(roots: &Roots) -> Result<RootCertStore, ConnectError> {
    let place = match roots {
        Roots::System => "the operating system".to_owned(),
        Roots::File(path) => path.display().to_string(),
        Roots::Pem(_) => "memory".to_owned(),
    };
    let failed = |message: String| ConnectError::Roots { place: place.clone(), message };
    let mut store = RootCertStore::empty();
    match roots {
        Roots::System => {
            // The certificates of a system may include some that rustls rejects.
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Roots::File(path) => {
            add(&mut store, &files::read(path, FILE).map_err(|error| failed(error.to_string()))?)
                .map_err(failed)?;
        }
        Roots::Pem(text) => add(&mut store, text.as_bytes()).map_err(failed)?,
    }
    match store.is_empty() {
        true => Err(failed("there are none".to_owned())),
        false => Ok(store),
    }
}

/// Adds all certificates of a PEM text.
fn add(store: &mut RootCertStore, text: &[u8]) -> Result<(), String> {
    for certificate in CertificateDer::pem_slice_iter(text) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        store.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Checks everything about a certificate but the names in it.
#[derive(Debug)]
struct AnyName {
    full: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.full.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is checked last, so nothing else is wrong.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.full.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.full.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.full.supported_verify_schemes()
    }
}
