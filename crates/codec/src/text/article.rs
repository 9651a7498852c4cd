//! The article of a web page: its text without menus, advertisements and footers.

use std::borrow::Cow;

use dom_query::Document;
use dom_smoothie::{Config, Readability, TextMode};

use super::charset::decode_text;
use super::guard;
use crate::error::{Error, Result};

/// What a page may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArticleLimits {
    /// The longest page, in bytes.
    pub max_bytes: usize,
    /// The most nodes (elements, texts, comments) that the parser may make of it.
    pub nodes_max: usize,
    /// The maximum nesting depth of elements. Browsers stop at 512.
    pub depth_max: usize,
}

impl Default for ArticleLimits {
    fn default() -> Self {
        Self { max_bytes: 16 << 20, nodes_max: 250_000, depth_max: 512 }
    }
}

/// The text of a page's article, paragraph by paragraph.
///
/// The page is parsed as browsers do and the article found as their reader mode does. Where no part of the page reads like
/// an article, all of its visible text is returned. `declared` is the page's character set where the caller knows it; see
/// [`decode_text`] for what happens otherwise. Any bytes are a page: the only errors are limits, and a `declared` that is
/// unknown.
pub fn article_text(page: &[u8], declared: Option<&str>, limits: &ArticleLimits) -> Result<String> {
    if page.len() > limits.max_bytes {
        let (found, limit) = (page.len() as u64, limits.max_bytes as u64);
        return Err(Error::Limit { what: "bytes of a page", found, limit });
    }
    let html = without_nul(decode_text(page, declared)?);
    let document = guard::parse(&html, limits)?;
    let config = Config { text_mode: TextMode::Formatted, disable_json_ld: true, ..Config::default() };
    // A document without an address has none that could be wrong, so only the search itself can fail.
    let article = Readability::with_document(document, None, Some(config)).and_then(|mut page| page.parse());
    match article {
        Ok(article) if !article.text_content.trim().is_empty() => Ok(article.text_content.trim().to_owned()),
        // The search has modified the document, so it is parsed again.
        _ => Ok(visible_text(&guard::parse(&html, limits)?)),
    }
}

/// NUL does not belong in text, and C strings downstream would end there.
fn without_nul(html: Cow<'_, str>) -> Cow<'_, str> {
    if html.contains('\0') { Cow::Owned(html.replace('\0', "")) } else { html }
}

/// All text that a reader would see.
fn visible_text(document: &Document) -> String {
    document.select("head, script, style, noscript, template, svg").remove();
    document.formatted_text().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_an_article_gives_its_visible_text() {
        let page = b"<title>no</title><script>var x = '<p>no'</script><p>one<p>two &amp; three";
        let text = article_text(page, None, &ArticleLimits::default()).unwrap();
        assert_eq!(text.split_whitespace().collect::<Vec<_>>().join(" "), "one two & three");
        assert_eq!(article_text(b"", None, &ArticleLimits::default()).unwrap(), "");
        assert_eq!(article_text(b"\0\0<\0", None, &ArticleLimits::default()).unwrap(), "<");
    }

    #[test]
    fn a_long_page_is_refused_before_it_is_parsed() {
        let limits = ArticleLimits { max_bytes: 3, ..ArticleLimits::default() };
        let error = article_text(b"<p>x", None, &limits).unwrap_err();
        assert!(matches!(error, Error::Limit { found: 4, limit: 3, .. }), "{error}");
    }
}
