//! Formats explanations as text: one line per stage, in columns.

use std::fmt;

use warploom_lang::brief::padded;

use crate::explain::{
    Bottleneck, Explanation, KernelExplanation, Limit, Line, Loop, LoopUse, StageMemory, TimeOf,
};

/// Spaces between columns.
const GAP: usize = 3;
/// Terms below this share of the largest one are omitted.
const NEGLIGIBLE: f64 = 0.1;
/// At most this many terms per stage are listed.
const PARTS: usize = 3;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, kernel) in self.kernels.iter().enumerate() {
            let separator = if number == 0 { "" } else { "\n" };
            write!(f, "{separator}{kernel}")?;
        }
        match &self.idle {
            Some(idle) => write!(f, "\nnote: {idle}\n"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for KernelExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.grid;
        let launches = match self.launches {
            launches if launches > 1.0 => format!("{launches} launches, "),
            _ => String::new(),
        };
        writeln!(
            f,
            "kernel {}   {launches}grid {x}x{y}x{z}, {} threads, {} shared, ~{} registers, {} per SM   predicted {}",
            self.stage,
            self.threads,
            amount(self.shared_bytes),
            self.registers,
            if self.blocks_per_sm == 1 {
                "1 block".to_owned()
            } else {
                format!("{} blocks", self.blocks_per_sm)
            },
            microseconds(self.predicted_us)
        )?;
        let block = Some(&self.block).filter(|block| !block.is_empty()).map(|block| format!("block {block}"));
        let numbers = self.numbers.iter().map(|(word, number)| format!("{word} {number}"));
        let said: Vec<String> = block.into_iter().chain(numbers).collect();
        if !said.is_empty() {
            writeln!(f, "  {}", said.join("   "))?;
        }
        let rows: Vec<[String; 5]> = self.lines.iter().map(cells).collect();
        let widths: Vec<usize> = (0..5)
            .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
            .collect();
        for row in &rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line += &padded(cell, *width);
                line += &" ".repeat(if *width > 0 { GAP } else { 0 });
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        let terms: Vec<String> =
            self.terms.iter().map(|term| format!("{} {:.1}", term.what, term.us)).collect();
        writeln!(f, "  {} us   (overlapped)", terms.join("   "))?;
        let (read, written) = (amount(self.read_bytes as u64), amount(self.written_bytes as u64));
        let limited = self.bottleneck.as_ref().map(|limit| format!("; {limit}")).unwrap_or_default();
        writeln!(f, "  reads {read}, writes {written}{limited}")
    }
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = format!("{:.1} of its {}", self.us, microseconds(self.of_us));
        match &self.limit {
            Limit::Launch { launches } if *launches > 1.0 => {
                write!(f, "limited by the launch: its {launches} launches take {time}")
            }
            Limit::Launch { .. } => write!(f, "limited by the launch, which takes {time}"),
            Limit::Dram { bytes: moved, gbps } => {
                // A rate above that of the device means that the model expects most of it to be in the cache.
                let rate = *moved / (self.us * 1000.0);
                let at = match rate <= 1.1 * gbps {
                    true => format!(" at {:.1} TB/s", rate / 1000.0),
                    false => ", a part of them in the L2 cache,".to_owned(),
                };
                write!(f, "limited by DRAM: {}{at} take {time}", amount(*moved as u64))
            }
            Limit::L2 { bytes: moved } => {
                let moved = amount(*moved as u64);
                write!(f, "limited by the L2 cache: its blocks move {moved}, which take {time}")
            }
            Limit::Sms { pipe, stage } => {
                write!(f, "limited by the SMs, busy for {time}: {}, above all for `{stage}`", work_of(pipe))
            }
            Limit::Latency { blocks, sms, .. } if blocks < sms => {
                let plural = if *blocks == 1 { "" } else { "s" };
                write!(
                    f,
                    "limited by latency: only {blocks} block{plural} for {sms} SMs; waiting takes {time}"
                )
            }
            Limit::Latency { warps_per_sm, most_warps_per_sm, .. } => {
                let few = if 2 * warps_per_sm < *most_warps_per_sm { ": only" } else { ", with" };
                write!(f, "limited by latency{few} {warps_per_sm} warps per SM; waiting takes {time}")
            }
        }
    }
}

impl Limit {
    /// The limit of the kernel, in a word or two.
    pub fn name(&self) -> &'static str {
        match self {
            Limit::Launch { .. } => "the launch",
            Limit::Dram { .. } => "DRAM",
            Limit::L2 { .. } => "the L2 cache",
            Limit::Sms { .. } => "the SMs",
            Limit::Latency { .. } => "latency",
        }
    }
}

