//! Checks that do not need sizes: names, ranks, types and reductions.

mod expr;
mod kind;

use std::collections::{HashMap, HashSet};

use warploom_lang::{Type, Value};

use crate::ast::{Assign, Clause, Def, Dim, Expr, ExprKind, Name, Statement, Unary};
use crate::builtins::is_builtin;
use crate::error::{Fault, Mistakes, counted};
use crate::names::{Lets, Meaning, Names, default_value, element_type};
use crate::source::Span;
use crate::types::type_name;

use kind::KnownType;

/// The most indices of a statement, and the most dimensions of a tensor.
const MAX_INDICES: usize = 64;

/// A definition that passed all checks.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub def: Def,
    pub names: Names,
    /// The reduction variables of each statement, in order of appearance.
    pub reduced: Vec<Vec<String>>,
    /// How each statement stores its value.
    pub stored: Vec<Stored>,
    /// The integer scalars that ranges or indices depend on, in the order of the parameters.
    pub specialised: Vec<String>,
}

/// How a statement stores its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stored {
    /// The type of the tensor.
    pub ty: Type,
    /// Whether the right side is computed in `float`, because it or the tensor has 16 bits and is reduced.
    pub widened: bool,
    /// Whether a later statement may give the value another type: it is made of literals and integers.
    pub open: bool,
    /// Whether this value determines the type of an earlier open one.
    pub settles: bool,
}

/// Checks a definition and reports all its mistakes.
pub(crate) fn check(def: Def, mistakes: &mut Mistakes) -> Checked {
    let names = Names::of(&def, mistakes);
    let mut checker =
        Checker { def: &def, names: &names, mistakes, types: HashMap::new(), fixed: HashSet::new() };
    checker.signature();
    let (reduced, stored) = def.statements.iter().map(|statement| checker.statement(statement)).unzip();
    checker.uses();
    let fixed = std::mem::take(&mut checker.fixed);
    let specialised = def.params.iter().map(|param| param.name.text.clone());
    let specialised = specialised.filter(|name| fixed.contains(name)).collect();
    Checked { def, names, reduced, stored, specialised }
}

struct Checker<'a> {
    def: &'a Def,
    names: &'a Names,
    mistakes: &'a mut Mistakes,
    /// The type of everything that has a value so far.
    types: HashMap<&'a str, KnownType<'a>>,
    /// The scalars that ranges or indices depend on.
    fixed: HashSet<String>,
}

/// The names that an expression may use, besides numbers, sizes and scalars.
struct VisibleNames<'a> {
    lets: Lets<'a>,
    /// The type and the indices of each let that is visible.
    known_lets: Vec<(Option<KnownType<'a>>, Vec<&'a str>)>,
    /// The indices of each `exists`.
    exists: Vec<(Span, Vec<&'a str>)>,
    /// The indices so far, in order of appearance.
    indices: Vec<&'a str>,
    statement: &'a Statement,
}

impl<'a> Checker<'a> {
    fn signature(&mut self) {
        for param in &self.def.params {
            self.types.insert(&param.name.text, KnownType::Is(element_type(param)));
            self.few(param.ty.dims.len(), &param.name);
            if let Some(number) = param.default
                && default_value(param).is_none()
            {
                let name = param.name.text.clone();
                let fault = match param.ty.dims.is_empty() {
                    true => Fault::Default { name, ty: param.ty.scalar.name() },
                    false => Fault::DefaultOfTensor { name },
                };
                self.mistakes.add(number.span, fault);
            }
        }
        for result in &self.def.results {
            let Some(ty) = &result.ty else { continue };
            for dim in &ty.dims {
                if let Dim::Name(size) = dim
                    && !self.names.sizes.contains_key(&size.text)
                {
                    self.mistakes.add(size.span, Fault::UnknownSize { name: size.text.clone() });
                }
            }
        }
        for result in
            self.def.results.iter().filter(|result| self.names.params.contains_key(&result.name.text))
        {
            let name = self.names.outside(&result.name.text);
            if let Some(what) = self.names.taken(&name) {
                let fault = Fault::InPlaceName { result: result.name.text.clone(), name, what };
                self.mistakes.add(result.name.span, fault);
            }
        }
        if self.def.results.is_empty() {
            let name = self.def.name.text.clone();
            self.mistakes.add(self.def.name.span, Fault::NoResults { name });
        }
    }

