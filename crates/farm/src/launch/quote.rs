//! Quoting for a POSIX shell.

/// A text quoted so that a shell reads it as one word.
pub(super) fn word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => quoted(text),
    }
}

/// A command of several words.
pub(super) fn line<T: AsRef<str>>(words: &[T]) -> String {
    let word = |(number, text): (usize, &T)| match text.as_ref() {
        // Before a command's name, `A=1` sets a variable.
        text if number == 0 && text.contains('=') => quoted(text),
        text => word(text),
    };
    words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

/// Backslashes inside quotes mean different things to different shells, so none are used.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r#"'"'"'"#))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The words that a shell makes of a command's arguments.
    fn read_back(arguments: &str) -> Vec<String> {
        let script = format!("printf '%s\\0' {arguments}");
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(output.status.success(), "{script}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    #[test]
    fn plain_words_stay_readable() {
        assert_eq!(
            line(&["/opt/a.b", "--role", "propose,compile", "--gres=gpu:1"]),
            "/opt/a.b --role propose,compile --gres=gpu:1"
        );
        assert_eq!(
            line(&["A=1", "a b", "it's", "", "$HOME", "~/x"]),
            r#"'A=1' 'a b' 'it'"'"'s' '' '$HOME' '~/x'"#
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_shell_reads_what_was_quoted(
            words in vec(prop_oneof!["[^\\x00]{0,12}", "['\"\\\\\n $`!#~*&;|<>(){}=-]{0,12}"], 1..20)
        ) {
            prop_assert_eq!(read_back(&line(&words)), words.clone());
            // Quoted twice: for the login shell and for the one that it starts.
            let inner = format!("printf '%s\\0' {}", line(&words));
            let output = Command::new("sh").args(["-c", &format!("sh -c {}", word(&inner))]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            prop_assert_eq!(text.split_terminator('\0').collect::<Vec<_>>(), words);
        }
    }
}
