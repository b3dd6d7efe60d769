//! Predicts the memory that an evaluation needs, and checks that it is free.

use warploom_lang::ir::NodeKind;
use warploom_lang::{FuncId, IdVec, Pipeline, Regions};

use crate::evaluate::EvalError;

/// For each Func, the last Func in computation order that reads it; the Func itself if no other
/// does.
pub fn last_readers(pipeline: &Pipeline) -> IdVec<FuncId, FuncId> {
    let mut last: IdVec<FuncId, FuncId> = pipeline.funcs().keys().collect();
    for (id, func) in pipeline.funcs().iter() {
        for node in pipeline.exprs().reachable(func.stages.iter().flat_map(|stage| stage.roots())) {
            if let NodeKind::Call(callee, _) = pipeline.exprs()[node].kind {
                last[callee] = last[callee].max(id);
            }
        }
    }
    last
}

/// Rejects an evaluation that needs more memory than is free, before anything is allocated.
pub fn check(pipeline: &Pipeline, regions: &Regions) -> Result<(), EvalError> {
    let Some(available) = available_memory() else { return Ok(()) };
    let bytes = |id: FuncId| {
        let points = regions.funcs[id].region.points().unwrap_or(u64::MAX);
        points.saturating_mul(pipeline.funcs()[id].bytes_per_point() as u64)
    };
    let last = last_readers(pipeline);
    let (mut live, mut needed) = (0u64, 0u64);
    for id in pipeline.funcs().keys() {
        live = live.saturating_add(bytes(id));
        needed = needed.max(live);
        for (read, reader) in last.iter() {
            if *reader == id && read != id && !pipeline.outputs().contains(&read) {
                live = live.saturating_sub(bytes(read));
            }
        }
    }
    if needed <= available {
        return Ok(());
    }
    let largest = pipeline.funcs().keys().max_by_key(|id| bytes(*id));
    let largest = largest.map_or(String::new(), |id| pipeline.funcs()[id].name.clone());
    Err(EvalError::Memory { pipeline: pipeline.name().to_string(), needed, available, largest })
}

/// The memory available without swapping, in bytes; `None` if the system does not report it.
pub fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Formats a number of bytes with a decimal unit.
pub fn readable(bytes: u64) -> String {
    let units = ["bytes", "KB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} bytes") } else { format!("{value:.1} {}", units[unit]) }
}
