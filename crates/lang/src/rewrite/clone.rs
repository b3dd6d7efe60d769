//! `clone f for g`: a copy of a Func for one of its readers.

use crate::draft::Draft;
use crate::ids::FuncId;
use crate::rewrite::RewriteError;

pub(super) fn clone(draft: &mut Draft, func: FuncId, reader: FuncId) -> Result<(), RewriteError> {
    if !draft.callees(reader).contains(&func) {
        let name = |func: FuncId| draft.funcs[func].name.clone();
        return Err(RewriteError::DoesNotRead { reader: name(reader), func: name(func) });
    }
    let mut decl = draft.funcs[func].clone();
    decl.name.push_str(".clone");
    let copy = draft.funcs.push(decl);
    draft.redirect(copy, func, copy, 0);
    draft.redirect(reader, func, copy, 0);
    Ok(())
}
