//! Compiled code, kept between runs.
//!
//! The same CUDA text for the same architecture, with the same options and compiler, is compiled once. An entry is one file,
//! named by the hash of all that, so that pipeline, sizes, schedule and code generator count exactly as far as they change the
//! text. Files appear whole or not at all; one that is damaged is none. When the folder grows beyond its limit, the entries
//! that were not used for the longest time go.
//!
//! Whatever is compiled to be used again is looked for here: by `warploom compile` and by programs of users. Candidates of
//! tuning are not. They are compiled by the thousand, three programs each of 40 to 400 KB,
//! [`Compilers`](crate::worker::Compilers) remembers those that are needed again, and a run that is taken up compiles nothing
//! that is measured; here they would only push out what will be used.

use std::fs::{self, File, FileTimes};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use thiserror::Error;
use warploom_lang::files::{self, CACHE_ENTRY};
use warploom_runtime::Error;
use warploom_runtime::nvrtc::{self, Arch, Image};
use warploom_target::Program;
use warploom_target::program::Code;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Names the folder, in place of the usual one; if it is empty, nothing is kept.
pub const DIRECTORY_VARIABLE: &str = "WARPLOOM_CACHE_DIR";

const MAGIC: [u8; 8] = *b"wpl-img1";
const EXTENSION: &str = "image";

/// Bytes that the entries may take together.
const LIMIT: u64 = 512 << 20;

/// A folder of compiled code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cache {
    folder: PathBuf,
    limit: u64,
}

/// What a cache holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Info {
    /// The folder.
    pub folder: PathBuf,
    /// How many programs.
    pub entries: usize,
    /// Bytes of their files.
    pub bytes: u64,
    /// Bytes that they may have.
    pub limit: u64,
}

/// A folder that cannot be read or cleared.
#[derive(Debug, Error)]
#[error("{}: {error}; check who may write there", folder.display())]
pub struct CacheError {
    folder: PathBuf,
    error: io::Error,
}

impl Cache {
    /// The user's cache: `$WARPLOOM_CACHE_DIR`, `$XDG_CACHE_HOME/warploom` or `~/.cache/warploom`. `None` if there is no
    /// place for one, or none is wanted.
    pub fn of_user() -> Option<Cache> {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let absolute = |path: PathBuf| path.is_absolute().then_some(path);
        let folder = match variable(DIRECTORY_VARIABLE) {
            Some(folder) => Some(folder).filter(|folder| !folder.as_os_str().is_empty()),
            None => variable("XDG_CACHE_HOME")
                .and_then(absolute)
                .or_else(|| Some(variable("HOME").and_then(absolute)?.join(".cache")))
                .map(|folder| folder.join("warploom")),
        };
        folder.map(Cache::at)
    }

