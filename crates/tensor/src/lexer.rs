//! Splits text into tokens.

use crate::error::{Fault, Mistakes};
use crate::source::{SourceFile, Span};

/// The most characters of a name.
pub(crate) const MAX_NAME: usize = 100;

/// A token and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

/// The kinds of tokens. Names and keywords are words.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum TokenKind {
    Word,
    Int(i64),
    Float(f64),
    Symbol(&'static str),
    End,
}

/// The symbols; one that begins with another comes before it.
const SYMBOLS: [&str; 29] = [
    "<=>", "+=!", "*=!", "->", "<=", ">=", "==", "!=", "&&", "||", "+=", "*=", "(", ")", "{", "}", ",", ":",
    "?", "<", ">", "=", "+", "-", "*", "/", "%", "!", ".",
];

/// All tokens of a text; the last one is `End`. Reports invalid characters.
pub(crate) fn tokens(source: &SourceFile, mistakes: &mut Mistakes) -> Vec<Token> {
    let mut lexer = Lexer { text: &source.text, at: 0, tokens: Vec::new() };
    while !mistakes.is_full() && lexer.skip_blanks() {
        if let Err((span, fault)) = lexer.token() {
            mistakes.add(span, fault);
        }
    }
    let end = span(source.text.trim_end().len(), source.text.trim_end().len());
    lexer.tokens.push(Token { kind: TokenKind::End, span: end });
    lexer.tokens
}

fn span(start: usize, end: usize) -> Span {
    Span { start: start as u32, end: end as u32 }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Skips blanks and comments; false at the end of the text.
    fn skip_blanks(&mut self) -> bool {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start().len();
            let comment = match rest[blanks..].starts_with('#') {
                true => rest[blanks..].find('\n').unwrap_or(rest.len() - blanks),
                false => 0,
            };
            self.at += blanks + comment;
            if comment == 0 {
                return self.at < self.text.len();
            }
        }
    }

    fn token(&mut self) -> Result<(), (Span, Fault)> {
        let bytes = self.rest().as_bytes();
        let digit_follows = bytes.get(1).is_some_and(u8::is_ascii_digit);
        match bytes[0] {
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => self.word(),
            b'0'..=b'9' => self.number(),
            b'.' if digit_follows && !self.follows_name() => self.number(),
            _ => self.symbol(),
        }
    }

    /// Whether the last token is a word that ends here, as in `A.0`.
    fn follows_name(&self) -> bool {
        self.tokens
            .last()
            .is_some_and(|last| last.kind == TokenKind::Word && last.span.end as usize == self.at)
    }

    fn push(&mut self, kind: TokenKind, length: usize) -> Span {
        let span = span(self.at, self.at + length);
        self.tokens.push(Token { kind, span });
        self.at += length;
        span
    }

    fn word(&mut self) -> Result<(), (Span, Fault)> {
        let rest = self.rest();
        let letter = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let length = rest.as_bytes().iter().take_while(letter).count();
        if matches!(&rest[..length], "min" | "max") && rest[length..].starts_with('=') {
            let marked = rest[length..].starts_with("=!");
            let symbol = match (rest.starts_with("min"), marked) {
                (true, true) => "min=!",
                (true, false) => "min=",
                (false, true) => "max=!",
                (false, false) => "max=",
            };
            self.push(TokenKind::Symbol(symbol), symbol.len());
            return Ok(());
        }
        let span = self.push(TokenKind::Word, length);
        match length > MAX_NAME {
            true => Err((span, Fault::LongName { length, most: MAX_NAME })),
            false => Ok(()),
        }
    }

    fn number(&mut self) -> Result<(), (Span, Fault)> {
        // The size of a dimension, `A.1`, has no fraction.
        let integer_only = self
            .tokens
            .last()
            .is_some_and(|last| last.kind == TokenKind::Symbol(".") && last.span.end as usize == self.at);
        let bytes = self.rest().as_bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut length = digits(0);
        let mut float = false;
        if !integer_only && bytes.get(length) == Some(&b'.') {
            float = true;
            length += 1 + digits(length + 1);
        }
        if matches!(bytes.get(length), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
            let exponent = digits((length + 1 + sign).min(bytes.len()));
            if exponent > 0 {
                float = true;
                length += 1 + sign + exponent;
            }
        }
        let letter = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let tail = bytes[length..].iter().take_while(letter).count();
        let text = self.rest()[..length + tail].to_string();
        let float_value = text.parse().ok().filter(|value: &f64| value.is_finite());
        let kind = match (float, float_value) {
            _ if tail > 0 => None,
            (true, Some(value)) => Some(TokenKind::Float(value)),
            (true, None) => None,
            (false, _) => text.parse().ok().filter(|value| *value <= i64::from(i32::MAX)).map(TokenKind::Int),
        };
        let ty = if float { "double" } else { "int32" };
        let span = self.push(kind.unwrap_or(TokenKind::Int(0)), length + tail);
        match kind {
            Some(_) => Ok(()),
            None if tail > 0 => Err((span, Fault::Number { text: short(&text) })),
            None => Err((span, Fault::Large { text: short(&text), ty })),
        }
    }

    fn symbol(&mut self) -> Result<(), (Span, Fault)> {
        let rest = self.rest();
        // The arrow as printed in the paper.
        if rest.starts_with('→') {
            self.push(TokenKind::Symbol("->"), '→'.len_utf8());
            return Ok(());
        }
        let first = rest.as_bytes()[0];
        let matches = |symbol: &&&str| symbol.as_bytes()[0] == first && rest.starts_with(**symbol);
        if let Some(symbol) = SYMBOLS.iter().find(matches) {
            self.push(TokenKind::Symbol(symbol), symbol.len());
            return Ok(());
        }
        let character = rest.chars().next().unwrap_or(' ');
        let place = span(self.at, self.at + character.len_utf8());
        self.at += character.len_utf8();
        Err((place, Fault::Character { character: character.to_string() }))
    }
}

fn short(text: &str) -> String {
    warploom_lang::brief::quoted(text).into_owned()
}
