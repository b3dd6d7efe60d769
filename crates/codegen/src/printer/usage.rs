//! Which leaves a kernel reads and which arrays it writes.

use std::collections::BTreeMap;

use warploom_lang::Id;

use crate::ir::{ArrayId, Kernel, KernelId, Leaf, NodeId, NodeKind, Program, Stmt, every_stmt};

/// The leaves and arrays that the body of a kernel uses, for the parameters of its text.
#[derive(Debug)]
pub struct Usage {
    /// The leaves it reads, except variables: thread, blocks, params, iterations. Each occurs once.
    pub leaves: Vec<Leaf>,
    /// [`Program::loops_around`] the kernel.
    pub iteration_counts: Vec<u32>,
    written: Vec<bool>,
    /// The arrays that vectors move elements from or to.
    vectors: Vec<ArrayId>,
}

impl Usage {
    /// Analyses one kernel of a program.
    pub fn of(program: &Program, id: KernelId) -> Usage {
        let kernel = &program.kernels[id];
        let mut walk = Walk {
            kernel,
            seen: vec![false; kernel.exprs.nodes().len()],
            leaves: BTreeMap::new(),
            written: vec![false; kernel.arrays.len()],
        };
        for stmt in every_stmt(&kernel.body) {
            stmt.written().into_iter().for_each(|array| walk.written[array.index()] = true);
            stmt.operands().into_iter().for_each(|operand| walk.node(operand));
        }
        for stmt in every_stmt(&kernel.body) {
            if let Stmt::For { limit: Some(position), .. } = stmt {
                walk.leaves.insert((4, *position), Leaf::Size(*position));
            }
        }
        for position in kernel.arrays.values().filter_map(|array| array.at_launch.as_ref()?.before) {
            walk.leaves.insert((4, position), Leaf::Size(position));
        }
        let leaves = walk.leaves.into_values().collect();
        let vectors = every_stmt(&kernel.body).filter_map(|stmt| stmt.moved().zip(stmt.written()));
        let vectors = vectors.flat_map(|(from, to)| [from, to]).collect();
        Usage { leaves, iteration_counts: program.loops_around(id), written: walk.written, vectors }
    }

    /// Whether the kernel stores to the array.
    pub fn is_written(&self, array: ArrayId) -> bool {
        self.written[array.index()]
    }

    /// Whether vectors move elements from or to the array.
    pub fn is_vector(&self, array: ArrayId) -> bool {
        self.vectors.contains(&array)
    }

    /// Whether the kernel reads any scalar of the program.
    pub fn reads_params(&self) -> bool {
        self.leaves.iter().any(|leaf| matches!(leaf, Leaf::Param(_)))
    }

    /// The scalars that the kernel reads, in order.
    pub fn sizes(&self) -> Vec<u32> {
        let position = |leaf: &Leaf| match leaf {
            Leaf::Size(position) => Some(*position),
            _ => None,
        };
        self.leaves.iter().filter_map(position).collect()
    }

    /// The loops whose iteration the kernel reads, outermost first.
    pub fn iterations(&self) -> Vec<u8> {
        let level = |leaf: &Leaf| match leaf {
            Leaf::Iteration(level) => Some(*level),
            _ => None,
        };
        self.leaves.iter().filter_map(level).collect()
    }
}

struct Walk<'a> {
    kernel: &'a Kernel,
    seen: Vec<bool>,
    /// An ordered map, so that the order is deterministic.
    leaves: BTreeMap<(u8, u32), Leaf>,
    written: Vec<bool>,
}

impl Walk<'_> {
    fn node(&mut self, root: NodeId) {
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut self.seen[id.index()], true) {
                continue;
            }
            let node = &self.kernel.exprs[id];
            open.extend_from_slice(&node.args);
            if let NodeKind::Leaf(leaf) = node.kind {
                let key = match leaf {
                    Leaf::Thread => (0, 0),
                    Leaf::Block(dimension) => (1, u32::from(dimension)),
                    Leaf::Param(position) => (2, position),
                    Leaf::Iteration(level) => (3, u32::from(level)),
                    Leaf::Size(position) => (4, position),
                    Leaf::Var(_) => continue,
                };
                self.leaves.insert(key, leaf);
            }
        }
    }
}