    fn few(&mut self, count: usize, name: &Name) {
        if count > MAX_INDICES {
            self.mistakes.add(name.span, Fault::ManyIndices { most: MAX_INDICES });
        }
    }

    /// Checks a statement. Returns its reduction variables, and how it stores its value.
    fn statement(&mut self, statement: &'a Statement) -> (Vec<String>, Stored) {
        let lets = Lets::of(statement);
        let mut scope =
            VisibleNames { lets, known_lets: Vec::new(), exists: Vec::new(), indices: Vec::new(), statement };
        self.target(statement);
        self.clauses(&mut scope);
        let value = self.expr(&statement.value, &mut scope);
        let right = std::mem::take(&mut scope.indices);
        let stored = self.stored(statement, value);
        (self.indices(statement, right, scope, value.is_some()), stored)
    }

    /// Checks the left side.
    fn target(&mut self, statement: &'a Statement) {
        let Statement { target, indices, .. } = statement;
        let name = &target.text;
        if self.names.params.contains_key(name) && !self.names.results.contains_key(name) {
            self.mistakes.add(target.span, Fault::ParamWritten { name: name.clone() });
        }
        let rank = self.names.ranks.get(name).copied().unwrap_or(indices.len());
        if rank != indices.len() {
            let got = counted(indices.len(), "index", "indices");
            self.mistakes.add(target.span, Fault::Rank { name: name.clone(), rank, got });
        }
        let mut seen = HashSet::new();
        for index in indices {
            let name = index.text.clone();
            if !seen.insert(&index.text) {
                self.mistakes.add(index.span, Fault::RepeatedIndex { name });
            } else if let Some(what) = self.names.taken(&index.text) {
                self.mistakes.add(index.span, Fault::IndexName { name, what });
            } else if is_builtin(&index.text) {
                self.mistakes.add(index.span, Fault::BuiltinRedefined { name });
            }
        }
        self.few(indices.len(), target);
    }

    /// Checks the clauses in order; a let is visible in later clauses and on the right side.
    fn clauses(&mut self, scope: &mut VisibleNames<'a>) {
        let (mut ranged, mut named) = (HashSet::new(), HashSet::new());
        for clause in &scope.statement.clauses {
            match clause {
                Clause::Let { name, value } => {
                    self.let_name(name, scope.statement, &mut named);
                    let kind = self.expr(value, scope);
                    let indices = std::mem::take(&mut scope.indices);
                    scope.known_lets.push((kind, indices));
                }
                Clause::Exists(value) => {
                    self.expr(value, scope);
                    let indices = std::mem::take(&mut scope.indices);
                    scope.exists.push((value.span, indices));
                }
                Clause::Range { index, low, high } => {
                    if !ranged.insert(&index.text) {
                        self.mistakes.add(index.span, Fault::TwoRanges { name: index.text.clone() });
                    }
                    self.bound(low, scope);
                    self.bound(high, scope);
                }
            }
        }
    }

    /// Checks that the name of a let is free.
    fn let_name(&mut self, name: &'a Name, statement: &Statement, named: &mut HashSet<&'a str>) {
        let is_index = statement.indices.iter().any(|index| index.text == name.text);
        let taken = self.names.taken(&name.text);
        let again = (!named.insert(&name.text)).then_some("a name of this statement");
        if is_builtin(&name.text) {
            self.mistakes.add(name.span, Fault::BuiltinRedefined { name: name.text.clone() });
        } else if let Some(what) = taken.or(again).or(is_index.then_some("an index")) {
            self.mistakes.add(name.span, Fault::AlreadyDefined { name: name.text.clone(), what });
        }
    }

    /// Checks an end of a range.
    fn bound(&mut self, bound: &'a Expr, scope: &mut VisibleNames<'a>) {
        if let Some(ty) = self.expr(bound, scope).map(KnownType::alone)
            && !ty.is_int()
        {
            self.mistakes.add(bound.span, Fault::IndexType { ty: type_name(ty) });
        }
        self.fix(bound, &scope.lets);
        let added = std::mem::take(&mut scope.indices);
        let read = self.first_read(bound, &scope.lets);
        if let Some(name) = added.into_iter().next().or(read) {
            self.mistakes.add(bound.span, Fault::RangeBound { name: name.to_string() });
        }
    }

