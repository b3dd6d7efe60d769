//! A folder of shards of limited size.

use std::fs;
use std::path::{Path, PathBuf};

use warploom_lang::Pipeline;

use super::{Sample, ShardError, ShardWriter};

/// Size in bytes at which the next shard is started.
const SHARD_BYTES: u64 = 12 << 20;

/// Writes shards to a folder: `NAME-0.samples`, `NAME-1.samples` and so on.
pub struct ShardFolder {
    folder: PathBuf,
    name: String,
    number: u32,
    shard: ShardWriter,
    finished_bytes: u64,
}

impl ShardFolder {
    /// Starts the first shard. Creates the folder if necessary; never overwrites a file.
    ///
    /// # Errors
    /// If the folder or the file cannot be created.
    pub fn create(folder: impl AsRef<Path>, name: &str) -> Result<ShardFolder, ShardError> {
        let folder = folder.as_ref().to_path_buf();
        fs::create_dir_all(&folder).map_err(|error| ShardError::File { path: folder.clone(), error })?;
        let mut number = 0;
        while file(&folder, name, number).exists() {
            number += 1;
        }
        let shard = ShardWriter::create(file(&folder, name, number))?;
        Ok(ShardFolder { folder, name: name.to_owned(), number, shard, finished_bytes: 0 })
    }

    /// Adds a sample of a pipeline. It has been written to the file when this returns.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, pipeline: &Pipeline, sample: Sample) -> Result<(), ShardError> {
        if self.shard.bytes() > SHARD_BYTES {
            self.number += 1;
            let next = ShardWriter::create(file(&self.folder, &self.name, self.number))?;
            self.finished_bytes += self.shard.bytes();
            self.shard = next;
        }
        self.shard.add(pipeline, sample)
    }

    /// Total bytes of all shards written by this value.
    pub fn bytes(&self) -> u64 {
        self.finished_bytes + self.shard.bytes()
    }
}

fn file(folder: &Path, name: &str, number: u32) -> PathBuf {
    folder.join(format!("{name}-{number}.samples"))
}
