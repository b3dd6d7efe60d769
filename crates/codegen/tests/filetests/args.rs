//! The command line, which `cargo test` may share with test programs of the standard kind.

/// Options of other test programs that a value follows.
const WITH_VALUE: [&str; 7] =
    ["--test-threads", "--skip", "--color", "--format", "--logfile", "--shuffle-seed", "-Z"];

#[derive(Default, PartialEq, Debug)]
pub struct Args {
    /// Write what was found into the files.
    pub bless: bool,
    /// Only print the names of the cases.
    pub list: bool,
    /// Whether only ignored tests are asked for, of which there are none here.
    ignored: bool,
    exact: bool,
    filters: Vec<String>,
    skipped: Vec<String>,
}

impl Args {
    pub fn new(args: impl IntoIterator<Item = String>, bless: bool) -> Args {
        let mut parsed = Args { bless, ..Args::default() };
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--bless" => parsed.bless = true,
                "--list" => parsed.list = true,
                "--ignored" => parsed.ignored = true,
                "--exact" => parsed.exact = true,
                "--skip" => parsed.skipped.extend(args.next()),
                option if WITH_VALUE.contains(&option) => drop(args.next()),
                option if option.starts_with('-') => {}
                _ => parsed.filters.push(arg),
            }
        }
        parsed
    }

    pub fn wants(&self, name: &str) -> bool {
        let fits = |filter: &String| if self.exact { name == filter } else { name.contains(filter.as_str()) };
        let wanted = self.filters.is_empty() || self.filters.iter().any(fits);
        wanted && !self.ignored && !self.skipped.iter().any(fits)
    }
}
