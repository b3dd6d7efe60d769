//! The private database of a farm: a server, its tables, and the role of the workers.

use std::path::Path;

use thiserror::Error;
use warploom_tune::records::RecordsError;

use crate::address::AddressError;
use crate::connect::{self, ConnectError};
use crate::server::{Server, ServerError, StartOptions, Started};
use crate::store;

/// Why a private database could not be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// The server is not running.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The address of the server is invalid.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The server cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The tables cannot be made.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The role of the workers cannot be set up.
    #[error("the role of the workers cannot be set up: {message}; see the server's log in its folder")]
    Roles {
        /// The server's message.
        message: String,
    },
}

/// Starts the server in a folder, with new data in a new folder, and creates missing tables and a role for workers. The
/// role may use the tables, and is neither their owner nor a superuser.
///
/// # Errors
/// If PostgreSQL is not installed, or the folder or the server cannot be used.
pub fn start(folder: &Path, options: &StartOptions) -> Result<Started, DatabaseError> {
    let started = Server::at(folder).start(options)?;
    let owner = started.owner.address()?;
    drop(store::open(&owner)?);
    let mut client = connect::connect(&owner)?;
    for statement in started.setup() {
        let done = client.batch_execute(&statement);
        done.map_err(|error| DatabaseError::Roles { message: connect::cause(&error) })?;
    }
    Ok(started)
}
