//! Parses the text form into a tree.

use std::borrow::Cow;
use std::num::NonZeroU32;

use warploom_lang::brief::MAX_SHOWN;
use warploom_lang::rewrite::{Rewrite, RewriteLineError};
use warploom_lang::{FuncId, Pipeline};

use crate::error::{ScheduleError, ScheduleErrors, ScheduleFault};
use crate::lines::{Entry, SourceText, Word};
use crate::names::{Names, hint};
use crate::tree::{
    BlockItem, Item, Kernel, KernelNumbers, Loops, Mapping, Nest, NestNumbers, ReductionTile, RootItem,
    Schedule, Setting, Size, Storage, ThreadTiles, Tile,
};

impl Schedule {
    /// Parses the text form that [`Schedule::to_text`] writes.
    ///
    /// Column alignment is free; `#` starts a comment; a line that ends in a comma continues on the next line, if that
    /// is indented further. The rules are not checked here; see `Problem::check`.
    ///
    /// # Errors
    /// All faults in the text, each with its line.
    pub fn parse(text: &str, pipeline: &Pipeline) -> Result<Schedule, ScheduleErrors> {
        parsed(text, pipeline).map(|parsed| parsed.schedule)
    }
}

/// A schedule with the lines that it was read from.
pub(crate) struct Parsed<'t> {
    pub schedule: Schedule,
    pub source: SourceText<'t>,
    pub header: Entry<'t>,
    /// The number of rewrites among the lines below the header, which come first.
    pub rewrites: usize,
}

pub(crate) fn parsed<'t>(text: &'t str, pipeline: &Pipeline) -> Result<Parsed<'t>, ScheduleErrors> {
    let mut source = SourceText::new(text);
    let Some(header) = source.tree() else {
        let fault = ScheduleFault::Empty { pipeline: pipeline.name().to_string() };
        return Err(ScheduleErrors { errors: vec![ScheduleError { fault, spot: None }] });
    };
    let is_rewrite = |entry: &&Entry<'_>| Rewrite::WORDS.contains(&entry.words[0].text);
    let head = header.children.iter().take_while(is_rewrite).count();
    let rewritten = source.rewritten(&header, head, pipeline);
    let names = Names::new(rewritten.as_ref().map_or(pipeline, |pipeline| pipeline));
    let rewrites = names.pipeline().rewrites().to_vec();
    let mut parser = Parser { names, source, schedule: Schedule { rewrites, ..Schedule::default() } };
    // Without the rewritten pipeline, the names below cannot be resolved.
    if rewritten.is_some() && parser.header(&header) {
        parser.schedule.root = parser.root_items(&header.children[head..], true);
    }
    let Parser { schedule, mut source, .. } = parser;
    if source.errors.is_empty() {
        return Ok(Parsed { schedule, source, header, rewrites: head });
    }
    let mut errors = std::mem::take(&mut source.errors);
    errors.sort_by_key(|error| error.spot.as_ref().map(|spot| (spot.line, spot.column)));
    Err(ScheduleErrors { errors })
}

impl SourceText<'_> {
    /// The pipeline after the rewrites in the first `count` lines below the header; `None` after recording a fault.
    fn rewritten<'p>(
        &mut self,
        header: &Entry<'_>,
        count: usize,
        pipeline: &'p Pipeline,
    ) -> Option<Cow<'p, Pipeline>> {
        let mut rewrites: Vec<Rewrite> = Vec::new();
        for line in &header.children[..count] {
            let words: Vec<&str> = line.words.iter().map(|word| word.text).collect();
            match words.join(" ").replace(" ,", ",").parse() {
                Ok(rewrite) => rewrites.push(rewrite),
                Err(fault) => self.fault(line.words[0], ScheduleFault::Rewrite(fault)),
            }
        }
        if rewrites.len() < count {
            return None;
        }
        let failed = |failed: RewriteLineError| {
            let line = header.children[..count].get(failed.number).unwrap_or(header);
            self.fault(line.words[0], ScheduleFault::Rewrite(*failed.error));
        };
        pipeline.rewritten(&rewrites).map_err(failed).ok()
    }
}

/// The keywords that say how a stage is distributed and where it is stored.
const CLAUSES: [&str; 7] = ["block", "flat", "threads", "serial", "unroll", "shared", "private"];

/// Replaces a word that should not be there.
const MISTAKEN: &str = "?";

const A_TILE: &str = "a variable and a size, for example `x 16`";
const A_SIZE: &str = "a size: a number or `all`";
const A_REDUCTION: &str = "a stage's reduction variable and a size, for example `prod.1.r 16`";

