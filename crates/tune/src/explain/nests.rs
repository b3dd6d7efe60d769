//! The lines of a kernel: nests, the stages inside them, and the loops around them.

use warploom_codegen::ir::PlanPart;
use warploom_cost::{KernelFeatures, RowSource, StageRow, Term};
use warploom_lang::FuncId;
use warploom_lang::ir::copy_name;
use warploom_plan::{
    Allocation, KernelPlan, LoopId, LoopPlan, NestFootprint, NestId, NestPlan, Sequence, Stepped, ThreadLoop,
};
use warploom_schedule::{Item, LoopKind, Nest, Size, Tile};

use crate::explain::{Explainer, Line, LoopUse, Open, StageMemory, Traffic, times};

impl Explainer<'_> {
    /// Adds the lines of a list of nests and loops.
    pub(super) fn body(&self, body: Sequence<'_, NestId>, depth: usize, open: &mut Open<'_>) {
        for item in body {
            match item {
                Stepped::Run(nest) => self.nest(nest, depth, open),
                Stepped::Loop(id, body) => {
                    open.lines.push(self.loop_line(id, depth));
                    self.body(body, depth + 1, open);
                }
            }
        }
    }

    fn loop_line(&self, id: LoopId, depth: usize) -> Line {
        let LoopPlan { tile, count, .. } = &self.plan.loops[id];
        let item = Item::Stage(tile.stage);
        let variable = self.loop_name(item, LoopKind::Reduction(tile.var));
        Line {
            depth,
            name: format!("over {}.{variable} {}", self.name(item), size(tile.size)),
            how: format!("{count} {}", if *count == 1 { "iteration" } else { "iterations" }),
            loops: vec![self.over(id, LoopUse::Over)],
            place: (*count > 1).then_some(PlanPart::Over(id)),
            ..Line::default()
        }
    }

    /// Adds the line of a nest, followed by the lines of the stages inside it.
    fn nest(&self, id: NestId, depth: usize, open: &mut Open<'_>) {
        let NestPlan { nest, footprint: Some(footprint), .. } = &self.plan.nests[id] else { return };
        let number = open.nests.iter().position(|running| *running == id);
        let (own, place) = (self.source(nest.item), Some(PlanPart::Nest(id)));
        let mut lines = vec![Line {
            depth,
            name: self.name(nest.item),
            how: self.mapping(nest, footprint),
            loops: self.loops(nest.item, footprint, open.plan.threads),
            memory: Some(memory(nest, open.plan)),
            place,
            ..Line::default()
        }];
        let rows = open.features.rows.iter().zip(&open.rows).filter(|(row, _)| Some(row.nest) == number);
        let rows: Vec<(&StageRow, &Vec<Term>)> = rows.collect();
        let host = rows.iter().find(|(row, _)| row.source == own).map(|(row, _)| *row);
        // The rows of inlined Funcs follow that of the stage that they are inlined into.
        let mut consumer = None;
        for (row, terms) in rows {
            let terms = times(terms);
            if row.source == own {
                let traffic = Some(self.traffic(row, open.features));
                lines[0] = Line { redundancy: redundancy(row), traffic, terms, ..lines[0].clone() };
                consumer = Some(row);
                continue;
            }
            let inlined = matches!(row.source, RowSource::Inlined(_));
            let of = if inlined { consumer } else { host };
            let inside = self.inside(row, footprint);
            lines.push(Line {
                depth: depth + 1,
                per_point: of.and_then(|of| per_point(row, of)),
                consumer: of.map(|of| self.row_name(of)),
                traffic: (!inlined).then(|| self.traffic(row, open.features)),
                terms,
                place,
                ..inside
            });
            if !inlined {
                consumer = Some(row);
            }
        }
        open.lines.extend(lines);
    }

    /// The row of features that describes an item.
    fn source(&self, item: Item) -> RowSource {
        match item {
            Item::Stage(stage) => RowSource::Stage(self.problem.stage_id(stage)),
            Item::Input(input) => RowSource::Staged(self.dag.input_node(input)),
        }
    }

    /// The bytes that all blocks move for a row.
    fn traffic(&self, row: &StageRow, kernel: &KernelFeatures) -> Traffic {
        let device = self.problem.device();
        let sector = f64::from(device.memory.sector_bytes);
        let wavefront = f64::from(device.shared.banks * device.shared.bank_bytes);
        let (row, blocks) = (&row.features, kernel.blocks * kernel.launches);
        // If indices come from data, the box of possible reads can exceed the actual reads.
        let read = row.unique_bytes_read_per_task.min(row.merged_global_loads_per_block * sector);
        Traffic {
            global_read_bytes: read * blocks,
            global_written_bytes: row.num_global_mem_stores_per_block * sector * blocks,
            shared_read_bytes: row.merged_shared_loads_per_block * wavefront * blocks,
            shared_written_bytes: row.num_shared_mem_stores_per_block * wavefront * blocks,
        }
    }

    /// Name, mapping, loops and memory of a stage that runs inside another stage's nest.
    fn inside(&self, row: &StageRow, nest: &NestFootprint) -> Line {
        let name = self.row_name(row);
        let RowSource::Stage(id) = row.source else {
            return Line { name, how: "inline".to_owned(), ..Line::default() };
        };
        let stage = &self.dag.stages()[id];
        let held = nest.registers.get(&stage.func);
        let memory = held.map(|held| {
            let points = &held.thread.points;
            let bytes = points.points().saturating_mul(self.dag.nodes()[stage.node].bytes_per_point as u64);
            let kind = if held.spread.is_some() { "lanes" } else { "registers" };
            StageMemory { kind, extents: points.extents(), bytes }
        });
        let loops = held.map(|held| self.register_loops(stage, &held.thread)).unwrap_or_default();
        Line { name, how: "in each thread".to_owned(), loops, memory, ..Line::default() }
    }

    /// The name of a row's stage or input.
    pub(super) fn row_name(&self, row: &StageRow) -> String {
        match row.source {
            RowSource::Stage(stage) | RowSource::Inlined(stage) => self.dag.stages()[stage].name.clone(),
            RowSource::Staged(node) => self.dag.nodes()[node].name.clone(),
        }
    }

    /// `blur`, `blur.1`, `input.stage`
    pub(super) fn name(&self, item: Item) -> String {
        match item {
            Item::Stage(stage) => self.dag.stages()[self.problem.stage_id(stage)].name.clone(),
            Item::Input(input) => copy_name(&self.dag.nodes()[self.dag.input_node(input)].name),
        }
    }

    pub(super) fn loop_name(&self, item: Item, kind: LoopKind) -> String {
        let found = match item {
            Item::Stage(stage) => {
                let loops = &self.dag.stages()[self.problem.stage_id(stage)].loops;
                loops.iter().find(|of| of.kind == kind).map(|of| of.name.clone())
            }
            Item::Input(_) => None,
        };
        found.unwrap_or_else(|| match kind {
            LoopKind::Pure(d) => format!("d{d}"),
            LoopKind::Reduction(r) => format!("r{r}"),
        })
    }

    /// `x 64, y 16`
    pub(super) fn tiles(&self, item: Item, tiles: &[Tile]) -> String {
        let tile = |tile: &Tile| format!("{} {}", self.loop_name(item, tile.dim), size(tile.size));
        tiles.iter().map(tile).collect::<Vec<_>>().join(", ")
    }

    /// `threads x 64, y 4, each serial y 4, unrolled`
    fn mapping(&self, nest: &Nest, footprint: &NestFootprint) -> String {
        let mut text = self.threads(nest, footprint);
        for said in nest.numbers.texts() {
            text += &format!(", {said}");
        }
        text
    }

    fn threads(&self, nest: &Nest, footprint: &NestFootprint) -> String {
        let Some(loops) = &footprint.threads else { return "flat".to_owned() };
        let several = |of: fn(&ThreadLoop) -> i64| {
            let named = loops.iter().filter(|each| of(each) > 1);
            let named = named.map(|each| format!("{} {}", self.loop_name(nest.item, each.dim), of(each)));
            named.collect::<Vec<_>>().join(", ")
        };
        let (threads, serial) = (several(|each| each.threads), several(|each| each.serial));
        let mut text =
            if threads.is_empty() { "one thread".to_owned() } else { format!("threads {threads}") };
        if !serial.is_empty() {
            text += &format!(", serial {serial}");
        }
        if nest.mapping.unrolls() {
            text += ", unrolled";
        }
        text
    }
}

