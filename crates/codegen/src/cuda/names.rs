//! Names: what the user called things, made into identifiers that clash with nothing.

use std::collections::HashSet;

/// The names in use, by scope: a name is free if no scope that is still open has it.
pub(super) struct Names {
    scopes: Vec<HashSet<String>>,
}

impl Names {
    /// No names but those that are never free.
    pub(super) fn new() -> Names {
        Names { scopes: vec![HashSet::new()] }
    }

    /// Opens a scope.
    pub(super) fn enter(&mut self) {
        self.scopes.push(HashSet::new());
    }

    /// Closes the innermost scope; its names are free again.
    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Takes a name in the innermost scope: the wanted one, or the first free of `name_2`, `name_3`, ...
    pub(super) fn take(&mut self, wanted: &str) -> String {
        let plain = identifier(wanted);
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        let name = candidates.find(|name| self.free(name)).unwrap_or(plain);
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.clone());
        }
        name
    }

    /// Takes the first free of `prefix0`, `prefix1`, ... in the innermost scope.
    pub(super) fn take_numbered(&mut self, prefix: &str) -> String {
        let mut candidates = (0..).map(|number| format!("{prefix}{number}"));
        let name = candidates.find(|name| self.free(name)).unwrap_or_default();
        self.take(&name)
    }

    fn free(&self, name: &str) -> bool {
        !is_reserved(name) && self.scopes.iter().all(|scope| !scope.contains(name))
    }
}

/// The name with every character that identifiers cannot have replaced.
fn identifier(name: &str) -> String {
    let mut plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect::<String>();
    // Two leading underscores belong to the compiler, a leading digit to numbers.
    if plain.is_empty() || plain.starts_with("__") || plain.starts_with(|c: char| c.is_ascii_digit()) {
        plain.insert(0, 'v');
    }
    plain
}

/// Whether the language, CUDA or our own helper functions have the name.
fn is_reserved(name: &str) -> bool {
    name.starts_with("wl_") || RESERVED.iter().any(|list| list.split_whitespace().any(|word| word == name))
}

/// Keywords of C++, and what CUDA's headers, which every translation unit includes, declare or define.
const RESERVED: [&str; 4] = [
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t \
     class compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield \
     decltype default delete do double dynamic_cast else enum explicit export extern false float for friend \
     goto if import inline int long module mutable namespace new noexcept not not_eq nullptr operator or \
     or_eq private protected public register reinterpret_cast requires return short signed sizeof static \
     static_assert static_cast struct switch template this thread_local throw true try typedef typeid \
     typename union unsigned using virtual void volatile wchar_t while xor xor_eq restrict std cuda main \
     assert printf malloc free memcpy memset size_t ptrdiff_t clock clock64 NULL NAN INFINITY EOF linux unix \
     CHAR_BIT INT_MAX INT_MIN UINT_MAX alloca vprintf signbit isnan isinf isfinite",
    "threadIdx blockIdx blockDim gridDim warpSize dim3 uint3 cudaError_t cudaStream_t \
     char1 char2 char3 char4 uchar1 uchar2 uchar3 uchar4 short1 short2 short3 short4 ushort1 ushort2 ushort3 \
     ushort4 int1 int2 int3 int4 uint1 uint2 uint4 long1 long2 long3 long4 ulong1 ulong2 ulong3 ulong4 \
     longlong1 longlong2 ulonglong1 ulonglong2 float1 float2 float3 float4 double1 double2 double3 double4",
    "abs labs llabs fabs fabsf min max umin umax llmin llmax ullmin ullmax fmin fminf fmax fmaxf sin sinf cos \
     cosf tan tanf sincos sincosf asin asinf acos acosf atan atanf atan2 atan2f sinh sinhf cosh coshf tanh \
     tanhf asinh asinhf acosh acoshf atanh atanhf exp expf exp2 exp2f exp10 exp10f expm1 expm1f log logf log2 \
     log2f log10 log10f log1p log1pf logb logbf ilogb ilogbf pow powf powi powif sqrt sqrtf rsqrt rsqrtf cbrt \
     cbrtf rcbrt rcbrtf hypot hypotf rhypot rhypotf norm normf norm3d norm3df norm4d norm4df rnorm rnormf \
     rnorm3d rnorm3df rnorm4d rnorm4df ceil ceilf floor floorf round roundf lround lroundf llround llroundf \
     trunc truncf rint rintf lrint lrintf llrint llrintf nearbyint nearbyintf fmod fmodf modf modff remainder \
     remainderf remquo remquof fma fmaf fdim fdimf fdivide fdividef frexp frexpf ldexp ldexpf scalbn scalbnf \
     scalbln scalblnf copysign copysignf nextafter nextafterf nan nanf erf erff erfc erfcf erfinv erfinvf \
     erfcinv erfcinvf erfcx erfcxf normcdf normcdff normcdfinv normcdfinvf tgamma tgammaf lgamma lgammaf \
     gamma gammaf j0 j0f j1 j1f jn jnf y0 y0f y1 y1f yn ynf cyl_bessel_i0 cyl_bessel_i0f cyl_bessel_i1 \
     cyl_bessel_i1f sinpi sinpif cospi cospif sincospi sincospif tanpi tanpif saturate float2int int2float \
     mul24 umul24 mulhi umulhi mul64hi umul64hi",
    "atomicAdd atomicSub atomicExch atomicMin atomicMax atomicInc atomicDec atomicCAS atomicAnd atomicOr \
     atomicXor any all ballot",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_what_the_user_wrote_where_they_can() {
        let mut names = Names::new();
        assert_eq!(names.take("blur.sum0"), "blur_sum0");
        assert_eq!(names.take("blur_sum0"), "blur_sum0_2");
        assert_eq!(names.take("blur:sum0"), "blur_sum0_3");
        assert_eq!(names.take("float"), "float_2");
        assert_eq!(names.take("exp"), "exp_2");
        assert_eq!(names.take("3d"), "v3d");
        assert_eq!(names.take("__ldg"), "v__ldg");
        assert_eq!(names.take(""), "v");
        assert_eq!(names.take("größe"), "gr__e");
        assert_eq!(names.take("wl_exp"), "wl_exp");
    }

    #[test]
    fn a_closed_scope_gives_its_names_back() {
        let mut names = Names::new();
        names.take("x");
        names.enter();
        assert_eq!(names.take("x"), "x_2");
        assert_eq!(names.take("y"), "y");
        assert_eq!(names.take_numbered("t"), "t0");
        names.leave();
        assert_eq!(names.take("y"), "y");
        assert_eq!(names.take_numbered("t"), "t0");
        assert_eq!(names.take_numbered("t"), "t1");
    }
}
