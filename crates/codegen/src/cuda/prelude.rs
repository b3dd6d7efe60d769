//! Helper functions that precede the kernels. Only those that are called are emitted.
//!
//! The elementary functions are those of [`warploom_lang::math`], operation by operation. Compiled without
//! fused multiply-adds, they give the same bits.

use std::collections::BTreeSet;

use warploom_lang::Type;

use super::elementary::{self, Definition};
use super::text::c_type;
use super::{convert, half, wide};
use crate::elementary::functions;
use crate::ir::AtomicOp;

/// A helper function that kernels may call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Helper {
    /// Waits for the end of the previous kernel.
    AwaitPrevious,
    /// A pointer to memory that the previous kernel may have changed.
    After,
    /// Euclidean quotient of `int`.
    DivInt,
    /// Quotient of `unsigned`, 0 for a zero divisor.
    DivUnsigned,
    /// Euclidean remainder of `int`.
    ModInt,
    /// Remainder of `unsigned`, 0 for a zero divisor.
    ModUnsigned,
    ModFloat,
    /// Absolute value of `int`, wrapping.
    Abs,
    /// Negation of `short`, wrapping.
    NegShort,
    /// Absolute difference of `int`.
    AbsdInt,
    /// Absolute difference of `unsigned`.
    AbsdUnsigned,
    IsNan,
    /// Operations on integers of 64 bits, as those of 32 bits.
    DivWide,
    DivWideUnsigned,
    ModWide,
    ModWideUnsigned,
    AbsWide,
    AbsdWide,
    AbsdWideUnsigned,
    AverageWide,
    AverageWideUnsigned,
    /// A `double` within limits; 0 for NaN.
    Clamped,
    /// A `double` as an integer of 64 bits.
    ToWide,
    ToWideUnsigned,
    /// Floats of 16 bits: their bits, the value of bits, and rounding to them.
    F16Bits,
    F16Value,
    F16,
    BF16Bits,
    BF16Value,
    BF16,
    /// Rounding to odd, before rounding to 16 bits.
    Odd,
    OddWide,
    OddWideUnsigned,
    /// Functions of `double`.
    ModDouble,
    IsNanDouble,
    /// Asynchronous copies of 4, 8 and 16 bytes from global to shared memory.
    Copy,
    CopyWide,
    CopyWidest,
    /// A move of adjacent elements with one access.
    Move,
    /// The elementary function with this number.
    Elementary(usize),
    /// An atomic that the hardware lacks, as a compare-and-swap loop.
    Atomic(AtomicOp, Type),
}

impl Helper {
    /// All helpers except elementary functions and atomics, each after those it calls.
    const ALL: [Helper; 39] = [
        Helper::AwaitPrevious,
        Helper::After,
        Helper::DivInt,
        Helper::DivUnsigned,
        Helper::ModInt,
        Helper::ModUnsigned,
        Helper::ModFloat,
        Helper::Abs,
        Helper::NegShort,
        Helper::AbsdInt,
        Helper::AbsdUnsigned,
        Helper::IsNan,
        Helper::DivWide,
        Helper::DivWideUnsigned,
        Helper::ModWide,
        Helper::ModWideUnsigned,
        Helper::AbsWide,
        Helper::AbsdWide,
        Helper::AbsdWideUnsigned,
        Helper::AverageWide,
        Helper::AverageWideUnsigned,
        Helper::Clamped,
        Helper::ToWide,
        Helper::ToWideUnsigned,
        Helper::F16Bits,
        Helper::F16Value,
        Helper::F16,
        Helper::BF16Bits,
        Helper::BF16Value,
        Helper::BF16,
        Helper::Odd,
        Helper::OddWide,
        Helper::OddWideUnsigned,
        Helper::ModDouble,
        Helper::IsNanDouble,
        Helper::Copy,
        Helper::CopyWide,
        Helper::CopyWidest,
        Helper::Move,
    ];

