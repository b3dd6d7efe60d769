//! The text form of schedules: it round-trips, and faults in it are reported, however many and long
//! they are. The messages themselves are in the filetests of `codegen`, in `text`.

use std::num::NonZeroU32;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;
use warploom_lang::*;
use warploom_plan::*;
use warploom_schedule::LoopKind;
use warploom_schedule::*;
use warploom_target::Device;

use crate::pipelines::{names, renamed};

fn pipeline() -> Pipeline {
    Pipeline::new("names", names::outputs()).unwrap()
}

fn stages(pipeline: &Pipeline) -> Vec<StageRef> {
    let funcs = pipeline.funcs().iter();
    funcs.flat_map(|(func, decl)| (0..decl.stages.len()).map(move |stage| StageRef { func, stage })).collect()
}

// ---- Random trees round-trip.

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![Just(Size::All), (1u32..300).prop_map(Size::Of), Just(Size::Of(u32::MAX))]
}

/// Tiles over the loops of a stage or staged input.
fn tiles(pipeline: &Pipeline, item: Item) -> BoxedStrategy<Vec<Tile>> {
    let kinds: Vec<LoopKind> = match item {
        Item::Input(input) => (0..pipeline.inputs()[input].dimensions).map(LoopKind::Pure).collect(),
        Item::Stage(StageRef { func, stage }) => {
            let decl = &pipeline.funcs()[func].stages[stage];
            let pure = (0..decl.indices.len()).filter(|d| decl.is_pure(pipeline.exprs(), *d));
            let reductions = (0..decl.domain.len()).map(LoopKind::Reduction);
            pure.map(LoopKind::Pure).chain(reductions).collect()
        }
    };
    vec((select(kinds), size()).prop_map(|(dim, size)| Tile { dim, size }), 0..4).boxed()
}

fn nest(pipeline: &Pipeline, item: Item) -> BoxedStrategy<Nest> {
    let funcs: Vec<FuncId> = pipeline.funcs().keys().collect();
    let threads = (tiles(pipeline, item), tiles(pipeline, item), any::<bool>());
    let threads = threads
        .prop_map(|(threads, serial, unroll)| Mapping::Threads(ThreadTiles { threads, serial, unroll }));
    let mapping = prop_oneof![Just(Mapping::Flat), threads];
    let storage = select(vec![Storage::Global, Storage::Shared, Storage::Private]);
    let numbers =
        numbers(NestNumbers::WORDS, |numbers: &mut NestNumbers, word| numbers.of_word(word).unwrap());
    (mapping, storage, numbers, vec(select(funcs), 0..3))
        .prop_map(move |(mapping, storage, numbers, registers)| Nest {
            item,
            mapping,
            storage,
            numbers,
            registers,
        })
        .boxed()
}

/// Numbers for some of the keywords.
fn numbers<N: Default + std::fmt::Debug>(
    words: &'static [&'static str],
    of_word: for<'a> fn(&'a mut N, &str) -> Setting<'a>,
) -> impl Strategy<Value = N> {
    vec(proptest::option::of(1_u32..100), words.len()).prop_map(move |given| {
        let mut numbers = N::default();
        for (word, given) in words.iter().zip(given) {
            match of_word(&mut numbers, word) {
                Setting::Number(number) => *number = given.and_then(NonZeroU32::new),
                Setting::Flag(flag) => *flag = given.is_some(),
            }
        }
        numbers
    })
}

fn loops(pipeline: &Pipeline) -> BoxedStrategy<Vec<ReductionTile>> {
    let all = stages(pipeline).into_iter().flat_map(|stage| {
        let domain = &pipeline.funcs()[stage.func].stages[stage.stage].domain;
        (0..domain.len()).map(move |var| (stage, var))
    });
    let one = (select(all.collect::<Vec<_>>()), size());
    vec(one.prop_map(|((stage, var), size)| ReductionTile { stage, var, size }), 1..3).boxed()
}

