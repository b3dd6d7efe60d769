//! Builds pipelines from lists of numbers, one number per choice. After the end of a list, every choice is the
//! simplest one.

use warploom_interp::buffer::Buffer;
use warploom_lang::*;

use super::{Case, Plan};

/// Types to choose from; common types are listed several times.
const TYPES: [Type; 18] = {
    use Type::*;
    [U8, F32, I32, Bool, U16, U32, I8, I16, I32, F32, F32, F32, F16, BF16, F64, F64, I64, U64]
};

const VARS: [Var; 3] = [Var::literal("x"), Var::literal("y"), Var::literal("z")];

/// The list of numbers that a part of a pipeline is built from.
struct Choices {
    list: Vec<u32>,
    next: usize,
}

impl Choices {
    fn number(&mut self) -> u32 {
        self.next += 1;
        self.list.get(self.next - 1).copied().unwrap_or(0)
    }

    fn below(&mut self, end: usize) -> usize {
        self.number() as usize % end
    }

    fn between(&mut self, low: i32, high: i32) -> i32 {
        low + self.below((high - low + 1) as usize) as i32
    }

    /// True with probability 1/`n`; false after the end of the list.
    fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    fn of<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    /// A permutation of the indices below `n`.
    fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in 1..n {
            order.swap(i, i - self.below(i + 1));
        }
        order
    }

    /// A box of up to `largest` points along each dimension.
    fn region(&mut self, dims: usize, largest: i32) -> Region {
        let mut range = || Range::new(self.between(0, 9) as i64 % 7 - 3, self.between(1, largest) as i64);
        Region((0..dims).map(|_| range()).collect())
    }
}

