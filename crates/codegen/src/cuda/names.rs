//! Turns the user's names into identifiers that clash with nothing.

use std::collections::HashSet;

use warploom_lang::visible;

/// The names in use, by scope. A name is free if no open scope has it.
pub(crate) struct Names {
    scopes: Vec<NameScope>,
    /// Names that C, C++, CUDA or headers declare.
    reserved: HashSet<&'static str>,
    /// Names that are taken regardless of case.
    in_any_case: HashSet<&'static str>,
    /// Prefixes that no new name may have.
    prefixes: Vec<String>,
}

#[derive(Default)]
struct NameScope {
    names: HashSet<String>,
    /// The next number that [`Names::take_numbered`] tries.
    number: usize,
}

impl Names {
    fn new(reserved: &[&'static str]) -> Names {
        let words = reserved.iter().flat_map(|list| list.split_whitespace());
        Names {
            scopes: vec![NameScope::default()],
            reserved: words.collect(),
            in_any_case: HashSet::new(),
            prefixes: Vec::new(),
        }
    }

    /// Reserves every name that starts with one of `prefixes`.
    pub(crate) fn without(self, prefixes: impl IntoIterator<Item = String>) -> Names {
        Names { prefixes: prefixes.into_iter().collect(), ..self }
    }

    /// Names inside a function. They may shadow functions that kernels never call.
    pub(crate) fn local() -> Names {
        Names::new(&[KEYWORDS, CUDA, CALLED])
    }

    /// Names of functions. They must not redeclare CUDA's own.
    pub(super) fn global() -> Names {
        Names::new(&[KEYWORDS, CUDA, CALLED, FUNCTIONS])
    }

    /// Names of files, which are also the prefixes of C functions and, in upper case, of macros. They must not shadow a
    /// header that C code includes, also on file systems that ignore case.
    pub(crate) fn of_files() -> Names {
        let in_any_case = HEADERS.split_whitespace().collect();
        Names { in_any_case, ..Names::new(&[KEYWORDS, CUDA, CALLED]) }
    }

    pub(super) fn enter(&mut self) {
        let number = self.scopes.last().map_or(0, |scope| scope.number);
        self.scopes.push(NameScope { names: HashSet::new(), number });
    }

    /// Closes the innermost scope, which frees its names.
    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Takes a name in the innermost scope: the wanted one, or the first free one of `name_2`,
    /// `name_3`, ...
    pub(crate) fn take(&mut self, wanted: &str) -> String {
        let mut plain = identifier(wanted);
        if self.prefixes.iter().any(|prefix| plain.starts_with(prefix)) {
            plain.insert(0, 'v');
        }
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        let name = candidates.find(|name| self.free(name)).unwrap_or(plain);
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(name.clone());
        }
        name
    }

    /// Takes the first free one of `t0`, `t1`, ... in the innermost scope.
    pub(super) fn take_numbered(&mut self) -> String {
        let start = self.scopes.last().map_or(0, |scope| scope.number);
        let mut candidates = (start..).map(|number| (number, format!("t{number}")));
        let (number, name) = candidates.find(|(_, name)| self.free(name)).unwrap_or_default();
        if let Some(scope) = self.scopes.last_mut() {
            scope.number = number + 1;
        }
        self.take(&name)
    }

    fn free(&self, name: &str) -> bool {
        let is_reserved =
            self.reserved.contains(name) || self.in_any_case.contains(&*name.to_ascii_lowercase());
        !is_reserved && self.scopes.iter().all(|scope| !scope.names.contains(name))
    }
}

/// Replaces every character that identifiers cannot hold.
fn identifier(name: &str) -> String {
    let mut plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect::<String>();
    if plain.is_empty() || is_taken(&plain) || plain.starts_with(|c: char| c.is_ascii_digit()) {
        plain.insert(0, 'v');
    }
    plain
}

