//! The examples of `docs/tensor.md` are read and realised at the sizes beside them.

use std::path::Path;

use warploom_tensor::parse;

/// The blocks of a page that begin with this word: what follows the word, and the text.
fn blocks(page: &str, word: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for block in page.split("\n```").skip(1).step_by(2) {
        let Some((head, text)) = block.split_once('\n') else { continue };
        if let Some(rest) = head.strip_prefix(word) {
            found.push((rest.trim().to_string(), text.to_string()));
        }
    }
    found
}

#[test]
fn the_examples_of_the_document_are_right() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tensor.md");
    let page = std::fs::read_to_string(path).unwrap();
    let examples = blocks(&page, "tc");
    assert_eq!(examples.len(), 11);
    for (head, text) in examples {
        let (refused, sizes) = match head.strip_prefix("refused") {
            Some(rest) => (true, rest),
            None => (false, head.as_str()),
        };
        let size = |part: &'_ str| {
            part.split_once('=').map(|(name, size)| (name.to_string(), size.parse().unwrap()))
        };
        let sizes: Vec<(String, i64)> = sizes.split_whitespace().filter_map(size).collect();
        let sizes: Vec<(&str, i64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
        let definition = parse("tensor.md", &text).unwrap().define(None).unwrap();
        let outcome = definition.realise(&sizes);
        assert_eq!(outcome.is_err(), refused, "{text}\n{:?}", outcome.err());
    }
}

#[test]
fn the_message_of_the_document_is_right() {
    let text = "def conv1d(float(M) I, float(N) K) -> (O) {\n  O(i) = K(x) * I(i+x)\n}";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tensor.md");
    let page = std::fs::read_to_string(path).unwrap();
    let message = parse("conv.tc", text).unwrap_err().to_string();
    assert!(blocks(&page, "text").iter().any(|(_, block)| *block == message), "{message}");
}
