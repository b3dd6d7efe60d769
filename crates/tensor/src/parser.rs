//! Parses tokens into the tree, by recursive descent.

mod expr;

use crate::ast::{
    Assign, Clause, Declared, Def, Dim, Name, Number, Reduction, ResultName, Statement, TensorType,
};
use crate::error::{Fault, Mistake, Mistakes};
use crate::lexer::{Token, TokenKind, tokens};
use crate::source::{SourceFile, Span};
use crate::types::Scalar;

/// The maximum nesting of expressions.
pub const MAX_NESTING: usize = 256;

/// The maximum depth of a tree, which a long chain such as `a + b + c` reaches without nesting.
pub(crate) const MAX_CHAIN: usize = 600;

/// Words that cannot be names, beside those of types. `in` is a keyword only after the index of a range, so
/// that a tensor can be named so, as in the paper.
const KEYWORDS: [&str; 5] = ["def", "where", "exists", "min", "max"];

pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word) || Scalar::named(word).is_some()
}

/// A mistake, boxed because results are moved often.
type Parsed<T> = Result<T, Box<Mistake>>;

/// The definitions of a text. After a mistake, parsing continues at the next `def`.
pub(crate) fn definitions(source: &SourceFile, mistakes: &mut Mistakes) -> Vec<Def> {
    let tokens = tokens(source, mistakes);
    if !mistakes.is_empty() {
        return Vec::new();
    }
    let mut parser = Parser { source, tokens, at: 0, nesting: 0, depth: 0 };
    let mut defs = Vec::new();
    while parser.peek() != TokenKind::End && !mistakes.is_full() {
        let start = parser.at;
        match parser.def() {
            Ok(def) => defs.push(def),
            Err(mistake) => {
                mistakes.push(*mistake);
                parser.skip_to_def(start);
            }
        }
    }
    defs
}

struct Parser<'a> {
    source: &'a SourceFile,
    tokens: Vec<Token>,
    at: usize,
    nesting: usize,
    /// The depth of the expression that was read last.
    depth: usize,
}

