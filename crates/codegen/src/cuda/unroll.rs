//! How far the CUDA compiler should unroll loops whose trip count follows from the sizes of a launch.
//!
//! It unrolls loops with a constant count by its own heuristics, so that many loads are in flight at once. Without a
//! constant count, it unrolls too little.

use crate::ir::{Kernel, Reach, Stmt, every_stmt};

/// The most iterations that are unrolled.
const MOST: i64 = 16;

/// The most nodes of all unrolled iterations together.
const MOST_NODES: i64 = 1024;

/// The unroll factor of a loop whose trip count is the scalar at `limit`; `None` to leave it to the CUDA compiler.
pub(super) fn factor(kernel: &Kernel, limit: u32, body: &[Stmt]) -> Option<i64> {
    let typical = kernel.scalars[limit as usize].typical?;
    let is_simple = |stmt: &Stmt| stmt.effects().reach == Reach::Thread && !matches!(stmt, Stmt::For { .. });
    if !every_stmt(body).all(is_simple) {
        return None;
    }
    let nodes = kernel.exprs.reachable(every_stmt(body).flat_map(Stmt::operands)).len() as i64;
    let most = MOST.min(MOST_NODES / nodes.max(1));
    of_count(typical, most).filter(|factor| *factor > 1)
}

/// A factor that leaves few remaining iterations of `count`: a divisor, if there is a large one.
fn of_count(count: i64, most: i64) -> Option<i64> {
    if count <= most {
        return Some(count);
    }
    let divisor = (1..=most).rev().find(|factor| count % factor == 0)?;
    let power = [16, 8, 4, 2, 1].into_iter().find(|factor| *factor <= most && 4 * factor <= count)?;
    Some(divisor.max(power))
}

#[cfg(test)]
mod tests {
    use super::of_count;

    #[test]
    fn factors_leave_few_iterations_over() {
        assert_eq!(of_count(6, 16), Some(6));
        assert_eq!(of_count(160, 16), Some(16));
        assert_eq!(of_count(45, 16), Some(15));
        assert_eq!(of_count(62, 16), Some(8));
        assert_eq!(of_count(62, 3), Some(2));
        assert_eq!(of_count(1, 16), Some(1));
    }
}