    /// The name of the C++ function. Helpers with the same name are overloads.
    pub(super) fn name(self) -> &'static str {
        match self {
            Helper::AwaitPrevious => "wl_await_previous",
            Helper::After => "wl_after",
            Helper::DivInt | Helper::DivUnsigned => "wl_div",
            Helper::ModInt | Helper::ModUnsigned | Helper::ModFloat => "wl_mod",
            Helper::Abs => "wl_abs",
            Helper::NegShort => "wl_neg_short",
            Helper::AbsdInt | Helper::AbsdUnsigned => "wl_absd",
            Helper::IsNan => "wl_is_nan",
            Helper::DivWide => "wl_div",
            Helper::DivWideUnsigned => "wl_div",
            Helper::ModWide => "wl_mod",
            Helper::ModWideUnsigned => "wl_mod",
            Helper::AbsWide => "wl_abs",
            Helper::AbsdWide => "wl_absd",
            Helper::AbsdWideUnsigned => "wl_absd",
            Helper::AverageWide => "wl_average",
            Helper::AverageWideUnsigned => "wl_average",
            Helper::Clamped => "wl_clamped",
            Helper::ToWide => "wl_to_wide",
            Helper::ToWideUnsigned => "wl_to_wide_unsigned",
            Helper::F16Bits => "wl_f16_bits",
            Helper::F16Value => "wl_f16_value",
            Helper::F16 => "wl_f16",
            Helper::BF16Bits => "wl_bf16_bits",
            Helper::BF16Value => "wl_bf16_value",
            Helper::BF16 => "wl_bf16",
            Helper::Odd => "wl_odd",
            Helper::OddWide => "wl_odd",
            Helper::OddWideUnsigned => "wl_odd",
            Helper::ModDouble => "wl_mod",
            Helper::IsNanDouble => "wl_is_nan",
            Helper::Copy => "wl_copy4",
            Helper::CopyWide => "wl_copy8",
            Helper::CopyWidest => "wl_copy16",
            Helper::Move => "wl_move",
            Helper::Elementary(number) => elementary::name(number),
            Helper::Atomic(AtomicOp::Add, _) => "wl_atomic_add",
            Helper::Atomic(AtomicOp::Min, _) => "wl_atomic_min",
            Helper::Atomic(AtomicOp::Max, _) => "wl_atomic_max",
            Helper::Atomic(AtomicOp::And, _) => "wl_atomic_and",
            Helper::Atomic(AtomicOp::Or, _) => "wl_atomic_or",
            Helper::Atomic(AtomicOp::Xor, _) => "wl_atomic_xor",
        }
    }

    /// The helpers that this one calls.
    fn needs(self) -> Vec<Helper> {
        match self {
            Helper::F16 => vec![Helper::F16Bits, Helper::F16Value],
            Helper::BF16 => vec![Helper::BF16Bits, Helper::BF16Value],
            Helper::Elementary(number) => elementary::definition(number).helpers,
            _ => Vec::new(),
        }
    }

    fn text(self) -> String {
        match self {
            Helper::AwaitPrevious => AWAIT_PREVIOUS.to_string(),
            Helper::After => AFTER.to_string(),
            Helper::DivInt => DIV_INT.to_string(),
            Helper::DivUnsigned => DIV_UNSIGNED.to_string(),
            Helper::ModInt => MOD_INT.to_string(),
            Helper::ModUnsigned => MOD_UNSIGNED.to_string(),
            Helper::ModFloat => MOD_FLOAT.to_string(),
            Helper::Abs => ABS.to_string(),
            Helper::NegShort => NEG_SHORT.to_string(),
            Helper::AbsdInt => ABSD_INT.to_string(),
            Helper::AbsdUnsigned => ABSD_UNSIGNED.to_string(),
            Helper::IsNan => IS_NAN.to_string(),
            Helper::DivWide => wide::DIV.to_string(),
            Helper::DivWideUnsigned => wide::DIV_UNSIGNED.to_string(),
            Helper::ModWide => wide::MOD.to_string(),
            Helper::ModWideUnsigned => wide::MOD_UNSIGNED.to_string(),
            Helper::AbsWide => wide::ABS.to_string(),
            Helper::AbsdWide => wide::ABSD.to_string(),
            Helper::AbsdWideUnsigned => wide::ABSD_UNSIGNED.to_string(),
            Helper::AverageWide => wide::AVERAGE.to_string(),
            Helper::AverageWideUnsigned => wide::AVERAGE_UNSIGNED.to_string(),
            Helper::Clamped => convert::CLAMPED.to_string(),
            Helper::ToWide => convert::TO_WIDE.to_string(),
            Helper::ToWideUnsigned => convert::TO_WIDE_UNSIGNED.to_string(),
            Helper::F16Bits => half::F16_BITS.to_string(),
            Helper::F16Value => half::F16_VALUE.to_string(),
            Helper::F16 => half::F16.to_string(),
            Helper::BF16Bits => half::BF16_BITS.to_string(),
            Helper::BF16Value => half::BF16_VALUE.to_string(),
            Helper::BF16 => half::BF16.to_string(),
            Helper::Odd => half::ODD.to_string(),
            Helper::OddWide => half::ODD_WIDE.to_string(),
            Helper::OddWideUnsigned => half::ODD_WIDE_UNSIGNED.to_string(),
            Helper::ModDouble => MOD_DOUBLE.to_string(),
            Helper::IsNanDouble => IS_NAN_DOUBLE.to_string(),
            Helper::Copy => copy(self, "ca", 4),
            Helper::CopyWide => copy(self, "ca", 8),
            // Only these can pass by the L1 cache.
            Helper::CopyWidest => copy(self, "cg", 16),
            Helper::Move => MOVE.to_string(),
            Helper::Elementary(number) => elementary::definition(number).text,
            Helper::Atomic(op, ty) => atomic(op, ty),
        }
    }
}