fn kernel() -> impl Strategy<Value = Kernel> {
    let pipeline = pipeline();
    let items: Vec<Item> = stages(&pipeline)
        .into_iter()
        .map(Item::Stage)
        .chain(pipeline.inputs().keys().map(Item::Input))
        .collect();
    let nests = {
        let pipeline = pipeline.clone();
        select(items).prop_flat_map(move |item| nest(&pipeline, item)).prop_map(BlockItem::from)
    };
    let over = loops(&pipeline);
    let body = nests.prop_recursive(2, 8, 3, move |inner| {
        (over.clone(), vec(inner, 0..3)).prop_map(|(loops, body)| BlockItem::Over(Loops { loops, body }))
    });
    select(stages(&pipeline)).prop_flat_map(move |stage| {
        let only = nest(&pipeline, Item::Stage(stage)).prop_map(|nest| vec![BlockItem::from(nest)]);
        let body = prop_oneof![only, vec(body.clone(), 0..4)];
        let numbers =
            numbers(KernelNumbers::WORDS, |numbers: &mut KernelNumbers, word| numbers.of_word(word).unwrap());
        (tiles(&pipeline, Item::Stage(stage)), numbers, body).prop_map(move |(block, numbers, body)| Kernel {
            stage,
            numbers,
            block,
            body,
        })
    })
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let pipeline = pipeline();
    let around = loops(&pipeline);
    let item = kernel().prop_map(RootItem::from).prop_recursive(2, 6, 3, move |inner| {
        (around.clone(), vec(inner, 0..3)).prop_map(|(loops, body)| RootItem::Around(Loops { loops, body }))
    });
    let funcs: Vec<FuncId> = pipeline.funcs().keys().collect();
    (btree_set(select(funcs), 0..4), vec(item, 0..4)).prop_map(|(inlined, root)| Schedule {
        inlined,
        root,
        ..Schedule::default()
    })
}

proptest! {
    #[test]
    fn text_reads_back(schedule in schedule()) {
        let pipeline = pipeline();
        let text = schedule.to_text(&pipeline);
        let read = Schedule::parse(&text, &pipeline);
        let read = read.map_err(|errors| TestCaseError::fail(format!("{errors}\n\n{text}")))?;
        prop_assert_eq!(&read, &schedule, "{}", text);
        prop_assert_eq!(read.to_text(&pipeline), text);
    }

    /// Whatever the names, also with lines between the lines.
    #[test]
    fn all_names_read_back(schedule in schedule(), given in renamed::names()) {
        let Some(pipeline) = given.renamed(&pipeline()) else { return Ok(()) };
        let text = schedule.to_text(&pipeline);
        let read = Schedule::parse(&text, &pipeline);
        let read = read.map_err(|errors| TestCaseError::fail(format!("{errors}\n\n{text}")))?;
        prop_assert_eq!(&read, &schedule, "{}", text);
        let again = Pipeline::from_json(&pipeline.to_json()).unwrap();
        prop_assert_eq!(again.to_json(), pipeline.to_json());
        prop_assert_eq!(schedule.to_text(&again), text);
    }

    /// Violations stand at the line that somebody wrote, whatever is between the lines.
    #[test]
    fn violations_stand_where_they_were_written(schedule in schedule(), gaps in vec(0..4_usize, 1..8)) {
        let pipeline = pipeline();
        let request = Realisation::new(&pipeline)
            .input("A", Region::of_extents(&[99, 99]))
            .input("over.in", Region::of_extents(&[99, 99]))
            .output("output", Region::of_extents(&[8, 8]));
        let problem = Problem::new(&pipeline, &request, &Device::preset("h200").unwrap()).unwrap();
        let Err(violations) = problem.check(&schedule) else { return Ok(()) };
        let text: String = schedule.to_text(&pipeline).lines().zip(gaps.iter().cycle()).map(|(line, gap)| {
            let indent = line.len() - line.trim_start().len();
            format!("{}{}{}  # a remark\n", "\n # a line of its own\n".repeat(*gap), " ".repeat(indent), line)
        }).collect();
        let written = Written::parse(&text, &pipeline).unwrap();
        prop_assert_eq!(&written.schedule, &schedule);
        let located = Violation::all_in(&written.spots, violations.clone());
        prop_assert_eq!(located.len(), violations.len());
        for (located, violation) in located.iter().zip(&violations) {
            prop_assert_eq!((&located.rule, &located.path), (&violation.rule, &violation.path));
            let line = text.lines().nth(located.spot.line - 1).unwrap();
            let wanted = violation.spot.text.trim().trim_end_matches('.');
            prop_assert!(line.trim().starts_with(wanted), "{} is not {}", line, wanted);
            prop_assert_eq!(located.spot.column, line.len() - line.trim_start().len() + 1);
        }
    }

    /// Any text results in a schedule or in errors, each with a position.
    #[test]
    fn any_text_is_answered(words in vec(select(WORDS.to_vec()), 0..40)) {
        let text = words.join(" ").replace(" \n ", "\n");
        if let Err(errors) = Schedule::parse(&text, &pipeline()) {
            prop_assert!(!errors.errors.is_empty());
            prop_assert!(!errors.to_string().is_empty());
        }
    }
}

