//! Tests against servers that send one answer and nothing else.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::{fs, thread};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

use super::*;
use crate::address::{Environment, Login, Password};

type Authority = CertifiedIssuer<'static, KeyPair>;

/// Starts a server for one client. It sends `answer` to the login, or nothing until its patience ends. The answer also
/// declines TLS, unless the server supports it.
fn serve(tls: Option<ServerConfig>, answer: Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        // Both the wish for TLS and the login begin with their length.
        let receive = |stream: &mut dyn Read| {
            let mut length = [0; 4];
            stream.read_exact(&mut length)?;
            stream.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize - 4])
        };
        receive(&mut stream)?;
        match tls {
            None => stream.write_all(&answer)?,
            Some(config) => {
                stream.write_all(b"S")?;
                let mut session = ServerConnection::new(Arc::new(config)).expect("a session");
                let mut stream = rustls::Stream::new(&mut session, &mut stream);
                receive(&mut stream)?;
                stream.write_all(&answer)?;
            }
        }
        // Until the client hangs up.
        stream.read_to_end(&mut Vec::new())
    });
    port
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("short").to_be_bytes();
    [&[kind], &length[..], body].concat()
}

fn fatal(code: &str, text: &str) -> Vec<u8> {
    message(b'E', format!("SFATAL\0VFATAL\0C{code}\0M{text}\0\0").as_bytes())
}

fn address(text: &str) -> Address {
    Address::parse(text, &Environment::default()).expect("an address")
}

fn failure(address: &Address) -> ConnectError {
    let error = connect(address).err().expect("no connection");
    assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    error
}

#[test]
fn servers_refuse_for_reasons() {
    for (code, text, said) in [
        (
            "28P01",
            "password authentication failed",
            "refuses `me` in the database `trials`: password authentication",
        ),
        ("28000", "no pg_hba.conf entry", "refuses `me` in the database `trials`: no pg_hba.conf entry"),
        ("42501", "permission denied", "refuses `me`"),
        ("3D000", "database \"trials\" does not exist", "has no database `trials`"),
        ("53300", "sorry, too many clients already", "too many connections"),
        ("57P03", "the database system is starting up", "cannot reach the server 127.0.0.1:"),
        ("XX000", "two\nlines", "says: two lines; see"),
        ("28P01", "it is secret", "contains the password and is not shown"),
        ("57P03", "it is secret", "contains the password and is not shown"),
        ("XX000", "it is secret", "contains the password and is not shown"),
    ] {
        let port = serve(None, fatal(code, text));
        let error = failure(&address(&format!("postgres://me:secret@127.0.0.1:{port}/trials"))).to_string();
        assert!(error.contains(said), "{code}: {error}");
    }
}

#[test]
fn nobody_answers_as_one_should() {
    let at = |port: u16| address(&format!("postgres://me:secret@127.0.0.1:{port}/trials?connect_timeout=1"));
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    for (port, said) in [
        (closed.port(), "error connecting to server: Connection refused"),
        (serve(None, b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()), "cannot reach"),
        (serve(None, message(b'R', &[0, 0, 0, 7])), "unsupported authentication method"),
        // A server that leaks a password that the client sent in the clear.
        (serve(None, [message(b'R', &[0, 0, 0, 3]), fatal("XX000", "secret")].concat()), "is not shown"),
        (serve(None, Vec::new()), "no answer within 3 seconds"),
    ] {
        let error = failure(&at(port)).to_string();
        assert!(error.contains(said), "{said}: {error}");
    }
    let asks = serve(None, message(b'R', &[0, 0, 0, 3]));
    let error = failure(&at(asks).with_password(None));
    assert!(matches!(error, ConnectError::NoPassword { .. }), "{error}");
    let error = failure(&address("postgres://me:secret@/trials?host=/no/such/folder"));
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    let error = failure(&address("postgres://me:secret@no-such-host.invalid/trials?sslmode=disable"));
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
}

