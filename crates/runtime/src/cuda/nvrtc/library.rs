//! Finds NVRTC and its functions.
//!
//! NVRTC opens a second library, its built-in declarations, by bare name. That fails unless the
//! library is on the loader's path. Opening it by full path first makes the loader return the copy
//! that is already loaded. Both libraries stay open for the lifetime of the process.

use std::ffi::{c_char, c_int};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use libloading::Library;

use crate::error::{Attempt, Error};

/// The environment variable that names the folder to search first.
pub const DIRECTORY_VARIABLE: &str = "WARPLOOM_NVRTC_DIR";

/// Environment variables that name a CUDA installation, in the order that other tools use.
const INSTALLATION_VARIABLES: [&str; 4] = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR"];

/// NVRTC's opaque program handle.
pub(super) type RawProgram = *mut std::ffi::c_void;
/// NVRTC's result code; 0 is success.
pub(super) type Status = c_int;

macro_rules! functions {
    ($($(#[$doc:meta])* $field:ident = $symbol:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// NVRTC's functions, as its header declares them.
        pub(super) struct Functions {
            $($(#[$doc])* pub(super) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            /// Looks up every function in the library.
            fn find(library: &Library) -> Result<Functions, libloading::Error> {
                Ok(Functions {
                    $($field: {
                        // SAFETY: the type matches NVRTC's header, which has not changed since CUDA
                        // 11.2.
                        let symbol = unsafe {
                            library.get::<unsafe extern "C" fn($($argument),*) -> $result>(
                                concat!($symbol, "\0").as_bytes(),
                            )
                        };
                        *symbol?
                    },)*
                })
            }
        }
    };
}

functions! {
    /// Returns the major and minor version.
    version = "nvrtcVersion": fn(*mut c_int, *mut c_int) -> Status;
    /// Returns the description of a status.
    error_string = "nvrtcGetErrorString": fn(Status) -> *const c_char;
    /// Returns the number of supported architectures.
    arch_count = "nvrtcGetNumSupportedArchs": fn(*mut c_int) -> Status;
    /// Returns the supported architectures.
    archs = "nvrtcGetSupportedArchs": fn(*mut c_int) -> Status;
    /// Creates a program from source.
    create = "nvrtcCreateProgram": fn(
        *mut RawProgram, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
    ) -> Status;
    /// Compiles a program.
    compile = "nvrtcCompileProgram": fn(RawProgram, c_int, *const *const c_char) -> Status;
    /// Frees a program.
    destroy = "nvrtcDestroyProgram": fn(*mut RawProgram) -> Status;
    /// Returns the size of the log.
    log_size = "nvrtcGetProgramLogSize": fn(RawProgram, *mut usize) -> Status;
    /// Returns the log.
    log = "nvrtcGetProgramLog": fn(RawProgram, *mut c_char) -> Status;
    /// Returns the size of the machine code.
    cubin_size = "nvrtcGetCUBINSize": fn(RawProgram, *mut usize) -> Status;
    /// Returns the machine code.
    cubin = "nvrtcGetCUBIN": fn(RawProgram, *mut c_char) -> Status;
    /// Returns the size of the PTX.
    ptx_size = "nvrtcGetPTXSize": fn(RawProgram, *mut usize) -> Status;
    /// Returns the PTX.
    ptx = "nvrtcGetPTX": fn(RawProgram, *mut c_char) -> Status;
}

/// The loaded library.
pub(super) struct Nvrtc {
    pub(super) functions: Functions,
    /// The file or name that it was loaded from.
    pub(super) place: String,
    _libraries: Vec<Library>,
}

/// NVRTC, searched for on the first call. A failed search is repeated on the next call.
pub(super) fn nvrtc() -> Result<&'static Nvrtc, Error> {
    static FOUND: Mutex<Option<&'static Nvrtc>> = Mutex::new(None);
    let mut found = FOUND.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(nvrtc) = *found {
        return Ok(nvrtc);
    }
    let nvrtc: &'static Nvrtc = Box::leak(Box::new(search()?));
    tracing::debug!(place = nvrtc.place, "found NVRTC");
    *found = Some(nvrtc);
    Ok(nvrtc)
}

fn search() -> Result<Nvrtc, Error> {
    let mut tried = Vec::new();
    let own = std::env::var_os(DIRECTORY_VARIABLE).map(PathBuf::from);
    let first = own.into_iter().find_map(|folder| open_folder(&folder, &mut tried));
    let found = first.or_else(|| open_names(&mut tried)).or_else(|| {
        let folders = installations().into_iter().chain(python_folders());
        folders.into_iter().find_map(|folder| open_folder(&folder, &mut tried))
    });
    found.ok_or(Error::NoNvrtc { tried })
}

/// Asks the system's loader for the usual names.
fn open_names(tried: &mut Vec<Attempt>) -> Option<Nvrtc> {
    let names = if cfg!(windows) {
        ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc.dll"]
    } else {
        ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]
    };
    names.into_iter().find_map(|name| open(Path::new(name), Vec::new(), tried))
}

/// Folders of CUDA installations: those named by environment variables, then the usual ones, newest
/// first.
fn installations() -> Vec<PathBuf> {
    let named = INSTALLATION_VARIABLES.iter().filter_map(std::env::var_os).map(PathBuf::from);
    let mut usual: Vec<PathBuf> = entries(Path::new("/usr/local"));
    usual.retain(|path| file_name(path).starts_with("cuda"));
    usual.sort();
    let roots = named.chain(usual.into_iter().rev());
    roots.flat_map(|root| ["lib64", "lib", "bin"].map(|folder| root.join(folder))).collect()
}

/// Folders of NVIDIA's packages that belong to the Python interpreters on `PATH`.
fn python_folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = Vec::new();
    for directory in std::env::split_paths(&path) {
        let python =
            ["python3", "python"].map(|name| directory.join(name)).into_iter().find(|file| file.exists());
        let Some(python) = python else { continue };
        // The Python of a virtual environment is a link to another installation's.
        let real = std::fs::canonicalize(&python).ok();
        for python in [Some(python), real].into_iter().flatten() {
            let Some(prefix) = python.parent().and_then(Path::parent) else { continue };
            let versions = entries(&prefix.join("lib")).into_iter();
            let versions = versions.filter(|path| file_name(path).starts_with("python3"));
            let packages = versions.flat_map(|python| {
                ["site-packages", "dist-packages"].map(|packages| python.join(packages).join("nvidia"))
            });
            let inner = packages.flat_map(|nvidia| entries(&nvidia)).map(|package| package.join("lib"));
            folders.extend(inner.filter(|folder| entries(folder).iter().any(|file| is_nvrtc(file))));
        }
    }
    folders.dedup();
    folders
}

/// Opens NVRTC from a folder, with its built-in declarations first.
fn open_folder(folder: &Path, tried: &mut Vec<Attempt>) -> Option<Nvrtc> {
    if !folder.is_dir() {
        tried.push(Attempt { place: folder.display().to_string(), outcome: "no such folder".to_string() });
        return None;
    }
    let files = entries(folder);
    let mut candidates: Vec<&PathBuf> = files.iter().filter(|file| is_nvrtc(file)).collect();
    // The longest name has the most specific version.
    candidates.sort_by_key(|file| std::cmp::Reverse((file_name(file).len(), file_name(file))));
    if candidates.is_empty() {
        tried.push(Attempt {
            place: folder.display().to_string(),
            outcome: "does not contain NVRTC".to_string(),
        });
    }
    candidates.into_iter().find_map(|file| {
        let builtins = files.iter().filter(|file| is_builtins(file)).filter_map(|file| {
            // SAFETY: opening one of NVIDIA's libraries runs its initialisers, which only set up
            // its own data.
            unsafe { Library::new(file) }.ok()
        });
        open(file, builtins.collect(), tried)
    })
}

/// Opens NVRTC and keeps `others` open with it.
fn open(file: &Path, mut others: Vec<Library>, tried: &mut Vec<Attempt>) -> Option<Nvrtc> {
    let place = file.display().to_string();
    // SAFETY: opening one of NVIDIA's libraries runs its initialisers, which only set up its own
    // data.
    let found = unsafe { Library::new(file) }
        .and_then(|library| Functions::find(&library).map(|functions| (library, functions)));
    match found {
        Ok((library, functions)) => {
            others.push(library);
            Some(Nvrtc { functions, place, _libraries: others })
        }
        Err(error) => {
            tried.push(Attempt { place, outcome: error.to_string() });
            None
        }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_nvrtc(file: &Path) -> bool {
    let name = file_name(file);
    name.starts_with("libnvrtc.so")
        || (name.starts_with("nvrtc64_") && name.ends_with(".dll") && !name.contains("alt"))
}

fn is_builtins(file: &Path) -> bool {
    let name = file_name(file);
    name.starts_with("libnvrtc-builtins.so")
        || (name.starts_with("nvrtc-builtins64_") && name.ends_with(".dll"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart() {
        for name in ["libnvrtc.so.13", "libnvrtc.so", "libnvrtc.so.13.0.88", "nvrtc64_130_0.dll"] {
            assert!(is_nvrtc(Path::new(name)) && !is_builtins(Path::new(name)), "{name}");
        }
        for name in ["libnvrtc-builtins.so.13.0", "nvrtc-builtins64_130.dll"] {
            assert!(is_builtins(Path::new(name)) && !is_nvrtc(Path::new(name)), "{name}");
        }
        for name in ["libnvrtc.alt.so.13", "libnvrtc-builtins.alt.so.13.0", "libnvrtc_static.a"] {
            assert!(!is_builtins(Path::new(name)) && !is_nvrtc(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn a_folder_without_it_is_reported() {
        let mut tried = Vec::new();
        assert!(open_folder(Path::new("/nonexistent"), &mut tried).is_none());
        assert!(open_folder(Path::new("/"), &mut tried).is_none());
        let outcomes: Vec<&str> = tried.iter().map(|attempt| attempt.outcome.as_str()).collect();
        assert_eq!(outcomes, ["no such folder", "does not contain NVRTC"]);
    }
}
