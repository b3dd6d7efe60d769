//! The elementary functions of the checking build, compiled by this machine's C++ compiler, give the oracle's bits.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use warploom_codegen::printer::{Build, PRINTER};
use warploom_lang::op::{Class, Op};
use warploom_lang::{Type, Value};

use crate::programs::{self, Case};

/// What CUDA declares, for a host, and the operands.
const SHIMS: &str = r#"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#define __device__
#define __forceinline__ inline
using std::max;
using std::min;
template <typename T, typename F> static T bits_as(F from) {
    static_assert(sizeof(T) == sizeof(F), "the same width");
    T to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}
static int __float2int_rz(float x) {
    return x != x ? 0 : x >= 2147483648.0f ? 2147483647 : x <= -2147483648.0f ? -2147483647 - 1 : (int)x;
}
static int __float_as_int(float x) { return bits_as<int>(x); }
static unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
static float __int_as_float(int x) { return bits_as<float>(x); }
static float __uint_as_float(unsigned x) { return bits_as<float>(x); }
static long long __double_as_longlong(double x) { return bits_as<long long>(x); }
static double __longlong_as_double(long long x) { return bits_as<double>(x); }
static float __fsqrt_rn(float x) { return std::sqrt(x); }
static int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(x); }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
static uint64_t mixed(uint64_t x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}
static void operand(uint64_t number, float* x) {
    const uint64_t bits = mixed(number);
    *x = number & 1 ? (float)(int32_t)bits * 4.656613e-08f : bits_as<float>((uint32_t)bits);
}
static void operand(uint64_t number, double* x) {
    const uint64_t bits = mixed(number);
    *x = number & 1 ? (double)(int32_t)bits * 4.656612873077393e-08 : bits_as<double>(bits);
}
static uint64_t bits_of(float x) { return x != x ? 1 : bits_as<uint32_t>(x); }
static uint64_t bits_of(double x) { return x != x ? 1 : bits_as<uint64_t>(x); }
"#;

/// The finaliser of splitmix64.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Every other operand is a pattern of any magnitude, the others are from -100 to 100.
fn operand(ty: Type, number: u64) -> Value {
    let bits = mixed(number);
    match (number % 2, ty) {
        (1, Type::F32) => (bits as i32 as f32 * 4.656_613e-8).into(),
        (1, _) => (f64::from(bits as i32) * 4.656_612_873_077_393e-8).into(),
        _ => Value::from_bits(ty, bits),
    }
}

/// The elementary functions of a type.
fn functions(ty: Type) -> Vec<Case> {
    let is_function = |case: &Case| {
        let class = case.op.class(ty, ty);
        class == Some(Class::FloatSpecial) || (class == Some(Class::FloatRoot) && case.op.name() == "rsqrt")
    };
    programs::cases(ty).into_iter().filter(is_function).collect()
}

/// A hash of a function's results.
fn hash(case: &Case, ty: Type, count: u64) -> u64 {
    let operands = case.operands.len() as u64;
    (0..count).fold(0xcbf2_9ce4_8422_2325, |hash, number| {
        let args: Vec<Value> = (0..operands).map(|arg| operand(ty, number + arg * 0x1_0000_0000)).collect();
        let result = case.op.eval(&args);
        let bits = if result.as_f64().is_nan() { 1 } else { result.bits() };
        (hash ^ bits).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A program that prints the hashes of functions.
fn program(ty: Type, cases: &[Case], count: u64) -> String {
    let listing = PRINTER.print_lines(&programs::of_cases(ty, cases, 64), Build::Checking);
    let element = if ty == Type::F32 { "float" } else { "double" };
    let mut text = format!("{SHIMS}\n{}\nint main() {{\n", &listing.text[listing.helpers]);
    for case in cases {
        let args = if case.operands.len() == 1 { "x" } else { "x, y" };
        let name = case.op.name();
        let _ = write!(
            text,
            "    {{\n        uint64_t hash = 0xcbf29ce484222325ull;
        for (uint64_t i = 0; i < {count}ull; ++i) {{
            {element} x, y;
            operand(i, &x);
            operand(i + 0x100000000ull, &y);
            hash = (hash ^ bits_of(wl_{name}({args}))) * 0x100000001b3ull;
        }}
        std::printf(\"{name} %016llx\\n\", (unsigned long long)hash);\n    }}\n"
        );
    }
    text + "}\n"
}

/// Compares `count` results of each function. Returns why it did not.
fn compare(ty: Type, count: u64) -> Result<(), String> {
    let folder =
        std::env::temp_dir().join(format!("warploom-elementary-{}-{ty}-{count}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let cases = functions(ty);
    let found = run(&folder, &program(ty, &cases, count));
    std::fs::remove_dir_all(&folder).unwrap();
    let found = found.ok_or(format!("SKIPPED for {ty}: there is no C++ compiler `c++`"))?;
    let expected = cases.iter().map(|case| format!("{} {:016x}", case.op.name(), hash(case, ty, count)));
    assert_eq!(found.lines().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    Ok(())
}

/// What a C++ program prints; `None` if there is no compiler.
fn run(folder: &Path, text: &str) -> Option<String> {
    let (source, binary) = (folder.join("functions.cpp"), folder.join("functions"));
    std::fs::write(&source, text).unwrap();
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O2", "-ffp-contract=off", "-w", "-o"]).args([&binary, &source]);
    let compiled = compiler.output().ok()?;
    assert!(compiled.status.success(), "{}\n{text}", String::from_utf8_lossy(&compiled.stderr));
    Some(String::from_utf8(Command::new(&binary).output().unwrap().stdout).unwrap())
}

#[test]
fn printed_functions_give_the_bits_of_the_oracle() {
    for reason in [Type::F32, Type::F64].into_iter().filter_map(|ty| compare(ty, 1 << 14).err()) {
        println!("{reason}");
    }
}

#[test]
#[ignore = "takes minutes"]
fn printed_functions_give_the_bits_of_the_oracle_on_many_patterns() {
    for reason in [Type::F32, Type::F64].into_iter().filter_map(|ty| compare(ty, 1 << 24).err()) {
        println!("{reason}");
    }
}

#[test]
fn all_functions_are_compared() {
    let count = |ty| functions(ty).len();
    assert_eq!((count(Type::F32), count(Type::F64)), (18, 6));
    assert!(functions(Type::F32).iter().all(|case| matches!(case.op, Op::Unary(_) | Op::Binary(_))));
}
