//! Web pages: the article in them.
#![no_main]

use forebay_codec::text::{ArticleLimits, article_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|page: &[u8]| {
    let limits = ArticleLimits { max_bytes: 1 << 16, nodes_max: 1 << 14, depth_max: 128 };
    if let Ok(text) = article_text(page, None, &limits) {
        assert!(!text.contains('\0') && text.trim() == text);
    }
});
