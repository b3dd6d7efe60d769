//! The memory of a device: values as patterns of 32 or 64 bits, with a record of the last accesses.

use warploom_codegen::ir::AtomicOp;
use warploom_interp::lanes::{Lane, Lanes, Row};
use warploom_lang::op::Op;
use warploom_lang::{Type, Value};

use crate::error::AccessKind;
use crate::mask::{Mask, WARP};
use crate::shadow::{Cell, Era, Mark, Refusal};

/// A refused access: the reason and the element.
#[derive(Clone, Copy, Debug)]
pub struct Denied {
    pub thread: u16,
    pub element: u32,
    pub why: Why,
}

/// Why an access is refused.
#[derive(Clone, Copy, Debug)]
pub enum Why {
    OutOfBounds,
    /// The first element of a vector is not a multiple of this number.
    Misaligned(u32),
    Uninitialised,
    Conflict(AccessKind, Mark),
    UnderWay(Mark),
}

impl From<Refusal> for Why {
    fn from(refusal: Refusal) -> Why {
        match refusal {
            Refusal::Uninitialised => Why::Uninitialised,
            Refusal::Conflict(kind, mark) => Why::Conflict(kind, mark),
            Refusal::UnderWay(mark) => Why::UnderWay(mark),
        }
    }
}

/// The elements that the active threads of one warp access.
#[derive(Clone, Copy, Debug)]
pub struct Warp<'a> {
    pub elements: &'a [u32],
    pub threads: &'a [u16],
}

impl<'a> Warp<'a> {
    fn lanes(self) -> impl Iterator<Item = (u32, u16)> + 'a {
        self.elements.iter().copied().zip(self.threads.iter().copied())
    }

    /// Returns an error if an element is not below `limit`.
    pub fn check(self, limit: usize) -> Result<(), Denied> {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX).min(i32::MAX as u32);
        let most = self.elements.iter().fold(0, |most, element| most.max(*element));
        if most < limit {
            return Ok(());
        }
        let outside = self.lanes().find(|(element, _)| *element >= limit);
        outside.map_or(Ok(()), |(element, thread)| Err(Denied { thread, element, why: Why::OutOfBounds }))
    }
}

