//! Names in schedules: what they stand for, and what was meant by those that stand for nothing.

use warploom_lang::ir::{FuncDecl, Stage, stage_name};
use warploom_lang::{FuncId, InputId, Pipeline};

use crate::dag::LoopKind;
use crate::schedule::error::ScheduleFault;
use crate::schedule::tree::{Item, StageRef};

/// What a staged input is called: the input's name with this behind it.
const STAGED: &str = ".stage";

/// The names of one pipeline.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    pipeline: &'a Pipeline,
}

impl<'a> Names<'a> {
    pub fn new(pipeline: &'a Pipeline) -> Names<'a> {
        Names { pipeline }
    }

    pub fn pipeline(self) -> &'a Pipeline {
        self.pipeline
    }

    pub fn func_decl(self, func: FuncId) -> &'a FuncDecl {
        &self.pipeline.funcs()[func]
    }

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

    /// `blur`, or `blur.1` where there are several stages.
    pub fn of_stage(self, stage: StageRef) -> String {
        stage_name(self.func_decl(stage.func), stage.stage)
    }

    /// `blur`, `blur.1` or `input.stage`.
    pub fn of_item(self, item: Item) -> String {
        match item {
            Item::Stage(stage) => self.of_stage(stage),
            Item::Input(input) => format!("{}{STAGED}", self.of_input(input)),
        }
    }

    /// `x`, or a number for a dimension or variable that there is not.
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

    /// Every stage's name.
    fn stages(self) -> impl Iterator<Item = (StageRef, String)> {
        self.pipeline.funcs().iter().flat_map(move |(func, decl)| {
            let stages = (0..decl.stages.len()).map(move |stage| StageRef { func, stage });
            stages.map(move |stage| (stage, self.of_stage(stage)))
        })
    }

    /// The Func of this name.
    pub fn func(self, text: &str) -> Result<FuncId, ScheduleFault> {
        if let Some(func) = self.pipeline.func_named(text) {
            return Ok(func);
        }
        if let Some((stage, _)) = self.stages().find(|(_, name)| name == text) {
            return Err(ScheduleFault::WholeFunc {
                stage: text.to_string(),
                func: self.of_func(stage.func).to_string(),
            });
        }
        let known: Vec<&str> = self.pipeline.funcs().values().map(|func| func.name.as_str()).collect();
        Err(self.unknown(text, "Func", &known))
    }

    /// The stage of this name.
    pub fn stage(self, text: &str) -> Result<StageRef, ScheduleFault> {
        match self.one_of(text, self.stages().map(|(stage, name)| (Item::Stage(stage), name)))? {
            Some(Item::Stage(stage)) => Ok(stage),
            _ => Err(self.no_stage(text, "stage", self.stages().map(|(_, name)| name).collect())),
        }
    }

    /// The stage or staged input of this name.
    pub fn item(self, text: &str) -> Result<Item, ScheduleFault> {
        if let Some(item) = self.one_of(text, self.items())? {
            return Ok(item);
        }
        match self.pipeline.input_named(text) {
            Some(_) => Err(ScheduleFault::InputName { input: text.to_string() }),
            None => {
                let known = self.items().map(|(_, name)| name).collect();
                Err(self.no_stage(text, "stage or staged input", known))
            }
        }
    }

    fn items(self) -> impl Iterator<Item = (Item, String)> {
        let stages = self.stages().map(|(stage, name)| (Item::Stage(stage), name));
        let inputs = self.pipeline.inputs().keys().map(Item::Input);
        stages.chain(inputs.map(move |input| (input, self.of_item(input))))
    }

    /// The one thing of this name, if there is any; two are a fault.
    fn one_of<T: Copy>(
        self,
        text: &str,
        known: impl Iterator<Item = (T, String)>,
    ) -> Result<Option<T>, ScheduleFault> {
        let mut fitting = known.filter(|(_, name)| name == text).map(|(item, _)| item);
        match (fitting.next(), fitting.next()) {
            (Some(_), Some(_)) => Err(ScheduleFault::Ambiguous { name: text.to_string() }),
            (item, _) => Ok(item),
        }
    }

    /// Why a text is no stage.
    fn no_stage(self, text: &str, kind: &'static str, known: Vec<String>) -> ScheduleFault {
        let stages = |func: FuncId| self.func_decl(func).stages.len();
        if let Some(func) = self.pipeline.func_named(text) {
            return ScheduleFault::StageNumber { func: text.to_string(), stages: stages(func) };
        }
        let numbered = text.rsplit_once('.').filter(|(_, number)| number.bytes().all(|b| b.is_ascii_digit()));
        if let Some((name, _)) = numbered
            && let Some(func) = self.pipeline.func_named(name)
        {
            return ScheduleFault::NoSuchStage {
                stage: text.to_string(),
                func: name.to_string(),
                stages: stages(func),
            };
        }
        self.unknown(text, kind, &known.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The reduction variable that `stage.variable` names.
    pub fn reduction(self, text: &str) -> Result<(StageRef, usize), ScheduleFault> {
        let all = || {
            self.stages().flat_map(move |(stage, _)| {
                let vars = 0..self.stage_decl(stage).domain.len();
                vars.map(move |var| ((stage, var), self.of_reduction(stage, var)))
            })
        };
        if let Some(found) = self.one_of(text, all())? {
            return Ok(found);
        }
        // The longest name that the text starts with is what its writer had in mind.
        let mut heads = text.match_indices('.').rev().map(|(at, _)| (&text[..at], &text[at + 1..]));
        let stage = heads.find_map(|(head, tail)| {
            let stage = self.stages().find(|(_, name)| name == head)?.0;
            Some((stage, tail))
        });
        if let Some((stage, variable)) = stage {
            return Err(self.no_reduction(stage, variable));
        }
        if let Some(func) = self.pipeline.func_named(text.rsplit_once('.').map_or(text, |(head, _)| head)) {
            let decl = self.func_decl(func);
            return Err(ScheduleFault::StageNumber { func: decl.name.clone(), stages: decl.stages.len() });
        }
        let known: Vec<String> = all().map(|(_, name)| name).collect();
        Err(self.unknown(text, "reduction variable", &known.iter().map(String::as_str).collect::<Vec<_>>()))
    }

    fn no_reduction(self, stage: StageRef, variable: &str) -> ScheduleFault {
        let known: Vec<String> = self.stage_decl(stage).domain.iter().map(|var| var.name.clone()).collect();
        ScheduleFault::NoReduction {
            stage: self.of_stage(stage),
            variable: variable.to_string(),
            hint: hint(variable, &known.iter().map(String::as_str).collect::<Vec<_>>()),
            known,
        }
    }

    /// The loop of a stage or staged input that a variable names.
    pub fn tile(self, item: Item, variable: &str) -> Result<LoopKind, ScheduleFault> {
        let loops = self.loops(item);
        if let Some(kind) = loops.iter().find(|kind| self.of_loop(item, **kind) == variable) {
            return Ok(*kind);
        }
        let known: Vec<String> = loops.iter().map(|kind| self.of_loop(item, *kind)).collect();
        Err(ScheduleFault::NoLoop {
            item: self.of_item(item),
            variable: variable.to_string(),
            hint: hint(variable, &known.iter().map(String::as_str).collect::<Vec<_>>()),
            known,
        })
    }

    fn unknown(self, text: &str, kind: &'static str, known: &[&str]) -> ScheduleFault {
        ScheduleFault::Unknown {
            name: text.to_string(),
            kind,
            pipeline: self.pipeline.name().to_string(),
            hint: hint(text, known),
        }
    }
}

/// `; did you mean ...?` if a known name is near.
pub(crate) fn hint(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    }
}

/// The known name that a slip of the hand makes into `name`.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let length = name.chars().count();
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