/// The work of a pipe of the SMs.
fn work_of(pipe: &str) -> &str {
    match pipe {
        "issue" => "issuing instructions",
        "float" => "float arithmetic",
        "integer" => "integer and index arithmetic",
        "special" => "divisions, roots and elementary functions",
        "L1 and shared" => "accesses to L1 and shared memory",
        other => other,
    }
}

impl fmt::Display for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loop { kind, variable, count, step, leftover } = self;
        let several = |one: &str| match (count, one) {
            (1, _) => format!("1 {one}"),
            (_, "launch") => format!("{count} launches"),
            _ => format!("{count} {one}s"),
        };
        let each = |of: &str| if *step > 1 { format!(", {step} {of} each") } else { String::new() };
        match kind {
            LoopUse::Launches => {
                write!(f, "{} along {variable}{}", several("launch"), each("values"))
            }
            LoopUse::Blocks => write!(f, "{} along {variable}{}", several("block"), each("points")),
            LoopUse::Over => write!(f, "{} over {variable}{}", several("iteration"), each("values")),
            LoopUse::Threads => write!(f, "{} along {variable}", several("thread")),
            LoopUse::Flat if variable.is_empty() => write!(f, "{} of {step} threads", several("round")),
            LoopUse::Flat => write!(f, "{} of {step} threads over {variable}", several("round")),
            LoopUse::Rounds => write!(f, "{} along {variable}{}", several("round"), each("points")),
            LoopUse::Serial => write!(f, "for {variable}: {}{}", several("time"), each("values")),
            LoopUse::Interleaved => {
                write!(f, "{} along {variable}, unrolled{}", several("round"), each("points"))
            }
            LoopUse::Unrolled => write!(f, "for {variable}: {}, unrolled", several("time")),
        }?;
        match leftover {
            Some(last) if *kind == LoopUse::Flat => write!(f, "; the last has {} points", last.points),
            Some(last) => write!(f, "; the last has {}", last.points),
            None => Ok(()),
        }
    }
}

/// A predicted time.
pub fn microseconds(us: f64) -> String {
    format!("{us:.1} us")
}

fn cells(line: &Line) -> [String; 5] {
    [
        " ".repeat(4 + 2 * line.depth) + &line.name,
        line.how.clone(),
        line.memory.as_ref().map(ToString::to_string).unwrap_or_default(),
        line.recomputation(),
        parts(&line.terms),
    ]
}

impl Line {
    /// The redundancy: `1.33x` the required number of points, or `9 per point of output`.
    pub fn recomputation(&self) -> String {
        match (self.redundancy, self.per_point, &self.consumer) {
            (Some(redundancy), ..) => times(redundancy),
            (None, Some(number), Some(consumer)) => format!("{} per point of {consumer}", short(number)),
            _ => String::new(),
        }
    }
}

/// A number with two significant digits, or without a fraction if it has none.
fn short(number: f64) -> String {
    match number {
        whole if (whole - whole.round()).abs() < 1e-6 && whole >= 1.0 => format!("{whole:.0}"),
        large if large >= 0.1 => format!("{large:.2}"),
        small => format!("{small:.1e}"),
    }
}

/// `1.33x`; without fraction from 1000 on.
fn times(redundancy: f64) -> String {
    if redundancy < 1000.0 { format!("{redundancy:.2}x") } else { format!("{redundancy:.0}x") }
}

/// `shared 70x22, 6.2 KB`
impl fmt::Display for StageMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.extents.is_empty() && self.bytes == 0 {
            return f.write_str(self.kind);
        }
        let extents = self.extents.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
        write!(f, "{} {extents}, {}", self.kind, amount(self.bytes))
    }
}

/// `issue 6.1, integer 4.0 us`, the largest first.
fn parts(terms: &[TimeOf]) -> String {
    let mut terms: Vec<&TimeOf> = terms.iter().collect();
    terms.sort_by(|a, b| b.us.total_cmp(&a.us));
    let largest = terms.first().map_or(0.0, |term| term.us);
    let worth = terms.iter().filter(|term| term.us > 0.0 && term.us >= NEGLIGIBLE * largest).take(PARTS);
    let texts: Vec<String> = worth.map(|term| format!("{} {:.1}", term.what, term.us)).collect();
    if texts.is_empty() { String::new() } else { format!("{} us", texts.join(", ")) }
}

/// A number of bytes: `999 B`, `1.5 KB`.
pub fn amount(bytes: u64) -> String {
    let units = ["KB", "MB", "GB", "TB"];
    let power =
        (1..units.len()).rev().find(|power| bytes as f64 >= 1000_f64.powi(*power as i32 + 1)).unwrap_or(0);
    match bytes {
        0..1000 => format!("{bytes} B"),
        _ => format!("{:.1} {}", bytes as f64 / 1000_f64.powi(power as i32 + 1), units[power]),
    }
}
