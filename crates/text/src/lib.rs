//! Handling of untrusted text: clipping, escaping, redaction, digests and word splitting.

pub mod build_log;
pub mod digest;
pub mod disk;
pub mod escape;
pub mod file;
pub mod normal;
pub mod redact;
pub mod search;
#[cfg(feature = "simulation")]
pub mod seeds;
pub mod tree;
pub mod wording;
pub mod words;

/// Clips a text to `limit` bytes at a character boundary and appends how many bytes were left out.
pub fn clip(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit);
    format!("{}… [{} bytes left out]", &text[..end], text.len() - end)
}

/// Folds a text onto one line: collapses white space, drops control characters and clips.
pub fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::with_capacity(text.len().min(limit));
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        // The rest of a long text would be clipped anyway.
        if line.len() > limit {
            break;
        }
    }
    if line.len() > limit {
        line.truncate(line.floor_char_boundary(limit));
        line.push('…');
    }
    line
}

/// Formats an error with its causes, `message: cause: cause`. A cause whose words the message
/// already has is left out: errors differ in whether their own message contains it.
pub fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = error.source();
    }
    text
}

/// Adds the functions `name` and `from_name` and the list `ALL` to enums that derive strum's
/// `EnumString`, `IntoStaticStr` and `VariantArray`, so that callers need neither strum nor a
/// trait.
#[macro_export]
macro_rules! named {
    ($($of:ty),+ $(,)?) => {$(
        impl $of {
            /// All variants in declaration order.
            pub const ALL: &'static [Self] = <Self as ::strum::VariantArray>::VARIANTS;

            /// Returns the machine-readable name.
            pub fn name(self) -> &'static str {
                self.into()
            }

            /// Returns the variant with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                name.parse().ok()
            }
        }
    )+};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        #[derive(Debug)]
        struct Outer(&'static str, std::fmt::Error);

        impl std::fmt::Display for Outer {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.0)
            }
        }

        impl std::error::Error for Outer {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                Some(&self.1)
            }
        }

        let cause = std::fmt::Error.to_string();
        let expected = format!("cannot write: {cause}");
        assert_eq!(error_chain(&Outer("cannot write", std::fmt::Error)), expected);
        let contains_it = Outer(Box::leak(expected.clone().into_boxed_str()), std::fmt::Error);
        assert_eq!(error_chain(&contains_it), expected);
    }

    #[test]
    fn clipping_keeps_characters_whole() {
        assert_eq!(clip("héllo", 2), "h… [5 bytes left out]");
        assert_eq!(clip("hello", 5), "hello");
    }

    #[test]
    fn one_line_is_one_line() {
        assert_eq!(one_line(" a\n\tb\u{1b}[31mc ", 80), "a b [31mc");
        assert_eq!(one_line("abcdef", 3), "abc…");
    }
}
