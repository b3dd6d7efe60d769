//! Tensor Comprehensions: files in their notation in place of apps.

use std::fs;

use warploom::interp::{npy, picture};
use warploom::lang::{Region, Type};
use warploom::prelude::Buffer;

use crate::place::Place;

const TEXT: &str = "
def mm(float(M,K) A, float(K,N) B) -> (C) {
    C(m,n) +=! A(m,k) * B(k,n)
}
def twice(float(M,N) C) -> (C) { C(m,n) = 2 * C(m,n) }
def attention(float(Q,D) queries, float(T,D) keys, float(T,V) values, float scale) -> (O) {
    S(q,t) +=! queries(q,d) * keys(t,d)
    highest(q) max=! S(q,t)
    E(q,t) = exp(scale * (S(q,t) - highest(q)))
    total(q) +=! E(q,t)
    W(q,v) +=! E(q,t) * values(t,v)
    O(q,v) = W(q,v) / total(q)
}
def pool(float(H,W) I) -> (O) {
    O(h,w) max=! I(2*h + kh, 2*w + kw) where kh in 0:3, kw in 0:3
}
";

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("nets.tc"), TEXT).unwrap();
    place
}

const QUICK: &str = "--samples 2 --passes 1 --beam 2";

#[test]
fn every_command_takes_a_definition() {
    let place = place();
    let cases = [
        "mm --size M=37,K=19,N=41",
        "attention --size Q=13,D=8,T=21,V=5 --param scale=0.35",
        "pool --size H=35,W=23",
    ];
    for case in cases {
        let (name, _) = case.split_once(' ').unwrap();
        let at = format!("nets.tc --def {case}");
        let commands = [
            format!("graph {at}"),
            format!("run {at} --generate"),
            format!("sim {at} --schedule default"),
            format!("sim {at} --schedule search"),
            format!("sim {at} --schedule random:3"),
            format!("compile {at} {QUICK} --device h200 -o out"),
            format!("explain {at} --schedule out"),
            format!("tune {at} {QUICK} --top 2 --fake fake"),
        ];
        for command in commands {
            let ran = place.run(&command);
            assert_eq!(ran.code, 0, "{command}: {}{}", ran.out, ran.err);
        }
        let compiled = place.run(&format!("compile {at} --schedule default --device h200"));
        assert!(compiled.out.starts_with(&format!("{name} at ")), "{}", compiled.out);
    }
}

#[test]
fn arrays_are_row_major_and_give_the_sizes() {
    let place = place();
    let array = |extents: [i64; 2], value: fn(&[i64]) -> f32| {
        Buffer::from_fn(Region::of_extents(&extents), value).unwrap()
    };
    // 3 x 2 times 2 x 4, as NumPy shapes; the last index is the first dimension here.
    npy::write(place.path("a.npy"), &array([2, 3], |at| (10 * at[1] + at[0]) as f32)).unwrap();
    npy::write(place.path("b.npy"), &array([4, 2], |at| (at[1] + at[0] * at[0]) as f32)).unwrap();
    let ran = place.run("run nets.tc --def mm --input A=a.npy --input B=b.npy -o C=c.npy");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.starts_with("mm at M=3, K=2, N=4: "), "{}", ran.out);
    let product = npy::read(place.path("c.npy")).unwrap();
    let of = |m: i64, n: i64| -> f32 { (0..2).map(|k| ((10 * m + k) * (k + n * n)) as f32).sum() };
    assert_eq!(product.region().extents(), [4, 3]);
    let expected: Vec<f32> = (0..3).flat_map(|m| (0..4).map(move |n| of(m, n))).collect();
    assert_eq!(product.as_slice::<f32>(), Some(expected.as_slice()));

    // A tensor that is updated in place has its old values from an input of its own.
    let ran = place.run("run nets.tc --def twice --input C_in=a.npy -o C=twice.npy");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let twice = npy::read(place.path("twice.npy")).unwrap();
    assert_eq!(twice.as_slice::<f32>(), Some(&[0.0, 2.0, 20.0, 22.0, 40.0, 42.0][..]));
    let ran = place.run("run nets.tc --def mm --input X=a.npy");
    assert!(ran.code == 2 && ran.err.contains("has no input `X`"), "{}", ran.err);

    let ran = place.run("run nets.tc --def mm --input A=a.npy --input B=a.npy");
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("nets.tc:2:"), "{}", ran.err);
}

