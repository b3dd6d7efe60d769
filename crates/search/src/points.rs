//! Schedules as points of a space.
//!
//! A schedule is a structure (what is inlined, which kernels there are, where nests and loops stand, and where results are
//! stored) with numbers and orders in it. A [`Template`] keeps the structure of a legal schedule and makes an axis of
//! everything else that it finds; a [`Schedules`] is a space of several templates. [Strategies](warploom_strategy::Strategy)
//! walk through it without any knowledge of schedules.
//!
//! | found in a kernel | axis | slots or values, outermost first |
//! | --- | --- | --- |
//! | a loop of the kernel's own stage that blocks and threads share | factors | blocks, rounds of the threads, threads, points of a thread |
//! | the same if the own stage is flat | factors | blocks, points of a block |
//! | a reduction variable in a loop over the block | factors | iterations, parts in a thread, values written out in each |
//! | any other reduction variable of private nests and the own one | factors | parts in a thread, values written out in each |
//! | the lists `block`, `threads` and `serial` of the own stage | order | the loops |
//! | serial loops of the own stage, and of private ones that reduce | choice | not unrolled, unrolled |
//! | `blocks` | numbers | 0 for none, 2 to 8 |
//! | an input that the kernel reads | choice | no copy, a copy before its readers or in one of the loops over the block around them |
//! | a nest in shared memory | choice | flat, or the threads along its dimensions |
//! | an array with rows in shared memory | numbers | elements between rows |
//!
//! Private nests follow the nests that read them. Nests in shared memory keep their threads, and adapt the points of
//! each thread to the needs of a block.

mod factors;
mod find;
mod kernel;
mod knob;
mod open;
mod sizes;
mod skeleton;
mod template;

use warploom_plan::Problem;
use warploom_schedule::Schedule;
use warploom_strategy::{Axis, Point, Space};

pub use open::Open;
pub use template::{Refusal, Template, TemplateError};

/// A space of schedules of one problem: a template for each structure among some schedules.
#[derive(Debug)]
pub struct Schedules {
    templates: Vec<Template>,
}

impl Schedules {
    /// The space around some legal schedules. A schedule with the structure of an earlier one adds nothing. So the first one
    /// is the origin of the first template.
    ///
    /// # Errors
    /// If there are no schedules, or if one is not legal.
    pub fn new<'s>(
        problem: &Problem,
        schedules: impl IntoIterator<Item = &'s Schedule>,
        open: Open,
    ) -> Result<Schedules, TemplateError> {
        let mut space = Schedules { templates: Vec::new() };
        for schedule in schedules {
            space.add(problem, schedule, open)?;
        }
        match space.templates.is_empty() {
            true => Err(TemplateError::Empty),
            false => Ok(space),
        }
    }

    /// The same space with only the named axes of each template. On all other axes, points have the values of the
    /// origin.
    ///
    /// # Errors
    /// If a template has no axis of a name.
    pub fn only(self, axes: &[String]) -> Result<Schedules, TemplateError> {
        let templates = self.templates.into_iter().map(|template| template.only(axes));
        Ok(Schedules { templates: templates.collect::<Result<_, _>>()? })
    }

    /// Adds the template of another legal schedule, unless there is one of its structure. Points keep their schedules.
    ///
    /// # Errors
    /// If the schedule is not legal.
    pub fn add(&mut self, problem: &Problem, schedule: &Schedule, open: Open) -> Result<(), TemplateError> {
        let known = self.templates.iter().any(|template| template.is_of(schedule));
        if !known && self.templates.len() < usize::from(u16::MAX) {
            self.templates.push(Template::of(problem, schedule, open)?);
        }
        Ok(())
    }

    /// The templates, in the order of their numbers.
    pub fn all(&self) -> &[Template] {
        &self.templates
    }

    /// The schedule of a point. Several points may have the same schedule; these are equal as values and as text.
    ///
    /// # Errors
    /// If the point is not in the space, or if the device cannot run the schedule. Nothing is compiled to find out.
    pub fn schedule(&self, point: &Point) -> Result<Schedule, Refusal> {
        let template = self.templates.get(usize::from(point.template)).ok_or(Refusal::Elsewhere)?;
        template.schedule(&point.at)
    }

    /// The point of a schedule, whose schedule is exactly this one. `None` if it is not in the space.
    pub fn point(&self, schedule: &Schedule) -> Option<Point> {
        let place = |template: &Template| template.place(schedule);
        let (number, at) = self.templates.iter().map(place).enumerate().find_map(|(i, at)| Some((i, at?)))?;
        Some(Point { template: u16::try_from(number).ok()?, at })
    }
}

impl Space for Schedules {
    fn templates(&self) -> usize {
        self.templates.len()
    }

    fn axes(&self, template: u16) -> &[Axis] {
        self.templates.get(usize::from(template)).map_or(&[], Template::axes)
    }

    fn origin(&self, template: u16) -> Point {
        let at = self.templates.get(usize::from(template)).map(Template::start);
        Point { template, at: at.unwrap_or_default() }
    }

    fn refusal(&self, point: &Point) -> Option<String> {
        self.schedule(point).err().map(|refusal| refusal.to_string())
    }
}