/// The helper functions of a translation unit.
#[derive(Default)]
pub(super) struct Helpers {
    used: Vec<Helper>,
}

impl Helpers {
    /// Adds a helper and those it calls.
    pub(super) fn insert(&mut self, helper: Helper) {
        if !self.used.contains(&helper) {
            self.used.push(helper);
            helper.needs().into_iter().for_each(|needed| self.insert(needed));
        }
    }

    /// The helpers that were added.
    pub(super) fn used(self) -> Vec<Helper> {
        self.used
    }

    /// Prints the helpers in an order that does not depend on the order of their use.
    pub(super) fn text(&self) -> String {
        let is_used = |helper: &Helper| self.used.contains(helper);
        let numbers = (0..functions().len()).filter(|number| is_used(&Helper::Elementary(*number)));
        let elementary: Vec<Definition> = numbers.map(elementary::definition).collect();
        let tuples: BTreeSet<&str> =
            elementary.iter().flat_map(|function| &function.tuples).map(String::as_str).collect();
        let tuples = tuples.into_iter().collect::<Vec<_>>().join("\n");
        let atomics = AtomicOp::ALL.into_iter().flat_map(|op| Type::ALL.map(|ty| Helper::Atomic(op, ty)));
        let texts = (Helper::ALL.into_iter().filter(is_used).map(Helper::text))
            .chain([tuples])
            .chain(elementary.iter().map(|function| function.text.clone()))
            .chain(atomics.filter(is_used).map(Helper::text));
        texts.filter(|text| !text.is_empty()).map(|text| text.trim_end().to_owned() + "\n\n").collect()
    }
}

const AWAIT_PREVIOUS: &str = "\
// Waits until the previous kernel has ended and what it wrote can be read. Gives 0, which the compiler does not know.
static __device__ __forceinline__ unsigned long long wl_await_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    unsigned long long origin;
    asm volatile(\"griddepcontrol.wait;\\n\\tmov.u64 %0, 0;\" : \"=l\"(origin) :: \"memory\");
    return origin;
#else
    return 0;
#endif
}";

const AFTER: &str = "\
// The same pointer. Accesses through it cannot be moved before the wait that gave the origin.
template <typename T>
static __device__ __forceinline__ T* wl_after(T* pointer, unsigned long long origin) {
    return (T*)((char*)pointer + origin);
}";

const DIV_INT: &str = "\
// Quotient whose remainder is never negative; 0 for b = 0.
static __device__ __forceinline__ int wl_div(int a, int b) {
    if (b == 0) return 0;
    if (b == -1) return (int)-(unsigned)a;
    const int q = a / b;
    return a - q * b >= 0 ? q : b > 0 ? q - 1 : q + 1;
}";

const DIV_UNSIGNED: &str = "\
static __device__ __forceinline__ unsigned wl_div(unsigned a, unsigned b) {
    return b == 0u ? 0u : a / b;
}";

const MOD_INT: &str = "\
// Remainder that is never negative; 0 for b = 0.
static __device__ __forceinline__ int wl_mod(int a, int b) {
    if (b == 0 || b == -1) return 0;
    const int r = a % b;
    return r >= 0 ? r : (int)((unsigned)r + (b > 0 ? (unsigned)b : -(unsigned)b));
}";

const MOD_UNSIGNED: &str = "\
static __device__ __forceinline__ unsigned wl_mod(unsigned a, unsigned b) {
    return b == 0u ? 0u : a % b;
}";

const MOD_FLOAT: &str = "\
static __device__ __forceinline__ float wl_mod(float a, float b) {
    return a - b * floorf(a / b);
}";

const MOD_DOUBLE: &str = "\
static __device__ __forceinline__ double wl_mod(double a, double b) {
    return a - b * floor(a / b);
}";

const IS_NAN_DOUBLE: &str = "\
static __device__ __forceinline__ bool wl_is_nan(double a) {
    return a != a;
}";

const IS_NAN: &str = "\
static __device__ __forceinline__ bool wl_is_nan(float a) {
    return a != a;
}";

const ABS: &str = "\
static __device__ __forceinline__ int wl_abs(int a) {
    return a < 0 ? (int)-(unsigned)a : a;
}";

