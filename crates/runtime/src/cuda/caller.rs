//! Device memory that the caller owns.

use std::sync::Arc;

use bytemuck::{AnyBitPattern, NoUninit};
use cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, DeviceSlice,
    SyncOnDrop,
};
use warploom_target::program::Buffer;

use crate::error::Error;

/// Memory of the caller that a program reads; see [`Kernels::launch`](crate::Kernels::launch).
///
/// It is made from a [`CudaView`] or a [`CudaSlice`], which stays borrowed as long as this object
/// lives, or from an [address](DeviceBytes::at). Its elements have no padding ([`NoUninit`]),
/// because a program may read every byte.
pub struct DeviceBytes<'a> {
    memory: ViewOrAddress<Box<dyn Readable + 'a>>,
    bytes: usize,
}

/// Memory of the caller that a program writes; see [`Kernels::launch`](crate::Kernels::launch).
///
/// It is made from a [`CudaViewMut`] or a [`CudaSlice`], which stays borrowed as long as this
/// object lives, or from an [address](DeviceBytesMut::at). Its elements are valid with any bits
/// ([`AnyBitPattern`]), because a program may write any: not `bool`, for which `u8` can stand.
pub struct DeviceBytesMut<'a> {
    memory: ViewOrAddress<Box<dyn Writable + 'a>>,
    bytes: usize,
}

/// Memory that cudarc manages, or a raw address.
enum ViewOrAddress<V> {
    View(V),
    Address(u64),
}

/// A view with elements of any type. The address comes with a guard; dropping it tells other
/// streams that the memory was in use until then.
trait Readable {
    fn context(&self) -> &Arc<CudaContext>;
    fn address<'s>(&'s self, stream: &'s CudaStream) -> (u64, SyncOnDrop<'s>);
}

trait Writable {
    fn context(&self) -> &Arc<CudaContext>;
    fn address<'s>(&'s mut self, stream: &'s CudaStream) -> (u64, SyncOnDrop<'s>);
}

/// Memory of the caller with elements of one type.
pub trait Elements {
    /// The type of its elements.
    type Element;
}

impl<T> Elements for CudaView<'_, T> {
    type Element = T;
}

impl<T> Elements for CudaViewMut<'_, T> {
    type Element = T;
}

impl<T> Readable for CudaView<'_, T> {
    fn context(&self) -> &Arc<CudaContext> {
        self.stream().context()
    }

    fn address<'s>(&'s self, stream: &'s CudaStream) -> (u64, SyncOnDrop<'s>) {
        self.device_ptr(stream)
    }
}

impl<T> Writable for CudaViewMut<'_, T> {
    fn context(&self) -> &Arc<CudaContext> {
        self.stream().context()
    }

    fn address<'s>(&'s mut self, stream: &'s CudaStream) -> (u64, SyncOnDrop<'s>) {
        self.device_ptr_mut(stream)
    }
}

impl<'a> DeviceBytes<'a> {
    /// Memory at a device address, as other CUDA bindings provide it.
    ///
    /// # Safety
    ///
    /// Until all runs that use this memory have finished, it must exist and be readable by kernels
    /// of the GPU's context. Only work that is ordered with those runs, on the same stream or by
    /// events, may write it.
    ///
    /// If the stream is being captured, every launch of the graph is such a run, though it is no
    /// `unsafe` call: the memory must exist until the last one has finished.
    pub unsafe fn at(address: u64, bytes: usize) -> DeviceBytes<'static> {
        DeviceBytes { memory: ViewOrAddress::Address(address), bytes }
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The context; `None` for a raw address.
    pub(crate) fn context(&self) -> Option<&Arc<CudaContext>> {
        match &self.memory {
            ViewOrAddress::View(view) => Some(view.context()),
            ViewOrAddress::Address(_) => None,
        }
    }

    /// The address. The stream first waits for earlier writes to the memory.
    pub(crate) fn address<'s>(&'s self, stream: &'s CudaStream) -> (u64, Option<SyncOnDrop<'s>>) {
        match &self.memory {
            ViewOrAddress::View(view) => some_second(view.address(stream)),
            ViewOrAddress::Address(address) => (*address, None),
        }
    }
}

impl<'a> DeviceBytesMut<'a> {
    /// Memory at a device address, as other CUDA bindings provide it.
    ///
    /// # Safety
    ///
    /// Until all runs that use this memory have finished, it must exist and be writable by kernels
    /// of the GPU's context. Only work that is ordered with those runs, on the same stream or by
    /// events, may access it. Any bits must be valid for whoever reads it.
    ///
    /// If the stream is being captured, every launch of the graph is such a run, though it is no
    /// `unsafe` call: the memory must exist until the last one has finished.
    pub unsafe fn at(address: u64, bytes: usize) -> DeviceBytesMut<'static> {
        DeviceBytesMut { memory: ViewOrAddress::Address(address), bytes }
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The context; `None` for a raw address.
    pub(crate) fn context(&self) -> Option<&Arc<CudaContext>> {
        match &self.memory {
            ViewOrAddress::View(view) => Some(view.context()),
            ViewOrAddress::Address(_) => None,
        }
    }

    /// The address. The stream first waits for earlier uses of the memory.
    pub(crate) fn address<'s>(&'s mut self, stream: &'s CudaStream) -> (u64, Option<SyncOnDrop<'s>>) {
        match &mut self.memory {
            ViewOrAddress::View(view) => some_second(view.address(stream)),
            ViewOrAddress::Address(address) => (*address, None),
        }
    }
}

