//! Colors.

/// How a piece of text looks on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A heading, or the first word of a hint.
    Heading,
    /// The best of several.
    Good,
    /// What went wrong.
    Bad,
    /// What matters less.
    Faint,
}

impl Style {
    /// `text` in this style, or as it is where colors are off.
    pub(crate) fn paint(self, text: &str, colors: bool) -> String {
        if !colors || text.is_empty() {
            return text.to_owned();
        }
        let code = match self {
            Self::Heading => "1",
            Self::Good => "1;32",
            Self::Bad => "1;31",
            Self::Faint => "2",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}
