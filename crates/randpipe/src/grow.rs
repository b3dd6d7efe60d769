//! Grows a pipeline: chooses the next stage, the images it reads, and the outputs.

use warploom_lang::{Expr, Func, Input, Param, Type, Value, Values, func};

use crate::dice::Dice;
use crate::image::{Body, Extent, Image, here, int, points, variables};
use crate::kind::StageKind;
use crate::options::{Limits, Options};
use crate::term::{Term, combine};

/// Types of images; common types are listed several times.
const TYPES: [Type; 12] = {
    use Type::*;
    [U8, U8, U16, I32, F32, F32, F32, F32, I16, I8, U32, Bool]
};

/// Types of 16 and 64 bits, which only some pipelines have.
const NEW_TYPES: [Type; 5] = [Type::F16, Type::BF16, Type::F64, Type::I64, Type::U64];

/// The probability that a pipeline may have types of 16 and 64 bits.
const HAS_NEW_TYPES: f64 = 0.4;

/// The probability of choosing an image that no stage reads yet.
const PREFER_UNREAD: f64 = 0.6;

/// A pipeline under construction.
pub struct Grower {
    pub dice: Dice,
    pub limits: Limits,
    pub inputs: Vec<SizedInput>,
    pub params: Vec<(Param, Value)>,
    /// The kind of stage for each prefix of Func names.
    pub names: Vec<(String, StageKind)>,
    images: Vec<Entry>,
    /// Whether there may be types of 16 and 64 bits.
    has_new_types: bool,
    /// The number of stages to make.
    stages: usize,
    /// The kind of the current stage, and the number of stages made before it.
    kind: StageKind,
    count: usize,
}

/// An image, and whether any stage reads it.
struct Entry {
    image: Image,
    read: bool,
}

/// An input with its size.
pub struct SizedInput {
    pub input: Input,
    /// The input's box; `None` if it is sized to its reads.
    pub region: Option<warploom_lang::Region>,
}

/// A complete pipeline that is not checked yet.
pub struct Grown {
    pub grower: Grower,
    pub outputs: Vec<Image>,
}

impl Grower {
    pub fn new(mut dice: Dice, options: &Options) -> Grower {
        let (fewest, most) = (*options.stages.start() as i64, *options.stages.end() as i64);
        let stages = dice.between(fewest..=most.max(fewest)).max(1);
        let has_new_types = dice.chance(HAS_NEW_TYPES);
        Grower {
            dice,
            limits: options.scale.limits(),
            inputs: Vec::new(),
            params: Vec::new(),
            names: Vec::new(),
            images: Vec::new(),
            has_new_types,
            stages: stages as usize,
            kind: StageKind::Source,
            count: 0,
        }
    }

    /// Makes all stages and chooses the outputs.
    pub fn grow(mut self) -> Grown {
        let main = self.main_source();
        self.add(main, &[]);
        if self.dice.chance(0.4) {
            self.begin(StageKind::Source);
            let other = self.source();
            self.add(other, &[]);
        }
        let outputs = match self.dice.weighted(&[0.84, 0.12, 0.04]) {
            0 => 1,
            more => more + 1,
        };
        let mut previous = self.dice.pick(StageKind::ALL);
        let mut made = 0;
        while made + self.unread().len().saturating_sub(outputs) < self.stages {
            let next = self.dice.weighted(&previous.next_weights());
            previous = self.stage(StageKind::ALL[next]);
            made += usize::from(previous != StageKind::Source);
        }
        self.finish(outputs)
    }

    /// Makes a stage of this kind, or of a fallback kind if the operands do not fit. Returns the
    /// kind made.
    fn stage(&mut self, kind: StageKind) -> StageKind {
        let (first, second) = self.operands();
        let pair = [first, second];
        for kind in [kind, StageKind::Binary, StageKind::Activation] {
            self.begin(kind);
            let (f, g) = (self.images[first].image.clone(), self.images[second].image.clone());
            let fits = kind.operands() < 2 || first != second;
            if let Some(image) = fits.then(|| self.make(kind, &f, &g)).flatten() {
                self.add(image, &pair[..kind.operands()]);
                return kind;
            }
        }
        kind
    }

    /// Two different images as operands; the same one twice if there is only one.
    fn operands(&mut self) -> (usize, usize) {
        let last = self.images.len() - 1;
        if last == 0 {
            return (0, 0);
        }
        let unread = self.unread();
        let earlier = self.dice.below(last);
        let later = match self.dice.chance(PREFER_UNREAD) && !unread.is_empty() {
            true => self.dice.pick(&unread),
            false => self.dice.between(earlier as i64 + 1..=last as i64) as usize,
        };
        (later, if later == earlier { last } else { earlier })
    }

    fn unread(&self) -> Vec<usize> {
        (0..self.images.len()).filter(|i| !self.images[*i].read).collect()
    }

    fn add(&mut self, image: Image, operands: &[usize]) {
        for operand in operands {
            self.images[*operand].read = true;
        }
        self.images.push(Entry { image, read: false });
    }

