//! A cache of compiled code that persists between runs.
//!
//! The same CUDA text, compiled for the same architecture with the same options and compiler, is
//! compiled once. An entry is one file, named by the hash of all of these. So pipeline, sizes,
//! schedule and code generator matter only as far as they change the text. Files are created
//! atomically. A file that is damaged, or whose content belongs under a different name, is ignored.
//! When the folder exceeds its size limit, the least recently used entries are removed.
//!
//! Entries are loaded onto the GPU, so they must be the user's own. A folder or an entry that
//! belongs to another user, or that others can write to, is not used.
//!
//! The cache is for code that is used again: by `warploom compile` and by programs of users. Tuning
//! candidates bypass it. They are compiled by the thousand, three programs each of 40 to 400 KB,
//! and here they would only evict useful entries. [`Compilers`](crate::worker::Compilers) remembers
//! those that are needed again, and a resumed run does not recompile what is already measured.

use std::fs::{self, DirBuilder, File, FileTimes, Metadata};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use thiserror::Error;
use warploom_lang::files::{self, CACHE_ENTRY};
use warploom_runtime::Error;
use warploom_runtime::compiler::{self, Arch, Image};
use warploom_target::Program;
use warploom_target::program::Code;
use xxhash_rust::xxh3::Xxh3;

/// The environment variable that overrides the cache folder; an empty value disables the cache.
pub const DIRECTORY_VARIABLE: &str = "WARPLOOM_CACHE_DIR";

const MAGIC: [u8; 8] = *b"wpl-img2";
const EXTENSION: &str = "image";

/// Prefix of files that are still being written, and the longest time that writing can take. Older
/// ones are left over from killed processes.
const UNFINISHED: &str = "unfinished-";
const WRITING: Duration = Duration::from_secs(3600);

/// Default size limit of all entries together, in bytes.
const LIMIT: u64 = 512 << 20;

/// A cache folder with a size limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cache {
    folder: PathBuf,
    limit: u64,
}

/// A summary of a cache's contents.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Info {
    /// The cache folder, which may not exist yet.
    pub folder: PathBuf,
    /// Number of entries, one per compiled program.
    pub entries: usize,
    /// Total size of the entries, in bytes.
    pub bytes: u64,
    /// Size limit of the cache, in bytes.
    pub limit: u64,
}

/// The cache folder cannot be read or cleared.
#[derive(Debug, Error)]
#[error("{}: {error}; check its permissions", folder.display())]
pub struct CacheError {
    folder: PathBuf,
    error: io::Error,
}

impl Cache {
    /// The user's cache: `$WARPLOOM_CACHE_DIR`, `$XDG_CACHE_HOME/warploom` or `~/.cache/warploom`.
    /// `None` if the variables name no folder or the cache is disabled.
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