/// A value of any type, often a special one.
fn sample(ty: Type, number: u32) -> Value {
    let small = (number >> 4) % 7;
    let int = |value: i64| Value::from_int(ty, value);
    match (ty.int_range(), number % 8) {
        (Some((low, high)), special @ 0..3) => {
            int([low, high, -1][special as usize]).unwrap_or(Value::largest(ty))
        }
        (None, 0..4) => {
            let special = [
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                -0.0,
                1e30,
                1e-40,
                3e9,
                -129.5,
                1e300,
                6e-8,
                65504.0,
            ];
            Value::rounded(ty, special[(number >> 4) as usize % special.len()]).unwrap()
        }
        (None, 4 | 5) => Value::rounded(ty, f64::from(small) * 0.5 - 1.0).unwrap(),
        // Bits all over the type.
        (_, 3 | 4) => Value::from_bits(ty, u64::from(number >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11),
        _ => int(i64::from(small)).unwrap_or(Value::one(ty)),
    }
}

/// What the definition of a stage may refer to.
#[derive(Clone, Default)]
struct Scope<'a> {
    vars: Vec<Expr>,
    rvars: Vec<Expr>,
    /// In an update, the Func itself with the variable of each pure dimension.
    own: Option<(&'a Itself, Vec<Option<Var>>)>,
}

/// A pipeline under construction.
pub struct Maker {
    choices: Choices,
    images: Vec<(Input, Buffer)>,
    params: Vec<(Param, Value)>,
    funcs: Vec<Func>,
    /// The types of the Func that is being updated.
    own_types: Vec<Type>,
    /// The number of Funcs that hold indices.
    places: usize,
}

impl Maker {
    /// The case that some lists of numbers stand for.
    pub fn case(plan: Plan) -> Case {
        let mut lists = plan.0.into_iter().map(|list| Choices { list, next: 0 });
        let (inputs, mut outputs) = (lists.next().unwrap(), lists.next().unwrap());
        let (images, params, funcs, own_types) = Default::default();
        let mut maker = Maker { choices: inputs, images, params, funcs, own_types, places: 0 };
        maker.make_inputs();
        for (number, choices) in lists.enumerate() {
            maker.choices = choices;
            let func = maker.func(format!("f{number}"));
            maker.funcs.push(func);
            if outputs.once_in(6) {
                maker.make_boundary();
            }
        }
        maker.finish(outputs)
    }

    /// Makes the last Func an output, and possibly some earlier ones.
    fn finish(mut self, mut choices: Choices) -> Case {
        let mut outputs = vec![self.funcs.pop().unwrap()];
        for _ in 0..choices.below(3) {
            let other = choices.below(self.funcs.len());
            outputs.push(self.funcs.remove(other));
        }
        let pipeline = Pipeline::new("random", outputs).unwrap();
        let image =
            |name: &str| self.images.iter().find(|(input, _)| input.name() == name).unwrap().1.clone();
        let param = |name: &str| self.params.iter().find(|(param, _)| param.name() == name).unwrap().1;
        let mut region = |id: &FuncId| match pipeline.funcs()[*id].dims.len() {
            3 => choices.region(3, 5),
            // Longer than a row of the evaluator.
            1 if choices.once_in(12) => choices.region(1, 1100),
            dims => choices.region(dims, 9),
        };
        Case {
            images: pipeline.inputs().values().map(|input| image(&input.name)).collect(),
            params: pipeline.params().values().map(|decl| param(&decl.name)).collect(),
            outputs: pipeline.outputs().iter().map(&mut region).collect(),
            pipeline,
        }
    }

    fn make_inputs(&mut self) {
        for number in 0..self.choices.between(1, 3) {
            let ty = self.choices.of(&TYPES);
            let dims = self.choices.between(1, 3) as usize;
            let order = self.choices.order(dims);
            let region = match (dims, self.choices.once_in(3)) {
                // Large enough to be read without a boundary condition.
                (1 | 2, true) => Region(vec![Range::new(-40, 80); dims]),
                _ => self.choices.region(dims, 9),
            };
            let mut noise = self.choices.number();
            let mut next = || {
                noise = (noise ^ (noise >> 15)).wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
                sample(ty, noise >> 8)
            };
            let buffer = dispatch!(ty, T => Buffer::from_fn(region, |_| next().get::<T>().unwrap()));
            let buffer = buffer.unwrap().reordered(&order).unwrap();
            let input = Input::new(format!("in{number}"), ty, dims).stored(order);
            self.images.push((input, buffer));
        }
        self.params = vec![(Param::i32("n"), Value::from(self.choices.between(0, 4)))];
        use Type::*;
        let ty = self.choices.of(&[F32, U8, I16, Bool, F16, BF16, F64, I64, U64]);
        self.params.push((Param::new("p", ty), sample(ty, self.choices.number())));
        self.params.push((Param::f32("q").range(0.0, 2.0), Value::from(self.choices.between(0, 2) as f32)));
        self.make_boundary();
    }

    /// A boundary condition of an input or of a Func with one value.
    fn make_boundary(&mut self) {
        let kind = self.choices.below(5);
        let exterior = |ty: Type, choices: &mut Choices| sample(ty, choices.number());
        let single: Vec<Func> = self.funcs.iter().filter(|func| func.types().len() == 1).cloned().collect();
        let func = if single.is_empty() || self.choices.once_in(2) {
            let (input, _) = self.choices.of(&self.images);
            match kind {
                0 => input.repeat_edge(),
                1 => input.repeat_image(),
                2 => input.mirror_image(),
                3 => input.mirror_interior(),
                _ => input.constant_exterior(exterior(input.ty(), &mut self.choices)),
            }
        } else {
            let inner = self.choices.of(&single);
            let mut limit = || {
                let low = self.choices.between(0, 6) % 5 - 2;
                (!self.choices.once_in(3)).then(|| (low.into(), self.choices.between(1, 5).into()))
            };
            let limits: Vec<Limit> = (0..inner.dimensions()).map(|_| limit()).collect();
            match kind {
                0 => inner.repeat_edge_in(limits),
                1 => inner.repeat_image_in(limits),
                2 => inner.mirror_image_in(limits),
                3 => inner.mirror_interior_in(limits),
                _ => inner.constant_exterior_in(limits, exterior(inner.types()[0], &mut self.choices)),
            }
        };
        self.funcs.push(func);
    }

    fn func(&mut self, name: String) -> Func {
        let dims = [2, 1, 3, 2, 1, 2, 3, 0][self.choices.below(8)];
        let args = VARS[..dims].to_vec();
        let count = [1, 1, 1, 2, 1, 3][self.choices.below(6)];
        let types: Vec<Type> = (0..count).map(|_| self.choices.of(&TYPES)).collect();
        let scope = Scope { vars: args.iter().map(|&arg| arg.into()).collect(), ..Scope::default() };
        let updates = [0, 0, 1, 1, 2, 3][self.choices.below(6)];
        let mut func = if updates > 0 && self.choices.once_in(4) {
            func(name, args.clone(), Undefined(types.clone()))
        } else {
            let values: Vec<Expr> = types.iter().map(|ty| self.value(&scope, *ty, 4)).collect();
            func(name, args.clone(), values)
        };
        self.own_types = types;
        for _ in 0..updates {
            func = self.update(func, &args);
        }
        self.own_types = Vec::new();
        func
    }

    /// Adds an update: an accumulation, a scatter, a scan or a plain assignment.
    fn update(&mut self, func: Func, args: &[Var]) -> Func {
        let crossed = self.choices.once_in(2);
        let pure: Vec<Option<Var>> =
            args.iter().map(|&arg| (!crossed || !self.choices.once_in(2)).then_some(arg)).collect();
        let vars: Vec<Expr> = pure.iter().flatten().map(|&arg| arg.into()).collect();
        let (mut domain, rvars) = self.domain();
        let plain = self.choices.once_in(5);
        let rvars = if plain { Vec::new() } else { rvars };
        if self.choices.once_in(4) {
            let scope = Scope { vars: vars.clone(), rvars: rvars.clone(), own: None };
            domain = domain.filter(self.value(&scope, Type::Bool, 2));
        }
        let define = |f: &Itself| {
            let scope = Scope { vars, rvars, own: Some((f, pure.clone())) };
            let indices = self.own_indices(&scope, &pure);
            let values = self.own_types.clone().into_iter().enumerate().map(|(v, ty)| {
                let new = self.value(&scope, ty, 3);
                match self.choices.below(3) {
                    0 => self.combine(ty, f.get(v, indices.clone()), new),
                    _ => new,
                }
            });
            let values: Vec<Expr> = values.collect();
            f.set(indices, values)
        };
        if plain { func.update(define) } else { func.over(&domain, define) }
    }

    /// The indices at which an update reads or writes its own Func.
    fn own_indices(&mut self, scope: &Scope<'_>, pure: &[Option<Var>]) -> Vec<Expr> {
        let index = |var: &Option<Var>| match (var, self.choices.below(3)) {
            (Some(var), _) => var.expr(),
            (None, 0) if !scope.rvars.is_empty() => self.choices.of(&scope.rvars),
            (None, 1) => self.held(scope),
            _ => self.index(scope, 1),
        };
        pure.iter().map(index).collect()
    }

    /// A reduction domain with small or symbolic extents, and its variables.
    fn domain(&mut self) -> (RDom, Vec<Expr>) {
        let dims = [1, 2, 1, 2, 3][self.choices.below(5)];
        let ranges = ["rx", "ry", "rz"][..dims].iter().map(|name| {
            let low = Expr::from(self.choices.between(0, 4) % 4 - 1);
            let (input, _) = self.choices.of(&self.images);
            let (n, q) = (self.params[0].0.expr(), self.params[2].0.expr());
            let extent = match self.choices.below(8) {
                0..=3 => self.choices.between(1, 4).into(),
                4 => n - 1,
                5 => select(q.eq(0.0), 3, 1) + n / 2,
                6 => (round(cos(q) * 2.0)).i32() + 1,
                _ => input.extent(0) / dims as i32,
            };
            RRange::new(name, low, extent)
        });
        let domain = RDom::new(ranges.collect());
        let rvars = domain.vars::<3>()[..dims].iter().map(|&var| var.into()).collect();
        (domain, rvars)
    }

    /// A random value of type `ty`.
    fn value(&mut self, scope: &Scope<'_>, ty: Type, depth: u32) -> Expr {
        let kind = if depth == 0 { self.choices.below(6) } else { self.choices.below(16) };
        match kind {
            0 => sample(ty, self.choices.number() | 7).into(),
            1 => self.variable(scope).cast(ty),
            2 => {
                let (param, _) = self.choices.of(&self.params);
                self.converted(param.expr(), ty)
            }
            3..=5 | 12 => self.read(scope, ty, depth.min(2)),
            6 => {
                let from = self.choices.of(&TYPES);
                let value = self.value(scope, from, depth - 1);
                self.converted(value, ty)
            }
            7 => {
                let condition = self.value(scope, Type::Bool, depth - 1);
                select(condition, self.value(scope, ty, depth - 1), self.value(scope, ty, depth - 1))
            }
            8 if ty != Type::Bool => self.reduction(scope, ty, depth - 1),
            9 => self.single(scope, ty, depth - 1),
            10 => {
                let values: Vec<Expr> = (0..3).map(|_| self.value(scope, ty, depth - 1)).collect();
                mux(self.variable(scope), values)
            }
            11 => sample(ty, self.choices.number()).into(),
            _ => {
                let (a, b) = (self.value(scope, ty, depth - 1), self.value(scope, ty, depth - 1));
                self.combine(ty, a, b)
            }
        }
    }

    fn converted(&mut self, value: Expr, ty: Type) -> Expr {
        let from = value.ty().unwrap();
        match self.choices.below(3) {
            0 => value.cast(ty),
            1 if from.bytes() == ty.bytes() && from != Type::Bool && ty != Type::Bool => {
                // The bits of a NaN are unspecified; the clamp removes NaN.
                let limit = |number: f64| Value::rounded(from, number);
                match (limit(-3e4), limit(3e4)) {
                    (Some(low), Some(high)) => clamp(value, low, high).reinterpret(ty),
                    _ => value.reinterpret(ty),
                }
            }
            _ => value.saturating_cast(ty),
        }
    }

    fn variable(&mut self, scope: &Scope<'_>) -> Expr {
        let all = [scope.vars.as_slice(), &scope.rvars].concat();
        if all.is_empty() { self.choices.between(0, 3).into() } else { self.choices.of(&all) }
    }

    /// An operation on one operand, or a function of coordinates.
    fn single(&mut self, scope: &Scope<'_>, ty: Type, depth: u32) -> Expr {
        if ty == Type::Bool {
            let operands = self.choices.of(&Type::ALL[1..]);
            let (a, b) = (self.value(scope, operands, depth), self.value(scope, operands, depth));
            let nan = is_nan(self.value(scope, Type::F32, depth));
            return [a.lt(&b), a.le(&b), a.eq(&b), a.ne(&b), nan][self.choices.below(5)].clone();
        }
        let a = self.value(scope, ty, depth);
        let old = [floor, ceil, round, abs, sqrt, exp, fast_exp, log, sin, cos, tanh];
        let new = [atan, asin, acos, tan, rsqrt, erf, log1p, expm1, exp2, log2];
        let double = [floor, ceil, round, abs, sqrt, exp, log, sin, cos, tanh];
        let functions = if ty == Type::F64 { double.to_vec() } else { [old.as_slice(), &new].concat() };
        match (ty, self.choices.below(functions.len() + 2)) {
            (_, 0) => -a,
            (_, 1) if ty.is_float() => random_f32(7, [a.i32()]).cast(ty),
            (_, function) if ty.is_float() => functions[function - 2](a),
            (_, 1) => random_u32(7, [a]).cast(ty),
            (_, 2..=6) => abs(a),
            (_, 7..=10) => popcount(a),
            (_, 11..=14) => leading_zeros(a),
            _ => !a,
        }
    }

    /// An operation on two operands of one type, with a result of that type.
    fn combine(&mut self, ty: Type, a: Expr, b: Expr) -> Expr {
        type Operation = fn(Expr, Expr) -> Expr;
        let logic: [Operation; 3] = [|a, b| a ^ b, |a, b| a & b, |a, b| a | b];
        let arithmetic: [Operation; 7] =
            [|a, b| a + b, |a, b| a - b, |a, b| a * b, |a, b| a / b, |a, b| a % b, min, max];
        let integers: [Operation; 4] =
            [|a, b| a << b, |a, b| a >> b, average, |a, b| clamp(&a, b, a.clone())];
        let floats: [Operation; 5] =
            [pow, absd, |a, b| lerp(&a, b, 0.25), |a, b| select(a.lt(&b), b, a), atan2];
        let all = match ty {
            Type::Bool => logic.to_vec(),
            // `f64` lacks the last.
            Type::F64 => [arithmetic.as_slice(), &floats[..4]].concat(),
            _ if ty.is_float() => [arithmetic.as_slice(), &floats].concat(),
            _ => [arithmetic.as_slice(), &integers, &logic].concat(),
        };
        let result = self.choices.of(&all)(a, b);
        match ty.is_int() && self.choices.once_in(8) {
            true => absd(&result, self.choices.between(0, 3)).cast(ty),
            false => result,
        }
    }

    /// A sum, product, minimum or maximum, or the position of an extremum.
    fn reduction(&mut self, scope: &Scope<'_>, ty: Type, depth: u32) -> Expr {
        let (mut domain, rvars) = self.domain();
        // An inner reduction cannot refer to the reduction variables around it.
        let inner = Scope { vars: scope.vars.clone(), rvars, own: None };
        if self.choices.once_in(3) {
            domain = domain.filter(self.value(&inner, Type::Bool, depth.min(2)));
        }
        let term = self.value(&inner, ty, depth);
        match self.choices.below(6) {
            0 => sum(&domain, term),
            1 => product(&domain, term),
            2 => minimum(&domain, term),
            3 => maximum(&domain, term),
            4 => argmin(&domain, term).value,
            _ => argmax(&domain, term).at[0].cast(ty),
        }
    }

    /// A value of an input, of an earlier Func or, in an update, of the Func itself.
    fn read(&mut self, scope: &Scope<'_>, ty: Type, depth: u32) -> Expr {
        let value = match &scope.own {
            Some((itself, pure)) if self.choices.once_in(2) => {
                let indices = self.own_indices(scope, pure);
                itself.get(self.choices.below(self.own_types.len()), indices)
            }
            _ if self.choices.below(4) > 0 => {
                let func = self.choices.of(&self.funcs);
                let indices: Vec<Expr> = (0..func.dimensions()).map(|_| self.index(scope, depth)).collect();
                func.get(self.choices.below(func.types().len()), indices)
            }
            _ => {
                let (input, buffer) = self.choices.of(&self.images);
                let wide = buffer.region()[0].extent == 80;
                let mut index = |d: usize| {
                    let (at, low, extent) = (self.index(scope, depth), input.min(d), input.extent(d));
                    match self.choices.below(3) {
                        0 if wide => at,
                        1 => (at - &low) % extent + low,
                        _ => clamp(at, &low, &low + extent - 1),
                    }
                };
                let indices: Vec<Expr> = (0..input.dimensions()).map(&mut index).collect();
                input.at(indices)
            }
        };
        self.converted(value, ty)
    }

    /// A data-dependent index with bounds.
    fn held(&mut self, scope: &Scope<'_>) -> Expr {
        let (low, high) = (self.choices.between(0, 4) % 4 - 1, self.choices.between(1, 5));
        match self.choices.below(15) {
            12 => clamp(self.value(scope, Type::I64, 2), low, low + high).i32(),
            13 => clamp(self.value(scope, Type::U64, 2).saturating_cast(Type::I32), low, low + high),
            14 => (self.value(scope, Type::U64, 1) % (high as u64)).i32(),
            0..=2 => clamp(self.value(scope, Type::I32, 2), low, low + high),
            3 => clamp(self.value(scope, Type::F32, 2), low as f32, (low + high) as f32 + 0.5).i32(),
            4 => self.value(scope, Type::Bool, 2).i32() * high + low,
            5 => self.value(scope, Type::I8, 2).i32() / (20 * high),
            6 => self.value(scope, Type::I32, 2) % high,
            7 => (tanh(self.value(scope, Type::F32, 1)) * high as f32).i32(),
            8 => (self.value(scope, Type::U32, 1) & high).i32(),
            9 => (self.value(scope, Type::U16, 1) >> 13).i32(),
            10 => {
                let (domain, rvars) = self.domain();
                let inner = Scope { vars: scope.vars.clone(), rvars, own: None };
                argmin(&domain, self.value(&inner, Type::F32, 1)).at[0].clone()
            }
            _ => {
                let place = self.place();
                place.at(self.index(scope, 0))
            }
        }
    }

    /// A Func whose values are indices with bounds.
    fn place(&mut self) -> Func {
        self.places += 1;
        let x = VARS[0];
        let scope = Scope { vars: vec![x.into()], ..Scope::default() };
        let mut place = func(format!("place{}", self.places), x, self.held(&scope));
        for _ in 0..self.choices.below(3) {
            let (domain, rvars) = self.domain();
            let inner = Scope { rvars, ..scope.clone() };
            let new = self.held(&inner);
            let kind = self.choices.below(5);
            let condition = self.value(&inner, Type::Bool, 1);
            place = place.over(&domain, |f| match kind {
                0 => f.max(x, new),
                1 => f.set(x, (f.at(x) + new) / 2),
                2 => f.set(x, select(condition, new, f.at(x))),
                3 => f.set(x, new % 3 - f.at(x) % 2),
                _ => f.set(x, clamp(f.at(x) + new, -5, 7)),
            });
        }
        place
    }

    /// An index of a Func, usually affine.
    fn index(&mut self, scope: &Scope<'_>, depth: u32) -> Expr {
        let at = self.variable(scope);
        let small = self.choices.between(0, 4) - 2;
        match self.choices.below(if depth == 0 { 10 } else { 20 }) {
            0..=2 => at,
            3..=5 => at + small,
            6 => 2 * at + small,
            7 => (at + small) / 2,
            8 => small.into(),
            9 => small - at,
            10 | 11 => self.held(scope),
            12 => at + self.variable(scope) + small,
            13 => (at + small) % 3,
            14 => min(at, self.index(scope, depth - 1)),
            15 => max(at, self.index(scope, depth - 1)),
            16 => select(self.value(scope, Type::Bool, 1), self.index(scope, depth - 1), at + small),
            17 => clamp(&at * self.variable(scope), -4, 6),
            _ => self.computed(at),
        }
    }

    /// An index computed in some type with any operations. Bounds inference may reject it.
    fn computed(&mut self, at: Expr) -> Expr {
        use Type::*;
        let ty = self.choices.of(&[I32, U8, I8, I16, U32, F32, Bool, I64, U64]);
        let at = if self.choices.once_in(2) { at } else { at % 5 };
        let mut value = self.converted(at, ty);
        for _ in 0..self.choices.between(1, 2) {
            let by = match ty {
                Type::F32 => Expr::from(self.choices.between(0, 12) as f32 * 0.5 - 2.0),
                Type::Bool => true.into(),
                _ => Expr::from(self.choices.between(0, 12)).cast(ty),
            };
            value = match self.choices.below(4) {
                0 if ty != Type::F32 => !value,
                1 if ty != Type::Bool => abs(value),
                _ => self.combine(ty, value, by),
            };
        }
        self.converted(value, Type::I32)
    }
}