fn authority(name: &str) -> Authority {
    let mut parameters = CertificateParams::new(Vec::new()).expect("parameters");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
    let key = KeyPair::generate().expect("a key");
    CertifiedIssuer::self_signed(parameters, key).expect("a certificate")
}

fn server(certificate: CertificateDer<'static>, key: &KeyPair) -> ServerConfig {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    builder.with_single_cert(vec![certificate], key).expect("a certificate")
}

/// The configuration of a server with a certificate of an authority for a name.
fn certified(authority: &Authority, name: &str) -> ServerConfig {
    let key = KeyPair::generate().expect("a key");
    let parameters = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
    let certificate = parameters.signed_by(&key, authority).expect("a certificate");
    server(certificate.der().clone(), &key)
}

fn tls_address(port: u16, mode: &str, root: &Path) -> Address {
    let root = root.display();
    address(&format!("postgres://me:secret@localhost:{port}/trials?sslmode={mode}&sslrootcert={root}"))
}

#[test]
fn certificates_are_checked() {
    let ours = authority("ours");
    let strange = authority("strange");
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root.crt");
    fs::write(&root, ours.pem()).expect("written");
    // A client that asks for the database is content with the certificate.
    let content = "has no database";
    for (mode, authority, name, said) in [
        ("verify-full", &ours, "localhost", content),
        ("verify-full", &ours, "db.example.com", "is not one for this host"),
        ("verify-full", &strange, "localhost", "is not trusted"),
        ("verify-ca", &ours, "localhost", content),
        ("verify-ca", &ours, "db.example.com", content),
        ("verify-ca", &strange, "localhost", "is not trusted"),
        ("require", &ours, "db.example.com", content),
        ("require", &strange, "db.example.com", "is not trusted"),
    ] {
        let port = serve(Some(certified(authority, name)), fatal("3D000", "none"));
        let error = failure(&tls_address(port, mode, &root)).to_string();
        assert!(error.contains(said), "{mode} {name}: {error}");
    }
    let port = serve(Some(server(ours.der().clone(), ours.key())), Vec::new());
    let error = failure(&tls_address(port, "verify-full", &root)).to_string();
    assert!(error.contains("of an authority itself"), "{error}");
    let error = failure(&tls_address(serve(None, b"N".to_vec()), "verify-full", &root));
    assert!(matches!(error, ConnectError::NoTls { .. }), "{error}");
    let port = serve(Some(certified(&ours, "127.0.0.1")), fatal("3D000", "none"));
    let password = Some(Password::from("secret".to_owned()));
    let login = Login { user: "me".into(), database: "trials".into(), schema: "w".into(), password };
    let error = failure(&Address::of_host("127.0.0.1", port, login, ours.pem()).expect("an address"));
    assert!(matches!(error, ConnectError::NoDatabase { .. }), "{error}");
}

#[test]
fn root_certificates_are_needed() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root.crt");
    let said = |said: &str| {
        let error = failure(&tls_address(1, "verify-full", &root)).to_string();
        assert!(error.contains(said) && error.contains("root.crt"), "{error}");
    };
    said("cannot read");
    fs::write(&root, "not PEM").expect("written");
    said("there are none");
    fs::write(&root, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").expect("written");
    said("cannot use the root certificates");
    fs::write(&root, vec![b' '; (1 << 20) + 1]).expect("written");
    said("1 MiB");
}

#[test]
fn versions_are_compared() {
    let address = address("postgres://me@localhost/trials");
    for (number, version) in [("90624", 9), ("120022", 12), ("129999", 12)] {
        match check_version(number, &address) {
            Err(ConnectError::Old { version: found, .. }) => assert_eq!(found, version),
            other => panic!("{number}: {other:?}"),
        }
    }
    for number in ["130000", "150018", "180001"] {
        check_version(number, &address).expect("new enough");
    }
    assert!(matches!(check_version("", &address), Err(ConnectError::Other { .. })));
}