    /// The cache in a folder, which is made when it is needed.
    pub fn at(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into(), limit: LIMIT }
    }

    /// The same with another limit, bytes.
    pub fn with_limit(self, limit: u64) -> Cache {
        Cache { limit, ..self }
    }

    /// Compiles a program, or takes it from the cache. What cannot be kept is compiled all the same.
    ///
    /// # Errors
    /// As [`nvrtc::compile_program`].
    pub fn compile_program(&self, program: &Program, arch: Arch) -> Result<(Program, Option<Image>), Error> {
        if let Some((compiled, image)) = self.find(program, arch)? {
            return Ok((compiled, Some(image)));
        }
        let (compiled, image) = nvrtc::compile_program(program, arch)?;
        if let (Some(path), Some(image)) = (self.path_of(program, arch)?, &image) {
            // A cache that cannot be written is no reason to fail.
            let _ = self.write(&path, image);
        }
        Ok((compiled, image))
    }

    /// The compiled program, if it is here. Nothing is compiled.
    ///
    /// # Errors
    /// If there is no NVRTC, whose version counts.
    pub fn find(&self, program: &Program, arch: Arch) -> Result<Option<(Program, Image)>, Error> {
        let path = self.path_of(program, arch)?;
        let image = path.as_ref().and_then(|path| read(path));
        if let (Some(path), Some(_)) = (&path, &image) {
            tracing::debug!(file = %path.display(), "compiled before");
        }
        Ok(image.map(|image| (Program { code: image.code(), ..program.clone() }, image)))
    }

    /// The file of a program; a compiled one has none.
    fn path_of(&self, program: &Program, arch: Arch) -> Result<Option<PathBuf>, Error> {
        match &program.code {
            Code::Source { text, options } => Ok(Some(self.path(text, options, arch, nvrtc::version()?))),
            Code::Ptx(_) | Code::Cubin(_) | Code::Parts(_) => Ok(None),
        }
    }

    /// What it holds.
    ///
    /// # Errors
    /// If the folder is there and cannot be read.
    pub fn info(&self) -> Result<Info, CacheError> {
        let entries = self.entries().map_err(|error| self.failed(error))?;
        let bytes = entries.iter().map(|entry| entry.bytes).sum();
        Ok(Info { folder: self.folder.clone(), entries: entries.len(), bytes, limit: self.limit })
    }

    /// Removes all entries, and nothing else; gives what there was.
    ///
    /// # Errors
    /// If the folder cannot be read or an entry cannot be removed.
    pub fn clear(&self) -> Result<Info, CacheError> {
        let info = self.info()?;
        let remove = |entry: Entry| fs::remove_file(entry.path).or_else(gone);
        let entries = self.entries().map_err(|error| self.failed(error))?;
        entries.into_iter().try_for_each(remove).map_err(|error| self.failed(error))?;
        Ok(info)
    }

    fn failed(&self, error: io::Error) -> CacheError {
        CacheError { folder: self.folder.clone(), error }
    }

    fn path(&self, text: &str, options: &[String], arch: Arch, version: (i32, i32)) -> PathBuf {
        let mut hash = Xxh3::new();
        let mut part = |bytes: &[u8]| {
            hash.update(&(bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(text.as_bytes());
        options.iter().for_each(|option| part(option.as_bytes()));
        part(format!("{arch} {version:?}").as_bytes());
        self.folder.join(format!("{:032x}.{EXTENSION}", hash.digest128()))
    }

    fn write(&self, path: &Path, image: &Image) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let bytes = encode(image)?;
        let unfinished = path.with_extension(format!("{}.tmp", std::process::id()));
        let written = fs::write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path));
        if written.is_err() {
            fs::remove_file(&unfinished).unwrap_or_default();
        }
        written?;
        self.trim()
    }

    /// Removes what was not used for the longest time until the rest is within the limit.
    fn trim(&self) -> io::Result<()> {
        let mut entries = self.entries()?;
        let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
        entries.sort_by_key(|entry| entry.used);
        for entry in entries {
            if bytes <= self.limit {
                break;
            }
            fs::remove_file(entry.path).or_else(gone)?;
            bytes -= entry.bytes;
        }
        Ok(())
    }

    fn entries(&self) -> io::Result<Vec<Entry>> {
        let listed = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed?,
        };
        let mut entries = Vec::new();
        for entry in listed {
            let path = entry?.path();
            // Another process may just have removed it.
            if let (true, Ok(about)) = (path.extension().is_some_and(|it| it == EXTENSION), path.metadata()) {
                let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                entries.push(Entry { path, bytes: about.len(), used });
            }
        }
        Ok(entries)
    }
}

struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// An entry; `None` if there is none, or it is damaged.
fn read(path: &Path) -> Option<Image> {
    let image = decode(&files::read(path, CACHE_ENTRY).ok()?)?;
    // Used now. If that cannot be noted, it only goes earlier.
    let times = FileTimes::new().set_modified(SystemTime::now());
    let _ = File::options().append(true).open(path).and_then(|file| file.set_times(times));
    Some(image)
}

/// The bytes of an entry.
///
/// # Errors
/// If they cannot be encoded, which takes no less than the end of memory.
pub fn encode(image: &Image) -> io::Result<Vec<u8>> {
    let content = bincode::serde::encode_to_vec(image, bincode::config::standard());
    let content = content.map_err(io::Error::other)?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend(xxh3_64(&content).to_le_bytes());
    bytes.extend(content);
    Ok(bytes)
}

/// The image in the bytes of an entry; `None` if they are damaged.
pub fn decode(bytes: &[u8]) -> Option<Image> {
    let rest = bytes.strip_prefix(&MAGIC)?;
    let (checksum, content) = rest.split_first_chunk::<8>()?;
    if xxh3_64(content) != u64::from_le_bytes(*checksum) {
        return None;
    }
    let config = bincode::config::standard().with_limit::<{ CACHE_ENTRY.most as usize }>();
    bincode::serde::decode_from_slice(content, config).ok().map(|(image, _)| image)
}

