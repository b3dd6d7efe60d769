//! Formats explanations as text: one line per stage, in columns.

use std::fmt;

use crate::explain::{Explanation, KernelExplanation, Line, Memory, TimeOf};

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
            "kernel {}   {launches}grid {x}x{y}x{z}, {} threads, {} shared, ~{} registers, {} per SM   predicted {:.1} us",
            self.stage,
            self.threads,
            bytes(self.shared_bytes),
            self.registers,
            if self.blocks_per_sm == 1 {
                "1 block".to_owned()
            } else {
                format!("{} blocks", self.blocks_per_sm)
            },
            self.predicted_us
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
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                // Right-align numbers.
                let padded = if column == 3 { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
                line += &padded;
                line += &" ".repeat(if *width > 0 { GAP } else { 0 });
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        let terms: Vec<String> =
            self.terms.iter().map(|term| format!("{} {:.1}", term.what, term.us)).collect();
        writeln!(f, "  {} us   (overlapped)", terms.join("   "))
    }
}

fn cells(line: &Line) -> [String; 5] {
    [
        format!("{:indent$}{}", "", line.name, indent = 4 + 2 * line.depth),
        line.how.clone(),
        line.memory.as_ref().map(memory).unwrap_or_default(),
        line.redundancy.map(times).unwrap_or_default(),
        parts(&line.terms),
    ]
}

/// `1.33x`; without fraction from 1000 on.
fn times(redundancy: f64) -> String {
    if redundancy < 1000.0 { format!("{redundancy:.2}x") } else { format!("{redundancy:.0}x") }
}

/// `shared 70x22, 6.2 KB`
fn memory(memory: &Memory) -> String {
    if memory.extents.is_empty() && memory.bytes == 0 {
        return memory.kind.to_owned();
    }
    let extents = memory.extents.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
    format!("{} {extents}, {}", memory.kind, bytes(memory.bytes))
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

fn bytes(bytes: u64) -> String {
    if bytes < 1000 { format!("{bytes} B") } else { format!("{:.1} KB", bytes as f64 / 1000.0) }
}