impl Parser<'_> {
    fn token(&self) -> Token {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn peek(&self) -> TokenKind {
        self.token().kind
    }

    fn next(&mut self) -> Token {
        let token = self.token();
        self.at += 1;
        token
    }

    fn word(&self) -> Option<&str> {
        let token = self.token();
        (token.kind == TokenKind::Word).then(|| self.source.slice(token.span))
    }

    fn is_word(&self, word: &str) -> bool {
        self.word() == Some(word)
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.peek(), TokenKind::Symbol(found) if found == symbol)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    /// Moves to the next `def` after the one that begins at `start`.
    fn skip_to_def(&mut self, start: usize) {
        self.nesting = 0;
        self.at = self.at.max(start + 1);
        while self.peek() != TokenKind::End && !self.is_word("def") {
            self.at += 1;
        }
    }

    fn expected<T>(&self, expected: impl Into<String>, remedy: &'static str) -> Parsed<T> {
        let token = self.token();
        let found = match token.kind {
            TokenKind::End => "the end of the text".to_string(),
            TokenKind::Word if is_keyword(self.source.slice(token.span)) => {
                format!("the keyword `{}`", self.source.slice(token.span))
            }
            _ => format!("`{}`", self.source.slice(token.span)),
        };
        fail(token.span, Fault::Expected { expected: expected.into(), found, remedy })
    }

    fn expect(&mut self, symbol: &'static str, remedy: &'static str) -> Parsed<Span> {
        match self.is(symbol) {
            true => Ok(self.next().span),
            false => self.expected(format!("`{symbol}`"), remedy),
        }
    }

    fn name(&mut self, what: &'static str) -> Parsed<Name> {
        self.name_or(what, "names are made of letters, digits and `_`, and are no keywords")
    }

    fn name_or(&mut self, what: &'static str, remedy: &'static str) -> Parsed<Name> {
        match self.word() {
            Some(word) if !is_keyword(word) => {
                let text = word.to_string();
                Ok(Name { text, span: self.next().span })
            }
            _ => self.expected(what, remedy),
        }
    }

    /// Items in parentheses, separated by commas.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.expect("(", "add the list in parentheses")?;
        let mut items = Vec::new();
        if self.take(")") {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.take(")") {
                return Ok(items);
            }
            if !self.take(",") {
                return self.expected("`,` or `)`", "separate the items of a list by commas");
            }
        }
    }

    fn def(&mut self) -> Parsed<Def> {
        if !self.take_word("def") {
            return self.expected("`def`", "a file is a list of `def name(..) -> (..) { .. }`");
        }
        let name = self.name("the name of the definition")?;
        let params = self.list(Parser::declared)?;
        self.expect("->", "name the results after the parameters, as in `-> (C)`")?;
        let results = self.list(Parser::result)?;
        self.expect("{", "put the statements in braces")?;
        let mut statements = Vec::new();
        while !self.take("}") {
            statements.push(self.statement()?);
        }
        Ok(Def { name, params, results, statements })
    }

    fn declared(&mut self) -> Parsed<Declared> {
        let ty = self.tensor_type()?;
        let name = self.name("the name of the parameter")?;
        let default = if self.take("=") { Some(self.number()?) } else { None };
        Ok(Declared { ty, name, default })
    }

    /// A number, with or without a sign.
    fn number(&mut self) -> Parsed<Number> {
        let start = self.token().span;
        let sign = if self.take("-") { -1.0 } else { 1.0 };
        let value = match self.peek() {
            TokenKind::Int(number) => number as f64,
            TokenKind::Float(number) => number,
            _ => return self.expected("a number", "a default is one number, as in `float c = 0.5`"),
        };
        let is_float = matches!(self.next().kind, TokenKind::Float(_));
        Ok(Number { value: sign * value, is_float, span: start.to(self.last()) })
    }

    fn result(&mut self) -> Parsed<ResultName> {
        let typed = self.word().is_some_and(|word| Scalar::named(word).is_some());
        let ty = if typed { Some(self.tensor_type()?) } else { None };
        Ok(ResultName { ty, name: self.name("the name of a result")? })
    }

    fn tensor_type(&mut self) -> Parsed<TensorType> {
        let Some(scalar) = self.word().and_then(Scalar::named) else {
            return self.expected("a type such as `float(N)`", "every parameter begins with its type");
        };
        let start = self.next().span;
        let dims = if self.is("(") { self.list(Parser::dim)? } else { Vec::new() };
        Ok(TensorType { scalar, dims, span: start.to(self.last()) })
    }

    fn dim(&mut self) -> Parsed<Dim> {
        match self.peek() {
            TokenKind::Int(number) => Ok(Dim::Number(number, self.next().span)),
            _ => Ok(Dim::Name(self.name("a size: a name or a number")?)),
        }
    }

    /// The place of the last token that was taken.
    fn last(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn statement(&mut self) -> Parsed<Statement> {
        if self.is("(") {
            return fail(self.token().span, Fault::CallOfDefinition);
        }
        let scalar = self.word().and_then(Scalar::named);
        let ty = scalar.map(|scalar| (scalar, self.next().span));
        let target = match ty {
            None => self.name_or("a statement or `}`", "a statement begins with the name of a tensor")?,
            Some(_) => self.name_or(
                "the name of a tensor",
                "a temporary is declared as `float t(i) = ..`, without sizes, which follow from the statement",
            )?,
        };
        let indices = match self.is("(") {
            true => self.list(|parser| parser.name_or("an index", "indices on the left are plain names"))?,
            false => Vec::new(),
        };
        let (assign, assign_span) = self.assign()?;
        let value = self.expr()?;
        let mut equivalent = None;
        if self.take("<=>") {
            equivalent = Some((self.name("the name of a library function")?, self.list(Parser::expr)?));
        }
        let mut clauses = Vec::new();
        if self.take_word("where") {
            clauses.push(self.clause()?);
            while self.take(",") {
                clauses.push(self.clause()?);
            }
        }
        Ok(Statement { ty, target, indices, assign, value, equivalent, clauses, assign_span })
    }

    fn assign(&mut self) -> Parsed<(Assign, Span)> {
        let reduce = |op, initialised| Assign::Reduce { op, initialised };
        let assign = match self.peek() {
            TokenKind::Symbol("=") => Assign::Set,
            TokenKind::Symbol("+=") => reduce(Reduction::Sum, false),
            TokenKind::Symbol("*=") => reduce(Reduction::Product, false),
            TokenKind::Symbol("min=") => reduce(Reduction::Min, false),
            TokenKind::Symbol("max=") => reduce(Reduction::Max, false),
            TokenKind::Symbol("+=!") => reduce(Reduction::Sum, true),
            TokenKind::Symbol("*=!") => reduce(Reduction::Product, true),
            TokenKind::Symbol("min=!") => reduce(Reduction::Min, true),
            TokenKind::Symbol("max=!") => reduce(Reduction::Max, true),
            _ => return self.expected("an assignment", "write `=`, or a reduction such as `+=!`"),
        };
        Ok((assign, self.next().span))
    }

    fn clause(&mut self) -> Parsed<Clause> {
        if self.take_word("exists") {
            return Ok(Clause::Exists(self.expr()?));
        }
        let clauses = "write `index in low:high`, `name = value` or `exists A(i)`";
        let name = self.name_or("a clause", clauses)?;
        if self.take_word("in") {
            let low = self.expr()?;
            self.expect(":", "write a range as `low:high`, without high itself")?;
            return Ok(Clause::Range { index: name, low, high: self.expr()? });
        }
        if self.take("=") {
            return Ok(Clause::Let { name, value: self.expr()? });
        }
        self.expected("`in` or `=`", clauses)
    }
}

fn fail<T>(span: Span, fault: Fault) -> Parsed<T> {
    Err(Box::new(Mistake::new(span, fault)))
}