/// What another process has removed is gone too.
fn gone(error: io::Error) -> io::Result<()> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn image(bytes: usize) -> Image {
        Image {
            arch: Arch::Machine(90),
            cubin: Some(vec![7; bytes]),
            ptx: "ptx".into(),
            kernels: Default::default(),
            log: String::new(),
            time: Duration::from_millis(3),
        }
    }

    #[test]
    fn entries_come_back_until_they_are_damaged() {
        let folder = tempfile::tempdir().expect("there is room");
        let cache = Cache::at(folder.path().join("made/when/needed"));
        let path = cache.path("text", &["-o".into()], Arch::Machine(90), (13, 0));
        assert!(read(&path).is_none() && cache.info().expect("it is not there").entries == 0);
        cache.write(&path, &image(100)).expect("there is room");
        let found = read(&path).expect("it was just written");
        assert_eq!((found.cubin, found.ptx.as_str()), (Some(vec![7; 100]), "ptx"));
        let mut bytes = fs::read(&path).expect("it is there");
        for position in 0..bytes.len() {
            bytes[position] ^= 1;
            fs::write(&path, &bytes).expect("there is room");
            assert!(read(&path).is_none(), "{position}");
            bytes[position] ^= 1;
        }
        fs::write(&path, &bytes[..50]).expect("there is room");
        assert!(read(&path).is_none());
        fs::write(cache.folder.join("mine.txt"), "keep").expect("there is room");
        assert_eq!(cache.clear().expect("it can be cleared").entries, 1);
        assert_eq!(fs::read_dir(&cache.folder).expect("it is there").count(), 1);
    }

    /// Whole by its checksum, with PTX of 2^60 bytes.
    #[test]
    fn a_length_that_is_made_up_is_damage() {
        let whole = bincode::serde::encode_to_vec(image(3), bincode::config::standard());
        let whole = whole.expect("it can be encoded");
        let ptx = whole.windows(4).position(|bytes| bytes == b"\x03ptx").expect("it is there");
        let entry = |content: &[u8]| [&MAGIC[..], &xxh3_64(content).to_le_bytes(), content].concat();
        assert!(decode(&entry(&whole)).is_some());
        let huge = [&whole[..ptx], &[253], &(1_u64 << 60).to_le_bytes(), &whole[ptx + 1..]].concat();
        assert!(decode(&entry(&huge)).is_none());
    }

    #[test]
    fn a_program_is_compiled_once() {
        if !warploom_runtime::testing::has_nvrtc("a_program_is_compiled_once") {
            return;
        }
        let folder = tempfile::tempdir().expect("there is room");
        let cache = Cache::at(folder.path());
        let text = "extern \"C\" __global__ void nothing() {}".to_owned();
        let source = Program {
            name: "nothing".to_owned(),
            code: Code::Source { text, options: Vec::new() },
            kernels: Vec::new(),
            buffers: Vec::new(),
            params: 0,
            steps: Vec::new(),
        };
        let arch = Arch::Machine(90);
        assert!(cache.find(&source, arch).expect("NVRTC is there").is_none());
        let (compiled, _) = cache.compile_program(&source, arch).expect("it is right");
        let (found, image) = cache.find(&source, arch).expect("NVRTC is there").expect("it was compiled");
        assert_eq!(found, compiled);
        assert_eq!(found.code, image.code());
        // What is compiled already is neither looked for nor kept.
        assert!(cache.find(&compiled, arch).expect("nothing is to do").is_none());
        assert_eq!(cache.compile_program(&compiled, arch).expect("nothing is to do").0, compiled);
        assert_eq!(cache.info().expect("it can be read").entries, 1);
    }

    #[test]
    fn everything_that_matters_makes_another_entry() {
        let cache = Cache::at("cache");
        let paths = [
            cache.path("text", &[], Arch::Machine(90), (13, 0)),
            cache.path("text2", &[], Arch::Machine(90), (13, 0)),
            cache.path("text", &["-a".into()], Arch::Machine(90), (13, 0)),
            cache.path("text", &["-a".into(), "b".into()], Arch::Machine(90), (13, 0)),
            cache.path("text", &["-ab".into()], Arch::Machine(90), (13, 0)),
            cache.path("text", &[], Arch::Machine(80), (13, 0)),
            cache.path("text", &[], Arch::Virtual(90), (13, 0)),
            cache.path("text", &[], Arch::Machine(90), (13, 1)),
        ];
        let different: std::collections::HashSet<_> = paths.iter().collect();
        assert_eq!(different.len(), paths.len());
    }

    #[test]
    fn what_is_not_used_goes_first() {
        let folder = tempfile::tempdir().expect("there is room");
        let cache = Cache::at(folder.path()).with_limit(3500);
        let path = |name: &str| cache.path(name, &[], Arch::Machine(90), (13, 0));
        for (name, age) in [("a", 300), ("b", 200), ("c", 100)] {
            cache.write(&path(name), &image(1000)).expect("there is room");
            let times = FileTimes::new().set_modified(SystemTime::now() - Duration::from_secs(age));
            let file = File::options().append(true).open(path(name)).expect("it is there");
            file.set_times(times).expect("it is ours");
        }
        assert!(read(&path("a")).is_some(), "used now");
        cache.write(&path("d"), &image(1000)).expect("there is room");
        let left = ["a", "b", "c", "d"].map(|name| path(name).exists());
        assert_eq!(left, [true, false, true, true]);
    }
}
