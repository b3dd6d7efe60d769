//! Parses the assembler's resource usage of each kernel.

use std::collections::BTreeMap;

use crate::driver::Resources;

/// The resource usage of each kernel by entry name, from the messages of `ptxas -v`.
pub(super) fn resources(log: &str) -> BTreeMap<String, Resources> {
    let mut kernels: BTreeMap<String, Resources> = BTreeMap::new();
    let mut current: Option<String> = None;
    for line in log.lines() {
        if let Some(rest) = line.split_once("Compiling entry function '").map(|(_, rest)| rest) {
            current = rest.split('\'').next().map(str::to_string);
        }
        let Some(name) = &current else { continue };
        let kernel = kernels.entry(name.clone()).or_default();
        let fields: [(&str, &mut u32); 5] = [
            (" registers", &mut kernel.registers),
            (" bytes spill stores", &mut kernel.spill_stores),
            (" bytes spill loads", &mut kernel.spill_loads),
            (" bytes stack frame", &mut kernel.local_bytes),
            (" bytes smem", &mut kernel.shared_bytes),
        ];
        for (unit, field) in fields {
            if let Some(number) = number_before(line, unit) {
                *field = number;
            }
        }
    }
    kernels
}

/// The messages without the assembler's statistics.
pub(super) fn messages(log: &str) -> String {
    let lines =
        log.lines().filter(|line| !line.starts_with("ptxas info") && !line.starts_with("ptxas         ."));
    lines.filter(|line| !line.trim().is_empty()).collect::<Vec<&str>>().join("\n")
}

/// The number directly before a unit.
fn number_before(line: &str, unit: &str) -> Option<u32> {
    let (before, _) = line.split_once(unit)?;
    let digits = before.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |position| position + 1);
    before[digits..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'two' for 'sm_90'
ptxas info    : Function properties for two
ptxas         .     672 bytes stack frame, 284 bytes spill stores, 288 bytes spill loads
ptxas info    : Used 64 registers, used 0 barriers, 672 bytes cumulative stack size
ptxas info    : Compile time = 65.840 ms
ptxas info    : Compiling entry function 'one' for 'sm_90'
ptxas info    : Function properties for one
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 14 registers, used 1 barriers, 1200 bytes smem
ptxas info    : Compile time = 6.238 ms
a.cu(3): warning #550-D: variable \"x\" was set but never used
";

    #[test]
    fn kernels_are_told_apart() {
        let kernels = resources(LOG);
        let two = Resources {
            registers: 64,
            spill_stores: 284,
            spill_loads: 288,
            local_bytes: 672,
            shared_bytes: 0,
        };
        assert_eq!(kernels["two"], two);
        assert_eq!(kernels["one"], Resources { registers: 14, shared_bytes: 1200, ..Resources::default() });
        assert_eq!(kernels.len(), 2);
        assert_eq!(messages(LOG), "a.cu(3): warning #550-D: variable \"x\" was set but never used");
        assert!(resources("").is_empty());
    }
}
