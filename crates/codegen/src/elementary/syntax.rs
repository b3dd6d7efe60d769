//! Reads the part of Rust that elementary functions are written in.
//!
//! It reads only our own source text, so it panics on anything unknown. A test reads the whole text.

use warploom_lang::Type;

use super::PRIMITIVES;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Token<'a> {
    Word(&'a str),
    Number(&'a str),
    Sign(&'a str),
}

/// A definition.
#[derive(Debug)]
pub(super) enum Item<'a> {
    /// A constant with its type, that of the elements of an array.
    Const(&'a str, Type, Raw<'a>),
    /// A function: its name, its parameters with their types, the types of its result, and its body.
    Fn(&'a str, Vec<(&'a str, Vec<Type>)>, Vec<Type>, RawBlock<'a>),
}

#[derive(Debug)]
pub(super) struct RawBlock<'a> {
    pub statements: Vec<RawStatement<'a>>,
    pub value: Raw<'a>,
}

#[derive(Debug)]
pub(super) enum RawStatement<'a> {
    Let(Vec<&'a str>, Raw<'a>),
    Leave(Raw<'a>, RawBlock<'a>),
}

/// An expression without types.
#[derive(Debug)]
pub(super) enum Raw<'a> {
    Number(&'a str),
    /// A name, and the one before `::`.
    Path(Option<&'a str>, &'a str),
    Call(Option<&'a str>, &'a str, Vec<Raw<'a>>),
    Method(Box<Raw<'a>>, &'a str, Vec<Raw<'a>>),
    Index(Box<Raw<'a>>, Box<Raw<'a>>),
    /// The first elements of an array.
    First(Box<Raw<'a>>, usize),
    Field(Box<Raw<'a>>, usize),
    Unary(&'a str, Box<Raw<'a>>),
    Binary(&'a str, Box<[Raw<'a>; 2]>),
    /// A conversion; to `usize` if there is no type.
    Cast(Box<Raw<'a>>, Option<Type>),
    If(Box<[Raw<'a>; 3]>),
    Tuple(Vec<Raw<'a>>),
    Array(Vec<Raw<'a>>),
}

/// The precedence of binary operators.
const LEVELS: [&[&str]; 9] = [
    &["||"],
    &["&&"],
    &["==", "!=", "<", "<=", ">", ">="],
    &["|"],
    &["^"],
    &["&"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/"],
];

const SIGNS: [&str; 11] = ["->", "::", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", ".."];

/// The definitions in a source file, as far as its tests.
pub(super) fn items(source: &str) -> Vec<Item<'_>> {
    let mut parser = Parser { tokens: tokens(source), at: 0 };
    let mut items = Vec::new();
    while parser.at < parser.tokens.len() {
        items.extend(parser.item());
    }
    items
}

fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut rest = source.split("#[cfg(test)]").next().unwrap_or_default().trim_start();
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        let mut length = 0;
        if rest.starts_with("//") {
            length = rest.find('\n').unwrap_or(rest.len());
        } else if first == '#' {
            length = rest.find(']').map_or(rest.len(), |end| end + 1);
        } else if first.is_ascii_digit() {
            length = number(rest);
            tokens.push(Token::Number(&rest[..length]));
        } else if first.is_alphabetic() || first == '_' {
            length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push(Token::Word(&rest[..length]));
        }
        if length == 0 {
            let long = SIGNS.into_iter().find(|sign| rest.starts_with(*sign));
            length = long.map_or(first.len_utf8(), str::len);
            tokens.push(Token::Sign(&rest[..length]));
        }
        rest = rest[length..].trim_start();
    }
    tokens
}

/// The length of the number that a text begins with.
fn number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let belongs = |at: usize| match bytes[at] {
        b'.' => bytes.get(at + 1).is_some_and(u8::is_ascii_digit),
        b'-' | b'+' => bytes[at - 1] == b'e' && !text.starts_with("0x"),
        byte => byte.is_ascii_alphanumeric() || byte == b'_',
    };
    (1..bytes.len()).find(|at| !belongs(*at)).unwrap_or(bytes.len())
}

fn scalar(name: &str) -> Option<Type> {
    Type::ALL.into_iter().find(|ty| ty.name() == name)
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.tokens.get(self.at).copied();
        self.at += 1;
        token
    }

    fn eats(&mut self, token: Token<'_>) -> bool {
        let found = self.tokens.get(self.at) == Some(&token);
        self.at += usize::from(found);
        found
    }

    fn sign(&mut self, sign: &str) -> bool {
        self.eats(Token::Sign(sign))
    }

    fn expect(&mut self, sign: &str) {
        let found = self.sign(sign);
        let near = &self.tokens[self.at.saturating_sub(8)..(self.at + 4).min(self.tokens.len())];
        assert!(found, "`{sign}` is missing near {near:?}");
    }

    fn word(&mut self) -> &'a str {
        match self.next() {
            Some(Token::Word(word)) => word,
            other => panic!("{other:?} is no name"),
        }
    }

    fn item(&mut self) -> Option<Item<'a>> {
        match self.word() {
            "pub" => None,
            "use" | "mod" => {
                while !self.sign(";") {
                    self.at += 1;
                }
                None
            }
            "const" => {
                let name = self.word();
                self.expect(":");
                let ty = self.types()[0];
                self.expect("=");
                let value = self.expr(0);
                self.expect(";");
                Some(Item::Const(name, ty, value))
            }
            "fn" => self.function(),
            other => panic!("`{other}` begins no definition"),
        }
    }

    fn function(&mut self) -> Option<Item<'a>> {
        let name = self.word();
        if PRIMITIVES.contains(&name) {
            while !self.sign("{") {
                self.at += 1;
            }
            let mut depth = 1;
            while depth > 0 {
                depth += i32::from(self.tokens[self.at] == Token::Sign("{"));
                depth -= i32::from(self.tokens[self.at] == Token::Sign("}"));
                self.at += 1;
            }
            return None;
        }
        self.expect("(");
        let params = self.list(")", |parser| {
            let name = parser.word();
            parser.expect(":");
            (name, parser.types())
        });
        self.expect("->");
        let result = self.types();
        self.expect("{");
        Some(Item::Fn(name, params, result, self.block()))
    }

    /// A list with commas, up to a sign.
    fn list<T>(&mut self, end: &str, one: impl Fn(&mut Self) -> T) -> Vec<T> {
        let mut list = Vec::new();
        while !self.sign(end) {
            list.push(one(self));
            self.sign(",");
        }
        list
    }

    /// A scalar type, those of a tuple, or that of the elements of an array.
    fn types(&mut self) -> Vec<Type> {
        if self.sign("(") {
            return self.list(")", |parser| parser.types()[0]);
        }
        let is_array = self.sign("[");
        let name = self.word();
        if is_array {
            self.expect(";");
            self.at += 1;
            self.expect("]");
        }
        vec![scalar(name).unwrap_or_else(|| panic!("`{name}` is no type"))]
    }

    /// The rest of a block after `{`, with the closing brace.
    fn block(&mut self) -> RawBlock<'a> {
        let mut statements = Vec::new();
        loop {
            if self.eats(Token::Word("let")) {
                let is_tuple = self.sign("(");
                let names = if is_tuple { self.list(")", Parser::word) } else { vec![self.word()] };
                self.expect("=");
                statements.push(RawStatement::Let(names, self.expr(0)));
                self.expect(";");
                continue;
            }
            let before = self.at;
            if self.eats(Token::Word("if")) {
                let condition = self.expr(0);
                self.expect("{");
                let body = self.block();
                if self.tokens[self.at] != Token::Word("else") {
                    statements.push(RawStatement::Leave(condition, body));
                    continue;
                }
                self.at = before;
            }
            let leaves = self.eats(Token::Word("return"));
            let value = self.expr(0);
            if leaves {
                self.expect(";");
            }
            self.expect("}");
            return RawBlock { statements, value };
        }
    }

    fn expr(&mut self, level: usize) -> Raw<'a> {
        let Some(operators) = LEVELS.get(level) else { return self.cast() };
        let mut left = self.expr(level + 1);
        while let Some(Token::Sign(sign)) = self.tokens.get(self.at).copied()
            && operators.contains(&sign)
        {
            self.at += 1;
            let right = self.expr(level + 1);
            left = Raw::Binary(sign, Box::new([left, right]));
        }
        left
    }

    fn cast(&mut self) -> Raw<'a> {
        let mut value = self.unary();
        while self.eats(Token::Word("as")) {
            value = Raw::Cast(Box::new(value), scalar(self.word()));
        }
        value
    }

    fn unary(&mut self) -> Raw<'a> {
        if self.sign("&") {
            return self.unary();
        }
        match ["-", "!"].into_iter().find(|sign| self.sign(sign)) {
            Some(sign) => Raw::Unary(sign, Box::new(self.unary())),
            None => self.postfix(),
        }
    }

    fn postfix(&mut self) -> Raw<'a> {
        let mut value = self.primary();
        loop {
            let inner = |value| Box::new(value);
            if self.sign(".") {
                value = match self.next() {
                    Some(Token::Number(field)) => Raw::Field(inner(value), field.parse().unwrap_or_default()),
                    Some(Token::Word(method)) => {
                        self.expect("(");
                        Raw::Method(inner(value), method, self.list(")", |parser| parser.expr(0)))
                    }
                    other => panic!("{other:?} is no method"),
                };
            } else if self.sign("[") {
                value = match (self.sign(".."), self.expr(0)) {
                    (true, Raw::Number(count)) => Raw::First(inner(value), count.parse().unwrap_or_default()),
                    (_, index) => Raw::Index(inner(value), inner(index)),
                };
                self.expect("]");
            } else {
                return value;
            }
        }
    }

    fn primary(&mut self) -> Raw<'a> {
        match self.next() {
            Some(Token::Number(number)) => Raw::Number(number),
            Some(Token::Sign("(")) => {
                let mut list = self.list(")", |parser| parser.expr(0));
                if list.len() == 1 { list.remove(0) } else { Raw::Tuple(list) }
            }
            Some(Token::Sign("[")) => Raw::Array(self.list("]", |parser| parser.expr(0))),
            Some(Token::Word("if")) => {
                let condition = self.expr(0);
                let yes = self.braced();
                assert!(self.eats(Token::Word("else")), "a value needs both sides of its condition");
                let is_chain = self.tokens[self.at] == Token::Word("if");
                let no = if is_chain { self.primary() } else { self.braced() };
                Raw::If(Box::new([condition, yes, no]))
            }
            Some(Token::Word(first)) => {
                let (mut before, mut name) = (None, first);
                while self.sign("::") {
                    (before, name) = (Some(name), self.word());
                }
                match self.sign("(") {
                    true => Raw::Call(before, name, self.list(")", |parser| parser.expr(0))),
                    false => Raw::Path(before, name),
                }
            }
            other => panic!("{other:?} begins no expression"),
        }
    }

    /// A value in braces.
    fn braced(&mut self) -> Raw<'a> {
        self.expect("{");
        let value = self.expr(0);
        self.expect("}");
        value
    }
}