    /// The cache in a folder, which is created on the first write.
    pub fn at(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into(), limit: LIMIT }
    }

    /// The same cache with a different size limit, in bytes.
    pub fn with_limit(self, limit: u64) -> Cache {
        Cache { limit, ..self }
    }

    /// Compiles a program, or reads it from the cache. If the result cannot be written to the
    /// cache, it is returned all the same.
    ///
    /// # Errors
    /// As [`compiler::compile_program`].
    pub fn compile_program(&self, program: &Program, arch: Arch) -> Result<(Program, Option<Image>), Error> {
        if let Some((compiled, image)) = self.find(program, arch)? {
            return Ok((compiled, Some(image)));
        }
        let (compiled, image) = compiler::compile_program(program, arch)?;
        if let (Some(key), Some(image)) = (key_of(program, arch)?, &image) {
            // A cache that is not writable is not an error.
            let _ = self.write(key, image);
        }
        Ok((compiled, image))
    }

    /// The compiled program, if it is in the cache. Never compiles.
    ///
    /// # Errors
    /// If there is no NVRTC, because its version is part of the key.
    pub fn find(&self, program: &Program, arch: Arch) -> Result<Option<(Program, Image)>, Error> {
        let image = key_of(program, arch)?.and_then(|key| self.read(key));
        Ok(image.map(|image| (Program { code: image.code(), ..program.clone() }, image)))
    }

    /// Counts the entries and their bytes.
    ///
    /// # Errors
    /// If the folder exists and cannot be read.
    pub fn info(&self) -> Result<Info, CacheError> {
        let entries = self.entries().map_err(|error| self.failed(error))?;
        let bytes = entries.iter().map(|entry| entry.bytes).sum();
        Ok(Info { folder: self.folder.clone(), entries: entries.len(), bytes, limit: self.limit })
    }

    /// Removes all entries and no other files. Returns the summary from before.
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

    fn path(&self, key: u128) -> PathBuf {
        self.folder.join(format!("{key:032x}.{EXTENSION}"))
    }

    /// Whether only this user can have written to the folder. Otherwise warns once per process.
    fn is_private(&self) -> bool {
        static SAID: Once = Once::new();
        let Ok(about) = fs::metadata(&self.folder) else { return false };
        let private = about.is_dir() && is_ours(&about);
        if !private {
            SAID.call_once(|| {
                tracing::warn!(
                    "the cache {} is not used, because it is not a folder that only you can write to; if it is yours, run \
                     `chmod go-w` on it, or set {DIRECTORY_VARIABLE} to another folder",
                    self.folder.display()
                );
            });
        }
        private
    }

    /// Reads an entry, if it exists, is undamaged and belongs to this user.
    fn read(&self, key: u128) -> Option<Image> {
        let path = self.path(key);
        // Checked before opening, because opening a named pipe would block.
        let about = fs::symlink_metadata(&path).ok()?;
        if !self.is_private() {
            return None;
        }
        if !about.is_file() || !is_ours(&about) {
            tracing::warn!(
                "{} is not used, because it is not a file that only you can write to",
                path.display()
            );
            return None;
        }
        let image = read(&path, key)?;
        tracing::debug!(file = %path.display(), "compiled before");
        Some(image)
    }

    fn write(&self, key: u128, image: &Image) -> io::Result<()> {
        make_private(&self.folder)?;
        if !self.is_private() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        let mut unfinished = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.folder)?;
        unfinished.write_all(&encode(key, image)?)?;
        unfinished.as_file().sync_all()?;
        unfinished.persist(self.path(key)).map_err(|failed| failed.error)?;
        self.trim()
    }

    /// Removes leftover files, then the least recently used entries until the rest is within the
    /// limit.
    fn trim(&self) -> io::Result<()> {
        self.remove_unfinished()?;
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

    /// Removes leftover files of killed processes.
    fn remove_unfinished(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let old = |about: Metadata| about.modified().ok()?.elapsed().ok().filter(|age| *age > WRITING);
            let unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
            if unfinished && entry.metadata().ok().and_then(old).is_some() {
                fs::remove_file(entry.path()).or_else(gone)?;
            }
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
            // Another process may have just removed it.
            if let (true, Ok(about)) =
                (path.extension().is_some_and(|it| it == EXTENSION), path.symlink_metadata())
            {
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

/// Compiles a program, or takes its code from the user's cache, if there is one.
///
/// # Errors
/// As [`compiler::compile_program`].
pub fn compile_program(program: &Program, arch: Arch) -> Result<(Program, Option<Image>), Error> {
    match Cache::of_user() {
        Some(cache) => cache.compile_program(program, arch),
        None => compiler::compile_program(program, arch),
    }
}

/// The key of a program; `None` if it is already compiled.
fn key_of(program: &Program, arch: Arch) -> Result<Option<u128>, Error> {
    match &program.code {
        Code::Source { text, options } => Ok(Some(key(text, options, arch, compiler::version()?))),
        Code::Virtual(_) | Code::Machine(_) | Code::Parts(_) => Ok(None),
    }
}

fn key(text: &str, options: &[String], arch: Arch, version: (i32, i32)) -> u128 {
    let mut hash = Xxh3::new();
    let mut part = |bytes: &[u8]| {
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(text.as_bytes());
    options.iter().for_each(|option| part(option.as_bytes()));
    part(format!("{arch} {version:?}").as_bytes());
    hash.digest128()
}

fn checksum(key: u128, content: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&key.to_le_bytes());
    hash.update(content);
    hash.digest()
}

/// Creates a folder, if necessary, that no other user can write to.
fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Whether a file or folder belongs to this user, and no other user can write to it.
#[cfg(unix)]
fn is_ours(about: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    about.uid() == rustix::process::geteuid().as_raw() && about.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn is_ours(_: &Metadata) -> bool {
    true
}

/// Reads the entry of a key; `None` if the file cannot be read, is damaged, or has a different key.
fn read(path: &Path, key: u128) -> Option<Image> {
    let image = decode(&files::read(path, CACHE_ENTRY).ok()?, key)?;
    // Marks the entry as used now. If that fails, it is only evicted earlier.
    let times = FileTimes::new().set_modified(SystemTime::now());
    let _ = File::options().append(true).open(path).and_then(|file| file.set_times(times));
    Some(image)
}

/// Encodes an entry as bytes.
///
/// # Errors
/// If encoding fails, which happens only when memory runs out.
pub fn encode(key: u128, image: &Image) -> io::Result<Vec<u8>> {
    let content = bincode::serde::encode_to_vec(image, bincode::config::standard());
    let content = content.map_err(io::Error::other)?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend(checksum(key, &content).to_le_bytes());
    bytes.extend(key.to_le_bytes());
    bytes.extend(content);
    Ok(bytes)
}

/// Decodes the bytes of an entry; `None` if they are damaged or have a different key.
pub fn decode(bytes: &[u8], key: u128) -> Option<Image> {
    let rest = bytes.strip_prefix(&MAGIC)?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    let (stored, content) = rest.split_first_chunk::<16>()?;
    if u128::from_le_bytes(*stored) != key || checksum(key, content) != u64::from_le_bytes(*sum) {
        return None;
    }
    let config = bincode::config::standard().with_limit::<{ CACHE_ENTRY.most as usize }>();
    bincode::serde::decode_from_slice(content, config).ok().map(|(image, _)| image)
}

/// Treats a file that another process already removed as success.
fn gone(error: io::Error) -> io::Result<()> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
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

    fn any_key(text: &str) -> u128 {
        key(text, &["-o".into()], Arch::Machine(90), (13, 0))
    }

    #[test]
    fn entries_come_back_until_they_are_damaged() {
        let folder = tempfile::tempdir().expect("there is room");
        let cache = Cache::at(folder.path().join("made/when/needed"));
        let key = any_key("text");
        assert!(cache.read(key).is_none() && cache.info().expect("it is not there").entries == 0);
        cache.write(key, &image(100)).expect("there is room");
        let found = cache.read(key).expect("it was just written");
        assert_eq!((found.cubin, found.ptx.as_str()), (Some(vec![7; 100]), "ptx"));
        let path = cache.path(key);
        let mut bytes = fs::read(&path).expect("it is there");
        for position in 0..bytes.len() {
            bytes[position] ^= 1;
            fs::write(&path, &bytes).expect("there is room");
            assert!(cache.read(key).is_none(), "{position}");
            bytes[position] ^= 1;
        }
        fs::write(&path, &bytes[..50]).expect("there is room");
        assert!(cache.read(key).is_none());
        fs::write(cache.folder.join("mine.txt"), "keep").expect("there is room");
        assert_eq!(cache.clear().expect("it can be cleared").entries, 1);
        assert_eq!(fs::read_dir(&cache.folder).expect("it is there").count(), 1);
    }

    /// The checksum is valid, but the entry declares PTX of 2^60 bytes.
    #[test]
    fn a_length_that_is_made_up_is_damage() {
        let whole = bincode::serde::encode_to_vec(image(3), bincode::config::standard());
        let whole = whole.expect("it can be encoded");
        let ptx = whole.windows(4).position(|bytes| bytes == b"\x03ptx").expect("it is there");
        let key = any_key("text");
        let entry = |content: &[u8]| {
            [&MAGIC[..], &checksum(key, content).to_le_bytes(), &key.to_le_bytes(), content].concat()
        };
        assert!(decode(&entry(&whole), key).is_some());
        let huge = [&whole[..ptx], &[253], &(1_u64 << 60).to_le_bytes(), &whole[ptx + 1..]].concat();
        assert!(decode(&entry(&huge), key).is_none());
    }

    #[test]
    fn an_entry_under_another_name_is_none() {
        let folder = tempfile::tempdir().expect("there is room");
        let cache = Cache::at(folder.path());
        let (blur, harris) = (any_key("blur"), any_key("harris"));
        cache.write(harris, &image(100)).expect("there is room");
        fs::rename(cache.path(harris), cache.path(blur)).expect("it is there");
        assert!(cache.read(blur).is_none());
        fs::rename(cache.path(blur), cache.path(harris)).expect("it is there");
        assert!(cache.read(harris).is_some());
    }

    #[test]
    fn what_was_left_behind_goes() {
        let folder = tempfile::tempdir().expect("there is room");
        let cache = Cache::at(folder.path());
        let [old, new] = ["old", "new"].map(|name| folder.path().join(format!("{UNFINISHED}{name}")));
        for (path, age) in [(&old, 2 * WRITING), (&new, WRITING / 2)] {
            let file = File::create(path).expect("there is room");
            file.set_times(FileTimes::new().set_modified(SystemTime::now() - age)).expect("it is ours");
        }
        cache.write(any_key("text"), &image(10)).expect("there is room");
        assert_eq!((old.exists(), new.exists()), (false, true));
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 2);
    }

    #[cfg(unix)]
    mod on_unix {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
        use std::process::Command;

        use super::*;

        fn set_mode(path: &Path, mode: u32) {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
        }

        #[test]
        fn what_others_can_write_to_is_not_used() {
            let folder = tempfile::tempdir().expect("there is room");
            let cache = Cache::at(folder.path().join("cache"));
            let key = any_key("text");
            cache.write(key, &image(100)).expect("there is room");
            let path = cache.path(key);
            let modes =
                [&cache.folder, &path].map(|path| fs::metadata(path).expect("it is there").mode() & 0o777);
            assert_eq!(modes, [0o700, 0o600]);
            for mode in [0o620, 0o602, 0o666] {
                set_mode(&path, mode);
                assert!(cache.read(key).is_none(), "{mode:o}");
            }
            set_mode(&path, 0o644);
            assert!(cache.read(key).is_some());
            for mode in [0o770, 0o707, 0o1777] {
                set_mode(&cache.folder, mode);
                assert!(cache.read(key).is_none(), "{mode:o}");
                assert!(cache.write(key, &image(10)).is_err(), "{mode:o}");
            }
            set_mode(&cache.folder, 0o755);
            assert!(cache.read(key).is_some());
        }

        #[test]
        fn what_belongs_to_somebody_else_is_not_used() {
            let folder = tempfile::tempdir().expect("there is room");
            let cache = Cache::at(folder.path().join("cache"));
            let key = any_key("text");
            cache.write(key, &image(100)).expect("there is room");
            // Only the superuser can change the owner of a file.
            for path in [cache.path(key), cache.folder.clone()] {
                if std::os::unix::fs::chown(&path, Some(12345), None).is_err() {
                    return;
                }
                assert!(cache.read(key).is_none(), "{}", path.display());
                std::os::unix::fs::chown(&path, Some(rustix::process::geteuid().as_raw()), None)
                    .expect("the superuser can");
                assert!(cache.read(key).is_some());
            }
        }

        #[test]
        fn a_pipe_or_a_link_in_place_of_an_entry_is_none_and_replaced() {
            let folder = tempfile::tempdir().expect("there is room");
            let cache = Cache::at(folder.path());
            let key = any_key("text");
            let path = cache.path(key);
            let made = Command::new("mkfifo").arg(&path).status().expect("there is mkfifo");
            assert!(made.success() && cache.read(key).is_none());
            cache.write(key, &image(100)).expect("there is room");
            assert!(cache.read(key).is_some());

            let other = folder.path().join("other");
            fs::rename(&path, &other).expect("it is there");
            let before = fs::read(&other).expect("it is there");
            symlink(&other, &path).expect("there is room");
            assert!(cache.read(key).is_none());
            cache.write(key, &image(50)).expect("there is room");
            assert_eq!(fs::read(&other).expect("it is there"), before, "the link is replaced, not followed");
            assert_eq!(cache.read(key).and_then(|image| image.cubin).map(|code| code.len()), Some(50));
        }
    }

    #[test]
    fn nvrtc_a_program_is_compiled_once() {
        if !warploom_runtime::testing::has_nvrtc("nvrtc_a_program_is_compiled_once") {
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
        // Compiled programs are neither looked up nor stored.
        assert!(cache.find(&compiled, arch).expect("nothing is to do").is_none());
        assert_eq!(cache.compile_program(&compiled, arch).expect("nothing is to do").0, compiled);
        assert_eq!(cache.info().expect("it can be read").entries, 1);
    }

    #[test]
    fn everything_that_matters_makes_another_entry() {
        let keys = [
            key("text", &[], Arch::Machine(90), (13, 0)),
            key("text2", &[], Arch::Machine(90), (13, 0)),
            key("text", &["-a".into()], Arch::Machine(90), (13, 0)),
            key("text", &["-a".into(), "b".into()], Arch::Machine(90), (13, 0)),
            key("text", &["-ab".into()], Arch::Machine(90), (13, 0)),
            key("text", &[], Arch::Machine(80), (13, 0)),
            key("text", &[], Arch::Virtual(90), (13, 0)),
            key("text", &[], Arch::Machine(90), (13, 1)),
        ];
        let different: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
    }

    #[test]
    fn what_is_not_used_goes_first() {
        let folder = tempfile::tempdir().expect("there is room");
        let cache = Cache::at(folder.path()).with_limit(3500);
        let path = |name: &str| cache.path(any_key(name));
        for (name, age) in [("a", 300), ("b", 200), ("c", 100)] {
            cache.write(any_key(name), &image(1000)).expect("there is room");
            let times = FileTimes::new().set_modified(SystemTime::now() - Duration::from_secs(age));
            let file = File::options().append(true).open(path(name)).expect("it is there");
            file.set_times(times).expect("it is ours");
        }
        assert!(cache.read(any_key("a")).is_some(), "used now");
        cache.write(any_key("d"), &image(1000)).expect("there is room");
        let left = ["a", "b", "c", "d"].map(|name| path(name).exists());
        assert_eq!(left, [true, false, true, true]);
    }
}
