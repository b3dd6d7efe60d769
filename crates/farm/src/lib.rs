//! Records on a PostgreSQL server, which many machines share.
//!
//! | module | subject |
//! | --- | --- |
//! | [`address`] | URLs of servers, and sources of passwords |
//! | [`connect`] | connections: TLS, limits, refusals |
//! | [`queue`] | runs, candidates and workers of a farm |
//! | [`worker`] | the processes of a farm |
//! | [`store`] | [records](warploom_tune::records::Store) in the tables of a server |
//! | [`server`] | a private server for those who have none |
//! | [`database`] | that server with its tables and roles |
//! | [`farm_file`] | the file that tells workers where their server is |
//! | [`fairness`] | how runs share the GPUs |
//! | [`status`] | the current state of a farm |
//! | [`history`] | its progress so far |
//! | [`launch`] | starting workers: Slurm, ssh, this machine |

pub mod address;
pub mod connect;
#[cfg(unix)]
pub mod database;
pub mod fairness;
pub mod farm_file;
pub mod history;
#[cfg(unix)]
pub mod launch;
pub mod queue;
#[cfg(unix)]
pub mod server;
pub mod status;
pub mod store;
#[cfg(unix)]
pub mod worker;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use warploom_tune::records::{Records, RecordsError, RecordsPlace};

use address::Address;
use farm_file::FarmFile;

/// The largest file that can be a farm file, in bytes.
const MOST: u64 = 1 << 20;

/// The server that a place names, by its URL or as a farm file; `None` for the path of any other file.
///
/// # Errors
/// If it is a URL or a farm file that cannot be used.
pub fn address_of(place: &Path) -> Result<Option<Address>, RecordsError> {
    let refused =
        |shown: String, message: String| RecordsError::Server { place: RecordsPlace::Server(shown), message };
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

/// Whether a path is that of a farm file: a small JSON object with the URL of a server. Unreadable files are not, and
/// other JSON is left to its own readers.
fn is_farm_file(path: &Path) -> bool {
    let metadata = std::fs::metadata(path);
    if !metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MOST) {
        return false;
    }
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut text));
    // The first byte rules out most files.
    if read.is_err() || text.first() != Some(&b'{') {
        return false;
    }
    let content: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
    let url = content.as_ref().and_then(|content| content.get("url")?.as_str());
    url.is_some_and(|url| Records::of_server(url).is_some())
}
