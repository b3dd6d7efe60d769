//! Machine code on its way from a compiler to a GPU, stored once for all programs that contain it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};

use brotli::{CompressorWriter, Decompressor};
use warploom_target::program::Code;
use warploom_tune::measure::Built;
use warploom_tune::records::{Change, RecordsError};
use warploom_tune::values;
use xxhash_rust::xxh3::xxh3_128;

use super::{Queue, all, json};

const BUFFER: usize = 1 << 14;
const QUALITY: u32 = 1;
const WINDOW: u32 = 20;

/// The compiled builds of a candidate, in two parts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Packed {
    /// Everything but machine code, which is replaced by digests.
    pub built: Vec<u8>,
    /// Machine code by its digest, compressed.
    pub code: BTreeMap<String, Vec<u8>>,
}

/// Extracts the machine code from compiled builds.
///
/// # Errors
/// If it cannot be encoded.
pub fn pack(mut built: Built) -> io::Result<Packed> {
    let mut code = BTreeMap::new();
    for program in built.programs_mut() {
        each(&mut program.code, &mut |piece| {
            let bytes = encode(piece)?;
            let hash = format!("{:032x}", xxh3_128(&bytes));
            code.insert(hash.clone(), compress(&bytes)?);
            *piece = Code::Machine(hash.into_bytes());
            Ok(())
        })?;
    }
    Ok(Packed { built: compress(&encode(&built)?)?, code })
}

/// Puts machine code back. `None` if some of it is missing.
///
/// # Errors
/// If it cannot be decoded.
pub fn unpack(packed: &Packed) -> io::Result<Option<Built>> {
    let mut built: Built = decode(&expand(&packed.built)?)?;
    let mut whole = true;
    for program in built.programs_mut() {
        each(&mut program.code, &mut |piece| {
            let Code::Machine(hash) = &*piece else { return Err(io::Error::other("no digest")) };
            let hash = String::from_utf8_lossy(hash);
            match packed.code.get(hash.as_ref()) {
                Some(code) => *piece = decode(&expand(code)?)?,
                None => whole = false,
            }
            Ok(())
        })?;
    }
    Ok(whole.then_some(built))
}

/// Visits the code of each kernel.
fn each(code: &mut Code, visit: &mut dyn FnMut(&mut Code) -> io::Result<()>) -> io::Result<()> {
    match code {
        Code::Parts(parts) => parts.iter_mut().try_for_each(|part| each(part, visit)),
        piece => visit(piece),
    }
}

fn encode(value: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    bincode::serde::encode_to_vec(value, bincode::config::standard()).map_err(io::Error::other)
}

fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    // A length in damaged data must not claim memory.
    let config = bincode::config::standard().with_limit::<{ 1 << 30 }>();
    bincode::serde::decode_from_slice(bytes, config).map(|(value, _)| value).map_err(io::Error::other)
}

fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressed = CompressorWriter::new(Vec::new(), BUFFER, QUALITY, WINDOW);
    compressed.write_all(bytes)?;
    Ok(compressed.into_inner())
}

fn expand(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut expanded = Vec::new();
    Decompressor::new(bytes, BUFFER).take(1 << 30).read_to_end(&mut expanded)?;
    Ok(expanded)
}

impl Queue {
    /// The stored machine code that a candidate needs.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn code(&self, candidate: i64) -> Result<BTreeMap<String, Vec<u8>>, RecordsError> {
        let query = "SELECT c.hash, c.content FROM code_of_candidates u JOIN code c ON c.hash = u.hash
             WHERE u.candidate = $1";
        let rows = self.rows(query, values![candidate], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.into_iter().collect())
    }
}

/// Stores the machine code of a candidate.
pub(super) fn store(
    change: &mut dyn Change,
    candidate: i64,
    code: &BTreeMap<String, Vec<u8>>,
) -> Result<(), RecordsError> {
    // Most candidates share most of their kernels, so their content is not sent again.
    let missing = "SELECT hash FROM json_array_elements_text($1::text::json) AS own(hash)
         WHERE NOT EXISTS (SELECT 1 FROM code WHERE code.hash = own.hash)";
    let hashes = json(&code.keys().collect::<Vec<_>>());
    let missing: Vec<String> = all(change, missing, values![&hashes], |row| row.get(0))?;
    for (hash, content) in missing.iter().filter_map(|hash| code.get_key_value(hash)) {
        let insert = "INSERT INTO code (hash, content) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        change.execute(insert, values![hash, content.clone()])?;
    }
    let uses = "INSERT INTO code_of_candidates (candidate, hash)
         SELECT $1::bigint, hash FROM json_array_elements_text($2::text::json) AS own(hash) ON CONFLICT DO NOTHING";
    change.execute(uses, values![candidate, &hashes]).map(drop)
}

/// Removes unused machine code: with some digests, or all for `None`. A candidate that begins to need it at this moment
/// will miss it, and is compiled again.
pub(super) fn drop_unused(
    change: &mut dyn Change,
    hashes: Option<&BTreeSet<String>>,
) -> Result<(), RecordsError> {
    let unused = "NOT EXISTS (SELECT 1 FROM code_of_candidates u WHERE u.hash = code.hash)";
    match hashes {
        Some(hashes) if hashes.is_empty() => Ok(()),
        Some(hashes) => {
            let of = "hash IN (SELECT json_array_elements_text($1::text::json))";
            let drop_some = format!("DELETE FROM code WHERE {of} AND {unused}");
            change.execute(&drop_some, values![json(hashes)]).map(drop)
        }
        None => change.execute(&format!("DELETE FROM code WHERE {unused}"), &[]).map(drop),
    }
}
