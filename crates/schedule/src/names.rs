//! Resolves names in schedules, and suggests corrections for unknown ones.

use warploom_lang::brief::{MAX_QUOTED, quoted};
use warploom_lang::ir::{FuncDecl, Stage, copy_name, stage_name};
use warploom_lang::naming::split_reduction;
use warploom_lang::{FuncId, InputId, Pipeline};

use crate::dag::LoopKind;
use crate::error::ScheduleFault;
use crate::tree::{Item, StageRef};

/// The names of one pipeline, for lookup and printing.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    pipeline: &'a Pipeline,
    /// Whether faults include a suggestion.
    hints: bool,
}

impl<'a> Names<'a> {
    /// The names of a pipeline.
    pub fn new(pipeline: &'a Pipeline) -> Names<'a> {
        Names { pipeline, hints: true }
    }

    /// The same names without suggestions, because each suggestion compares against every name.
    pub(crate) fn without_hints(self) -> Names<'a> {
        Names { hints: false, ..self }
    }

    /// The pipeline that has the names.
    pub fn pipeline(self) -> &'a Pipeline {
        self.pipeline
    }

    /// The definition of a Func.
    pub fn func_decl(self, func: FuncId) -> &'a FuncDecl {
        &self.pipeline.funcs()[func]
    }

    /// The definition of a stage.
    pub fn stage_decl(self, stage: StageRef) -> &'a Stage {
        &self.func_decl(stage.func).stages[stage.stage]
    }

    /// `blur`
    pub fn of_func(self, func: FuncId) -> &'a str {
        &self.func_decl(func).name
    }

    /// `input`
    pub fn of_input(self, input: InputId) -> &'a str {
        &self.pipeline.inputs()[input].name
    }

    /// `blur`, or `blur.1` if there are several stages.
    pub fn of_stage(self, stage: StageRef) -> String {
        stage_name(self.func_decl(stage.func), stage.stage)
    }

    /// `blur`, `blur.1` or `input.stage`.
    pub fn of_item(self, item: Item) -> String {
        match item {
            Item::Stage(stage) => self.of_stage(stage),
            Item::Input(input) => copy_name(self.of_input(input)),
        }
    }

    /// `x`, or a number if there is no such dimension or variable.
    pub fn of_loop(self, item: Item, kind: LoopKind) -> String {
        let name = match (item, kind) {
            (Item::Input(_), LoopKind::Pure(d)) => Some(format!("d{d}")),
            (Item::Stage(stage), LoopKind::Pure(d)) => self.func_decl(stage.func).dims.get(d).cloned(),
            (Item::Stage(stage), LoopKind::Reduction(r)) => {
                self.stage_decl(stage).domain.get(r).map(|var| var.name.clone())
            }
            (Item::Input(_), LoopKind::Reduction(_)) => None,
        };
        name.unwrap_or_else(|| match kind {
            LoopKind::Pure(d) => format!("<dimension {d}>"),
            LoopKind::Reduction(r) => format!("<variable {r}>"),
        })
    }

    /// `prod.1.r`
    pub fn of_reduction(self, stage: StageRef, var: usize) -> String {
        format!("{}.{}", self.of_stage(stage), self.of_loop(Item::Stage(stage), LoopKind::Reduction(var)))
    }

    /// The loops of a stage or staged input: pure dimensions, then reduction variables.
    pub fn loops(self, item: Item) -> Vec<LoopKind> {
        match item {
            Item::Input(input) => (0..self.pipeline.inputs()[input].dimensions).map(LoopKind::Pure).collect(),
            Item::Stage(stage) => {
                let (decl, exprs) = (self.stage_decl(stage), self.pipeline.exprs());
                let pure = (0..decl.indices.len()).filter(|d| decl.is_pure(exprs, *d)).map(LoopKind::Pure);
                pure.chain((0..decl.domain.len()).map(LoopKind::Reduction)).collect()
            }
        }
    }

    /// All stages with their names.
    fn stages(self) -> impl Iterator<Item = (StageRef, String)> {
        self.pipeline.funcs().iter().flat_map(move |(func, decl)| {
            let stages = (0..decl.stages.len()).map(move |stage| StageRef { func, stage });
            stages.map(move |stage| (stage, self.of_stage(stage)))
        })
    }

    /// The Func with this name.
    pub(crate) fn func(self, text: &str) -> Result<FuncId, ScheduleFault> {
        if let Some(func) = self.pipeline.func_named(text) {
            return Ok(func);
        }
        if let Some(stage) = self.stage_named(text) {
            return Err(ScheduleFault::WholeFunc {
                stage: quoted(text).into_owned(),
                func: self.of_func(stage.func).to_string(),
            });
        }
        Err(self
            .unknown(text, "Func", || self.pipeline.funcs().values().map(|func| func.name.clone()).collect()))
    }

    /// The stage with this name.
    pub(crate) fn stage(self, text: &str) -> Result<StageRef, ScheduleFault> {
        self.stage_named(text)
            .ok_or_else(|| self.no_stage(text, "stage", || self.stages().map(|(_, name)| name).collect()))
    }

    /// The stage or staged input with this name.
    pub(crate) fn item(self, text: &str) -> Result<Item, ScheduleFault> {
        if let Some(stage) = self.stage_named(text) {
            return Ok(Item::Stage(stage));
        }
        let mut inputs = self.pipeline.inputs().keys();
        if let Some(copied) = inputs.find(|input| self.of_item(Item::Input(*input)) == text) {
            return Ok(Item::Input(copied));
        }
        match self.pipeline.input_named(text) {
            Some(_) => Err(ScheduleFault::InputName { input: quoted(text).into_owned() }),
            None => {
                let known = || self.items().map(|(_, name)| name).collect();
                Err(self.no_stage(text, "stage or staged input", known))
            }
        }
    }

    fn items(self) -> impl Iterator<Item = (Item, String)> {
        let stages = self.stages().map(|(stage, name)| (Item::Stage(stage), name));
        let inputs = self.pipeline.inputs().keys().map(Item::Input);
        stages.chain(inputs.map(move |input| (input, self.of_item(input))))
    }

    /// The stage with this name: a bare Func name with a single stage, or a numbered stage. No text names two.
    fn stage_named(self, text: &str) -> Option<StageRef> {
        let whole = self.pipeline.func_named(text).map(|func| StageRef { func, stage: 0 });
        let numbered = text.rsplit_once('.').and_then(|(name, number)| {
            let func = self.pipeline.func_named(name)?;
            Some(StageRef { func, stage: number.parse().ok()? })
        });
        let exists = |stage: &StageRef| stage.stage < self.func_decl(stage.func).stages.len();
        whole.into_iter().chain(numbered).filter(exists).find(|stage| self.of_stage(*stage) == text)
    }

    /// The reason why a text does not name a stage.
    fn no_stage(self, text: &str, kind: &'static str, known: impl FnOnce() -> Vec<String>) -> ScheduleFault {
        let stages = |func: FuncId| self.func_decl(func).stages.len();
        if let Some(func) = self.pipeline.func_named(text) {
            return ScheduleFault::StageNumber { func: quoted(text).into_owned(), stages: stages(func) };
        }
        let numbered = text.rsplit_once('.').filter(|(_, number)| number.bytes().all(|b| b.is_ascii_digit()));
        if let Some((name, _)) = numbered
            && let Some(func) = self.pipeline.func_named(name)
        {
            return ScheduleFault::NoSuchStage {
                stage: quoted(text).into_owned(),
                func: quoted(name).into_owned(),
                stages: stages(func),
            };
        }
        self.unknown(text, kind, known)
    }

    /// The reduction variable named by `stage.variable`.
    pub(crate) fn reduction(self, text: &str) -> Result<(StageRef, usize), ScheduleFault> {
        // Without a number, it is a variable of a Func of one stage, which has none.
        let parts = split_reduction(text).or_else(|| text.rsplit_once('.'));
        if let Some((stage, variable)) = parts.and_then(|(head, tail)| Some((self.stage_named(head)?, tail)))
        {
            let position = self.stage_decl(stage).domain.iter().position(|var| var.name == variable);
            return position.map(|var| (stage, var)).ok_or_else(|| self.no_reduction(stage, variable));
        }
        if let Some(func) = self.pipeline.func_named(text.rsplit_once('.').map_or(text, |(head, _)| head)) {
            let decl = self.func_decl(func);
            return Err(ScheduleFault::StageNumber { func: decl.name.clone(), stages: decl.stages.len() });
        }
        let known = || {
            let stages = self.stages().map(|(stage, _)| (stage, self.stage_decl(stage).domain.len()));
            stages.flat_map(|(stage, vars)| (0..vars).map(move |var| self.of_reduction(stage, var))).collect()
        };
        Err(self.unknown(text, "reduction variable", known))
    }

    fn no_reduction(self, stage: StageRef, variable: &str) -> ScheduleFault {
        let known: Vec<String> = self.stage_decl(stage).domain.iter().map(|var| var.name.clone()).collect();
        ScheduleFault::NoReduction {
            stage: self.of_stage(stage),
            variable: quoted(variable).into_owned(),
            hint: hint(variable, &known.iter().map(String::as_str).collect::<Vec<_>>()),
            known,
        }
    }

    /// The loop of a stage or staged input with this variable name.
    pub(crate) fn tile(self, item: Item, variable: &str) -> Result<LoopKind, ScheduleFault> {
        let loops = self.loops(item);
        if let Some(kind) = loops.iter().find(|kind| self.of_loop(item, **kind) == variable) {
            return Ok(*kind);
        }
        let known: Vec<String> = loops.iter().map(|kind| self.of_loop(item, *kind)).collect();
        Err(ScheduleFault::NoLoop {
            item: self.of_item(item),
            variable: quoted(variable).into_owned(),
            hint: hint(variable, &known.iter().map(String::as_str).collect::<Vec<_>>()),
            known,
        })
    }

    fn unknown(self, text: &str, kind: &'static str, known: impl FnOnce() -> Vec<String>) -> ScheduleFault {
        let known = if self.hints { known() } else { Vec::new() };
        ScheduleFault::Unknown {
            name: quoted(text).into_owned(),
            kind,
            pipeline: self.pipeline.name().to_string(),
            hint: hint(text, &known.iter().map(String::as_str).collect::<Vec<_>>()),
        }
    }
}

/// `; did you mean ...?` if a known name is similar.
pub(crate) fn hint(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    }
}

/// The known name that is within a typo of `name`.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let length = name.chars().count();
    // A name this long is not a typo, and the comparison costs the product of both lengths.
    if length > MAX_QUOTED {
        return None;
    }
    let distance = |known: &str| strsim::damerau_levenshtein(&known.to_lowercase(), &name.to_lowercase());
    let (distance, near) = known.iter().map(|known| (distance(known), *known)).min()?;
    (distance <= 1.max(length / 3) && distance < length).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_hand_are_understood() {
        let known = ["gray", "blur_x", "blur_y", "output", "prod.1"];
        assert_eq!(nearest("grey", &known), Some("gray"));
        assert_eq!(nearest("blurx", &known), Some("blur_x"));
        assert_eq!(nearest("OUTPUT", &known), Some("output"));
        assert_eq!(nearest("prod.2", &known), Some("prod.1"));
        assert_eq!(nearest("q", &known), None);
        assert_eq!(nearest("sharpen", &known), None);
        assert_eq!(nearest("sharpen", &[]), None);
    }
}
