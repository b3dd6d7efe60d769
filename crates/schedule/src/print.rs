//! Prints the text form of a schedule, in columns.

use warploom_lang::brief::padded;
use warploom_lang::{FuncId, Pipeline};

use crate::names::Names;
use crate::path::Path;
use crate::tree::{
    BlockItem, Item, Kernel, Loops, Nest, NestNumbers, ReductionTile, RootItem, Schedule, Size, Storage,
    ThreadTiles, Tile,
};

/// Spaces per nesting level.
const INDENT: usize = 2;
/// Spaces between columns.
const GAP: usize = 2;
/// The width at which the list of inlined Funcs is wrapped.
const WIDTH: usize = 100;

impl Schedule {
    /// The text form: one line per node of the tree, two spaces of indentation per level, parts aligned in columns.
    ///
    /// [`Schedule::parse`] reads it back to an equal schedule, and equal schedules have equal texts.
    ///
    /// `pipeline` is the original one, or the rewritten one.
    ///
    /// # Panics
    /// If the schedule belongs to another pipeline: if its rewrites cannot be applied to this one, or it names Funcs or
    /// inputs that this one does not have.
    pub fn to_text(&self, pipeline: &Pipeline) -> String {
        let mut text = String::new();
        let pipeline = pipeline.rewritten(&self.rewrites).unwrap_or_else(|error| panic!("{error}"));
        for (_, line) in lines(self, &pipeline) {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}

/// The columns of a line.
#[derive(Clone, Copy, PartialEq)]
enum LineKind {
    /// The pipeline's name and inlined Funcs.
    Header,
    /// A kernel: block, numbers, threads, serial, unroll.
    Kernel,
    /// A stage: threads, serial, unroll, storage, numbers.
    Nest,
    Registers,
    /// Rewrites and serial loops, which are not in columns.
    Line,
}

struct TreeLine {
    path: Path,
    depth: usize,
    kind: LineKind,
    head: String,
    cells: Vec<String>,
}

impl TreeLine {
    fn head_width(&self) -> usize {
        INDENT * self.depth + self.head.len()
    }
}

/// The lines of the text of a schedule of a rewritten pipeline, and the node that each shows.
pub(crate) fn lines(schedule: &Schedule, pipeline: &Pipeline) -> Vec<(Path, String)> {
    let mut printer = Printer { names: Names::new(pipeline), rows: Vec::new() };
    let name: Vec<&str> = pipeline.name().split_whitespace().collect();
    printer.push(Path::ROOT, 0, LineKind::Header, name.join(" "), Vec::new());
    for rewrite in &schedule.rewrites {
        printer.push(Path::ROOT, 1, LineKind::Line, rewrite.to_string(), Vec::new());
    }
    for (i, item) in schedule.root.iter().enumerate() {
        printer.root_item(&Path::ROOT.child(i), item);
    }
    let inlined: Vec<FuncId> = schedule.inlined.iter().copied().collect();
    layout(&printer.rows, inlined.iter().map(|func| printer.names.of_func(*func)).collect())
}

struct Printer<'a> {
    names: Names<'a>,
    rows: Vec<TreeLine>,
}

impl Printer<'_> {
    fn push(&mut self, path: Path, depth: usize, kind: LineKind, head: String, cells: Vec<String>) {
        self.rows.push(TreeLine { path, depth, kind, head, cells });
    }

    fn root_item(&mut self, path: &Path, item: &RootItem) {
        match item {
            RootItem::Kernel(kernel) => self.kernel(path, kernel),
            RootItem::Around(loops) => {
                self.loops(path, "around", loops);
                for (i, item) in loops.body.iter().enumerate() {
                    self.root_item(&path.child(i), item);
                }
            }
        }
    }

