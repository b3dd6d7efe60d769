//! Axes: positions of numbers, and round numbers for tick labels.

/// The maximum number of tick labels that fit on an axis.
const MOST_TICKS: usize = 8;

/// An axis: maps numbers to positions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Scale {
    logarithmic: bool,
    /// Whether only whole numbers are labelled.
    whole: bool,
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// A linear axis: `least` is at `from`, `most` at `to`.
    pub fn linear((least, most): (f64, f64), (from, to): (f64, f64)) -> Scale {
        let most = if most > least { most } else { least + 1.0 };
        Scale { logarithmic: false, whole: false, least, most, from, to }
    }

    /// A linear axis of numbers that are counted: its ticks are whole numbers.
    ///
    /// ```
    /// use warploom_report::scale::Scale;
    /// assert_eq!(Scale::whole((0.0, 2.0), (0.0, 200.0)).ticks(), [0.0, 1.0, 2.0]);
    /// ```
    pub fn whole(numbers: (f64, f64), places: (f64, f64)) -> Scale {
        Scale { whole: true, ..Scale::linear(numbers, places) }
    }

    /// A logarithmic axis. Both numbers must be positive.
    ///
    /// ```
    /// use warploom_report::scale::Scale;
    /// let axis = Scale::logarithmic((1.0, 100.0), (0.0, 200.0));
    /// assert_eq!(axis.place(10.0), 100.0);
    /// ```
    pub fn logarithmic((least, most): (f64, f64), (from, to): (f64, f64)) -> Scale {
        let least = least.max(f64::MIN_POSITIVE);
        let most = if most > least { most } else { least * 10.0 };
        Scale { logarithmic: true, whole: false, least, most, from, to }
    }

    /// The position of a number. Numbers outside the range are clamped to its ends.
    pub fn place(&self, number: f64) -> f64 {
        let number = number.clamp(self.least, self.most);
        let share = if self.logarithmic {
            (number / self.least).ln() / (self.most / self.least).ln()
        } else {
            (number - self.least) / (self.most - self.least)
        };
        self.from + share * (self.to - self.from)
    }

    /// A readable number of round values within the range.
    pub fn ticks(&self) -> Vec<f64> {
        // Within one decade, multiples of a round step are easier to read than powers.
        let mut ticks = match self.logarithmic && self.most / self.least >= 10.0 {
            true => powers(self.least, self.most),
            false => multiples(self.least, self.most),
        };
        ticks.retain(|tick| !self.whole || tick.fract() == 0.0);
        ticks
    }
}

/// The range of some numbers, padded a little; `None` if there are no numbers.
pub(crate) fn padded(numbers: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (least, most) =
        numbers.fold((f64::INFINITY, 0.0f64), |(least, most), number| (least.min(number), most.max(number)));
    (least <= most).then_some((least / 1.06, most * 1.06))
}

/// A range around the same middle whose ends are at least `factor` apart.
pub(crate) fn spread((least, most): (f64, f64), factor: f64) -> (f64, f64) {
    let wanting = (factor * least / most).max(1.0).sqrt();
    (least / wanting, most * wanting)
}

/// Whether a number can be shown on a logarithmic axis.
pub(crate) fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

/// 1, 2 and 5 times powers of ten. Over many decades, only some of the powers.
fn powers(least: f64, most: f64) -> Vec<f64> {
    let (first, last) = (least.log10().floor() as i32, most.log10().ceil() as i32);
    let inside = |digits: &[f64], step: usize| -> Vec<f64> {
        let powers = (first..=last).filter(|power| power.rem_euclid(step as i32) == 0);
        let all = powers.flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)));
        all.filter(|tick| (least..=most).contains(tick)).collect()
    };
    let fine = inside(&[1.0, 2.0, 5.0], 1);
    if fine.len() <= MOST_TICKS {
        return fine;
    }
    let steps = (1..).map(|step| inside(&[1.0], step));
    steps.into_iter().find(|ticks| ticks.len() <= MOST_TICKS).unwrap_or_default()
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn multiples(least: f64, most: f64) -> Vec<f64> {
    let rough = (most - least) / (MOST_TICKS - 2) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let (first, last) = ((least / step).ceil() as i64, (most / step).floor() as i64);
    (first..=last).map(|multiple| multiple as f64 * step).collect()
}

