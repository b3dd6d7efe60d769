//! The barriers of a block: where a nest touches memory that another one wrote, or writes what another one touched,
//! since the last barrier.

/// Arrays that threads exchange values through, one bit each, that something touches.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Touched {
    pub read: u64,
    pub written: u64,
}

impl Touched {
    fn conflicts(self, later: Touched) -> bool {
        later.read & self.written != 0 || later.written & (self.read | self.written) != 0
    }

    fn extend(&mut self, later: Touched) {
        self.read |= later.read;
        self.written |= later.written;
    }
}

/// A part of a block.
#[derive(Debug)]
pub(crate) enum Segment {
    Nest(Touched),
    Loop { count: f64, body: Vec<Segment> },
}

/// How many barriers a block passes.
pub(crate) fn barriers(segments: &[Segment]) -> f64 {
    between(segments, &mut Touched::default()).number
}

/// What stands between segments.
#[derive(Clone, Copy, Default)]
struct Between {
    number: f64,
    /// What is touched before the first barrier.
    first: Touched,
}

/// The barriers between segments; `since` is what was touched since the last one.
fn between(segments: &[Segment], since: &mut Touched) -> Between {
    let mut all = Between::default();
    for segment in segments {
        let crossed = all.number > 0.0;
        let (number, own) = match segment {
            Segment::Nest(own) => {
                let needed = since.conflicts(*own);
                if needed {
                    *since = Touched::default();
                }
                since.extend(*own);
                (f64::from(u8::from(needed)), *own)
            }
            Segment::Loop { count, body } => looped(*count, body, since),
        };
        // A nest behind the first barrier is not before it.
        let behind = matches!(segment, Segment::Nest(_)) && number > 0.0;
        if !crossed && !behind {
            all.first.extend(own);
        }
        all.number += number;
    }
    all
}

/// A loop, with a barrier at its end if the next iteration needs one, and one in front if what was before does.
fn looped(count: f64, body: &[Segment], since: &mut Touched) -> (f64, Touched) {
    let mut last = Touched::default();
    let mut inside = between(body, &mut last);
    if last.conflicts(inside.first) {
        inside.number += 1.0;
        last = Touched::default();
    }
    let mut number = inside.number * count;
    let before = since.conflicts(inside.first);
    number += f64::from(u8::from(before));
    if before || inside.number > 0.0 {
        *since = Touched::default();
    }
    since.extend(last);
    (number, inside.first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nest(read: u64, written: u64) -> Segment {
        Segment::Nest(Touched { read, written })
    }

    #[test]
    fn a_tile_that_is_filled_in_every_iteration_takes_two() {
        let body = vec![nest(0, 1), nest(1, 2)];
        assert_eq!(barriers(&[Segment::Loop { count: 10.0, body }, nest(2, 0)]), 20.0);
        assert_eq!(barriers(&[nest(0, 1), nest(0, 2), nest(3, 0)]), 1.0);
        assert_eq!(barriers(&[nest(4, 0), nest(4, 8)]), 0.0);
    }
}
