//! Text as HTML.

/// `text` with everything that HTML would take as markup escaped.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// A name.
pub(super) fn code(text: &str) -> String {
    format!("<code>{}</code>", escape(text))
}

/// Prose with names in backticks.
pub(super) fn with_code(text: &str) -> String {
    let mut parts = text.split('`');
    let mut html = escape(parts.next().unwrap_or_default());
    while let Some(name) = parts.next() {
        match parts.next() {
            Some(rest) => {
                html.push_str(&code(name));
                html.push_str(&escape(rest));
            }
            // A backtick without its partner is just a backtick.
            None => html.push_str(&escape(&format!("`{name}"))),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_and_names_are_code() {
        assert_eq!(escape("<a href='x'>&"), "&lt;a href=&#39;x&#39;&gt;&amp;");
        assert_eq!(with_code("keep `a<b` now"), "keep <code>a&lt;b</code> now");
        assert_eq!(with_code("a ` b"), "a ` b");
    }
}
