//! Opens records where users name them: in a file, or on a PostgreSQL server.
//!
//! A place is the path of a SQLite file, the URL of a server (`postgres://user@host/database`), or a
//! farm file, which holds such a URL. Servers need the feature `farm`.

use std::path::Path;

use warploom_tune::records::{Records, RecordsError};

/// Opens records to write, and makes them if they do not exist.
///
/// # Errors
/// If the file or the server cannot be used.
pub fn open(place: impl AsRef<Path>) -> Result<Records, RecordsError> {
    let place = place.as_ref();
    #[cfg(feature = "farm")]
    if let Some(address) = warploom_farm::address_of(place)? {
        return warploom_farm::store::open(&address);
    }
    Records::open(place)
}

/// Opens existing records, read-only if a file is not writable.
///
/// # Errors
/// If they do not exist, or the file or the server cannot be used.
pub fn open_existing(place: impl AsRef<Path>) -> Result<Records, RecordsError> {
    let place = place.as_ref();
    #[cfg(feature = "farm")]
    if let Some(address) = warploom_farm::address_of(place)? {
        return warploom_farm::store::open_existing(&address);
    }
    Records::open_existing(place)
}

/// Whether a place is a server rather than a file.
///
/// # Errors
/// If it is a URL or a farm file that cannot be used.
pub fn is_server(place: impl AsRef<Path>) -> Result<bool, RecordsError> {
    #[cfg(feature = "farm")]
    return Ok(warploom_farm::address_of(place.as_ref())?.is_some());
    #[cfg(not(feature = "farm"))]
    match Records::of_server(place.as_ref()) {
        Some(scheme) => Err(RecordsError::OfServer { scheme }),
        None => Ok(false),
    }
}

/// A place in a form safe to show: a URL without its password.
pub fn shown(place: impl AsRef<Path>) -> String {
    let place = place.as_ref();
    let Some(scheme) = Records::of_server(place) else { return place.display().to_string() };
    #[cfg(feature = "farm")]
    if let Ok(Some(address)) = warploom_farm::address_of(place) {
        return address.to_string();
    }
    format!("{scheme}...")
}

/// The error that [`open`] is certain to return, as far as that is known without connecting, opening or creating
/// anything.
///
/// # Errors
/// If the place cannot be used.
pub fn check(place: impl AsRef<Path>) -> Result<(), RecordsError> {
    let place = place.as_ref();
    #[cfg(feature = "farm")]
    if warploom_farm::address_of(place)?.is_some() {
        return Ok(());
    }
    Records::check(place)
}
