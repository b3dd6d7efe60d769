//! Sets of active threads of a block.

/// Threads per warp.
pub const WARP: usize = warploom_target::WARP as usize;

/// The active threads of a block: one bit per thread, one word per warp.
#[derive(Clone, Debug)]
pub struct Mask {
    warps: Vec<u32>,
    active: u32,
    /// The first active thread.
    first: usize,
    /// One past the last active thread.
    end: usize,
}

impl Mask {
    /// All threads.
    pub fn full(threads: usize) -> Mask {
        let bits = |warp: usize| u32::MAX >> (WARP - (threads - warp * WARP).min(WARP));
        let warps = (0..threads.div_ceil(WARP)).map(bits).collect();
        Mask { warps, active: threads as u32, first: 0, end: threads }
    }

    /// Sets the mask to the threads of `outer` where `condition` holds.
    pub fn narrow(&mut self, outer: &Mask, condition: &[u32]) {
        self.set(outer, |number, _| bits(&condition[number * WARP..]));
    }

    /// Sets the mask to the threads of `outer` that it does not contain.
    pub fn turn(&mut self, outer: &Mask) {
        self.set(outer, |_, own| !own);
    }

    /// Sets the mask to the threads of `outer` whose bit is set in `new`, a function of the warp's number
    /// and its current bits.
    fn set(&mut self, outer: &Mask, new: impl Fn(usize, u32) -> u32) {
        self.active = 0;
        (self.first, self.end) = (usize::MAX, 0);
        for (number, to) in self.warps.iter_mut().enumerate() {
            let outer = outer.warps[number];
            *to = if outer == 0 { 0 } else { outer & new(number, *to) };
            if *to != 0 {
                self.active += to.count_ones();
                self.first = self.first.min(number * WARP + to.trailing_zeros() as usize);
                self.end = (number + 1) * WARP - to.leading_zeros() as usize;
            }
        }
    }

    /// The number of active threads.
    pub fn active(&self) -> u32 {
        self.active
    }

    /// The number of warps with an active thread.
    pub fn active_warps(&self) -> u32 {
        self.warps.iter().map(|bits| u32::from(*bits != 0)).sum()
    }

    /// The smallest range that contains all active threads.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.first..self.end
    }

    /// The bits of each warp.
    pub fn warps(&self) -> &[u32] {
        &self.warps
    }

    /// The active threads.
    pub fn threads(&self) -> impl Iterator<Item = usize> + '_ {
        self.warps.iter().enumerate().flat_map(|(number, bits)| {
            let mut left = *bits;
            std::iter::from_fn(move || {
                let lane = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(number * WARP + lane)
            })
        })
    }
}

/// The bits of the lanes that are not 0.
fn bits(lanes: &[u32]) -> u32 {
    let lanes = lanes.iter().take(WARP).enumerate();
    lanes.fold(0, |bits, (lane, value)| bits | u32::from(*value != 0) << lane)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_know_their_threads() {
        let full = Mask::full(70);
        assert_eq!((full.active(), full.active_warps(), full.range()), (70, 3, 0..70));
        assert_eq!(full.warps(), [u32::MAX, u32::MAX, 0x3f]);

        let condition: Vec<u32> = (0..70).map(|thread| u32::from(thread % 7 == 3 && thread > 31)).collect();
        let mut narrow = full.clone();
        narrow.narrow(&full, &condition);
        assert_eq!(narrow.threads().collect::<Vec<_>>(), [38, 45, 52, 59, 66]);
        assert_eq!((narrow.active(), narrow.active_warps(), narrow.range()), (5, 2, 38..67));

        let mut others = narrow.clone();
        others.turn(&full);
        assert_eq!((others.active(), others.active_warps(), others.range()), (65, 3, 0..70));
        assert!(others.threads().all(|thread| condition[thread] == 0));

        let mut none = full.clone();
        none.narrow(&full, &[0; 70]);
        assert_eq!((none.active(), none.active_warps()), (0, 0));
        assert_eq!(Mask::full(32).warps(), [u32::MAX]);
        assert_eq!(Mask::full(1).warps(), [1]);
    }
}
