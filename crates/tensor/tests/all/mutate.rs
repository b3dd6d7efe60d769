//! Texts that are nearly programs: working ones with a few pieces changed.

const SEEDS: [&str; 9] = [
    "def mv(float(M,K) A, float(K) x) -> (C) { C(i) = 0  C(i) += A(i,k) * x(k) }",
    "def conv2d(float(B,C,H,W) I, float(F,C,KH,KW) K) -> (O) { O(b,f,h,w) +=! I(b,c,2*h+y,w+x) * K(f,c,y,x) }",
    "def pool(float(H,W) I) -> (O) { O(i,j) max=! I(2*i+u,2*j+v) where u in 0:2, v in 0:2, exists I(i, j) }",
    "def lut(float(E,D) T, int32(B,L) I) -> (O) { O(i,j) +=! T(I(i,k),j) }",
    "def norm(float(N,K) I, float eps) -> (O) { s(n) +=! I(n,k)*I(n,k)
        O(n,k) = I(n,k) * rsqrt(mu + eps) where mu = s(n) / I.1 }",
    "def causal(float(R,T) D, float(C,R,2) F, int32 d) -> (float(C,T) O) {
        O(c,t) +=! D(r,t)*F(c,r,1) + (t-d >= 0 && !(t > T) ? D(r,t-d)*F(c,r,0) : 0) where t in 0:T }",
    "def mm(float16(M,K) A, bfloat16(K) x, half h) -> (float16(M) C, D) { C(i) = 0.5 * h  C(i) += A(i,k) * h
        D(i) = A(i,0) * x(0) + 1.5  D(i) max= A(i,k) * x(k) }",
    "def soft(double(N,D) I, int64(N) J) -> (O) { m(n) max=! I(J(n),d)  O(n,d) = exp(float64(I(n,d)) - m(n)) * 0.1 }",
    "def wide(int64(N,K) A, uint64(N) B, int64 d) -> (int64(N) S, P) { S(i) +=! A(i,k) * B(i) + int64(k)
        P(i) = double(S(i)) / uint64(3) where i in 0:N-d+1 }",
];

/// A generator of pseudo-random numbers (xorshift).
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// Splits a text where tokens may change.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for c in text.chars() {
        match pieces.last_mut() {
            Some(last) if c.is_alphanumeric() && last.chars().all(char::is_alphanumeric) => last.push(c),
            _ => pieces.push(c.to_string()),
        }
    }
    pieces
}

pub const WORDS: [&str; 37] = [
    "i",
    "k",
    "N",
    "A",
    "0",
    "1",
    "2",
    "-",
    "+",
    "*",
    "/",
    "%",
    "(",
    ")",
    ",",
    "?",
    ":",
    "<",
    "==",
    "&&",
    "!",
    "=",
    "+=!",
    "max=",
    "where",
    "in",
    "exists",
    "1.5",
    "exp",
    "float16",
    "bfloat16",
    "half",
    "double",
    "int64",
    "uint64",
    "float",
    "\u{2028}é",
];

/// Makes texts that are nearly programs.
pub struct Mutator {
    draw: Draw,
    seeds: Vec<Vec<String>>,
}

impl Mutator {
    pub fn new(seed: u64) -> Mutator {
        Mutator { draw: Draw(seed), seeds: SEEDS.iter().map(|seed| pieces(seed)).collect() }
    }

    /// A seed with a few changes.
    pub fn text(&mut self) -> String {
        mutated(&mut self.draw, &self.seeds)
    }
}

fn mutated(draw: &mut Draw, seeds: &[Vec<String>]) -> String {
    let mut text = seeds[draw.below(seeds.len())].clone();
    for _ in 0..1 + draw.below(3) {
        let at = draw.below(text.len());
        match draw.below(9) {
            0 => drop(text.remove(at)),
            1 => text.insert(at, WORDS[draw.below(WORDS.len())].to_string()),
            2 => text[at] = WORDS[draw.below(WORDS.len())].to_string(),
            3 => {
                let other = draw.below(text.len());
                text.swap(at, other);
            }
            4 => {
                let other = &seeds[draw.below(seeds.len())];
                let from = draw.below(other.len());
                let part = other[from..(from + 6).min(other.len())].to_vec();
                text.splice(at..at, part);
            }
            // A word for a word or an operator for an operator: the text often stays a program.
            _ => {
                let is_word = |piece: &str| piece.chars().all(char::is_alphanumeric);
                let alike: Vec<&str> =
                    WORDS.into_iter().filter(|word| is_word(word) == is_word(&text[at])).collect();
                if !text[at].trim().is_empty() && !"(){},".contains(text[at].as_str()) {
                    text[at] = alike[draw.below(alike.len())].to_string();
                }
            }
        }
        if text.is_empty() {
            text.push("def".to_string());
        }
    }
    text.concat()
}