const NEG_SHORT: &str = "\
// ptxas 13.0 takes -(-32768) in 16 bits for 32768; in 32 bits it is right.
static __device__ __forceinline__ int wl_neg_short(int a) {
    int negative;
    asm(\"neg.s32 %0, %1;\" : \"=r\"(negative) : \"r\"(a));
    return (short)negative;
}";

const ABSD_INT: &str = "\
static __device__ __forceinline__ unsigned wl_absd(int a, int b) {
    return a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a;
}";

const ABSD_UNSIGNED: &str = "\
static __device__ __forceinline__ unsigned wl_absd(unsigned a, unsigned b) {
    return a > b ? a - b : b - a;
}";

/// Through a pointer to the structure the compiler knows the alignment, and reads of constant buffers stay non-coherent loads,
/// which they do not with `__builtin_assume_aligned`.
const MOVE: &str = "\
template <typename T, int N> struct __align__(N * sizeof(T)) wl_vector {
    T elements[N];
};

template <int N, typename T> static __device__ __forceinline__ void wl_move(T* to, const T* from) {
    *(wl_vector<T, N>*)to = *(const wl_vector<T, N>*)from;
}";

/// An asynchronous copy. The thread must wait before it may rely on the bytes.
fn copy(helper: Helper, cache: &str, bytes: usize) -> String {
    let name = helper.name();
    format!(
        "\
static __device__ __forceinline__ void {name}(void* to, const void* from) {{
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    asm volatile(\"cp.async.{cache}.shared.global [%0], [%1], {bytes};\" :: \"r\"(place), \"l\"(from) : \"memory\");
}}"
    )
}

/// The CUDA name of an atomic that the hardware has.
pub(super) fn hardware_atomic(op: AtomicOp, ty: Type) -> Option<&'static str> {
    match (op, ty) {
        (AtomicOp::Add, Type::F32) => Some("atomicAdd"),
        (_, ty) if !matches!(ty, Type::I32 | Type::U32) => None,
        (AtomicOp::Add, _) => Some("atomicAdd"),
        (AtomicOp::Min, _) => Some("atomicMin"),
        (AtomicOp::Max, _) => Some("atomicMax"),
        (AtomicOp::And, _) => Some("atomicAnd"),
        (AtomicOp::Or, _) => Some("atomicOr"),
        (AtomicOp::Xor, _) => Some("atomicXor"),
    }
}

/// An atomic as a compare-and-swap loop on the 32-bit word that contains the element.
fn atomic(op: AtomicOp, ty: Type) -> String {
    let name = Helper::Atomic(op, ty).name();
    let element = c_type(ty);
    if ty.bytes() == 4 {
        let next = combined(op, "__uint_as_float(seen)", "f");
        return format!(
            "\
static __device__ __forceinline__ void {name}({element}* address, {element} value) {{
    unsigned* word = (unsigned*)address;
    unsigned old = *word, seen;
    do {{
        seen = old;
        old = atomicCAS(word, seen, __float_as_uint({next}));
    }} while (old != seen);
}}"
        );
    }
    let bits = if ty == Type::Bool { c_type(Type::U8) } else { c_type(ty.unsigned()) };
    let mask = if ty.bytes() == 1 { "0xffu" } else { "0xffffu" };
    let next = combined(op, "current", "");
    // The cast to a signed element type extends the sign.
    let extended = if element == bits { format!("({bits})") } else { format!("({element})({bits})") };
    format!(
        "\
static __device__ __forceinline__ void {name}({element}* address, int value) {{
    const unsigned long long place = (unsigned long long)address;
    unsigned* word = (unsigned*)(place & ~3ull);
    const unsigned shift = 8u * (unsigned)(place & 3ull);
    unsigned old = *word, seen;
    do {{
        seen = old;
        const int current = {extended}(seen >> shift);
        const unsigned next = (unsigned)({bits}){next} << shift;
        old = atomicCAS(word, seen, (seen & ~({mask} << shift)) | next);
    }} while (old != seen);
}}"
    )
}

/// The new value of an element. Functions of floats have names that begin and end with `f`.
fn combined(op: AtomicOp, current: &str, f: &str) -> String {
    let function = |name: &str| format!("{f}{name}{f}({current}, value)");
    let operator = |sign: &str| format!("({current} {sign} value)");
    match op {
        AtomicOp::Add => operator("+"),
        AtomicOp::Min => function("min"),
        AtomicOp::Max => function("max"),
        AtomicOp::And => operator("&"),
        AtomicOp::Or => operator("|"),
        AtomicOp::Xor => operator("^"),
    }
}