const WORDS: [&str; 30] = [
    "names",
    "inline",
    "kernel",
    "around",
    "over",
    "block",
    "threads",
    "serial",
    "unroll",
    "flat",
    "shared",
    "private",
    "registers",
    "all",
    "16",
    "0",
    ",",
    ",",
    "x",
    "r",
    "output",
    "prod.1",
    "prod.1.r",
    "A.stage",
    "#",
    "\n",
    "\n  ",
    "\n    ",
    "\n\t",
    "grün",
];

#[test]
fn columns_comments_and_continued_lines_are_free() {
    let pipeline = pipeline();
    let canonical = "\
names            inline kernel, gPyramid1.dy.sum0, gPyramid1.dy
  kernel output  block x 8, y 8
    over         flat                              shared
    over prod.1.r 4, prod.1.all 1
      A.stage    threads d0 8, d1 8                shared
      prod.1     threads x 8, y 8    serial r all  private
    output       threads x 8
      prod       registers
";
    let free = "\
# a schedule
names inline kernel,       # by hand
        gPyramid1.dy

   inline gPyramid1.dy.sum0
   kernel output block x 8,
             y 8
      over shared flat
      over prod.1.r 4 , prod.1.all 1
         A.stage threads d0 8,d1 8 shared
         prod.1 private serial r all threads x 8, y 8

      output threads x 8
           prod registers";
    let schedule = Schedule::parse(free, &pipeline).unwrap();
    assert_eq!(schedule.to_text(&pipeline), canonical);
    assert_eq!(Schedule::parse(canonical, &pipeline).unwrap(), schedule);
}

#[test]
fn a_kernel_of_one_stage_has_two_forms() {
    let pipeline = pipeline();
    let read = |text: &str| Schedule::parse(text, &pipeline).unwrap();
    let short = read("names\n  kernel output  block x 8  threads x 8\n    kernel registers\n");
    let long = read("names\n  kernel output  block x 8\n    output  threads x 8\n      kernel registers\n");
    assert_eq!(short, long);
    assert_eq!(
        short.to_text(&pipeline),
        "names\n  kernel output  block x 8  threads x 8\n    kernel       registers\n"
    );
    // `threads` without sizes means one thread.
    let one = read("names\n  kernel output  threads\n");
    assert_eq!(one.to_text(&pipeline), "names\n  kernel output  threads\n");
    let serial = read("names\n  kernel over  threads serial serial 4\n");
    assert_eq!(serial.to_text(&pipeline), "names\n  kernel over  serial serial 4\n");
}

/// As in docs/schedules.md.
#[test]
fn threads_have_two_groups_of_points() {
    let (x, y) = vars!(x, y);
    let (a, b) = (Input::f32("A", 2), Input::f32("B", 2));
    let r = rdom!(r: (0, 1024));
    let prod = func("prod", (x, y), 0.0).over(&r, |f| f.add((x, y), a.at((x, r.x)) * b.at((r.x, y))));
    let pipeline = Pipeline::new("product", [func("out", (x, y), prod.at((x, y)))]).unwrap();
    let square = || Region::of_extents(&[1024, 1024]);
    let request =
        Realisation::new(&pipeline).input("A", square()).input("B", square()).output("out", square());
    let problem = Problem::new(&pipeline, &request, &Device::preset("h200").unwrap()).unwrap();
    let text = "\
product
  kernel out   block x 64, y 64
    prod.0     threads x 8, y 8  serial x 4, y 8         unroll  private  interleave
    over prod.1.r 16
      A.stage  flat                                              shared
      B.stage  flat                                              shared
      prod.1   threads x 8, y 8  serial r all, x 4, y 8  unroll  private  interleave
    out        threads x 8, y 8  serial x 4, y 8         unroll           interleave
";
    let schedule = Schedule::parse(text, &pipeline).unwrap();
    assert_eq!(schedule.to_text(&pipeline), text);
    let plan = problem.check(&schedule).unwrap();
    let threads = plan.nests.values().filter(|nest| !nest.nest.mapping.is_flat());
    let rounds = threads.map(|nest| {
        let axes =
            nest.footprint.iter().flat_map(|nest| nest.axes.iter().filter(|axis| axis.is_interleaved()));
        axes.map(|axis| (axis.dim, axis.count, axis.step)).collect::<Vec<_>>()
    });
    assert_eq!(rounds.collect::<Vec<_>>(), vec![vec![(LoopKind::Pure(0), 2, 32)]; 3]);
}

