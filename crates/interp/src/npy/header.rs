//! The header of a `.npy` file.
//!
//! npyz has a parser too, but it allocates as much as the file claims, recurses as deep as the file nests and
//! multiplies extents without overflow checks. Untrusted files must not cause any of these.

use super::NpyError;

/// numpy's own limit.
pub(super) const MAX_DIMENSIONS: usize = 64;

pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

#[derive(PartialEq, Eq, Debug)]
pub(super) struct Header<'a> {
    /// The type of the samples in numpy's notation, for example `<f4`.
    pub(super) descr: &'a str,
    pub(super) fortran_order: bool,
    /// Extents, slowest axis of C order first.
    pub(super) shape: Vec<i64>,
}

/// Splits a file into its header and the bytes after it.
pub(super) fn parse(file: &[u8]) -> Result<(Header<'_>, &[u8]), NpyError> {
    let rest = file.strip_prefix(MAGIC).ok_or(NpyError::NotNpy)?;
    let (&[major, minor], rest) = rest.split_first_chunk().ok_or(NpyError::CutHeader)?;
    let (length, rest) = match (major, minor) {
        (1, 0) => {
            let (length, rest) = rest.split_first_chunk().ok_or(NpyError::CutHeader)?;
            (u32::from(u16::from_le_bytes(*length)), rest)
        }
        (2 | 3, 0) => {
            let (length, rest) = rest.split_first_chunk().ok_or(NpyError::CutHeader)?;
            (u32::from_le_bytes(*length), rest)
        }
        _ => return Err(NpyError::Version { major, minor }),
    };
    let (text, data) = rest.split_at_checked(length as usize).ok_or(NpyError::CutHeader)?;
    Ok((Text { rest: text }.header()?, data))
}

/// The rest of the header's text, a Python dictionary of literals.
struct Text<'a> {
    rest: &'a [u8],
}

impl<'a> Text<'a> {
    fn header(mut self) -> Result<Header<'a>, NpyError> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect(b'{', "'{'")?;
        while !self.accept(b'}') {
            let key = self.string("a key in quotes")?;
            self.expect(b':', "':'")?;
            match key {
                "descr" => descr = Some(self.descr()?),
                "fortran_order" => fortran_order = Some(self.boolean()?),
                "shape" => shape = Some(self.shape()?),
                _ => return Err(NpyError::Malformed { expected: "descr, fortran_order or shape" }),
            }
            if !self.accept(b',') {
                self.expect(b'}', "',' or '}'")?;
                break;
            }
        }
        if !self.rest.trim_ascii().is_empty() {
            return Err(NpyError::Malformed { expected: "its end" });
        }
        Ok(Header {
            descr: descr.ok_or(NpyError::MissingKey { key: "descr" })?,
            fortran_order: fortran_order.ok_or(NpyError::MissingKey { key: "fortran_order" })?,
            shape: shape.ok_or(NpyError::MissingKey { key: "shape" })?,
        })
    }

    fn descr(&mut self) -> Result<&'a str, NpyError> {
        if self.accept(b'[') {
            return Err(NpyError::Structured);
        }
        self.string("a type in quotes")
    }

    fn shape(&mut self) -> Result<Vec<i64>, NpyError> {
        let mut shape = Vec::new();
        self.expect(b'(', "'('")?;
        while !self.accept(b')') {
            shape.push(self.extent()?);
            if shape.len() > MAX_DIMENSIONS {
                return Err(NpyError::TooManyDimensions);
            }
            if !self.accept(b',') {
                self.expect(b')', "',' or ')'")?;
                break;
            }
        }
        Ok(shape)
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if let Some(rest) = self.rest.trim_ascii_start().strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(NpyError::Malformed { expected: "True or False" })
    }

    fn extent(&mut self) -> Result<i64, NpyError> {
        let text = self.rest.trim_ascii_start();
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = text.split_at(digits);
        self.rest = rest;
        let number = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
        number.ok_or(NpyError::Malformed { expected: "an extent below 2^63" })
    }

    fn string(&mut self, expected: &'static str) -> Result<&'a str, NpyError> {
        let malformed = NpyError::Malformed { expected };
        let Some((&quote @ (b'\'' | b'"'), text)) = self.rest.trim_ascii_start().split_first() else {
            return Err(malformed);
        };
        let Some(end) = text.iter().position(|&byte| byte == quote) else {
            return Err(malformed);
        };
        self.rest = &text[end + 1..];
        std::str::from_utf8(&text[..end]).map_err(|_| malformed)
    }

    fn accept(&mut self, byte: u8) -> bool {
        let text = self.rest.trim_ascii_start();
        let found = text.first() == Some(&byte);
        if found {
            self.rest = &text[1..];
        }
        found
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), NpyError> {
        if self.accept(byte) { Ok(()) } else { Err(NpyError::Malformed { expected }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: [u8; 2], text: &str) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend(version);
        match version[0] {
            1 => file.extend((text.len() as u16).to_le_bytes()),
            _ => file.extend((text.len() as u32).to_le_bytes()),
        }
        file.extend(text.as_bytes());
        file
    }

    #[test]
    fn reads_what_python_accepts() {
        let expected = Header { descr: "<f4", fortran_order: false, shape: vec![3, 4] };
        for text in [
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n",
            "{\"shape\":(3,4,),\"fortran_order\":False,\"descr\":\"<f4\"}",
            " { 'fortran_order' : False , 'descr' : '<f4' , 'shape' : ( 3 , 4 ) } ",
        ] {
            for version in [[1, 0], [2, 0], [3, 0]] {
                let mut file = file(version, text);
                file.extend(b"data");
                assert_eq!(parse(&file).unwrap(), (Header { shape: vec![3, 4], ..expected }, &b"data"[..]));
            }
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, message) in [
            ("", "expected '{'"),
            ("{", "a key in quotes"),
            ("{'descr", "a key in quotes"),
            ("{'descr' '<f4'}", "expected ':'"),
            ("{'descr': [('a', '<f4')]}", "structured"),
            ("{'descr': 4}", "a type in quotes"),
            ("{'fortran_order': 0}", "True or False"),
            ("{'shape': 4}", "expected '('"),
            ("{'shape': (-4,)}", "an extent"),
            ("{'shape': (9223372036854775808,)}", "an extent"),
            ("{'shape': (4 5)}", "',' or ')'"),
            ("{'shape': (4,) 'descr'}", "',' or '}'"),
            ("{'size': 4}", "descr, fortran_order or shape"),
            ("{'descr': '<f4', 'shape': ()}", "'fortran_order'"),
            ("{'descr': '<f4', 'shape': (), 'fortran_order': True} ''", "its end"),
        ] {
            let error = parse(&file([1, 0], text)).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
        let deep = format!("{{'shape': ({})}}", "1,".repeat(65));
        assert!(matches!(parse(&file([1, 0], &deep)), Err(NpyError::TooManyDimensions)));
        assert!(matches!(parse(&file([4, 0], "{}")), Err(NpyError::Version { major: 4, minor: 0 })));
    }

    #[test]
    fn finds_every_cut() {
        let whole = file([2, 0], "{'descr': '<f4', 'fortran_order': False, 'shape': ()}");
        for length in 0..whole.len() {
            let error = parse(&whole[..length]).unwrap_err();
            assert!(matches!(error, NpyError::NotNpy | NpyError::CutHeader), "{length}: {error}");
        }
    }
}
