//! Records on a PostgreSQL server, which many machines share.
//!
//! | module | subject |
//! | --- | --- |
//! | [`address`] | URLs of servers, and where passwords come from |
//! | [`connect`] | connections: TLS, limits, refusals |
//! | [`store`] | [records](warploom_tune::records::Store) in the tables of a server |
//! | [`server`] | a private server for those who have none |
//! | [`database`] | that server with its tables and roles |
//! | [`farm_file`] | the file that tells workers where their server is |

pub mod address;
pub mod connect;
#[cfg(unix)]
pub mod database;
pub mod farm_file;
#[cfg(unix)]
pub mod server;
pub mod store;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use warploom_tune::records::{Place, Records, RecordsError};

use address::Address;
use farm_file::FarmFile;

/// The server that a place names, by its URL or as a farm file; `None` if it is the path of another
/// file.
///
/// # Errors
/// If it is a URL or a farm file that cannot be used.
pub fn address_of(place: &Path) -> Result<Option<Address>, RecordsError> {
    let refused =
        |shown: String, message: String| RecordsError::Server { place: Place::Server(shown), message };
    if let Some(scheme) = Records::of_server(place) {
        // The rest may contain a password.
        let shown = || format!("{scheme}...");
        let text = place.to_str().ok_or_else(|| refused(shown(), "the URL is not UTF-8".to_owned()))?;
        let address = text.parse::<Address>().map_err(|error| refused(shown(), error.to_string()))?;
        return Ok(Some(address));
    }
    if !is_farm_file(place) {
        return Ok(None);
    }
    let shown = || place.display().to_string();
    let file = FarmFile::read(place).map_err(|error| refused(shown(), error.to_string()))?;
    file.address().map(Some).map_err(|error| refused(shown(), error.to_string()))
}

/// Whether a path is that of a farm file, by its first byte: a database begins with another one.
fn is_farm_file(path: &Path) -> bool {
    let mut first = [0];
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    is_file && File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == *b"{"
}