/// Whether the name has a reserved prefix: `__` and `_A` belong to the compiler, `wl_` to our
/// helpers, and the rest to CUDA (`CUresult`, `CU_STREAM_DEFAULT`, `CUDA_SUCCESS`, `cuMemAlloc`,
/// `cudaMalloc`).
fn is_taken(name: &str) -> bool {
    let goes_on = |start: &str, with: fn(char) -> bool| {
        name.strip_prefix(start).is_some_and(|rest| rest.starts_with(with))
    };
    let upper = |c: char| c.is_ascii_uppercase();
    name.starts_with("__")
        || name.starts_with("wl_")
        || name.starts_with("CUDA_")
        || goes_on("_", upper)
        || goes_on("CU", |c| c.is_ascii_lowercase() || c == '_')
        || goes_on("cu", upper)
        || goes_on("cuda", upper)
}

/// Makes a name safe inside line and block comments.
pub(crate) fn in_comment(name: &str) -> String {
    // A backslash or its trigraph at the end of a line would extend the comment to the next line.
    let plain = visible(name).replace('\\', " ").replace("??/", "?? /");
    plain.replace("*/", "* /").replace("/*", "/ *")
}

/// Keywords of C up to C23 and of C++, and types and macros that a compiler or the headers of
/// exported C define. Names that begin with an underscore are missing: they are
/// [reserved](is_taken) by their prefix.
const KEYWORDS: &str = "
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t
    class compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield
    decltype default delete do double dynamic_cast else enum explicit export extern false float for friend
    goto if import inline int long module mutable namespace new noexcept not not_eq nullptr operator or or_eq
    private protected public register reinterpret_cast requires return short signed sizeof static
    static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename
    union unsigned using virtual void volatile wchar_t while xor xor_eq restrict main std assert size_t NULL
    NAN INFINITY EOF CHAR_BIT INT_MAX INT_MIN UINT_MAX linux unix typeof typeof_unqual
    contract_assert offsetof unreachable int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t";

/// Variables and types that CUDA declares.
const CUDA: &str = "
    threadIdx blockIdx blockDim gridDim warpSize dim3 cuda
    char1 char2 char3 char4 uchar1 uchar2 uchar3 uchar4 short1 short2 short3 short4 ushort1 ushort2 ushort3
    ushort4 int1 int2 int3 int4 uint1 uint2 uint3 uint4 long1 long2 long3 long4 ulong1 ulong2 ulong3 ulong4
    longlong1 longlong2 longlong3 longlong4 ulonglong1 ulonglong2 ulonglong3 ulonglong4 float1 float2 float3
    float4 double1 double2 double3 double4";

/// Functions that kernels call.
const CALLED: &str = "
    abs min max fabsf fminf fmaxf floorf ceilf rintf sqrtf expf logf sinf cosf tanhf powf atomicAdd atomicMin
    atomicMax atomicCAS";

/// Functions and types that CUDA declares and kernels do not use.
const FUNCTIONS: &str = "
    labs llabs fabs umin umax llmin llmax ullmin ullmax fmin fmax sin cos tan tanf sincos sincosf asin asinf
    acos acosf atan atanf atan2 atan2f sinh sinhf cosh coshf tanh asinh asinhf acosh acoshf atanh atanhf exp
    exp2 exp2f exp10 exp10f expm1 expm1f log log2 log2f log10 log10f log1p log1pf logb logbf ilogb ilogbf pow
    powi powif sqrt rsqrt rsqrtf cbrt cbrtf rcbrt rcbrtf hypot hypotf rhypot rhypotf norm normf norm3d
    norm3df norm4d norm4df rnorm rnormf rnorm3d rnorm3df rnorm4d rnorm4df ceil floor round roundf lround
    lroundf llround llroundf trunc truncf rint lrint lrintf llrint llrintf nearbyint nearbyintf fmod fmodf
    modf modff remainder remainderf remquo remquof fma fmaf fdim fdimf fdivide fdividef frexp frexpf ldexp
    ldexpf scalbn scalbnf scalbln scalblnf copysign copysignf nextafter nextafterf nan nanf erf erff erfc
    erfcf erfinv erfinvf erfcinv erfcinvf erfcx erfcxf normcdf normcdff normcdfinv normcdfinvf tgamma tgammaf
    lgamma lgammaf gamma gammaf j0 j0f j1 j1f jn jnf y0 y0f y1 y1f yn ynf cyl_bessel_i0 cyl_bessel_i0f
    cyl_bessel_i1 cyl_bessel_i1f sinpi sinpif cospi cospif sincospi sincospif tanpi tanpif saturate float2int
    int2float mul24 umul24 mulhi umulhi mul64hi umul64hi isnan isinf isfinite signbit atomicSub atomicExch
    atomicInc atomicDec atomicAnd atomicOr atomicXor any all ballot printf vprintf malloc free memcpy memset
    memmove memcmp alloca clock clock64 tex1D tex2D tex3D
    long4_16a long4_32a ulong4_16a ulong4_32a longlong4_16a longlong4_32a ulonglong4_16a ulonglong4_32a
    double4_16a double4_32a textureReference surfaceReference clock_t ptrdiff_t nullptr_t max_align_t
    uint ushort ulong";