    fn loops<T>(&mut self, path: &Path, word: &str, loops: &Loops<T>) {
        let text = |tile: &ReductionTile| {
            format!("{} {}", self.names.of_reduction(tile.stage, tile.var), size(tile.size))
        };
        let list: Vec<String> = loops.loops.iter().map(text).collect();
        self.push(
            path.clone(),
            path.depth(),
            LineKind::Line,
            format!("{word} {}", list.join(", ")),
            Vec::new(),
        );
    }

    fn kernel(&mut self, path: &Path, kernel: &Kernel) {
        let head = format!("kernel {}", self.names.of_stage(kernel.stage));
        // A number behind a bare `threads` could be read as a tile.
        let block = self.tiles("block", Item::Stage(kernel.stage), &kernel.block);
        let mut cells = vec![block, numbers(kernel.numbers.texts())];
        let short = short_form(kernel);
        if let Some(nest) = short {
            cells.extend(self.mapping(nest));
        }
        self.push(path.clone(), path.depth(), LineKind::Kernel, head, cells);
        match short {
            Some(nest) => self.registers(&path.child(0), path.depth() + 1, nest),
            None => self.body(path, &kernel.body),
        }
    }

    fn body(&mut self, path: &Path, body: &[BlockItem]) {
        for (i, item) in body.iter().enumerate() {
            let path = path.child(i);
            match item {
                BlockItem::Over(loops) => {
                    self.loops(&path, "over", loops);
                    self.body(&path, &loops.body);
                }
                BlockItem::Nest(nest) => {
                    let mut cells = self.mapping(nest);
                    cells.push(storage(nest.storage).to_string());
                    cells.push(numbers(nest.numbers.texts()));
                    if cells[0] == "threads" && nest.storage.is_global() && self.is_loop(nest.item, &cells[4])
                    {
                        // The same order as in the line of a kernel.
                        cells.swap(0, 4);
                    }
                    self.push(
                        path.clone(),
                        path.depth(),
                        LineKind::Nest,
                        self.names.of_item(nest.item),
                        cells,
                    );
                    self.registers(&path, path.depth() + 1, nest);
                }
            }
        }
    }

    fn registers(&mut self, path: &Path, depth: usize, nest: &Nest) {
        for (i, func) in nest.registers.iter().enumerate() {
            let (head, cells) = (self.names.of_func(*func).to_string(), vec!["registers".to_string()]);
            self.push(path.child(i), depth, LineKind::Registers, head, cells);
        }
    }

    /// Whether numbers begin with a word that is also the name of a loop.
    fn is_loop(&self, item: Item, numbers: &str) -> bool {
        let word = numbers.split(' ').next();
        self.names.loops(item).into_iter().any(|kind| Some(self.names.of_loop(item, kind).as_str()) == word)
    }

    /// The cells for threads, serial loops and unrolling.
    fn mapping(&self, nest: &Nest) -> Vec<String> {
        let (threads, serial, unroll) = match nest.mapping.tiles() {
            None => ("flat".to_string(), String::new(), ""),
            Some(tiles) if *tiles == ThreadTiles::default() => ("threads".to_string(), String::new(), ""),
            Some(tiles) => {
                let unroll = if tiles.unroll { "unroll" } else { "" };
                let threads = self.tiles("threads", nest.item, &tiles.threads);
                (threads, self.tiles("serial", nest.item, &tiles.serial), unroll)
            }
        };
        vec![threads, serial, unroll.to_string()]
    }

    /// `block x 64, y 16`, or an empty string without tiles.
    fn tiles(&self, word: &str, item: Item, tiles: &[Tile]) -> String {
        if tiles.is_empty() {
            return String::new();
        }
        let text = |tile: &Tile| format!("{} {}", self.names.of_loop(item, tile.dim), size(tile.size));
        format!("{word} {}", tiles.iter().map(text).collect::<Vec<_>>().join(", "))
    }
}

