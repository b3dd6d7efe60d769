//! The certificates of a server that listens for other machines: an authority of its own, which
//! workers know from the farm file, and a certificate signed by it.
//!
//! Another address gets another certificate by the same authority, so that copies of the farm file stay valid. The
//! server never sees the authority's key.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, date_time_ymd,
};
use serde::{Deserialize, Serialize};

use super::account::Account;
use super::error::{At, ServerError};
use super::folder;
use super::settings::replace;

const DAY: u64 = 24 * 60 * 60;

/// How long an authority and its certificates are valid, in seconds.
const VALID: u64 = 3653 * DAY;

/// They are replaced this long before their end, in seconds.
const RENEWED: u64 = 90 * DAY;

/// The contents of `issued.json`. The file is written last, and removed before a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Issued {
    /// The host of the certificate.
    host: String,
    /// When authority and certificate end, in seconds since 1970.
    until: u64,
}

/// The authority of the running server, as PEM.
pub(super) fn current(folder: &Path) -> Result<String, ServerError> {
    let path = folder.join("tls/ca.pem");
    fs::read_to_string(&path).at(&path)
}

/// Ensures that there are certificates for a host, readable by the server. Returns the authority as PEM.
pub(super) fn ensure(folder: &Path, host: &str, account: Option<&Account>) -> Result<String, ServerError> {
    let tls = folder.join("tls");
    folder::make(&tls, folder::shared_mode(), None)?;
    let file = |name: &str| tls.join(name);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let issued: Option<Issued> =
        fs::read(file("issued.json")).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let issued = issued.filter(|issued| issued.until > now + RENEWED);
    let kept = issued.as_ref().and_then(|_| fs::read_to_string(file("ca.pem")).ok());
    let complete = ["server.key", "server.pem"].iter().all(|name| file(name).is_file());
    if let (Some(issued), Some(ca), true) = (&issued, &kept, complete)
        && issued.host == host
    {
        return Ok(ca.clone());
    }
    let failed =
        |error: rcgen::Error| ServerError::Certificate { host: host.to_owned(), message: error.to_string() };
    let remove = fs::remove_file(file("issued.json"));
    remove.or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error).at(&file("issued.json")),
    })?;
    let key = kept.as_ref().and_then(|_| KeyPair::from_pem(&fs::read_to_string(file("ca.key")).ok()?).ok());
    let (authority, until, ca) = match (key, issued, kept) {
        (Some(key), Some(issued), Some(ca)) => {
            (Issuer::new(authority(now, issued.until), key), issued.until, ca)
        }
        _ => {
            let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
            let params = authority(now, now + VALID);
            let ca = params.self_signed(&key).map_err(failed)?.pem();
            replace(&file("ca.key"), &key.serialize_pem(), 0o600, None)?;
            replace(&file("ca.pem"), &ca, 0o644, None)?;
            (Issuer::new(params, key), now + VALID, ca)
        }
    };
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
    let certificate = server(host, now, until).and_then(|params| params.signed_by(&key, &authority));
    replace(&file("server.key"), &key.serialize_pem(), 0o600, account)?;
    replace(&file("server.pem"), &certificate.map_err(failed)?.pem(), 0o644, None)?;
    let issued = Issued { host: host.to_owned(), until };
    let text = serde_json::to_string(&issued).map_err(std::io::Error::from).at(&file("issued.json"))?;
    replace(&file("issued.json"), &text, 0o644, None)?;
    Ok(ca)
}

/// An authority. Its name is constant, because certificates name their issuer.
fn authority(now: u64, until: u64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Warploom farm");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    valid(&mut params, now, until);
    params
}

/// A server's certificate for a host, and for this machine itself.
fn server(host: &str, now: u64, until: u64) -> Result<CertificateParams, rcgen::Error> {
    let mut names = vec![host.to_owned()];
    names.extend(["localhost"].map(str::to_owned).into_iter().filter(|name| name != host));
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "Warploom farm server");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    valid(&mut params, now, until);
    Ok(params)
}

/// Sets the time of validity. It begins a day ago, for machines whose clocks are late.
fn valid(params: &mut CertificateParams, now: u64, until: u64) {
    let time = |seconds| date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    params.not_before = time(now.saturating_sub(DAY));
    params.not_after = time(until);
}
