//! Nests loops, lets and guards around statements.

use warploom_lang::Type;
use warploom_lang::affine::Interval;

use crate::builder::Builder;
use crate::ir::{Leaf, NodeId, Stmt, VarId};

/// A statement that encloses everything after it.
enum Frame {
    Let(VarId, NodeId),
    For { var: VarId, count: u32, limit: Option<u32>, unrolled: bool },
    If(NodeId),
}

/// Statements that enclose others still to come, outermost first.
///
/// Conditions are deferred until the next loop or the end, so that one `if` combines several.
#[derive(Default)]
pub(crate) struct Nesting {
    frames: Vec<Frame>,
    conditions: Vec<NodeId>,
}

impl Nesting {
    /// Binds a variable to a value. A constant needs no variable.
    pub fn bind(&mut self, builder: &mut Builder, name: String, value: NodeId, bounds: Interval) -> NodeId {
        if builder.known(value).is_some() {
            return value;
        }
        let var = builder.var(name);
        self.frames.push(Frame::Let(var, value));
        builder.leaf(Leaf::Var(var), Type::I32, Some(bounds))
    }

    /// Opens a loop and returns its variable. A loop that runs once is not emitted; its variable is
    /// 0.
    pub fn repeat(&mut self, builder: &mut Builder, name: String, count: i64, unrolled: bool) -> NodeId {
        self.repeat_up_to(builder, name, count, None, unrolled)
    }

    /// Opens a loop whose count is a scalar of the kernel, at most `count`.
    pub fn repeat_up_to(
        &mut self,
        builder: &mut Builder,
        name: String,
        count: i64,
        limit: Option<u32>,
        unrolled: bool,
    ) -> NodeId {
        if count == 1 || limit.is_some_and(|limit| builder.assume_once(limit)) {
            return builder.int(0);
        }
        self.enter(builder);
        let var = builder.var(name);
        let times = builder.count(count);
        self.frames.push(Frame::For { var, count: times, limit, unrolled });
        let step = builder.leaf(Leaf::Var(var), Type::I32, Some(Interval::new(0, count - 1)));
        builder.limit(step, limit);
        step
    }

    /// The loops opened so far, if all of them are unrolled and nothing else is around them.
    pub fn unrolled_loops(&self) -> Option<Vec<(VarId, u32)>> {
        let of = |frame: &Frame| match *frame {
            Frame::For { var, count, limit: None, unrolled: true } => Some((var, count)),
            _ => None,
        };
        self.frames.iter().map(of).collect()
    }

    /// The condition around everything, if there is nothing else.
    pub fn only_condition(&self) -> Option<NodeId> {
        match (&self.frames[..], &self.conditions[..]) {
            ([Frame::If(condition)], []) => Some(*condition),
            _ => None,
        }
    }

    /// Guards everything that follows with a condition.
    pub fn require(&mut self, condition: NodeId) {
        self.conditions.push(condition);
    }

    /// Emits the deferred conditions: everything after this is evaluated only where they hold.
    pub fn enter(&mut self, builder: &mut Builder) {
        let all = builder.all(self.conditions.drain(..));
        if builder.known(all).is_none_or(|value| value.bits() == 0) {
            self.frames.push(Frame::If(all));
        }
    }

    /// Wraps `body` in all statements opened so far. Empty if a condition never holds.
    pub fn around(mut self, builder: &mut Builder, mut body: Vec<Stmt>) -> Vec<Stmt> {
        self.enter(builder);
        // A condition that always holds opened no frame.
        let never =
            |frame: &Frame| matches!(frame, Frame::If(condition) if builder.known(*condition).is_some());
        if self.frames.iter().any(never) {
            return Vec::new();
        }
        for frame in self.frames.into_iter().rev() {
            match frame {
                Frame::Let(var, value) => body.insert(0, Stmt::Let(var, value)),
                Frame::For { var, count, limit, unrolled } => {
                    body = vec![Stmt::For { var, count, limit, unrolled, body }];
                }
                Frame::If(condition) => body = vec![Stmt::when(condition, body)],
            }
        }
        body
    }
}