/// The kernel's only nest, if its mapping can be part of the kernel's line.
fn short_form(kernel: &Kernel) -> Option<&Nest> {
    let [only] = kernel.body.as_slice() else { return None };
    let own = |nest: &&Nest| nest.item == Item::Stage(kernel.stage) && nest.storage.is_global();
    only.nest().filter(own).filter(|nest| nest.numbers == NestNumbers::default())
}

fn size(size: Size) -> String {
    match size {
        Size::Of(size) => size.to_string(),
        Size::All => "all".to_string(),
    }
}

/// `word 2  other`, or an empty string.
fn numbers(given: impl Iterator<Item = String>) -> String {
    given.collect::<Vec<_>>().join("  ")
}

fn storage(storage: Storage) -> &'static str {
    if storage.is_global() { "" } else { storage.name() }
}

/// Arranges rows in columns.
fn layout(rows: &[TreeLine], inlined: Vec<&str>) -> Vec<(Path, String)> {
    let in_columns = |row: &&TreeLine| match row.kind {
        LineKind::Line => false,
        LineKind::Header => !inlined.is_empty(),
        _ => true,
    };
    let start = rows.iter().filter(in_columns).map(TreeLine::head_width).max().unwrap_or(0) + GAP;
    let (kernels, nests) = (columns(rows, LineKind::Kernel), columns(rows, LineKind::Nest));
    let mut lines: Vec<(Path, String)> = Vec::new();
    for row in rows {
        let widths: &[usize] = match row.kind {
            LineKind::Header => {
                let header = header(&row.head, start, &inlined);
                lines.extend(header.into_iter().map(|line| (row.path.clone(), line)));
                continue;
            }
            LineKind::Kernel => &kernels,
            LineKind::Nest => &nests,
            LineKind::Registers => &[0],
            LineKind::Line => &[],
        };
        let mut line = " ".repeat(INDENT * row.depth) + &row.head;
        let mut column = start;
        for (cell, width) in row.cells.iter().zip(widths) {
            if !cell.is_empty() {
                line = padded(&line, column) + cell;
            }
            column += if *width == 0 { 0 } else { width + GAP };
        }
        lines.push((row.path.clone(), line));
    }
    lines
}

/// The width of each column for one kind of rows.
fn columns(rows: &[TreeLine], kind: LineKind) -> Vec<usize> {
    let rows = || rows.iter().filter(|row| row.kind == kind);
    let count = rows().map(|row| row.cells.len()).max().unwrap_or(0);
    let width = |column: usize| rows().filter_map(|row| row.cells.get(column)).map(String::len).max();
    (0..count).map(|column| width(column).unwrap_or(0)).collect()
}

/// The pipeline's name and the inlined Funcs, wrapped over as many lines as needed.
fn header(name: &str, start: usize, inlined: &[&str]) -> Vec<String> {
    if inlined.is_empty() {
        return vec![name.to_string()];
    }
    let indent = start + "inline ".len();
    let mut lines = vec![padded(name, start) + "inline"];
    for (i, func) in inlined.iter().enumerate() {
        let word = if i + 1 < inlined.len() { format!("{func},") } else { (*func).to_string() };
        let fits = |line: &String| line.len() + 1 + word.len() <= WIDTH || line.len() <= indent;
        match lines.last_mut() {
            Some(line) if fits(line) => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(" ".repeat(indent) + &word),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_go_on_below_the_first_name() {
        let names: Vec<String> = (0..20).map(|i| format!("stage_{i}")).collect();
        let lines = header("p", 10, &names.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(lines.iter().all(|line| line.len() <= WIDTH));
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("p         inline stage_0, stage_1,"));
        assert!(lines[1].starts_with("                 stage_"));
        assert!(lines[2].ends_with("stage_19"));
    }

    #[test]
    fn a_name_longer_than_a_line_still_stands_somewhere() {
        let long = "n".repeat(2 * WIDTH);
        assert_eq!(header("p", 3, &[&long, "b"]).len(), 2);
    }
}