    /// Joins unread images until their number equals the number of outputs.
    fn finish(mut self, outputs: usize) -> Grown {
        while let [.., second, first] = *self.unread()
            && self.unread().len() > outputs
        {
            self.join(first, second);
        }
        let enough = self.limits.output.0;
        let unread = self.unread();
        if unread.iter().all(|last| self.images[*last].image.points() < enough)
            && let [last] = *unread
            && last != 0
        {
            self.join(last, 0);
        }
        let mut chosen = self.unread();
        // An output may also be read by other stages.
        for _ in chosen.len()..outputs {
            let other = self.dice.below(self.images.len());
            if !chosen.contains(&other) {
                chosen.push(other);
            }
        }
        let outputs = chosen.into_iter().map(|i| self.as_func(i)).collect();
        Grown { grower: self, outputs }
    }

    /// A random expression of two images.
    fn join(&mut self, first: usize, second: usize) {
        self.begin(StageKind::Binary);
        let (f, g) = (self.images[first].image.clone(), self.images[second].image.clone());
        let image = self.binary(&f, &g);
        self.add(image, &[first, second]);
    }

    /// The image as a Func. An input is copied into one.
    fn as_func(&mut self, index: usize) -> Image {
        let image = self.images[index].image.clone();
        match image.body {
            Body::Func(_) => image,
            Body::Input(_) => {
                self.begin(StageKind::Source);
                let value = image.read(0, here(image.rank()));
                self.define(image.extents, value)
            }
        }
    }

    /// Starts a stage: Funcs made from now on have this kind.
    fn begin(&mut self, kind: StageKind) {
        self.kind = kind;
        self.count += 1;
    }

    /// A name for a Func of the current stage. `part` distinguishes its Funcs.
    pub fn name(&mut self, part: &str) -> String {
        let name = match part {
            "" => format!("{}_{}", self.kind, self.count),
            part => format!("{}_{}_{part}", self.kind, self.count),
        };
        self.names.push((name.clone(), self.kind));
        name
    }

    /// Defines the stage's image by its value at every point.
    pub fn define(&mut self, extents: Vec<Extent>, value: Term) -> Image {
        self.define_part("", extents, value)
    }

    /// Defines an intermediate image of the stage.
    pub fn define_part(&mut self, part: &str, extents: Vec<Extent>, value: Term) -> Image {
        let func = self.start(part, extents.len(), value.expr);
        self.image(func, extents, vec![value.reach])
    }

    /// A Func of the stage that still lacks its updates.
    pub fn start(&mut self, part: &str, rank: usize, values: impl Values) -> Func {
        let name = self.name(part);
        func(name, variables(rank), values)
    }

    /// A Func as an image that may be read anywhere.
    pub fn image(&self, func: Func, extents: Vec<Extent>, reach: Vec<f32>) -> Image {
        Image { body: Body::Func(func), extents, reach, total: true }
    }

    /// A random type for an image.
    pub fn ty(&mut self) -> Type {
        self.type_of(&TYPES, &NEW_TYPES)
    }

    /// A type of the first list; in pipelines with types of 16 and 64 bits, half of the time one of the second list.
    pub fn type_of(&mut self, types: &[Type], new: &[Type]) -> Type {
        let is_new = self.has_new_types && self.dice.chance(0.5);
        self.dice.pick(if is_new { new } else { types })
    }

    /// A type of the language; all types that the pipeline may have are equally likely.
    pub fn any_type(&mut self) -> Type {
        let all = Type::ALL.into_iter().filter(|ty| self.has_new_types || !NEW_TYPES.contains(ty));
        let all: Vec<Type> = all.collect();
        self.dice.pick(&all)
    }

    /// The value, occasionally converted to another type.
    pub fn settled(&mut self, value: Term) -> Term {
        if !self.dice.chance(0.2) {
            return value.calm();
        }
        let ty = self.ty();
        value.converted(&mut self.dice, ty)
    }

    /// One of an image's values, at a point.
    pub fn read(&mut self, image: &Image, at: Vec<Expr>) -> Term {
        let value = self.dice.below(image.reach.len());
        image.read(value, at)
    }

    /// A random expression in which every term appears.
    pub fn combine(&mut self, terms: Vec<Term>) -> Term {
        let functions = self.limits.functions;
        combine(&mut self.dice, functions, terms)
    }

    /// The number of visits per point that one stage can afford for `points` points.
    pub fn affordable(&self, points: i64) -> i64 {
        let share = self.limits.work as i64 / (4 * self.stages as i64);
        (share / points.max(1)).max(1)
    }

    /// Whether an image with these extents is within the limits.
    pub fn fits(&self, extents: &[Extent]) -> bool {
        points(extents) <= self.limits.image
    }

    /// The trip count of a reduction: a constant, or occasionally a Param with that value.
    pub fn steps(&mut self, count: i64) -> Expr {
        if !self.dice.chance(0.12) {
            return int(count);
        }
        let param = Param::i32(format!("n{}", self.params.len()));
        self.params.push((param.clone(), Value::from(count as i32)));
        Expr::from(&param)
    }
}