fn some_second<A, B>((first, second): (A, B)) -> (A, Option<B>) {
    (first, Some(second))
}

impl<'a, T: NoUninit> From<CudaView<'a, T>> for DeviceBytes<'a> {
    fn from(view: CudaView<'a, T>) -> DeviceBytes<'a> {
        let bytes = view.num_bytes();
        DeviceBytes { memory: ViewOrAddress::View(Box::new(view)), bytes }
    }
}

impl<'a, T: NoUninit> From<&'a CudaSlice<T>> for DeviceBytes<'a> {
    fn from(slice: &'a CudaSlice<T>) -> DeviceBytes<'a> {
        slice.as_view().into()
    }
}

impl<'a, T: AnyBitPattern> From<CudaViewMut<'a, T>> for DeviceBytesMut<'a> {
    fn from(view: CudaViewMut<'a, T>) -> DeviceBytesMut<'a> {
        let bytes = view.num_bytes();
        DeviceBytesMut { memory: ViewOrAddress::View(Box::new(view)), bytes }
    }
}

impl<'a, T: AnyBitPattern> From<&'a mut CudaSlice<T>> for DeviceBytesMut<'a> {
    fn from(slice: &'a mut CudaSlice<T>) -> DeviceBytesMut<'a> {
        slice.as_view_mut().into()
    }
}

impl std::fmt::Debug for DeviceBytes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceBytes").field("bytes", &self.bytes).finish()
    }
}

impl std::fmt::Debug for DeviceBytesMut<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceBytesMut").field("bytes", &self.bytes).finish()
    }
}

/// The address range of an input or output.
pub(crate) struct AddressRange<'a> {
    buffer: &'a Buffer,
    start: u64,
    written: bool,
}

impl<'a> AddressRange<'a> {
    pub(crate) fn new(buffer: &'a Buffer, start: u64, written: bool) -> AddressRange<'a> {
        AddressRange { buffer, start, written }
    }

    fn overlaps(&self, other: &AddressRange<'_>) -> bool {
        let end = |place: &AddressRange<'_>| place.start.saturating_add(place.buffer.bytes() as u64);
        let empty = self.buffer.bytes() == 0 || other.buffer.bytes() == 0;
        !empty && self.start < end(other) && other.start < end(self)
    }
}

/// Rejects misaligned memory, and outputs that overlap any other memory: kernels rely on their
/// inputs not changing.
pub(crate) fn check_places(places: &[AddressRange<'_>]) -> Result<(), Error> {
    for (i, place) in places.iter().enumerate() {
        let unit = place.buffer.alignment.max(place.buffer.element_bytes).max(1) as u64;
        if !place.start.is_multiple_of(unit) {
            let what = place.buffer.name.clone();
            return Err(Error::Misaligned { what, address: place.start, unit });
        }
        let shared =
            places[..i].iter().find(|other| (place.written || other.written) && place.overlaps(other));
        if let Some(other) = shared {
            let (first, second) = (other.buffer.name.clone(), place.buffer.name.clone());
            return Err(Error::Overlap { first, second });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use warploom_target::program::Role;

    use super::*;

    fn buffer(name: &str, elements: usize) -> Buffer {
        Buffer { name: name.to_string(), elements, element_bytes: 4, alignment: 4, role: Role::Input(0) }
    }

    #[test]
    fn outputs_share_nothing() {
        let (a, b, empty) = (buffer("a", 10), buffer("b", 10), buffer("empty", 0));
        let check = |places: &[(&Buffer, u64, bool)]| {
            let places: Vec<AddressRange<'_>> =
                places.iter().map(|&(b, at, written)| AddressRange::new(b, at, written)).collect();
            check_places(&places).map_err(|error| error.to_string())
        };
        assert_eq!(check(&[(&a, 400, false), (&b, 400, false)]), Ok(()), "inputs may be the same");
        assert_eq!(check(&[(&a, 400, false), (&b, 440, true)]), Ok(()), "side by side");
        assert_eq!(check(&[(&b, 440, true), (&a, 400, true)]), Ok(()), "the other way round");
        assert_eq!(check(&[(&a, 400, true), (&empty, 404, true)]), Ok(()), "nothing is in nothing");
        let refused = "`a` and `b` overlap in device memory: give every output its own memory";
        assert_eq!(check(&[(&a, 400, false), (&b, 436, true)]), Err(refused.to_string()));
        assert_eq!(check(&[(&a, 436, true), (&b, 400, false)]), Err(refused.to_string()));
        assert_eq!(check(&[(&a, 400, true), (&b, 400, true)]), Err(refused.to_string()));
        let refused = "`a` lies at 0x192, which is not a multiple of 4 bytes, as its kernels need it";
        assert_eq!(check(&[(&a, 402, false)]), Err(refused.to_string()));
        let rows = Buffer { alignment: 16, ..buffer("rows", 10) };
        assert_eq!(check(&[(&rows, 400, false)]), Ok(()));
        let refused = "`rows` lies at 0x194, which is not a multiple of 16 bytes, as its kernels need it";
        assert_eq!(check(&[(&rows, 404, false)]), Err(refused.to_string()));
    }

    #[test]
    fn sizes_of_addresses_are_kept() {
        // SAFETY: nothing runs on either.
        let (read, written) = unsafe { (DeviceBytes::at(512, 40), DeviceBytesMut::at(1024, 80)) };
        assert_eq!((read.bytes(), written.bytes()), (40, 80));
        assert!(read.context().is_none() && written.context().is_none());
    }
}
