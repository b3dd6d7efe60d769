//! The names of a definition and their meaning.

use std::collections::{BTreeMap, HashMap, HashSet};

use warploom_lang::{Type, Value};

use crate::ast::{Clause, Declared, Def, Dim, Expr, ExprKind, Statement};
use crate::builtins::is_builtin;
use crate::error::{Fault, Mistakes};
use crate::source::Span;

/// The names of a definition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// Each size, with a dimension of a parameter that has it.
    pub sizes: BTreeMap<String, SizeAt>,
    /// Sizes in the order of their first appearance.
    pub size_order: Vec<String>,
    /// Each parameter's position.
    pub params: HashMap<String, usize>,
    /// Each result's position.
    pub results: HashMap<String, usize>,
    /// The rank of every tensor and scalar: parameters, results and the targets of statements.
    pub ranks: HashMap<String, usize>,
    /// The declared types of temporary tensors.
    pub temporaries: HashMap<String, Type>,
}

/// A dimension of a parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeAt {
    pub param: usize,
    pub dimension: usize,
    pub span: Span,
}

/// The meaning of a name in a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    /// The let with this number.
    Let(usize),
    Size,
    Tensor,
    Builtin,
    Index,
}

/// The lets of a statement.
pub(crate) struct Lets<'a> {
    numbers: HashMap<&'a str, usize>,
    pub values: Vec<&'a Expr>,
}

impl<'a> Lets<'a> {
    pub fn of(statement: &'a Statement) -> Lets<'a> {
        let mut lets = Lets { numbers: HashMap::new(), values: Vec::new() };
        for clause in &statement.clauses {
            if let Clause::Let { name, value } = clause {
                lets.numbers.insert(&name.text, lets.values.len());
                lets.values.push(value);
            }
        }
        lets
    }
}

impl Names {
    pub fn meaning(&self, lets: &Lets<'_>, name: &str) -> Meaning {
        if let Some(number) = lets.numbers.get(name) {
            return Meaning::Let(*number);
        }
        match name {
            _ if self.sizes.contains_key(name) => Meaning::Size,
            _ if self.ranks.contains_key(name) => Meaning::Tensor,
            _ if is_builtin(name) => Meaning::Builtin,
            _ => Meaning::Index,
        }
    }

    /// Whether a name is a scalar that the caller gives and no statement changes.
    pub fn is_scalar(&self, name: &str) -> bool {
        let rank = self.ranks.get(name).copied();
        rank == Some(0) && self.params.contains_key(name) && !self.results.contains_key(name)
    }

    /// Whether an expression depends on values loaded from a tensor.
    pub fn loads(&self, lets: &Lets<'_>, expr: &Expr) -> bool {
        let (mut open, mut seen) = (vec![expr], HashSet::new());
        while let Some(expr) = open.pop() {
            match &expr.kind {
                ExprKind::Call(..) => return true,
                ExprKind::Name(name) => match self.meaning(lets, &name.text) {
                    Meaning::Let(number) if seen.insert(number) => open.push(lets.values[number]),
                    Meaning::Tensor if !self.is_scalar(&name.text) => return true,
                    _ => {}
                },
                _ => {}
            }
            open.extend(expr.operands());
        }
        false
    }

    /// The indices that expressions depend on, in order of appearance.
    pub fn indices(&self, lets: &Lets<'_>, exprs: &[Expr]) -> Vec<String> {
        let (mut open, mut seen): (Vec<&Expr>, HashSet<&str>) =
            (exprs.iter().rev().collect(), HashSet::new());
        let mut found = Vec::new();
        while let Some(expr) = open.pop() {
            if let ExprKind::Name(name) = &expr.kind
                && seen.insert(&name.text)
            {
                match self.meaning(lets, &name.text) {
                    Meaning::Let(number) => open.push(lets.values[number]),
                    Meaning::Index => found.push(name.text.clone()),
                    Meaning::Size | Meaning::Tensor | Meaning::Builtin => {}
                }
            }
            open.extend(expr.operands().iter().rev());
        }
        found
    }

