//! The order in which pipelines and apps are measured.

/// Number of samples of an app per search.
const ROUND: usize = 20;

/// A unit of work for a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A random pipeline.
    Random {
        /// Its number, from 0.
        number: u64,
    },
    /// Some samples of an app.
    App {
        /// The app, by its position.
        app: usize,
        /// The number of the round, from 0.
        round: u64,
        /// Number of samples.
        samples: usize,
    },
}

/// All units. Those of apps are spread evenly among the random pipelines and alternate between the
/// apps.
#[derive(Debug)]
pub struct Plan {
    pipelines: u64,
    apps: usize,
    per_app: usize,
    app_units: u64,
}

impl Plan {
    /// The plan for the given numbers of random pipelines, apps, and samples per app.
    pub fn new(pipelines: u64, apps: usize, per_app: usize) -> Plan {
        Plan { pipelines, apps, per_app, app_units: (apps * per_app.div_ceil(ROUND)) as u64 }
    }

    /// All units in order.
    pub fn units(&self) -> impl Iterator<Item = Unit> {
        (0..).map_while(|number| self.unit(number))
    }

    /// The unit with this number; `None` after the last.
    pub fn unit(&self, number: u64) -> Option<Unit> {
        let all = self.pipelines + self.app_units;
        if number >= all {
            return None;
        }
        // The number of app units before a unit.
        let before = |number: u64| (u128::from(number) * u128::from(self.app_units) / u128::from(all)) as u64;
        let (apps, then) = (before(number), before(number + 1));
        if then == apps {
            return Some(Unit::Random { number: number - apps });
        }
        let (app, round) = ((apps % self.apps as u64) as usize, apps / self.apps as u64);
        let samples = ROUND.min(self.per_app - ROUND * round as usize);
        Some(Unit::App { app, round, samples })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_comes_once_and_apps_are_spread() {
        let plan = Plan::new(800, 17, 90);
        let units: Vec<Unit> = plan.units().collect();
        assert_eq!(units.len(), 800 + 17 * 5);
        let random: Vec<u64> = units
            .iter()
            .filter_map(|unit| match unit {
                Unit::Random { number } => Some(*number),
                Unit::App { .. } => None,
            })
            .collect();
        assert_eq!(random, (0..800).collect::<Vec<u64>>());
        for app in 0..17 {
            let of_app = units.iter().enumerate().filter_map(|(position, unit)| match unit {
                Unit::App { app: its, samples, .. } if *its == app => Some((position, *samples)),
                _ => None,
            });
            let of_app: Vec<(usize, usize)> = of_app.collect();
            assert_eq!(of_app.iter().map(|(_, samples)| samples).sum::<usize>(), 90);
            assert!(of_app.windows(2).all(|pair| pair[1].0 - pair[0].0 > 150), "{of_app:?}");
        }
        assert_eq!(Plan::new(0, 3, 20).unit(2), Some(Unit::App { app: 2, round: 0, samples: 20 }));
        assert_eq!(Plan::new(3, 0, 20).unit(2), Some(Unit::Random { number: 2 }));
        assert_eq!(Plan::new(0, 0, 0).unit(0), None);
    }
}
