//! A plan as text: loops around kernels, kernels, and inside each its arrays, nests, loops and
//! barriers, in the order they run.
//!
//! A nest has its axes: `lane` is a digit of the thread's number (in a flat loop, of the point's),
//! `round`, `reduce` and `serial` are loops. `y 4 by 8` takes 4 steps of 8 points each. Axes of one
//! step are left out, and so is what a kernel has none of.

use warploom_lang::FuncId;
use warploom_lang::ir::{copy_name, stage_name};
use warploom_plan::{
    Allocation, Axis, AxisKind, Barriers, KernelId, LoopId, LoopPlan, NestId, Plan, Problem, Sequence,
    Stepped, strides as dense,
};
use warploom_schedule::{Item, LoopKind, ReductionTile, Storage};

/// The text of a plan.
pub fn plan_text(problem: &Problem, plan: &Plan) -> String {
    let mut printer = Printer { problem, plan, depth: 0, text: String::new() };
    printer.launches(plan.launches.body());
    printer.text
}

struct Printer<'a> {
    problem: &'a Problem,
    plan: &'a Plan,
    depth: usize,
    text: String,
}

impl Printer<'_> {
    fn line(&mut self, line: &str) {
        self.text += &format!("{:1$}{line}\n", "", 2 * self.depth);
    }

    fn inside(&mut self, print: impl FnOnce(&mut Self)) {
        self.depth += 1;
        print(self);
        self.depth -= 1;
    }

    fn launches(&mut self, body: Sequence<'_, KernelId>) {
        for step in body {
            match step {
                Stepped::Run(kernel) => self.kernel(kernel),
                Stepped::Loop(id, body) => {
                    self.loop_line(id);
                    self.inside(|printer| printer.launches(body));
                }
            }
        }
    }

    fn loop_line(&mut self, id: LoopId) {
        let LoopPlan { tile: ReductionTile { stage, var, .. }, count, slices, .. } = &self.plan.loops[id];
        let item = Item::Stage(*stage);
        let variable = self.variable(item, LoopKind::Reduction(*var));
        let ahead = if *slices > 1 { format!("; {slices} slices at once") } else { String::new() };
        self.line(&format!("loop {}.{variable}: {}{ahead}", self.name(item), counted(*count, "iteration")));
    }

    fn kernel(&mut self, id: KernelId) {
        let (kernel, device) = (&self.plan.kernels[id], self.problem.device());
        let item = Item::Stage(kernel.kernel.stage);
        let tiles: Vec<String> = kernel.split().map(|(tile, _)| self.variable(item, tile.dim)).collect();
        let over = match kernel.axes(device) {
            Some(_) if tiles.is_empty() => String::new(),
            Some(_) => format!(" over {}", tiles.join(", ")),
            None => format!(" over {} on x", tiles.join(" * ")),
        };
        let (barriers, shared) = (self.plan.barriers(id), kernel.shared_bytes());
        let grid = format!("grid {}{over}", product(&kernel.grid(device)));
        let mut parts = vec![grid, counted(kernel.threads as i64, "thread")];
        if shared > 0 {
            parts.push(format!("{shared} bytes shared"));
        }
        if barriers.passed > 0.0 {
            parts.push(counted(barriers.passed as i64, "barrier"));
        }
        parts.extend(kernel.kernel.numbers.texts());
        self.line(&format!("kernel {}: {}", self.name(item), parts.join("; ")));
        self.inside(|printer| {
            kernel.allocations.iter().for_each(|allocation| printer.allocation(allocation));
            printer.block(kernel.body.body(), &barriers);
        });
    }

    fn allocation(&mut self, allocation: &Allocation) {
        let Allocation { item, storage, in_warps, extents, strides, bytes, slices, .. } = allocation;
        let name = match item {
            Item::Stage(stage) => self.func(stage.func),
            Item::Input(_) => self.name(*item),
        };
        if *in_warps {
            return self.line(&format!("array {name}: a register in each lane, {bytes} bytes"));
        }
        let storage = match storage {
            Storage::Global => "global",
            Storage::Shared => "shared",
            Storage::Private => "private",
        };
        let mut shape = product(extents);
        if *strides != dense(extents, 0..extents.len()) {
            shape += &format!(", strides {}", joined(strides, " "));
        }
        if *slices > 1 {
            shape += &format!(", {slices} slices");
        }
        self.line(&format!("array {name}: {storage} {shape}, {bytes} bytes"));
    }

    fn block(&mut self, body: Sequence<'_, NestId>, barriers: &Barriers) {
        for step in body {
            match step {
                Stepped::Run(nest) => {
                    self.barrier(barriers.before(nest));
                    self.nest(nest);
                }
                Stepped::Loop(id, body) => {
                    let own = barriers.of_loop(id);
                    self.barrier(own.before);
                    self.loop_line(id);
                    self.inside(|printer| {
                        printer.block(body, barriers);
                        printer.barrier(own.at_end);
                    });
                }
            }
        }
    }

    fn barrier(&mut self, stands: bool) {
        if stands {
            self.line("barrier");
        }
    }

    fn nest(&mut self, id: NestId) {
        let nest = &self.plan.nests[id];
        let (item, threads) = (nest.nest.item, self.plan.kernels[nest.kernel].threads);
        let Some(footprint) = &nest.footprint else {
            return self.line(&format!("nest {}: never read", self.name(item)));
        };
        let axes = footprint.axes.iter().filter(|axis| axis.count > 1).map(|axis| self.axis(item, axis));
        let axes: Vec<String> = axes.collect();
        let mut parts = vec![if axes.is_empty() { "one point".to_owned() } else { axes.join(", ") }];
        match footprint.thread_count() {
            None => parts.insert(0, "flat".to_owned()),
            Some(own) if own < threads => parts.push(format!("{own} of {threads} threads")),
            Some(_) => {}
        }
        if footprint.accumulates {
            parts.push("accumulates".to_owned());
        }
        if footprint.carries {
            parts.push("carries".to_owned());
        }
        if nest.nest.numbers.atomic {
            parts.push("atomic".to_owned());
        }
        if !self.plan.ahead_of(nest).is_empty() {
            parts.push("ahead".to_owned());
        }
        self.line(&format!("nest {}: {}", self.name(item), parts.join("; ")));
        self.inside(|printer| {
            for (func, registers) in &footprint.registers {
                let extents = registers.thread.points.extents();
                let mut text = format!("registers {}: {}", printer.func(*func), product(&extents));
                if registers.spread.is_some() {
                    let own = registers.thread.stages[0].extents();
                    text = format!("{text}; {} per lane", product(&own));
                }
                if let Some(rows) = registers.rows {
                    text = format!("{text}; {} for the first row, then {}", rows.first, rows.step);
                }
                printer.line(&text);
            }
        });
    }

    fn axis(&self, item: Item, axis: &Axis) -> String {
        let kind = match axis.kind {
            AxisKind::Lane => "lane",
            AxisKind::Round => "round",
            AxisKind::Reduce => "reduce",
            AxisKind::Serial => "serial",
        };
        let mut text = format!("{kind} {} {}", self.variable(item, axis.dim), axis.count);
        if axis.step > 1 {
            text += &format!(" by {}", axis.step);
        }
        if axis.unrolled {
            text += " unrolled";
        }
        text
    }

    fn func(&self, func: FuncId) -> String {
        self.problem.pipeline().funcs()[func].name.clone()
    }

    fn name(&self, item: Item) -> String {
        let pipeline = self.problem.pipeline();
        match item {
            Item::Stage(stage) => stage_name(&pipeline.funcs()[stage.func], stage.stage),
            Item::Input(input) => copy_name(&pipeline.inputs()[input].name),
        }
    }

    fn variable(&self, item: Item, kind: LoopKind) -> String {
        match (item, kind) {
            (Item::Stage(stage), _) => {
                let loops = &self.problem.dag().stages()[self.problem.stage_id(stage)].loops;
                loops.iter().find(|each| each.kind == kind).unwrap().name.clone()
            }
            (Item::Input(_), LoopKind::Pure(d)) => format!("d{d}"),
            (Item::Input(_), LoopKind::Reduction(r)) => panic!("a copy has no reduction variable {r}"),
        }
    }
}

fn product(numbers: &[impl ToString]) -> String {
    joined(numbers, " x ")
}

fn joined(numbers: &[impl ToString], between: &str) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

fn counted(count: i64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
