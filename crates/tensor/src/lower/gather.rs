//! Reads at loaded indices, as Funcs of their own.
//!
//! Inlined, such a Func is the read as written. But a schedule can also let the threads of a block load the values into
//! shared memory first, so that a reduction does not wait for one index and one value after the other.

use warploom_lang::{Expr, Var, func};

use super::expr::StatementScope;
use super::{Lowering, reversed};
use crate::ast::{self, Name};
use crate::error::Mistake;

impl Lowering<'_> {
    /// The value of a read, if a separate Func can serve it: some index is loaded, and the read is not merely the
    /// pointwise statement itself.
    pub(super) fn gather(
        &mut self,
        name: &Name,
        operands: &[ast::Expr],
        read: &ast::Expr,
        scope: &StatementScope<'_>,
    ) -> Result<Option<Expr>, Mistake> {
        let names = &self.checked.names;
        if !operands.iter().any(|operand| names.loads(scope.lets, operand)) {
            return Ok(None);
        }
        let indices = names.indices(scope.lets, operands);
        let is_pointwise = scope.indices.len() == scope.statement.indices.len();
        if indices.is_empty() || (is_pointwise && indices.len() == scope.statement.indices.len()) {
            return Ok(None);
        }
        let ends = read.span.ends();
        let gathered = match self.gathers.get(&ends) {
            Some(func) => func.clone(),
            None => {
                let value = self.element(name, operands, read, scope.plain.unwrap_or(scope))?;
                let vars: Vec<Var> = indices.iter().map(Var::new).collect();
                let func = func(self.fresh(&name.text, "gathered"), reversed(&vars), value);
                self.gathers.insert(ends, func.clone());
                func
            }
        };
        let at = indices.iter().rev().filter_map(|index| scope.indices.get(index.as_str()).cloned());
        Ok(Some(gathered.at(at.collect::<Vec<Expr>>())))
    }
}
