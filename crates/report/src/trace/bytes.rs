//! Encodes steps as bytes, and bytes as text.
//!
//! Numbers are written 7 bits at a time, the lowest first; the top bit of a byte says that more follow. A step is its
//! launch, its block, its stage and the number of its touches. A touch is three times its picture plus its kind, the
//! number of its groups of runs, the groups, and the values of a store.
//!
//! A group is a run, or several runs of equal length at equal distances, such as the rows of a tile: twice the distance
//! from the end of the previous run, plus 1 for several runs; the length minus 1; and for several runs, their number
//! minus 2.
//!
//! Values are packed: a byte n below 128 is followed by n + 1 values; any other byte n says that the next value is
//! repeated n - 126 times.

use super::{Touch, TouchKind, TraceStep};

/// All steps, one after the other.
pub(super) fn encoded(steps: &[TraceStep]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for step in steps {
        for number_of in [step.launch, step.block, step.stage, step.touches.len() as u32] {
            number(&mut bytes, number_of);
        }
        step.touches.iter().for_each(|touch| put_touch(&mut bytes, touch));
    }
    bytes
}

fn put_touch(bytes: &mut Vec<u8>, touch: &Touch) {
    let kind = match touch.kind {
        TouchKind::Read => 0,
        TouchKind::Stored => 1,
        TouchKind::Held => 2,
    };
    number(bytes, touch.picture * 3 + kind);
    let mut end = 0;
    let spaced = touch.runs.iter().map(|&(first, length)| {
        let distance = first - end;
        end = first + length;
        (distance, length)
    });
    let spaced: Vec<(u32, u32)> = spaced.collect();
    let groups: Vec<&[(u32, u32)]> = spaced.chunk_by(|a, b| a == b).collect();
    number(bytes, groups.len() as u32);
    for group in groups {
        let (distance, length) = group[0];
        number(bytes, distance * 2 + u32::from(group.len() > 1));
        number(bytes, length - 1);
        if group.len() > 1 {
            number(bytes, group.len() as u32 - 2);
        }
    }
    pack(bytes, &touch.values);
}

fn pack(bytes: &mut Vec<u8>, values: &[u8]) {
    let mut literal: Vec<u8> = Vec::new();
    let flush = |bytes: &mut Vec<u8>, literal: &mut Vec<u8>| {
        for part in literal.chunks(128) {
            bytes.push(part.len() as u8 - 1);
            bytes.extend(part);
        }
        literal.clear();
    };
    for equal in values.chunk_by(|a, b| a == b) {
        for part in equal.chunks(129) {
            // A pair takes no more room among other values.
            if part.len() > 2 {
                flush(bytes, &mut literal);
                bytes.extend([part.len() as u8 + 126, part[0]]);
            } else {
                literal.extend(part);
            }
        }
    }
    flush(bytes, &mut literal);
}

fn number(bytes: &mut Vec<u8>, mut left: u32) {
    while left >= 128 {
        bytes.push(left as u8 | 128);
        left >>= 7;
    }
    bytes.push(left as u8);
}

/// The standard encoding in base 64, with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let bits = part.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - part.len()));
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            text.push(if digit <= part.len() { DIGITS[value as usize] as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_a_few_bytes() {
        let read =
            Touch { picture: 1, kind: TouchKind::Read, runs: vec![(3, 4), (300, 1)], values: Vec::new() };
        let held = Touch { picture: 2, kind: TouchKind::Held, runs: vec![(0, 2)], values: vec![8, 255] };
        let step = TraceStep { launch: 1, block: 200, stage: 5, touches: vec![read, held] };
        let expected = [1, 200, 1, 5, 2, 3, 2, 6, 3, 202, 4, 0, 8, 1, 0, 1, 1, 8, 255];
        assert_eq!(encoded(&[step]), expected);
    }

    #[test]
    fn rows_and_equal_values_are_short() {
        let runs = (0..6).map(|row| (3 + 10 * row, 4)).collect();
        let step = |values| TraceStep {
            touches: vec![Touch { picture: 0, kind: TouchKind::Stored, runs, values }],
            ..TraceStep::default()
        };
        let values = [vec![9; 20], vec![1, 2, 2, 3]].concat();
        // The first row is 3 from the start; the others are 6 from the one before.
        let expected = [0, 0, 0, 1, 1, 2, 6, 3, 13, 3, 3, 146, 9, 3, 1, 2, 2, 3];
        assert_eq!(encoded(&[step(values)]), expected);
    }

    #[test]
    fn text_is_that_of_the_standard() {
        let texts = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }
}
