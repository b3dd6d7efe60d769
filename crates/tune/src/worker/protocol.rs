//! Messages between a parent process and its workers.

use std::io::{self, ErrorKind, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use warploom_lang::files::MESSAGE;
use warploom_runtime::TimingOptions;
use warploom_target::{Device, Program};
use xxhash_rust::xxh3::xxh3_64;

use super::bytes::Bytes;
use crate::measure::{Compiled, Failure, Timed};
use crate::sample::Sizes;

/// Version of the messages; raise it with every change.
pub(super) const PROTOCOL: u32 = 3;

/// Every message starts with this, so that other data is detected at once, whatever length it
/// appears to have.
const MAGIC: [u8; 4] = *b"WPLM";

const HEAD: usize = 12;

/// A request to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Compile a program for a device.
    Compile { program: Program, device: Description },
    /// Store some bytes of an input for the next subject. The first message of an input has `starts`.
    Input { starts: bool, part: Bytes },
    /// Store a subject under a number, with the inputs that were sent before it.
    Subject { number: u64, subject: Box<SubjectMessage> },
    /// Drop a subject.
    Forget { number: u64 },
    /// Time a program on a subject.
    Time { subject: u64, program: Program, timing: TimingOptions },
    /// Run a program once on a subject.
    Run { subject: u64, program: Program },
}

/// A device in a message, as the text of its file: unlike the binary form, the text can omit fields that a device does
/// not set.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Description(pub Box<Device>);

impl TryFrom<String> for Description {
    type Error = serde_json::Error;

    fn try_from(text: String) -> Result<Description, serde_json::Error> {
        serde_json::from_str(&text).map(Description)
    }
}

impl From<Description> for String {
    fn from(description: Description) -> String {
        serde_json::to_string(&description.0).unwrap_or_default()
    }
}

/// A subject in a message, without its inputs, which may be too large for one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SubjectMessage {
    pub pipeline: String,
    pub sizes: Sizes,
    pub params: Vec<u32>,
}

/// A worker's answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Response {
    /// The worker is ready. A worker in the `run` role reports its device.
    Hello {
        protocol: u32,
        version: String,
        device: Option<Description>,
    },
    /// The worker cannot work, with the reason.
    Unable(String),
    Compiled(Result<Compiled, Failure>),
    Done(Result<(), Failure>),
    Timed(Result<Timed, Failure>),
    Outputs(Result<Vec<Bytes>, Failure>),
}

/// Encodes a message with its header.
pub(super) fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; HEAD];
    let config = bincode::config::standard();
    let written = bincode::serde::encode_into_std_write(message, &mut bytes, config);
    written.map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len() - HEAD);
    let length = length.map_err(|_| io::Error::other("the message is too long"))?;
    let checksum = xxh3_64(&bytes[HEAD..]) as u32;
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    bytes[8..HEAD].copy_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

/// Writes a message and flushes.
pub(super) fn write(out: &mut dyn Write, message: &impl Serialize) -> io::Result<()> {
    out.write_all(&frame(message)?)?;
    out.flush()
}

/// Reads the next message; `None` at the end. Corrupt data is an error of the kind `InvalidData`.
pub(super) fn read<T: DeserializeOwned>(from: &mut dyn Read) -> io::Result<Option<T>> {
    let nonsense = |what: &str| io::Error::new(ErrorKind::InvalidData, what.to_owned());
    let mut head = [0; HEAD];
    match from.read_exact(&mut head) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    if head[..4] != MAGIC {
        return Err(nonsense("it is not a message"));
    }
    let mut bytes = Vec::new();
    // Memory grows with the data received, not with the declared length.
    if from.take(u64::from(word(4))).read_to_end(&mut bytes)? < word(4) as usize {
        return Ok(None);
    }
    if xxh3_64(&bytes) as u32 != word(8) {
        return Err(nonsense("the checksum is wrong"));
    }
    let config = bincode::config::standard().with_limit::<{ MESSAGE.most as usize }>();
    let decoded = bincode::serde::decode_from_slice(&bytes, config);
    decoded.map(|(message, _)| Some(message)).map_err(|error| nonsense(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warploom_target::Features;

    use super::*;

    fn outputs() -> Response {
        Response::Outputs(Ok(vec![Bytes(vec![1, 2, 3]), Bytes(vec![7; 1000])]))
    }

    #[test]
    fn messages_come_through() {
        let mut pipe = Vec::new();
        write(&mut pipe, &Response::Unable("no".into())).expect("there is room");
        write(&mut pipe, &outputs()).expect("there is room");
        let mut from = pipe.as_slice();
        assert!(matches!(read(&mut from), Ok(Some(Response::Unable(why))) if why == "no"));
        let Ok(Some(Response::Outputs(Ok(read_back)))) = read(&mut from) else { panic!("no outputs") };
        assert_eq!(read_back[1], Bytes(vec![7; 1000]));
        assert!(matches!(read::<Response>(&mut from), Ok(None)));
        let torn = frame(&outputs()).expect("it fits");
        assert!(matches!(read::<Response>(&mut &torn[..20]), Ok(None)));
    }

    /// Devices of files, with and without features of their own.
    #[test]
    fn devices_come_through() {
        let preset = Device::preset("h200").expect("it is known");
        let features = Features { async_copies: false, ..preset.features() };
        for device in [Device { features: Some(features), ..preset.clone() }, preset] {
            let described = Some(Description(Box::new(device.clone())));
            let hello = Response::Hello { protocol: PROTOCOL, version: "1".to_owned(), device: described };
            let message = frame(&hello).expect("it fits");
            let Ok(Some(Response::Hello { device: Some(read), .. })) = read(&mut message.as_slice()) else {
                panic!("no hello")
            };
            assert_eq!(*read.0, device);
        }
    }

    /// The checksum is valid, but the message declares a text or an output of 2^60 bytes.
    #[test]
    fn a_length_that_is_made_up_is_nonsense() {
        for start in [&[1][..], &[5, 0, 1]] {
            let content = [start, &[253], &(1_u64 << 60).to_le_bytes(), b"no"].concat();
            let (length, checksum) = (content.len() as u32, xxh3_64(&content) as u32);
            let message = [&MAGIC[..], &length.to_le_bytes(), &checksum.to_le_bytes(), &content].concat();
            let error = read::<Response>(&mut message.as_slice()).expect_err("nobody has so much");
            assert_eq!(error.kind(), ErrorKind::InvalidData);
        }
    }

    proptest! {
        #[test]
        fn nonsense_is_noticed(position in 0usize..1000, byte in any::<u8>()) {
            let mut bytes = frame(&outputs()).expect("it fits");
            prop_assume!(bytes[position] != byte);
            bytes[position] = byte;
            // With a length that is too large, the message looks truncated.
            let read = read::<Response>(&mut bytes.as_slice());
            prop_assert!(!matches!(read, Ok(Some(_))));
        }
    }
}