/// The clauses after the name in the line of a kernel or nest.
#[derive(Default)]
struct Clauses<'t> {
    block: Vec<Tile>,
    flat: bool,
    tiles: Option<ThreadTiles>,
    storage: Option<Storage>,
    kernel: KernelNumbers,
    nest: NestNumbers,
    seen: Vec<&'t str>,
}

impl Clauses<'_> {
    /// The number or flag that a keyword in the line of a kernel or nest sets.
    fn setting(&mut self, word: &str, kernel: bool) -> Option<Setting<'_>> {
        if kernel { self.kernel.of_word(word) } else { self.nest.of_word(word) }
    }

    fn mapping(self) -> Option<Mapping> {
        if self.flat { Some(Mapping::Flat) } else { self.tiles.map(Mapping::Threads) }
    }
}

/// A position in the words of a line.
struct Cursor<'e, 't> {
    words: &'e [Word<'t>],
    at: usize,
}

impl<'e, 't> Cursor<'e, 't> {
    fn new(entry: &'e Entry<'t>, at: usize) -> Cursor<'e, 't> {
        Cursor { words: &entry.words, at }
    }

    fn peek(&self, ahead: usize) -> Option<Word<'t>> {
        self.words.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<Word<'t>> {
        let word = self.peek(0)?;
        self.at += 1;
        Some(word)
    }

    fn next_if(&mut self, text: &str) -> bool {
        let fits = self.peek(0).is_some_and(|word| word.text == text);
        self.at += usize::from(fits);
        fits
    }

    /// The previous word. It exists once the first word of the line has been consumed.
    fn last(&self) -> Word<'t> {
        self.words[self.at.saturating_sub(1).min(self.words.len() - 1)]
    }
}

struct Parser<'p, 't> {
    names: Names<'p>,
    source: SourceText<'t>,
    schedule: Schedule,
}