fn size(size: Size) -> String {
    match size {
        Size::Of(size) => size.to_string(),
        Size::All => "all".to_owned(),
    }
}

/// Where a nest stores its points.
fn memory(nest: &Nest, kernel: &KernelPlan) -> StageMemory {
    let kind = nest.storage.name();
    if nest.storage.is_global() {
        return StageMemory { kind, extents: Vec::new(), bytes: 0 };
    }
    let found = kernel.allocations.iter().find(|allocation| is_of(allocation, nest.item));
    let Some(found) = found else { return StageMemory { kind, extents: Vec::new(), bytes: 0 } };
    let kind = if found.in_warps { "lanes" } else { kind };
    StageMemory { kind, extents: found.extents.clone(), bytes: found.bytes }
}

/// Whether an array belongs to an item. The stages of a Func share one array.
fn is_of(allocation: &Allocation, item: Item) -> bool {
    let func = |item: Item| -> Option<FuncId> {
        match item {
            Item::Stage(stage) => Some(stage.func),
            Item::Input(_) => None,
        }
    };
    match func(item) {
        Some(of) => func(allocation.item) == Some(of),
        None => allocation.item == item,
    }
}

/// Ratio of points computed to points required.
fn redundancy(row: &StageRow) -> Option<f64> {
    let features = &row.features;
    let (computed, required) = (features.points_computed_total, features.points_computed_minimum);
    (required > 0.0).then(|| computed / required)
}

/// How many times one point of a consumer computes a stage.
fn per_point(row: &StageRow, consumer: &StageRow) -> Option<f64> {
    let computed = match row.source {
        RowSource::Inlined(_) => row.features.inlined_calls,
        _ => row.features.points_computed_total,
    };
    let points = consumer.features.points_computed_total;
    (points > 0.0).then(|| computed / points)
}
