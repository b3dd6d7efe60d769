//! Where the database of a farm is.

use std::path::{Path, PathBuf};

use warploom::farm::address::Address;
use warploom::farm::address_of;

use crate::error::Error;

/// The address of a farm, by its file or the URL of its server.
pub(super) fn address(place: &Path) -> Result<Address, Error> {
    let found = address_of(place)?;
    found.ok_or_else(|| Error::NoFarm { place: place.display().to_string() })
}

/// The file for workers in the folder of a private server.
pub(super) fn farm_file(database: &Path) -> PathBuf {
    database.join("farm.json")
}
