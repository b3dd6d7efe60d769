//! Text templates with `@hole@` placeholders.

/// Fills the holes of a template, written `@hole@`. A hole that is alone on its line takes whole
/// lines, or disappears with its line.
pub(super) fn fill(template: &str, holes: &[(&str, String)]) -> String {
    let find = |name: &str| holes.iter().find(|(known, _)| *known == name).map(|(_, text)| text.as_str());
    let mut filled = String::new();
    for line in template.lines() {
        let whole = line.strip_prefix('@').and_then(|line| line.strip_suffix('@')).and_then(find);
        if let Some(lines) = whole {
            filled.push_str(lines);
            continue;
        }
        // Every second piece is a name between two `@` signs.
        for (number, piece) in line.split('@').enumerate() {
            let text = if number % 2 == 1 { find(piece).unwrap_or(piece) } else { piece };
            filled.push_str(text);
        }
        filled.push('\n');
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled() {
        let holes = [("a", "1".to_string()), ("lines", "x;\ny;\n".to_string()), ("none", String::new())];
        let filled = fill("int @a@ = @a@@a@;\n@lines@\n@none@\n  @lines@\nend", &holes);
        assert_eq!(filled, "int 1 = 11;\nx;\ny;\n  x;\ny;\n\nend\n");
    }

    #[test]
    fn what_is_put_in_is_not_read_again() {
        let holes = [("a", "@b@".to_string()), ("b", "no".to_string())];
        assert_eq!(fill("@a@;", &holes), "@b@;\n");
    }
}