// ---- The builder.

#[test]
fn the_builder_makes_the_same_tree() {
    let pipeline = pipeline();
    let built = ScheduleBuilder::new(&pipeline)
        .inline(["gPyramid1.dy"])
        .kernel("kernel", [("x", 32), ("y", 8)], |block| {
            block.threads("kernel", [("x", 32)].as_slice()).serial("y all")
        })
        .around("prod.1.r 4", |root| root.kernel("prod.1", "", |block| block.flat("prod.1")))
        .kernel("output", String::from("x 8, y 8"), |block| {
            block
                .over("prod.2.all 1", |block| block.flat("over.in.stage").threads("prod.0", "x 8").private())
                .threads("output", [("x", Size::Of(8)), ("y", Size::All)])
                .unroll()
                .registers("over")
        })
        .build()
        .unwrap();
    let text = "\
names                inline gPyramid1.dy
  kernel kernel      block x 32, y 8  threads x 32  serial y all
  around prod.1.r 4
    kernel prod.1    flat
  kernel output      block x 8, y 8
    over prod.2.all 1
      over.in.stage  flat                              shared
      prod.0         threads x 8                       private
    output           threads x 8, y all  unroll
      over           registers
";
    assert_eq!(built, Schedule::parse(text, &pipeline).unwrap());
}

#[test]
fn the_builder_reports_all_mistakes() {
    let pipeline = pipeline();
    let built = ScheduleBuilder::new(&pipeline)
        .inline(["kernle"])
        .around("prod.1.q 4", |root| root)
        .kernel("output", "x 0", |block| block.unroll())
        .kernel("output", "x", |block| block.flat("kernel").serial("x 4").unroll())
        .kernel("output", "x 4 y 4", |block| block.threads("outptu", "x 4").serial("x 4"))
        .kernel("nothing", "x 4", |block| block.flat("output").registers("prod.0"))
        .build();
    insta::assert_snapshot!(built.unwrap_err());
}

#[test]
fn of_many_mistakes_some_are_shown_with_a_part_of_their_line() {
    let text = format!("names inline {}\n", "nonsense, ".repeat(100_000));
    let errors = Schedule::parse(&text, &pipeline()).unwrap_err();
    assert!(errors.errors.len() > 100_000);
    let message = errors.to_string();
    assert!(message.len() < 20_000 && message.contains("more"), "{} bytes", message.len());
    let kept: usize = errors.errors.iter().map(|error| error.spot.as_ref().unwrap().text.len()).sum();
    assert!(kept < 100 * text.len(), "{kept} bytes");
}

#[test]
fn the_part_of_a_long_line_is_the_one_that_is_marked() {
    let text = format!(
        "names  # {}\n  kernel output flat {} threads y 4 {}\n",
        "a".repeat(300),
        "ä".repeat(1_000),
        "b".repeat(1_000)
    );
    let errors = Schedule::parse(&text, &pipeline()).unwrap_err();
    let spot = errors.errors[0].spot.as_ref().unwrap();
    assert_eq!((spot.line, spot.column), (2, 22));
    let shown = spot.to_string();
    let (line, marks) = (shown.lines().nth(2).unwrap(), shown.lines().nth(3).unwrap());
    let marked: String =
        line.chars().zip(marks.chars()).filter(|(_, mark)| *mark == '^').map(|(c, _)| c).collect();
    assert!(marked.len() > 100 && marked.chars().all(|c| c == 'ä'), "{shown}");
    assert!(shown.len() < 2_000, "{shown}");
}

#[test]
fn lines_that_stand_too_deep_are_refused() {
    let deep: String = (1..2_000).map(|level| format!("{}around prod.1.r 1\n", " ".repeat(level))).collect();
    let errors = Schedule::parse(&format!("names\n{deep}"), &pipeline()).unwrap_err();
    assert!(errors.to_string().contains("more than 100 levels deep"), "{errors}");
}

#[test]
fn long_words_are_not_compared_with_every_name() {
    let text = format!("names\n  kernel {} flat\n", "x".repeat(1_000_000));
    let errors = Schedule::parse(&text, &pipeline()).unwrap_err();
    assert!(errors.to_string().len() < 2_000);
}