impl<'t> Parser<'_, 't> {
    /// The value, or `None` after recording the fault.
    fn noted<T>(&mut self, word: Word<'t>, result: Result<T, ScheduleFault>) -> Option<T> {
        if self.source.errors.len() == MAX_SHOWN {
            self.names = self.names.without_hints();
        }
        result.map_err(|fault| self.source.fault(word, fault)).ok()
    }

    fn unexpected(&mut self, word: Word<'t>, expected: &'static str, known: &[&str]) {
        let fault =
            ScheduleFault::Unexpected { found: word.quoted(), expected, hint: hint(word.text, known) };
        self.source.fault(word, fault);
    }

    fn missing(&mut self, cursor: &Cursor<'_, 't>, expected: &'static str) {
        let after = cursor.last();
        self.source.fault(after, ScheduleFault::Missing { after: after.quoted(), expected });
    }

    fn repeated(&mut self, word: Word<'t>) {
        self.source.fault(word, ScheduleFault::Repeated { word: word.quoted() });
    }

    fn nested(&mut self, entry: &Entry<'t>, outer: &'static str, remedy: &'static str) {
        for child in &entry.children {
            self.source.fault(child.words[0], ScheduleFault::Nested { outer, remedy });
        }
    }

    /// Checks that the line ends here.
    fn end(&mut self, cursor: &mut Cursor<'_, 't>, expected: &'static str) {
        if let Some(word) = cursor.next() {
            self.unexpected(word, expected, &[]);
        }
    }

    /// Parses the header. Returns whether the names below can belong to the pipeline.
    fn header(&mut self, entry: &Entry<'t>) -> bool {
        let name: Vec<&str> = self.names.pipeline().name().split_whitespace().collect();
        let found = entry.words.iter().take(name.len()).map(|word| word.text);
        if !found.eq(name.iter().copied()) {
            let first = entry.words[0];
            let pipeline = self.names.pipeline().name().to_string();
            let nearly = !hint(first.text, &[&pipeline]).is_empty();
            self.source.fault(first, ScheduleFault::WrongPipeline { found: first.quoted(), pipeline });
            if !nearly {
                return false;
            }
        }
        let mut cursor = Cursor::new(entry, name.len().min(entry.words.len()));
        match cursor.next() {
            Some(word) if word.text == "inline" => self.inline(&mut cursor),
            Some(word) => self.unexpected(word, "`inline` and the names of Funcs", &["inline"]),
            None => {}
        }
        true
    }

    /// Parses the names after `inline`.
    fn inline(&mut self, cursor: &mut Cursor<'_, 't>) {
        loop {
            match cursor.next() {
                None => return self.missing(cursor, "the name of a Func"),
                Some(word) if word.text == "," => self.unexpected(word, "the name of a Func", &[]),
                Some(word) => {
                    let func = self.names.func(word.text);
                    if let Some(func) = self.noted(word, func)
                        && !self.schedule.inlined.insert(func)
                    {
                        self.repeated(word);
                    }
                    if !cursor.next_if(",") {
                        return self.end(cursor, "a comma, or nothing");
                    }
                }
            }
        }
    }

    fn root_items(&mut self, entries: &[Entry<'t>], top: bool) -> Vec<RootItem> {
        let mut items = Vec::new();
        for entry in entries {
            match entry.words[0].text {
                "kernel" => items.extend(self.kernel(entry).map(RootItem::from)),
                "around" => {
                    let loops = self.reductions(&mut Cursor::new(entry, 1));
                    let body = self.root_items(&entry.children, false);
                    items.push(Loops { loops, body }.into());
                }
                "inline" if top => {
                    self.inline(&mut Cursor::new(entry, 1));
                    self.nested(entry, "a list of inlined Funcs", "indent it as far as `inline`");
                }
                word if top && Rewrite::WORDS.contains(&word) => {
                    self.source.fault(entry.words[0], ScheduleFault::LateRewrite);
                }
                _ if top => {
                    let expected = "`kernel`, `around` or `inline`";
                    self.unexpected(entry.words[0], expected, &["kernel", "around", "inline"]);
                }
                _ => self.unexpected(entry.words[0], "`kernel` or `around`", &["kernel", "around"]),
            }
        }
        items
    }

    fn kernel(&mut self, entry: &Entry<'t>) -> Option<Kernel> {
        let mut cursor = Cursor::new(entry, 1);
        let Some(word) = cursor.next() else {
            self.missing(&cursor, "the stage that the kernel computes");
            self.body(&entry.children);
            return None;
        };
        let stage = self.names.stage(word.text);
        let stage = self.noted(word, stage);
        let mut clauses = self.clauses(&mut cursor, stage.map(Item::Stage), true);
        let (block, numbers) = (std::mem::take(&mut clauses.block), clauses.kernel);
        let Some(mapping) = clauses.mapping() else {
            let body = self.body(&entry.children);
            return Some(Kernel { stage: stage?, block, numbers, body });
        };
        let registers = if entry.children.iter().all(is_registers) {
            self.registers(&entry.children)
        } else {
            let outer = "a kernel whose own line says how threads share its stage";
            let remedy = "move it to the line of the stage, the last one below the kernel";
            self.nested(entry, outer, remedy);
            Vec::new()
        };
        let nest = Nest { registers, ..Nest::global(stage?).mapped(mapping) };
        Some(Kernel { stage: stage?, block, numbers, body: vec![nest.into()] })
    }

    fn body(&mut self, entries: &[Entry<'t>]) -> Vec<BlockItem> {
        let mut items = Vec::new();
        for entry in entries {
            if self.is_over(entry) {
                let loops = self.reductions(&mut Cursor::new(entry, 1));
                let body = self.body(&entry.children);
                items.push(Loops { loops, body }.into());
            } else {
                items.extend(self.nest(entry).map(BlockItem::from));
            }
        }
        items
    }

    /// Whether a line is serial loops, rather than a stage named `over`.
    fn is_over(&self, entry: &Entry<'t>) -> bool {
        let first = entry.words[0].text;
        let is_loop = entry.words.get(1).is_some_and(|word| word.text.contains('.'));
        first == "over" && (is_loop || self.names.item(first).is_err())
    }

    fn nest(&mut self, entry: &Entry<'t>) -> Option<Nest> {
        let mut cursor = Cursor::new(entry, 1);
        let word = entry.words[0];
        if is_registers(entry) {
            self.source.fault(word, ScheduleFault::RegistersPlace { func: word.quoted() });
            return None;
        }
        if matches!(word.text, "kernel" | "around") && self.names.item(word.text).is_err() {
            self.unexpected(word, "a stage, a staged input or `over`; kernels stand at root", &[]);
            return None;
        }
        let item = self.names.item(word.text);
        let item = self.noted(word, item);
        let clauses = self.clauses(&mut cursor, item, false);
        let (storage, numbers) = (clauses.storage.unwrap_or(Storage::Global), clauses.nest);
        let understood = !clauses.seen.contains(&MISTAKEN);
        let mapping = clauses.mapping();
        if mapping.is_none() && understood {
            self.source.fault(word, ScheduleFault::NoMapping { item: word.quoted() });
        }
        let registers = self.registers(&entry.children);
        Some(Nest { item: item?, mapping: mapping?, storage, numbers, registers })
    }

    fn registers(&mut self, entries: &[Entry<'t>]) -> Vec<FuncId> {
        let mut funcs = Vec::new();
        for entry in entries {
            let word = entry.words[0];
            if !is_registers(entry) {
                let outer = "a stage, except Funcs in registers";
                let remedy = "write `registers` after the name, or indent the line like the stage";
                self.source.fault(word, ScheduleFault::Nested { outer, remedy });
                continue;
            }
            let func = self.names.func(word.text);
            funcs.extend(self.noted(word, func));
            self.end(&mut Cursor::new(entry, 2), "nothing after `registers`");
            self.nested(entry, "a Func in registers", "indent it as far as that Func");
        }
        funcs
    }

    /// Parses `stage.variable size, ...` up to the end of the line.
    fn reductions(&mut self, cursor: &mut Cursor<'_, 't>) -> Vec<ReductionTile> {
        let mut loops = Vec::new();
        loop {
            let Some(word) = cursor.next() else {
                self.missing(cursor, A_REDUCTION);
                return loops;
            };
            if word.text == "," {
                self.unexpected(word, A_REDUCTION, &[]);
                continue;
            }
            let reduction = self.names.reduction(word.text);
            let reduction = self.noted(word, reduction);
            let size = self.size(cursor);
            if let (Some((stage, var)), Some(size)) = (reduction, size) {
                loops.push(ReductionTile { stage, var, size });
            }
            if !cursor.next_if(",") {
                self.end(cursor, "a comma, or nothing");
                return loops;
            }
        }
    }

    fn clauses(&mut self, cursor: &mut Cursor<'_, 't>, item: Option<Item>, kernel: bool) -> Clauses<'t> {
        let mut clauses = Clauses::default();
        while let Some(word) = cursor.next() {
            let allowed = if kernel { &CLAUSES[..5] } else { &CLAUSES[1..] };
            let numbers = if kernel { KernelNumbers::WORDS } else { NestNumbers::WORDS };
            if !allowed.contains(&word.text) && !numbers.contains(&word.text) {
                let expected = match (kernel, word.text) {
                    (true, "shared" | "private") => {
                        "nothing about storage: the stage of a kernel is in global memory"
                    }
                    (true, word) if NestNumbers::WORDS.contains(&word) => {
                        "it in the line of the stage, the last one below the kernel"
                    }
                    (false, "block") => "`block` in the line of the kernel",
                    (true, _) => {
                        "`block`, `flat`, `threads`, `serial` or `unroll`, or a comma before one more variable"
                    }
                    (false, _) => {
                        "`flat`, `threads`, `serial`, `unroll`, `shared` or `private`, or a comma before one more variable"
                    }
                };
                self.unexpected(word, expected, allowed);
                // Skip everything up to the next known keyword, since it belongs to the unexpected
                // word.
                while cursor.peek(0).is_some_and(|next| !is_clause(next.text)) {
                    cursor.next();
                }
                clauses.seen.push(MISTAKEN);
                continue;
            }
            if clauses.seen.contains(&word.text) {
                self.repeated(word);
            }
            match clauses.setting(word.text, kernel) {
                Some(Setting::Number(number)) => *number = self.number(cursor),
                Some(Setting::Flag(flag)) => *flag = true,
                None => self.clause(cursor, word, item, &mut clauses),
            }
            clauses.seen.push(word.text);
        }
        clauses
    }

    fn clause(
        &mut self,
        cursor: &mut Cursor<'_, 't>,
        word: Word<'t>,
        item: Option<Item>,
        clauses: &mut Clauses<'t>,
    ) {
        let spreads = |word: &str| matches!(word, "threads" | "serial" | "unroll");
        match word.text {
            "block" => clauses.block = self.tiles(cursor, item),
            "shared" | "private" => {
                if clauses.storage.is_some() && !clauses.seen.contains(&word.text) {
                    self.unexpected(word, "only one of `shared` and `private`", &[]);
                }
                let shared = word.text == "shared";
                clauses.storage = Some(if shared { Storage::Shared } else { Storage::Private });
            }
            "flat" => {
                if let Some(other) = clauses.seen.iter().find(|seen| spreads(seen)) {
                    self.source.fault(word, ScheduleFault::FlatWith { word: (*other).to_string() });
                }
                clauses.flat = true;
            }
            _ => {
                if clauses.flat {
                    self.source.fault(word, ScheduleFault::FlatWith { word: word.quoted() });
                }
                let mut tiles = clauses.tiles.take().unwrap_or_default();
                match word.text {
                    "threads" if !self.tiles_follow(cursor, item) => {}
                    "threads" => tiles.threads = self.tiles(cursor, item),
                    "serial" => tiles.serial = self.tiles(cursor, item),
                    _ => tiles.unroll = true,
                }
                clauses.tiles = Some(tiles);
            }
        }
    }

    /// Whether sizes follow `threads`. A variable may have the name of a clause.
    fn tiles_follow(&self, cursor: &Cursor<'_, 't>, item: Option<Item>) -> bool {
        let is_number = |word: &str| [KernelNumbers::WORDS, NestNumbers::WORDS].concat().contains(&word);
        match (cursor.peek(0), cursor.peek(1)) {
            (None, _) => false,
            (Some(word), next) if is_clause(word.text) => {
                let is_variable = || item.is_some_and(|item| self.names.tile(item, word.text).is_ok());
                next.is_some_and(|next| size(next.text).is_some()) && (!is_number(word.text) || is_variable())
            }
            _ => true,
        }
    }

    /// Parses `variable size, ...`.
    fn tiles(&mut self, cursor: &mut Cursor<'_, 't>, item: Option<Item>) -> Vec<Tile> {
        let mut tiles = Vec::new();
        loop {
            match cursor.peek(0) {
                None => {
                    self.missing(cursor, A_TILE);
                    return tiles;
                }
                Some(word) if word.text == "," => {
                    cursor.next();
                    self.unexpected(word, A_TILE, &[]);
                    continue;
                }
                Some(word) => {
                    cursor.next();
                    let dim = item.and_then(|item| {
                        let dim = self.names.tile(item, word.text);
                        self.noted(word, dim)
                    });
                    let size = self.size(cursor);
                    if let (Some(dim), Some(size)) = (dim, size) {
                        tiles.push(Tile { dim, size });
                    }
                }
            }
            if !cursor.next_if(",") {
                return tiles;
            }
        }
    }

    /// Parses a number, where `all` is not allowed.
    fn number(&mut self, cursor: &mut Cursor<'_, 't>) -> Option<NonZeroU32> {
        match self.size(cursor)? {
            Size::Of(number) => NonZeroU32::new(number),
            Size::All => {
                let word = cursor.last();
                self.unexpected(word, "a number", &[]);
                None
            }
        }
    }

    fn size(&mut self, cursor: &mut Cursor<'_, 't>) -> Option<Size> {
        match cursor.peek(0) {
            None => {
                self.missing(cursor, A_SIZE);
                None
            }
            Some(word) if word.text == "," || is_clause(word.text) => {
                self.missing(cursor, A_SIZE);
                None
            }
            Some(word) => {
                cursor.next();
                let size = size(word.text);
                self.noted(word, size.ok_or(ScheduleFault::Size { found: word.quoted() }))
            }
        }
    }
}

/// Whether a word starts a clause.
fn is_clause(word: &str) -> bool {
    [&CLAUSES[..], KernelNumbers::WORDS, NestNumbers::WORDS].iter().any(|words| words.contains(&word))
}

pub(crate) fn is_registers(entry: &Entry<'_>) -> bool {
    entry.words.get(1).is_some_and(|word| word.text == "registers")
}

/// Parses a size.
pub(crate) fn size(text: &str) -> Option<Size> {
    match text {
        "all" => Some(Size::All),
        text if text.bytes().all(|digit| digit.is_ascii_digit()) => {
            text.parse().ok().filter(|size| *size > 0).map(Size::Of)
        }
        _ => None,
    }
}

/// Parses a list of names and sizes for [`ScheduleBuilder`](crate::ScheduleBuilder).
pub(crate) fn pairs(text: &str) -> Result<Vec<(String, Size)>, ScheduleFault> {
    let mut pairs = Vec::new();
    for part in text.split(',') {
        let words: Vec<&str> = part.split_whitespace().collect();
        match words.as_slice() {
            [] if text.trim().is_empty() => {}
            [name, word] => match size(word) {
                Some(size) => pairs.push(((*name).to_string(), size)),
                None => return Err(ScheduleFault::Size { found: (*word).to_string() }),
            },
            [name] => return Err(ScheduleFault::Missing { after: (*name).to_string(), expected: A_SIZE }),
            _ => {
                let found = part.trim().to_string();
                return Err(ScheduleFault::Unexpected { found, expected: A_TILE, hint: String::new() });
            }
        }
    }
    Ok(pairs)
}