/// Headers of C, its libraries and CUDA, and prefixes of library functions and macros that end like
/// ours: a fixed Param `invalid` of a package `cuda_error` would be CUDA_ERROR_INVALID_VALUE.
const HEADERS: &str = "
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg
    stdatomic stdbit stdbool stdckdint stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar
    wchar wctype alloca endian features malloc memory pthread sched strings unistd
    cuda cuda_error cudagl builtin_types crt device_types driver_types host_defines vector_types
    cnd mtx pthread_attr sem thrd timer";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_what_the_user_wrote_where_they_can() {
        let mut names = Names::global();
        assert_eq!(names.take("blur.sum0"), "blur_sum0");
        assert_eq!(names.take("blur_sum0"), "blur_sum0_2");
        assert_eq!(names.take("blur:sum0"), "blur_sum0_3");
        assert_eq!(names.take("float"), "float_2");
        assert_eq!(names.take("exp"), "exp_2");
        assert_eq!(names.take("3d"), "v3d");
        assert_eq!(names.take("__ldg"), "v__ldg");
        assert_eq!(names.take(""), "v");
        assert_eq!(names.take("größe"), "gr__e");
        assert_eq!(names.take("wl_exp"), "vwl_exp");
    }

    #[test]
    fn what_belongs_to_others_is_left_to_them() {
        let mut names = Names::local();
        for (wanted, taken) in [
            ("_Bool", "v_Bool"),
            ("_Complex", "v_Complex"),
            ("typeof", "typeof_2"),
            ("CUresult", "vCUresult"),
            ("CUDA_SUCCESS", "vCUDA_SUCCESS"),
            ("CU_STREAM_DEFAULT", "vCU_STREAM_DEFAULT"),
            ("cuMemAlloc", "vcuMemAlloc"),
            ("cudaMalloc", "vcudaMalloc"),
            ("uint32_t", "uint32_t_2"),
        ] {
            assert_eq!(names.take(wanted), taken);
        }
        for free in ["cube", "CUBE", "cumulative", "cuda_like", "_low", "time"] {
            assert_eq!(names.take(free), free);
        }
        for (wanted, taken) in
            [("time", "time_2"), ("String", "String_2"), ("Cuda", "Cuda_2"), ("Times", "Times")]
        {
            assert_eq!(Names::of_files().take(wanted), taken);
        }
        assert_eq!(Names::of_files().take("CUDA_error"), "vCUDA_error");
        assert_eq!(Names::of_files().take("cuda_error"), "cuda_error_2");
    }

    #[test]
    fn a_name_does_not_end_its_comment() {
        assert_eq!(in_comment("a*/b\\\n/*"), "a* /b <U+000A>/ *");
        assert_eq!(in_comment("x\u{202e}y\u{1b}??/"), "x<U+202E>y<U+001B>?? /");
    }

    #[test]
    fn a_closed_scope_gives_its_names_back() {
        let mut names = Names::local();
        assert_eq!((names.take("y1"), names.take("min")), ("y1".to_string(), "min_2".to_string()));
        names.take("x");
        names.enter();
        assert_eq!(names.take("x"), "x_2");
        assert_eq!(names.take("y"), "y");
        assert_eq!(names.take_numbered(), "t0");
        names.leave();
        assert_eq!(names.take("y"), "y");
        assert_eq!(names.take_numbered(), "t0");
        assert_eq!(names.take_numbered(), "t1");
    }
}