    /// A tensor, let or index that a bound of a range uses although it cannot.
    fn first_read(&self, expr: &'a Expr, lets: &Lets<'_>) -> Option<&'a str> {
        if let ExprKind::Name(name) | ExprKind::Call(name, _) = &expr.kind {
            let is_call = matches!(expr.kind, ExprKind::Call(..));
            let scalar = self.names.is_scalar(&name.text) && !is_call;
            let fixed = self.names.meaning(lets, &name.text) == Meaning::Size || scalar;
            if !fixed {
                return Some(&name.text);
            }
        }
        expr.operands().iter().find_map(|operand| self.first_read(operand, lets))
    }

    /// Records the scalars that an index or a bound depends on.
    fn fix(&mut self, expr: &'a Expr, lets: &Lets<'a>) {
        let (mut open, mut seen) = (vec![expr], HashSet::new());
        while let Some(expr) = open.pop() {
            if let ExprKind::Name(name) = &expr.kind {
                match self.names.meaning(lets, &name.text) {
                    Meaning::Let(number) if seen.insert(number) => open.extend(lets.values.get(number)),
                    Meaning::Tensor if self.names.is_scalar(&name.text) => {
                        self.fixed.insert(name.text.clone());
                    }
                    _ => {}
                }
            }
            // Loads inside an index are not part of the index arithmetic; their own indices are visited when the load
            // is checked.
            if !matches!(expr.kind, ExprKind::Call(..)) {
                open.extend(expr.operands());
            }
        }
    }

    /// Checks the type of the stored value and records the type of the target.
    fn stored(&mut self, statement: &'a Statement, value: Option<KnownType<'a>>) -> Stored {
        let name = statement.target.text.as_str();
        let before = self.types.get(name).copied();
        if let Assign::Reduce { op, initialised } = statement.assign {
            if !initialised && before.is_none() {
                let fault = Fault::NothingToUpdate { name: name.to_string(), operator: op.symbol() };
                self.mistakes.add(statement.assign_span, fault);
            }
            if value.map(KnownType::alone) == Some(Type::Bool) {
                self.mistakes
                    .add(statement.assign_span, Fault::BoolOperand { what: op.symbol().to_string() });
            }
        }
        let Some(value) = value else {
            self.types.entry(name).or_insert(KnownType::Is(Type::F32));
            return Stored { ty: Type::F32, widened: false, open: false, settles: false };
        };
        let declared = declared_type(self.def, self.names, name);
        let held = declared.map(KnownType::Is).or(before);
        let met = match held {
            None => value,
            Some(held) => self.join(held, value, statement).unwrap_or_else(|| {
                let fault = Fault::Types { left: type_name(held.alone()), right: type_name(value.alone()) };
                self.mistakes.add(statement.value.span, fault);
                held
            }),
        };
        self.narrowing(statement, declared, met.alone(), value.alone());
        // A stored literal takes the type of the next statement that writes the tensor, unless it is read before.
        let kind = match (declared, statement.assign) {
            (Some(declared), _) => KnownType::Is(declared),
            (None, Assign::Set) => met,
            (None, Assign::Reduce { .. }) => KnownType::Is(self.settle(met, Type::F32, statement)),
        };
        self.types.insert(name, kind);
        let ty = kind.alone();
        let is_half = ty.is_half() || value.alone().is_half();
        let widened = is_half && statement.assign != Assign::Set;
        let is_open = |kind: &KnownType<'_>| matches!(kind, KnownType::Open(_));
        Stored { ty, widened, open: is_open(&kind), settles: before.is_some_and(|before| is_open(&before)) }
    }

    /// Refuses a value that is wider than the declared type, unless it is a number that fits.
    fn narrowing(&mut self, statement: &Statement, declared: Option<Type>, met: Type, value: Type) {
        let fits =
            |declared| literal(&statement.value).is_some_and(|n| Value::from_int(declared, n).is_some());
        if let Some(declared) = declared.filter(|declared| met != *declared && !fits(*declared)) {
            let (declared, value) = (type_name(declared), type_name(value));
            let fault = Fault::Narrowing { name: statement.target.text.clone(), declared, value };
            self.mistakes.add(statement.value.span, fault);
        }
    }

    /// Checks the indices of a statement as a whole and returns its reduction variables.
    fn indices(
        &mut self,
        statement: &'a Statement,
        right: Vec<&'a str>,
        scope: VisibleNames<'a>,
        sound: bool,
    ) -> Vec<String> {
        let left: HashSet<&str> = statement.indices.iter().map(|index| index.text.as_str()).collect();
        let used: HashSet<&str> = right.iter().copied().collect();
        let occurs = |name: &str| left.contains(name) || used.contains(name);
        for clause in &statement.clauses {
            if let Clause::Range { index, .. } = clause
                && !occurs(&index.text)
            {
                self.mistakes.add(index.span, Fault::NoIndex { name: index.text.clone() });
            }
        }
        for (span, indices) in scope.exists {
            if let Some(name) = indices.into_iter().find(|name| !occurs(name)) {
                self.mistakes.add(span, Fault::OnlyInExists { name: name.to_string() });
            }
        }
        let reduced: Vec<String> =
            right.into_iter().filter(|name| !left.contains(name)).map(str::to_string).collect();
        if reduced.len() + left.len() > MAX_INDICES {
            self.few(MAX_INDICES + 1, &statement.target);
        }
        // In an expression with a mistake, a name may look like an index only because of that mistake.
        if let (Assign::Set, Some(variable), true) = (statement.assign, reduced.first(), sound) {
            let fault = Fault::Unreduced { variable: variable.clone() };
            self.mistakes.add(statement.assign_span, fault);
        }
        reduced
    }

    /// Checks that results are written and all other tensors are read, and that literals fit.
    fn uses(&mut self) {
        for statement in &self.def.statements {
            if let Some(kind) = self.types.get(statement.target.text.as_str()).copied() {
                self.settle(kind, Type::F32, statement);
            }
        }
        let mut last_write: HashMap<&str, (usize, &Name)> = HashMap::new();
        let mut last_read: HashMap<&str, usize> = HashMap::new();
        for (number, statement) in self.def.statements.iter().enumerate() {
            last_write.insert(&statement.target.text, (number, &statement.target));
            each_name(statement, &mut |name| {
                last_read.insert(name, number);
            });
        }
        for result in &self.def.results {
            if !last_write.contains_key(result.name.text.as_str()) {
                let name = result.name.text.clone();
                self.mistakes.add(result.name.span, Fault::ResultNeverWritten { name });
            }
        }
        let mut unused: Vec<&Name> = last_write
            .into_iter()
            .filter(|(name, (written, _))| {
                let read_later = last_read.get(name).is_some_and(|read| read > written);
                !read_later
                    && !self.names.results.contains_key(*name)
                    && !self.names.params.contains_key(*name)
            })
            .map(|(_, (_, target))| target)
            .collect();
        unused.sort_by_key(|name| name.span.ends());
        for name in unused {
            self.mistakes.add(name.span, Fault::Unused { name: name.text.clone() });
        }
    }
}

