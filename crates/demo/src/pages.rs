//! Web pages with an article of invented words, and around it what web pages have around it: navigation, scripts, styles, comments. An
//! article is a tenth of its page, as in OpenWebText's.

use std::fmt::Write;

use forebay_pipeline::Random;

/// The words that hold every text together; a third of it is made of them.
const SMALL_WORDS: [&str; 48] = [
    "the", "of", "and", "to", "a", "in", "is", "that", "was", "for", "it", "on", "with", "as", "be", "at", "by",
    "this", "had", "not", "are", "but", "from", "or", "have", "an", "they", "which", "one", "you", "were", "all",
    "her", "she", "there", "would", "their", "we", "him", "been", "has", "when", "who", "will", "no", "more", "if",
    "out",
];

const ONSETS: [&str; 24] = [
    "b", "br", "c", "ch", "d", "f", "fl", "g", "gr", "h", "l", "m", "n", "p", "pr", "r", "s", "sh", "st", "str", "t",
    "th", "v", "w",
];
const VOWELS: [&str; 11] = ["a", "e", "i", "o", "u", "ai", "ea", "ee", "ie", "oo", "ou"];
const CODAS: [&str; 16] = ["", "", "", "l", "m", "n", "nd", "nt", "r", "rd", "s", "st", "t", "ck", "ng", "ss"];
const ENDINGS: [&str; 10] = ["", "", "", "s", "ed", "ing", "er", "ly", "ion", "able"];

/// The number of other words.
const WORDS: usize = 6000;

/// A language: its words, the frequent ones first.
pub(super) struct Language {
    words: Vec<String>,
}

/// A page, and the text of the article in it.
pub(super) struct Page {
    pub(super) html: String,
    pub(super) article: String,
}