    /// The name of a parameter in the pipeline. If the parameter is also a result, its old values have another name.
    pub fn outside(&self, param: &str) -> String {
        if self.results.contains_key(param) { format!("{param}_in") } else { param.to_string() }
    }

    /// What kind of item has this name already, if any.
    pub fn taken(&self, name: &str) -> Option<&'static str> {
        match name {
            _ if self.sizes.contains_key(name) => Some("a size"),
            _ if self.params.contains_key(name) => Some("a parameter"),
            _ if self.ranks.contains_key(name) => Some("a tensor"),
            _ => None,
        }
    }

    /// The names of a definition. Reports names that are taken.
    pub fn of(def: &Def, mistakes: &mut Mistakes) -> Names {
        let mut names = Names::default();
        for (position, param) in def.params.iter().enumerate() {
            names.add_sizes(position, param);
        }
        for (position, param) in def.params.iter().enumerate() {
            names.claim(&param.name.text, param.name.span, mistakes);
            names.params.entry(param.name.text.clone()).or_insert(position);
            names.ranks.insert(param.name.text.clone(), param.ty.dims.len());
        }
        for (position, result) in def.results.iter().enumerate() {
            let (name, span) = (&result.name.text, result.name.span);
            if names.results.contains_key(name) {
                mistakes.add(span, Fault::AlreadyDefined { name: name.clone(), what: "a result" });
            } else if !names.params.contains_key(name) {
                names.claim(name, span, mistakes);
            }
            names.results.entry(name.clone()).or_insert(position);
            if let Some(ty) = &result.ty {
                names.ranks.entry(name.clone()).or_insert(ty.dims.len());
            }
        }
        for statement in &def.statements {
            let Statement { target, indices, .. } = statement;
            names.declare(statement, mistakes);
            if !names.ranks.contains_key(&target.text) {
                names.claim(&target.text, target.span, mistakes);
                names.ranks.insert(target.text.clone(), indices.len());
            }
        }
        names
    }

    /// Records the type that a statement gives to the temporary tensor that it writes first.
    fn declare(&mut self, statement: &Statement, mistakes: &mut Mistakes) {
        let Some((scalar, span)) = statement.ty else { return };
        let name = &statement.target.text;
        let elsewhere = match name {
            _ if self.params.contains_key(name) => Some(("a parameter", "in the list of parameters")),
            _ if self.results.contains_key(name) => Some(("a result", "in the list of results")),
            _ if self.ranks.contains_key(name) => {
                Some(("written before", "at the first statement that writes it"))
            }
            _ => None,
        };
        match elsewhere {
            Some((what, place)) => mistakes.add(span, Fault::TypeHere { name: name.clone(), what, place }),
            None => drop(self.temporaries.insert(name.clone(), scalar.lang())),
        }
    }

    fn add_sizes(&mut self, param: usize, declared: &Declared) {
        for (dimension, dim) in declared.ty.dims.iter().enumerate() {
            if let Dim::Name(name) = dim
                && !self.sizes.contains_key(&name.text)
            {
                self.sizes.insert(name.text.clone(), SizeAt { param, dimension, span: name.span });
                self.size_order.push(name.text.clone());
            }
        }
    }

    fn claim(&self, name: &str, span: Span, mistakes: &mut Mistakes) {
        let name_text = name.to_string();
        if is_builtin(name) {
            mistakes.add(span, Fault::BuiltinRedefined { name: name_text });
        } else if let Some(what) = self.taken(name) {
            mistakes.add(span, Fault::AlreadyDefined { name: name_text, what });
        }
    }
}

/// The default of a scalar parameter, if its type can represent it.
pub(crate) fn default_value(declared: &Declared) -> Option<Value> {
    let (number, ty) = (declared.default?, element_type(declared));
    let value = Value::from_number(ty, number.value).filter(|value| value.as_f64().is_finite());
    value.filter(|_| declared.ty.dims.is_empty() && (ty.is_float() || !number.is_float))
}

/// The type of a parameter's elements.
pub(crate) fn element_type(declared: &Declared) -> Type {
    declared.ty.scalar.lang()
}