/// Visits the warps that have active threads.
pub fn for_each_warp(
    mask: &Mask,
    indices: &[u32],
    mut visit: impl FnMut(Warp<'_>) -> Result<(), Denied>,
) -> Result<(), Denied> {
    let mut threads = [0_u16; WARP];
    let mut elements = [0_u32; WARP];
    for (number, &bits) in mask.warps().iter().enumerate() {
        let first = number * WARP;
        if bits == u32::MAX {
            for (lane, thread) in threads.iter_mut().enumerate() {
                *thread = (first + lane) as u16;
            }
            visit(Warp { elements: &indices[first..first + WARP], threads: &threads })?;
        } else if bits != 0 {
            let (mut left, mut lanes) = (bits, 0);
            while left != 0 {
                let thread = first + left.trailing_zeros() as usize;
                (threads[lanes], elements[lanes]) = (thread as u16, indices[thread]);
                left &= left - 1;
                lanes += 1;
            }
            visit(Warp { elements: &elements[..lanes], threads: &threads[..lanes] })?;
        }
    }
    Ok(())
}

/// The contents of an array.
#[derive(Debug)]
pub enum Words {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Words {
    pub fn zeros(ty: Type, elements: usize) -> Words {
        if ty.is_wide() { Words::Wide(vec![0; elements]) } else { Words::Narrow(vec![0; elements]) }
    }

    pub fn len(&self) -> usize {
        match self {
            Words::Narrow(words) => words.len(),
            Words::Wide(words) => words.len(),
        }
    }

    pub fn get(&self, element: usize) -> u64 {
        match self {
            Words::Narrow(words) => words[element].into(),
            Words::Wide(words) => words[element],
        }
    }

    pub fn set(&mut self, element: usize, bits: u64) {
        match self {
            Words::Narrow(words) => words[element] = bits as u32,
            Words::Wide(words) => words[element] = bits,
        }
    }
}

/// An array that several threads share.
#[derive(Debug)]
pub struct Common {
    pub bits: Words,
    /// One per element; empty for memory that is never written.
    cells: Vec<Cell>,
    /// How many elements were never written.
    unwritten: usize,
}

impl Common {
    /// An uninitialised array.
    pub fn new(ty: Type, elements: usize) -> Common {
        let bits = Words::zeros(ty, elements);
        Common { bits, cells: vec![Cell::default(); elements], unwritten: elements }
    }

    /// A read-only array with these contents.
    pub fn given(bits: Words) -> Common {
        Common { bits, cells: Vec::new(), unwritten: 0 }
    }

    /// A read-only array with only some elements given. The others must not be read.
    pub fn partly(bits: Words, given: impl Iterator<Item = usize>) -> Common {
        let (mut cells, mut unwritten) = (vec![Cell::default(); bits.len()], bits.len());
        for element in given {
            cells[element] = Cell::given();
            unwritten -= 1;
        }
        Common { bits, cells, unwritten }
    }

    /// Whether an element was ever written.
    pub fn is_written(&self, element: usize) -> bool {
        self.cells.get(element).is_none_or(|cell| cell.is_written())
    }

    /// How many elements were never written.
    pub fn unwritten(&self) -> usize {
        self.unwritten
    }

    /// Checks a read of elements that the running kernel does not write.
    pub fn check_written(&self, warp: Warp<'_>) -> Result<(), Denied> {
        if self.unwritten == 0 {
            return Ok(());
        }
        match warp.lanes().find(|(element, _)| !self.cells[*element as usize].is_written()) {
            Some((element, thread)) => Err(Denied { thread, element, why: Why::Uninitialised }),
            None => Ok(()),
        }
    }

    /// Checks and marks a read; `me` is the mark without the thread.
    pub fn read(&mut self, warp: Warp<'_>, era: &Era, me: Mark) -> Result<(), Denied> {
        for (element, thread) in warp.lanes() {
            let read = self.cells[element as usize].read(era, me.by(thread));
            read.map_err(|refusal| Denied { thread, element, why: refusal.into() })?;
        }
        Ok(())
    }

    /// Copies the values of the elements to `row`, which has one lane per thread.
    pub fn gather(&self, warp: Warp<'_>, row: Row<'_>) {
        match (&self.bits, row) {
            (Words::Narrow(bits), row) => gather(bits, warp, u32::row(row)),
            (Words::Wide(bits), row) => gather(bits, warp, u64::row(row)),
        }
    }

    /// Stores the values of each thread, which have the array's width.
    pub fn store(&mut self, warp: Warp<'_>, era: &Era, me: Mark, values: Lanes<'_>) -> Result<(), Denied> {
        match (&mut self.bits, values) {
            (Words::Narrow(bits), Lanes::Varying(row)) => {
                let value = |thread: u16| row[usize::from(thread)];
                store(bits, &mut self.cells, &mut self.unwritten, warp, (era, me), value)
            }
            (Words::Narrow(bits), values) => {
                let value = |thread: u16| values.get(thread.into()) as u32;
                store(bits, &mut self.cells, &mut self.unwritten, warp, (era, me), value)
            }
            (Words::Wide(bits), values) => {
                let value = |thread: u16| values.get(thread.into());
                store(bits, &mut self.cells, &mut self.unwritten, warp, (era, me), value)
            }
        }
    }

    /// Marks the last writes of a warp as copies in flight.
    pub fn depart(&mut self, warp: Warp<'_>) {
        warp.elements.iter().for_each(|element| self.cells[*element as usize].depart());
    }

    /// Ends the copy to an element at this stamp.
    pub fn arrive(&mut self, element: u32, now: u32) {
        self.cells[element as usize].arrive(now);
    }

    /// Combines elements with the value of each thread, one thread after another.
    pub fn atomic(
        &mut self,
        warp: Warp<'_>,
        era: &Era,
        me: Mark,
        combine: (AtomicOp, Type),
        values: Lanes<'_>,
    ) -> Result<(), Denied> {
        let (op, ty) = combine;
        let op = Op::Binary(op.operation());
        for (element, thread) in warp.lanes() {
            let atomic = self.cells[element as usize].atomic(era, me.by(thread));
            atomic.map_err(|refusal| Denied { thread, element, why: refusal.into() })?;
            let element = element as usize;
            let operands = [self.bits.get(element), values.get(thread.into())];
            self.bits.set(element, op.eval(&operands.map(|bits| Value::from_bits(ty, bits))).bits());
        }
        Ok(())
    }
}

/// Copies the elements of a warp to a row with one lane per thread.
fn gather<W: Copy>(bits: &[W], warp: Warp<'_>, row: &mut [W]) {
    match *warp.threads {
        [first, .., last] if usize::from(last - first) + 1 == warp.threads.len() => {
            let row = &mut row[usize::from(first)..=usize::from(last)];
            for (to, element) in row.iter_mut().zip(warp.elements) {
                *to = bits[*element as usize];
            }
        }
        _ => warp.lanes().for_each(|(element, thread)| row[usize::from(thread)] = bits[element as usize]),
    }
}

/// Stores and marks the elements of a warp.
fn store<W>(
    bits: &mut [W],
    cells: &mut [Cell],
    unwritten: &mut usize,
    warp: Warp<'_>,
    (era, me): (&Era, Mark),
    value: impl Fn(u16) -> W,
) -> Result<(), Denied> {
    for (element, thread) in warp.lanes() {
        let cell = &mut cells[element as usize];
        *unwritten -= usize::from(!cell.is_written());
        let write = cell.write(era, me.by(thread));
        write.map_err(|refusal| Denied { thread, element, why: refusal.into() })?;
        bits[element as usize] = value(thread);
    }
    Ok(())
}

/// An array with one copy per thread. The copies of one element are adjacent.
#[derive(Debug)]
pub struct Private {
    threads: usize,
    elements: usize,
    bits: Words,
    /// The stamp of the block in which a thread last wrote an element.
    written: Vec<u32>,
    /// The stamp of the block in which all threads last wrote an element at once.
    all_written: Vec<u32>,
}

impl Private {
    /// An uninitialised array.
    pub fn new(ty: Type, elements: usize, threads: usize) -> Private {
        let copies = elements * threads;
        let (bits, written) = (Words::zeros(ty, copies), vec![0; copies]);
        Private { threads, elements, bits, written, all_written: vec![0; elements] }
    }

    /// Loads the element at `index` in each active thread; `block` is the running block's stamp.
    pub fn load(
        &self,
        mask: &Mask,
        block: u32,
        index: impl Fn(usize) -> u32,
        mut row: Row<'_>,
    ) -> Result<(), Denied> {
        for thread in mask.threads() {
            let element = index(thread);
            let copy = self.copy(element, thread)?;
            if self.written[copy] != block && self.all_written[element as usize] != block {
                return Err(Denied { thread: thread as u16, element, why: Why::Uninitialised });
            }
            match (&self.bits, &mut row) {
                (Words::Narrow(bits), Row::Narrow(row)) => row[thread] = bits[copy],
                (Words::Wide(bits), Row::Wide(row)) => row[thread] = bits[copy],
                _ => unreachable!("a row has the width of its type"),
            }
        }
        Ok(())
    }

    /// Loads one element in all active threads.
    pub fn load_same(&self, mask: &Mask, block: u32, element: u32, row: Row<'_>) -> Result<(), Denied> {
        if self.all_written.get(element as usize) != Some(&block) {
            return self.load(mask, block, |_| element, row);
        }
        let range = mask.range();
        let first = element as usize * self.threads;
        let copies = first + range.start..first + range.end;
        match &self.bits {
            Words::Narrow(bits) => u32::row(row)[range].copy_from_slice(&bits[copies]),
            Words::Wide(bits) => u64::row(row)[range].copy_from_slice(&bits[copies]),
        }
        Ok(())
    }

    /// Stores the result of `value` to the element at `index`, in each active thread.
    pub fn store(
        &mut self,
        mask: &Mask,
        block: u32,
        index: impl Fn(usize) -> u32,
        values: Lanes<'_>,
    ) -> Result<(), Denied> {
        for thread in mask.threads() {
            let copy = self.copy(index(thread), thread)?;
            self.written[copy] = block;
            self.bits.set(copy, values.get(thread));
        }
        Ok(())
    }

    /// Stores to one element in all threads of the block.
    pub fn store_all(&mut self, block: u32, element: u32, values: Lanes<'_>) -> Result<(), Denied> {
        let first = self.copy(element, 0)?;
        self.all_written[element as usize] = block;
        let copies = first..first + self.threads;
        match (&mut self.bits, values) {
            (Words::Narrow(bits), Lanes::Varying(row)) => bits[copies].copy_from_slice(&row[..self.threads]),
            (Words::Wide(bits), Lanes::Wide(row)) => bits[copies].copy_from_slice(&row[..self.threads]),
            (Words::Narrow(bits), values) => bits[copies].fill(values.get(0) as u32),
            (Words::Wide(bits), values) => bits[copies].fill(values.get(0)),
        }
        Ok(())
    }

    /// The contents of an element of a thread, which it has.
    pub fn peek(&self, element: u32, thread: usize) -> u64 {
        self.bits.get(element as usize * self.threads + thread)
    }

    fn copy(&self, element: u32, thread: usize) -> Result<usize, Denied> {
        if element as usize >= self.elements {
            return Err(Denied { thread: thread as u16, element, why: Why::OutOfBounds });
        }
        Ok(element as usize * self.threads + thread)
    }
}