#[test]
fn pictures_get_the_channels_of_the_definition() {
    let place = Place::new();
    fs::write(
        place.path("g.tc"),
        "def g(float(H,W,3) I) -> (O) { O(h,w,c) = 2 * I(h,w,c) }
         def grey(float(H,W) I) -> (O) { O(h,w) = 2 * I(h,w) }
         def any(float(H,W,C) I) -> (O) { O(h,w,c) = 2 * I(h,w,c) }",
    )
    .unwrap();
    let picture = |extents: &[i64]| {
        Buffer::from_fn(Region::of_extents(extents), |at| (at[0] + 3 * at[1] + at.get(2).unwrap_or(&0)) as u8)
            .unwrap()
    };
    for (name, extents) in [("grey", &[9, 7][..]), ("rgb", &[9, 7, 3]), ("rgba", &[9, 7, 4])] {
        picture::write(place.path(&format!("{name}.png")), &picture(extents)).unwrap();
    }
    npy::write(place.path("first.npy"), &Buffer::zeros(Type::F32, Region::of_extents(&[9, 7, 3])).unwrap())
        .unwrap();
    let size = |arguments: &str| {
        let ran = place.run(&format!("run g.tc -o O=out.npy {arguments}"));
        assert_eq!(ran.code, 0, "{arguments}: {}", ran.err);
        npy::read(place.path("out.npy")).unwrap().region().extents()
    };
    for input in ["grey.png", "rgb.png", "rgba.png:rgb"] {
        assert_eq!(size(&format!("--def g --input {input}")), [3, 9, 7], "{input}");
    }
    assert_eq!(size("--def grey --input rgb.png:grey"), [9, 7]);
    assert_eq!(size("--def any --input grey.png:rgb"), [9, 7, 3]);
    for (arguments, sentence) in [
        ("--def g --input rgba.png", "takes 3 channels, and converting rgba.png would lose the alpha"),
        ("--def grey --input rgb.png", "converting rgb.png would lose the colours; write rgb.png:grey"),
        ("--def any --input grey.png", "grey.png is a grey picture, but input `I` of `any` has 3 dimensions"),
        ("--def g --input first.npy", "transpose the array, array.transpose(1, 2, 0)\n"),
    ] {
        let ran = place.run(&format!("run g.tc {arguments}"));
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments}: {}", ran.err);
        assert!(ran.err.contains(sentence), "{arguments}: {}", ran.err);
    }
}

#[test]
fn mistakes_are_said() {
    let place = place();
    fs::write(place.path("wrong.tc"), "def f(float(N) A) -> (B) { B(i) = A(i + }").unwrap();
    let cases = [
        ("compile nets.tc", 2, "--def NAME chooses one"),
        ("compile nets.tc --def conv", 2, "no definition named `conv`"),
        (
            "compile nets.tc --def mm",
            2,
            "no value was given for M; give sizes by name, as in --size M=1024,K=1024,N=1024",
        ),
        ("compile nets.tc --def mm --size 64x48", 2, "`64x48` is not a size"),
        ("compile nets.tc --def mm --size M=0,K=1,N=1", 2, "`M=0` is not a size"),
        ("compile nets.tc --def mm --size X=3", 2, "`mm` has no size `X`"),
        ("compile nets.tc --def mm --size M=1,M=2", 2, "given twice"),
        ("compile nets.tc --def pool --size H=2,W=2", 3, "nets.tc:15:"),
        ("compile wrong.tc --size N=3", 2, "wrong.tc:1:"),
        ("compile lost.tc --size N=3", 2, "there is no file lost.tc"),
        ("compile harris --def mm", 2, "--def has no effect here"),
    ];
    for (command, code, sentence) in cases {
        let ran = place.run(command);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{command}: {}", ran.err);
        assert!(ran.err.contains(sentence), "{command}: {}", ran.err);
    }
}
