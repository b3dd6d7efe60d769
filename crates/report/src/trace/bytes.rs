//! Steps as bytes, and bytes as text.
//!
//! Numbers are written 7 bits at a time, the lowest first; the top bit of a byte says that more follow. A step is
//! its launch, its block, its stage and the number of its touches. A touch is three times its picture plus its
//! kind, the number of its runs, and for each run the distance from the end of the one before and its length less
//! 1; the values of a store follow, one byte per point.

use super::{Step, Touch, TouchKind};

/// All steps, one after the other.
pub(super) fn encoded(steps: &[Step]) -> Vec<u8> {
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
    number(bytes, touch.runs.len() as u32);
    let mut end = 0;
    for &(first, length) in &touch.runs {
        number(bytes, first - end);
        number(bytes, length - 1);
        end = first + length;
    }
    bytes.extend(&touch.values);
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
        let step = Step { launch: 1, block: 200, stage: 5, touches: vec![read, held] };
        let expected = [1, 200, 1, 5, 2, 3, 2, 3, 3, 165, 2, 0, 8, 1, 0, 1, 8, 255];
        assert_eq!(encoded(&[step]), expected);
    }

    #[test]
    fn text_is_that_of_the_standard() {
        let texts = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }
}
