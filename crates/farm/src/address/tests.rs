use std::ffi::OsString;
use std::fs;

use super::*;

/// An environment in which only the user's name is known.
fn alone() -> Environment {
    Environment { user: Some("me".to_owned()), ..Environment::default() }
}

fn with(variables: &[(&str, &str)]) -> Environment {
    let variables =
        variables.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
    Environment { variables, ..alone() }
}

fn read(text: &str) -> Address {
    Address::parse(text, &alone()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str, environment: &Environment) -> String {
    Address::parse(text, environment).expect_err(text).to_string()
}

fn login(user: &str) -> Login {
    let password = Some(Password::from("secret".to_owned()));
    Login { user: user.to_owned(), database: "trials".to_owned(), schema: "w".to_owned(), password }
}

#[test]
fn addresses_print_as_what_they_mean() {
    for (text, canonical) in [
        ("postgres://", "postgres://me@/me?host=/var/run/postgresql&port=5432"),
        ("POSTGRESQL:///trials", "postgres://me@/trials?host=/var/run/postgresql&port=5432"),
        ("postgres://you@%2Frun%2Fpg:99/a", "postgres://you@/a?host=/run/pg&port=99"),
        ("postgres:///a?host=/run/my%20pg&user=you", "postgres://you@/a?host=/run/my%20pg&port=5432"),
        ("postgres://localhost", "postgres://me@localhost:5432/me?sslmode=disable"),
        ("postgres://[::1]:7/a", "postgres://me@[::1]:7/a?sslmode=disable"),
        ("postgres://u:p:q#@127.0.0.5?dbname=a/b", "postgres://u@127.0.0.5:5432/a%2Fb?sslmode=disable"),
        (
            "postgres://db.example.com",
            "postgres://me@db.example.com:5432/me?sslmode=verify-full&sslrootcert=system",
        ),
        ("postgres://db?sslmode=disable", "postgres://me@db:5432/me?sslmode=disable"),
        ("postgres://db?sslmode=&schema=", "postgres://me@db:5432/me?sslmode=verify-full&sslrootcert=system"),
        (
            "postgres://10.0.0.1?sslmode=require&sslrootcert=/ca",
            "postgres://me@10.0.0.1:5432/me?sslmode=verify-ca&sslrootcert=/ca",
        ),
        (
            "postgres://localhost?sslrootcert=ca.pem",
            "postgres://me@localhost:5432/me?sslmode=verify-full&sslrootcert=ca.pem",
        ),
        (
            "postgres:///?connect_timeout=3&application_name=a%26b&schema=_s2",
            "postgres://me@/me?host=/var/run/postgresql&port=5432&connect_timeout=3&application_name=a%26b&schema=_s2",
        ),
    ] {
        let address = read(text);
        assert_eq!(address.to_string(), canonical, "{text}");
        let bare = with(&[("PGHOST", "x"), ("PGPORT", "1"), ("PGUSER", "x"), ("PGSSLROOTCERT", "x")]);
        let again = Address::parse(canonical, &bare).expect("canonical");
        assert_eq!(again, address.with_password(None), "{canonical} means the same everywhere");
    }
}

#[test]
fn escapes_are_resolved_and_made() {
    for odd in ["ä ö", "a:b@c/d?e#f&g=h%i", "100%", "[x],", "~'\"\\"] {
        let code = url::encoded(odd, "");
        let address = read(&format!("postgres://{code}:{code}@localhost/{code}?application_name={code}"));
        assert_eq!((address.user(), address.database(), address.application_name()), (odd, odd, odd));
        assert_eq!(address.password().map(Password::reveal), Some(odd));
        assert_eq!(read(&address.to_string()), address.with_password(None));
    }
}

#[test]
fn the_environment_fills_gaps() {
    let variables =
        [("PGHOST", "::1"), ("PGPORT", "6"), ("PGUSER", "you"), ("PGPASSWORD", "p"), ("PGDATABASE", "d")];
    let address = Address::parse("postgres://", &with(&variables)).expect("address");
    assert_eq!(address.to_string(), "postgres://you@[::1]:6/d?sslmode=disable");
    assert_eq!(address.password().map(Password::reveal), Some("p"));
    let own = Address::parse("postgres://a:b@localhost:5/c", &with(&variables)).expect("address");
    assert_eq!(own.to_string(), "postgres://a@localhost:5/c?sslmode=disable");
    assert_eq!(own.password().map(Password::reveal), Some("b"));
    let tls = |text: &str, environment: &Environment| Address::parse(text, environment).expect("address").tls;
    let file = |path: &str| Roots::File(path.into());
    let root = with(&[("PGSSLROOTCERT", "/e.crt")]);
    assert_eq!(tls("postgres://db", &root), Tls::Full(file("/e.crt")));
    assert_eq!(tls("postgres://db?sslmode=require", &root), Tls::Chain(file("/e.crt")));
    assert_eq!(tls("postgres://db?sslrootcert=/f", &root), Tls::Full(file("/f")));
    assert_eq!(tls("postgres://db?sslrootcert=system", &root), Tls::Full(Roots::System));
    assert_eq!(tls("postgres://", &root), Tls::Off, "a variable asks for no encryption");
    assert!(refused("postgres://db", &with(&[("PGPORT", "x")])).contains("`PGPORT`"));
    assert!(refused("postgres://", &with(&[("PGHOST", "a b")])).contains("`PGHOST`"));
    assert!(refused("postgres://", &Environment::default()).contains("no user"));
    let home = tempfile::tempdir().expect("folder");
    let at_home = Environment { home: Some(home.path().to_path_buf()), ..alone() };
    assert_eq!(tls("postgres://db", &at_home), Tls::Full(Roots::System));
    fs::create_dir(home.path().join(".postgresql")).expect("folder");
    let root = home.path().join(".postgresql/root.crt");
    fs::write(&root, "").expect("file");
    assert_eq!(tls("postgres://db", &at_home), Tls::Full(Roots::File(root)));
}

#[test]
fn what_is_wrong_is_said() {
    for (text, said) in [
        ("", "begins with `postgres://`"),
        ("host=db user=me", "begins with `postgres://`"),
        ("postgresqls://db", "begins with `postgres://`"),
        ("postgres://a,b/c", "several servers"),
        ("postgres://a:1,b:2/c", "several servers"),
        ("postgres:///c?host=a%2Cb", "several servers"),
        ("postgres://a?port=1%2C2", "several servers"),
        ("postgres://a%zz", "%25"),
        ("postgres://a%f", "%25"),
        ("postgres://a%ff", "%25"),
        ("postgres://a b", "`host`"),
        ("postgres://::1", "`host`"),
        ("postgres://[::1", "`host`"),
        ("postgres://[::1]5", "`host`"),
        ("postgres:///?host=run/pg", "`host`"),
        ("postgres://a:0", "`port`"),
        ("postgres://a:65536", "`port`"),
        ("postgres://u%0a@a", "`user`"),
        ("postgres://u:%00@a", "`password`"),
        ("postgres://a/b%1b", "`dbname`"),
        ("postgres://a?host=b", "`host` twice"),
        ("postgres://a?port=1&port=1", "`port` twice"),
        ("postgres://a?connect_timeout=0", "`connect_timeout`"),
        ("postgres://a?options=-cx", "`options`"),
        ("postgres://a?target_session_attrs=any", "`target_session_attrs`"),
        ("postgres://a?hostaddr=1.2.3.4", "`hostaddr`"),
        ("postgres://a?sslmode", "no `=`"),
        ("postgres://a?sslmode=on", "`sslmode`"),
        ("postgres://a?sslmode=prefer", "`sslmode=prefer` can silently"),
        ("postgres://a?sslmode=allow", "`sslmode=allow` can silently"),
        ("postgres://a?sslmode=require", "would trust strangers' servers"),
        ("postgres://localhost?sslmode=verify-ca", "would trust strangers' servers"),
        ("postgres://a?sslmode=verify-ca&sslrootcert=system", "would trust strangers' servers"),
        ("postgres:///?sslmode=verify-full", "never encrypted"),
        ("postgres:///?sslrootcert=a", "never encrypted"),
        ("postgres://a?schema=Trials", "`schema`"),
        ("postgres://a?schema=1a", "`schema`"),
        ("postgres://a?schema=pg_a", "`schema`"),
        ("postgres://a?schema=a%22", "`schema`"),
    ] {
        let error = refused(text, &alone());
        assert!(error.contains(said), "{text}: {error}");
    }
    let long = |schema: usize| format!("postgres://a?schema={}", "a".repeat(schema));
    assert_eq!(read(&long(40)).schema().len(), 40);
    assert!(refused(&long(41), &alone()).contains("`schema`"));
    assert!(refused(&long(4096), &alone()).contains("4096"));
}

#[test]
fn no_message_shows_a_piece_of_a_password() {
    for text in [
        "postgres://me:hidden/secret@db/trials",
        "postgres://me:12/secret@db/trials",
        "postgres://me:12?secret@db/trials",
        "postgres://me:12?secret=1@db/trials",
        "postgres://me:secret?a=1%zz@db",
        "postgres://me:sec@secret@db/trials",
        "postgres://me:secret",
        "postgres://me:secret/trials",
        "postgres://me:secret:5432/trials",
        "postgres://me:secret,1@[db/trials",
        "postgres://me:secret%@db",
        "postgres://me:secret%ff@db",
        "postgres://me:secret%00@db",
        "postgres://me:secret@db:port",
        "postgres://db?password=hidden&secret=1",
        "postgres://db?password=hidden&secret",
        "postgres://db?password=hidden&secret=1&x=2",
        "postgres://db?secret%20word=1",
        "postgres://me:secret@db?sslmode=allow",
        "mysql://me:secret@db",
        "me:secret@db",
    ] {
        let error = Address::parse(text, &alone()).expect_err(text);
        assert!(!format!("{error} {error:?}").contains("secret"), "{text}: {error}");
    }
    let address = read("postgres://me:secret@db").with_password(Some(Password::from("secret".to_owned())));
    assert!(
        !format!("{address} {address:?} {address:#?} {:?}", with(&[("PGPASSWORD", "secret")]))
            .contains("secret")
    );
}

#[test]
fn an_address_is_made_of_parts() {
    let socket = Address::of_socket("/tmp/pg", 7, login("me")).expect("address");
    assert_eq!(socket.to_string(), "postgres://me@/trials?host=/tmp/pg&port=7&schema=w");
    assert_eq!(socket.server(), "/tmp/pg/.s.PGSQL.7");
    let host = Address::of_host("10.0.0.1", 7, login("me"), "PEM".to_owned()).expect("address");
    assert_eq!(host.to_string(), "postgres://me@10.0.0.1:7/trials?sslmode=verify-full&schema=w");
    assert_eq!(host.tls(), &Tls::Full(Roots::Pem("PEM".to_owned())));
    for wrong in [
        Address::of_socket("tmp", 7, login("me")),
        Address::of_socket("/tmp", 0, login("me")),
        Address::of_socket("/tmp", 7, login("")),
        Address::of_host("/tmp", 7, login("me"), String::new()),
        Address::of_host("a b", 7, login("me"), String::new()),
    ] {
        assert!(!wrong.expect_err("wrong").to_string().contains("secret"));
    }
}

#[test]
fn this_machine_is_known() {
    for (name, here) in [
        ("localhost", true),
        ("LocalHost", true),
        ("127.8.9.1", true),
        ("::1", true),
        ("::ffff:127.0.0.1", true),
        ("localhost.example.com", false),
        ("127.0.0.1.example.com", false),
        ("0.0.0.0", false),
        ("::", false),
    ] {
        assert_eq!(Host::Name(name.to_owned()).is_here(), here, "{name}");
    }
}