/// The shortest label of a tick.
pub(crate) fn label(tick: f64) -> String {
    if tick != 0.0 && !(1e-4..1e6).contains(&tick.abs()) {
        return format!("{tick:.0e}");
    }
    // Steps are not exact in binary. Round, so that labels do not show it.
    let text = format!("{tick:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale) -> Vec<String> {
        scale.ticks().into_iter().map(label).collect()
    }

    #[test]
    fn numbers_have_places() {
        let linear = Scale::linear((10.0, 20.0), (0.0, 100.0));
        assert_eq!(
            [5.0, 10.0, 15.0, 20.0, 99.0].map(|number| linear.place(number)),
            [0.0, 0.0, 50.0, 100.0, 100.0]
        );
        let down = Scale::logarithmic((1.0, 16.0), (100.0, 0.0));
        assert_eq!([1.0, 4.0, 16.0].map(|number| down.place(number).round()), [100.0, 50.0, 0.0]);
    }

    #[test]
    fn linear_ticks_are_round_steps() {
        assert_eq!(labels(Scale::linear((0.0, 566.0), (0.0, 1.0))), ["0", "100", "200", "300", "400", "500"]);
        assert_eq!(labels(Scale::linear((0.0, 1.0), (0.0, 1.0))), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(
            labels(Scale::linear((0.29, 0.31), (0.0, 1.0))),
            ["0.29", "0.295", "0.3", "0.305", "0.31"]
        );
    }

    #[test]
    fn logarithmic_ticks_fit_their_range() {
        let ticks = |least, most| labels(Scale::logarithmic((least, most), (0.0, 1.0)));
        assert_eq!(ticks(5.8, 14.6), ["6", "8", "10", "12", "14"]);
        assert_eq!(ticks(0.5, 11.1), ["0.5", "1", "2", "5", "10"]);
        assert_eq!(ticks(0.9, 12_000.0), ["1", "10", "100", "1000", "10000"]);
        assert_eq!(ticks(1e-9, 1e9), ["1e-9", "1e-6", "0.001", "1", "1000", "1e6", "1e9"]);
    }

    #[test]
    fn ranges_without_extent_are_axes_too() {
        for scale in [Scale::linear((3.0, 3.0), (0.0, 10.0)), Scale::logarithmic((3.0, 3.0), (0.0, 10.0))] {
            assert!(scale.place(3.0).is_finite() && !scale.ticks().is_empty(), "{scale:?}");
        }
        assert_eq!(padded(std::iter::empty()), None);
    }

    #[test]
    fn counts_are_whole() {
        let ticks = |most| labels(Scale::whole((0.0, most), (0.0, 1.0)));
        assert_eq!(ticks(1.0), ["0", "1"]);
        assert_eq!(ticks(3.0), ["0", "1", "2", "3"]);
        assert_eq!(ticks(5.0), ["0", "1", "2", "3", "4", "5"]);
    }

    #[test]
    fn narrow_ranges_are_spread() {
        let (least, most) = spread((10.0, 10.1), 1.5);
        assert!((most / least - 1.5).abs() < 1e-9 && least < 10.0 && most > 10.1, "{least} {most}");
        assert_eq!(spread((1.0, 2.0), 1.5), (1.0, 2.0));
    }

    #[test]
    fn an_axis_is_never_crowded() {
        for most in (1..400).map(|step| 1.02 * 1.07f64.powi(step)) {
            for scale in [Scale::logarithmic((1.0, most), (0.0, 1.0)), Scale::linear((1.0, most), (0.0, 1.0))]
            {
                let count = scale.ticks().len();
                assert!((2..=MOST_TICKS).contains(&count), "{count} ticks up to {most}: {scale:?}");
            }
        }
    }
}