impl Language {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::from_parts(&[seed, u64::MAX]);
        let words = (0..WORDS).map(|number| {
            let syllables = 1 + random.below(if number < 300 { 2 } else { 3 });
            let mut word: String = (0..syllables).map(|_| syllable(&mut random)).collect();
            word.push_str(pick(&mut random, &ENDINGS));
            word
        });
        Self { words: words.collect() }
    }

    fn word(&self, random: &mut Random) -> &str {
        if random.below(100) < 38 {
            return pick(random, &SMALL_WORDS);
        }
        // The n-th word is about 1 / n as frequent as the first (Zipf).
        let index = (WORDS as f64).powf(random.unit()) as usize;
        &self.words[index.min(WORDS - 1)]
    }

    fn sentence(&self, random: &mut Random) -> String {
        let count = 7 + random.below(18);
        let mut sentence = String::new();
        for index in 0..count {
            let word = self.word(random);
            if index == 0 {
                sentence.push_str(&capitalized(word));
                continue;
            }
            sentence.push_str(if random.below(11) == 0 { ", " } else { " " });
            match random.below(40) {
                0 => sentence.push_str(&capitalized(word)),
                1 => sentence.push_str(&(2 + random.below(2023)).to_string()),
                _ => sentence.push_str(word),
            }
        }
        sentence.push_str(pick(random, &[".", ".", ".", ".", "?", "!"]));
        sentence
    }

    fn paragraph(&self, random: &mut Random) -> String {
        let sentences: Vec<String> = (0..3 + random.below(5)).map(|_| self.sentence(random)).collect();
        sentences.join(" ")
    }

    fn title(&self, random: &mut Random) -> String {
        let words: Vec<String> = (0..4 + random.below(5)).map(|_| capitalized(self.word(random))).collect();
        words.join(" ")
    }

    /// Page number `number`.
    pub(super) fn page(&self, seed: u64, number: u64) -> Page {
        let random = &mut Random::from_parts(&[seed, number]);
        let title = self.title(random);
        let paragraphs: Vec<String> = (0..5 + random.below(6)).map(|_| self.paragraph(random)).collect();
        let mut html = String::with_capacity(48 << 10);
        html.push_str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        let _ = writeln!(html, "<title>{title} | The Daily Sample</title>");
        self.styles(random, &mut html);
        self.script(random, 60 + random_length(number), &mut html);
        html.push_str("</head>\n<body>\n<header class=\"masthead\">\n");
        self.links(random, "nav", "primary-navigation", 40, &mut html);
        let _ = write!(html, "</header>\n<main id=\"content\">\n<article class=\"post\">\n<h1>{title}</h1>\n");
        let _ = writeln!(
            html,
            "<p class=\"byline\">By {} {}</p>",
            capitalized(self.word(random)),
            capitalized(self.word(random))
        );
        for paragraph in &paragraphs {
            let _ = writeln!(html, "<p>{paragraph}</p>");
        }
        html.push_str("</article>\n");
        self.links(random, "aside", "sidebar related", 45, &mut html);
        html.push_str("<section id=\"comments\" class=\"comments\">\n");
        for comment in 0..3 + random.below(8) {
            let (who, what) = (capitalized(self.word(random)), self.sentence(random));
            let _ = writeln!(html, "<div class=\"comment\" id=\"c{comment}\"><b>{who}</b><span>{what}</span></div>");
        }
        html.push_str("</section>\n</main>\n<footer class=\"site-footer\">\n");
        self.links(random, "nav", "footer-links", 30, &mut html);
        html.push_str("</footer>\n");
        self.script(random, 110, &mut html);
        html.push_str("</body>\n</html>\n");
        Page { html, article: paragraphs.join("\n") }
    }

    fn links(&self, random: &mut Random, tag: &str, class: &str, count: usize, html: &mut String) {
        let _ = writeln!(html, "<{tag} class=\"{class}\"><ul>");
        for _ in 0..count {
            let (one, other) = (self.word(random), self.word(random));
            let _ = writeln!(
                html,
                "<li class=\"menu-item\"><a href=\"/{one}/{other}-{}\" data-track=\"{class}\">{} {other}</a></li>",
                random.below(100_000),
                capitalized(one),
            );
        }
        let _ = writeln!(html, "</ul></{tag}>");
    }

    fn styles(&self, random: &mut Random, html: &mut String) {
        html.push_str("<style>\n");
        for _ in 0..70 {
            let (name, left, right) = (self.word(random), random.below(48), random.below(48));
            let _ = writeln!(
                html,
                ".{name}-box{{margin:{left}px {right}px;padding:{right}px;color:#{:06x};display:block}}",
                random.below(1 << 24)
            );
        }
        html.push_str("</style>\n");
    }

    /// A script with settings and tracking, of that many lines.
    fn script(&self, random: &mut Random, lines: usize, html: &mut String) {
        html.push_str("<script>\nwindow.__state = {\n");
        for line in 0..lines {
            let (name, value) = (self.word(random), random.bits());
            let _ = writeln!(
                html,
                "  \"{name}{line}\": {{\"id\": \"{value:016x}\", \"weight\": {}, \"on\": {}}},",
                random.below(10_000),
                value % 2 == 0
            );
        }
        html.push_str(
            "};\n(function (q) { q.push(['track', window.__state]); })(window.__q = window.__q || []);\n</script>\n",
        );
    }
}

/// Some pages have far longer scripts than others.
fn random_length(number: u64) -> usize {
    [0, 40, 90, 220][number as usize % 4]
}

fn syllable(random: &mut Random) -> String {
    [pick(random, &ONSETS), pick(random, &VOWELS), pick(random, &CODAS)].concat()
}

fn pick<'a>(random: &mut Random, choices: &[&'a str]) -> &'a str {
    choices[random.below(choices.len())]
}

fn capitalized(word: &str) -> String {
    let (first, rest) = word.split_at(1.min(word.len()));
    format!("{}{rest}", first.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use forebay_codec::text::{ArticleLimits, article_text};

    use super::*;

    #[test]
    fn the_article_is_found_in_its_page() {
        let language = Language::new(1);
        let mut bytes = 0;
        for number in 0..12 {
            let page = language.page(1, number);
            assert_eq!(page.html, language.page(1, number).html);
            let text = article_text(page.html.as_bytes(), None, &ArticleLimits::default()).unwrap();
            for paragraph in page.article.lines() {
                assert!(text.contains(paragraph), "{number}: {paragraph}\nis not in\n{text}");
            }
            assert!(!text.contains("__state") && text.len() < page.article.len() * 3 / 2, "{number}: {text}");
            bytes += page.html.len() / 12;
        }
        assert!((25_000..60_000).contains(&bytes), "{bytes}");
    }
}
