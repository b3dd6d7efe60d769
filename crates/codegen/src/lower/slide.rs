//! Sliding windows: a thread computes its points row by row. Before each row it computes the points of the Funcs in its
//! registers that this row is the first to need.
//!
//! Everything is unrolled, so that the CUDA compiler sees when a row is dead and reuses its registers.

use warploom_schedule::LoopKind;

use crate::ir::Stmt;
use crate::lower::error::LowerError;
use crate::lower::nest::{Placed, Position};
use crate::lower::nesting::Nesting;
use crate::lower::state::KernelLowering;

impl KernelLowering<'_> {
    /// The work of one thread on the tile at a position, row by row along a dimension.
    pub fn rows(
        &mut self,
        placed: &Placed<'_>,
        start: &Position,
        dim: LoopKind,
    ) -> Result<Vec<Stmt>, LowerError> {
        let mut body = Vec::new();
        for row in 0..placed.footprint.share(dim).1 {
            body.extend(self.registers(placed, Some(row))?);
            let points = self.points_of_lane(placed, start);
            let own = self.row(placed, start, dim, row)?;
            body.extend(points.around(&mut self.builder, own));
        }
        Ok(body)
    }

    /// A thread's own points in one row.
    fn row(
        &mut self,
        placed: &Placed<'_>,
        start: &Position,
        dim: LoopKind,
        row: i64,
    ) -> Result<Vec<Stmt>, LowerError> {
        let (mut inner, mut position) = (Nesting::default(), start.clone());
        self.reductions(&mut inner, placed, &mut position);
        let offset = position.offset(dim);
        *offset = self.builder.offset(*offset, row);
        self.guard(&mut inner, &placed.subject, &position, dim);
        self.serial(&mut inner, placed, &mut position, |kind| kind != dim);
        self.point(inner, &placed.subject, &position)
    }
}