/// The declared type of a tensor: as a parameter, as a result, or where it is written first.
pub(crate) fn declared_type(def: &Def, names: &Names, name: &str) -> Option<Type> {
    if let Some(ty) = names.temporaries.get(name) {
        return Some(*ty);
    }
    let result = names.results.get(name).and_then(|position| def.results[*position].ty.as_ref());
    let param = names.params.get(name).map(|position| &def.params[*position].ty);
    result.or(param).map(|ty| ty.scalar.lang())
}

/// The integer, if an expression is one.
fn literal(expr: &Expr) -> Option<i64> {
    match &expr.kind {
        ExprKind::Int(number) => Some(*number),
        ExprKind::Unary(Unary::Neg, operand) => literal(operand).map(|number| -number),
        _ => None,
    }
}

/// Calls `visit` with every name on the right side and in the clauses of a statement.
pub(crate) fn each_name<'a>(statement: &'a Statement, visit: &mut impl FnMut(&'a str)) {
    let mut open = vec![&statement.value];
    for clause in &statement.clauses {
        match clause {
            Clause::Let { value, .. } | Clause::Exists(value) => open.push(value),
            Clause::Range { low, high, .. } => open.extend([low, high]),
        }
    }
    while let Some(expr) = open.pop() {
        if let ExprKind::Name(name) | ExprKind::Call(name, _) | ExprKind::Size(name, _) = &expr.kind {
            visit(&name.text);
        }
        open.extend(expr.operands());
    }
}
