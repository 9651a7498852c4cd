//! Keeps the HTML parser within bounds.
//!
//! The parser does what browsers do, and four things that a page can ask for grow with the square of its size or worse:
//! elements nested deeply (each tag walks the open ones), formatting elements left open (each paragraph makes them all
//! anew), text in many parts (each is put to a copy of those before), and attributes of one tag (each is compared with
//! those before). The first two are watched while the page is fed in small pieces, text is gathered before it is handed
//! on, and attributes are counted first. A fifth comes later: the article is also written as HTML (which nobody asked for),
//! and there each sign of a text that must be escaped costs a look at the rest of the text.

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell};
use std::collections::HashMap;

use dom_query::{Document, NodeId};
use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::{Attribute, ParseOpts, QualName, parse_document};

use super::article::ArticleLimits;
use crate::error::{Error, Result};

/// How much of a page is parsed between two looks at the limits. So many bytes open at most a third as many elements.
const PIECE_BYTES: usize = 1024;

/// Comparisons of attributes that a page may cause: about a second of them.
const ATTRIBUTE_COMPARISONS_MAX: u64 = 1 << 31;

/// Bytes of text that may be looked at while signs are escaped: a few seconds of them.
const ESCAPED_BYTES_MAX: u64 = 1 << 36;

/// How often the bytes of a page may be walked while looking for attributes; a page made by no attacker needs it once.
const WALKS_MAX: usize = 32;

/// The parsed page, or which limit it exceeds.
pub(super) fn parse(html: &str, limits: &ArticleLimits) -> Result<Document> {
    check_attributes(html.as_bytes())?;
    let mut options = ParseOpts::default();
    // What is inside <noscript> is text for those who run no scripts, as we do.
    options.tree_builder.scripting_enabled = false;
    let mut parser = parse_document(Watched::default(), options);
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        parser.process(StrTendril::from_slice(piece));
        parser.tokenizer.sink.sink.check(limits)?;
        rest = after;
    }
    let watched = parser.finish();
    watched.check(limits)?;
    Ok(watched.document)
}

/// A document that counts its nodes and tracks their depth.
#[derive(Default)]
struct Watched {
    document: Document,
    depths: RefCell<HashMap<NodeId, u32>>,
    depth_max: Cell<u32>,
    /// Text that is being collected. Each entity arrives separately, so a text of entities arrives in thousands of parts.
    text: RefCell<Option<(Position, String)>>,
    /// What escaping the texts so far will cost.
    escaped_bytes: Cell<u64>,
}

/// Where the parser wants something put.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Into(NodeId),
    Before(NodeId),
    /// Before the first, or into the second if the first has no parent.
    BeforeOrInto(NodeId, NodeId),
}

impl Watched {
    fn put(&self, position: Position, child: NodeOrText<NodeId>) {
        if let NodeOrText::AppendText(text) = &child {
            let mut held = self.text.borrow_mut();
            if let Some((_, before)) = held.as_mut().filter(|(held, _)| *held == position) {
                before.push_str(text);
                return;
            }
            drop(held);
            self.flush();
            *self.text.borrow_mut() = Some((position, text.to_string()));
            return;
        }
        self.flush();
        let depth = match position {
            Position::Into(parent) => self.depth(parent) + 1,
            Position::Before(sibling) => self.depth(sibling),
            Position::BeforeOrInto(element, parent) => self.depth(element).max(self.depth(parent) + 1),
        };
        self.note(&child, depth);
        self.hand_on(position, child);
    }

    /// Hands on the text that was held back. Done before anything else changes.
    fn flush(&self) {
        if let Some((position, text)) = self.text.take() {
            if !self.is_script(position) {
                let signs = text.bytes().filter(|byte| matches!(byte, b'&' | b'<' | b'>' | 0xC2)).count();
                self.escaped_bytes.set(self.escaped_bytes.get() + signs as u64 * text.len() as u64);
            }
            self.hand_on(position, NodeOrText::AppendText(StrTendril::from_slice(&text)));
        }
    }

    /// Whether what is put there is no text to be read, and not escaped.
    fn is_script(&self, position: Position) -> bool {
        let Position::Into(parent) = position else { return false };
        let name = self.document.tree.get_name(&parent);
        name.is_some_and(|name| matches!(&*name.local, "script" | "style"))
    }

    fn hand_on(&self, position: Position, child: NodeOrText<NodeId>) {
        match position {
            Position::Into(parent) => self.document.append(&parent, child),
            Position::Before(sibling) => self.document.append_before_sibling(&sibling, child),
            Position::BeforeOrInto(element, parent) => {
                self.document.append_based_on_parent_node(&element, &parent, child);
            }
        }
    }

    fn check(&self, limits: &ArticleLimits) -> Result<()> {
        within("number of nodes of a page", self.document.tree.len(), limits.nodes_max)?;
        within("nesting depth of a page", self.depth_max.get() as usize, limits.depth_max)?;
        let escaped = self.escaped_bytes.get() as usize;
        within("cost of the signs to be escaped in a page", escaped, ESCAPED_BYTES_MAX as usize)
    }

    fn depth(&self, node: NodeId) -> u32 {
        self.depths.borrow().get(&node).copied().unwrap_or(0)
    }

    fn note(&self, child: &NodeOrText<NodeId>, depth: u32) {
        if let NodeOrText::AppendNode(node) = child {
            self.depths.borrow_mut().insert(*node, depth);
            self.depth_max.set(self.depth_max.get().max(depth));
        }
    }
}

fn within(what: &'static str, found: usize, limit: usize) -> Result<()> {
    if found <= limit { Ok(()) } else { Err(Error::Limit { what, found: found as u64, limit: limit as u64 }) }
}

/// Everything is the document's own work; only where a node is put is noted.
impl TreeSink for Watched {
    type Handle = NodeId;
    type Output = Self;
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) -> Self {
        self.flush();
        self
    }

    /// Dropped: nearly every page has some, and nobody reads them.
    fn parse_error(&self, _message: Cow<'static, str>) {}

    fn get_document(&self) -> NodeId {
        self.document.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a NodeId) -> Self::ElemName<'a> {
        self.document.elem_name(target)
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, flags: ElementFlags) -> NodeId {
        self.document.create_element(name, attributes, flags)
    }

    fn create_comment(&self, text: StrTendril) -> NodeId {
        self.document.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> NodeId {
        self.document.create_pi(target, data)
    }

    fn append(&self, parent: &NodeId, child: NodeOrText<NodeId>) {
        self.put(Position::Into(*parent), child);
    }

    fn append_based_on_parent_node(&self, element: &NodeId, before: &NodeId, child: NodeOrText<NodeId>) {
        self.put(Position::BeforeOrInto(*element, *before), child);
    }

    fn append_doctype_to_document(&self, name: StrTendril, public: StrTendril, system: StrTendril) {
        self.flush();
        self.document.append_doctype_to_document(name, public, system);
    }

    fn get_template_contents(&self, target: &NodeId) -> NodeId {
        let contents = self.document.get_template_contents(target);
        self.note(&NodeOrText::AppendNode(contents), self.depth(*target) + 1);
        contents
    }

    fn same_node(&self, one: &NodeId, other: &NodeId) -> bool {
        self.document.same_node(one, other)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.document.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &NodeId, child: NodeOrText<NodeId>) {
        self.put(Position::Before(*sibling), child);
    }

    fn add_attrs_if_missing(&self, target: &NodeId, attributes: Vec<Attribute>) {
        self.document.add_attrs_if_missing(target, attributes);
    }

    fn remove_from_parent(&self, target: &NodeId) {
        self.flush();
        self.document.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &NodeId, parent: &NodeId) {
        self.flush();
        self.document.reparent_children(node, parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, node: &NodeId) -> bool {
        self.document.is_mathml_annotation_xml_integration_point(node)
    }
}

/// Whether the attributes of a page can be read in reasonable time.
///
/// What is a tag depends on what comes before it, so every offset where one could begin is tried; the true ones are among
/// them.
fn check_attributes(html: &[u8]) -> Result<()> {
    let mut comparisons = 0_u64;
    let mut walked = 0;
    for (start, pair) in html.windows(2).enumerate() {
        if pair[0] == b'<' && pair[1].is_ascii_alphabetic() {
            let (attributes, bytes) = count_attributes(&html[start + 1..]);
            comparisons += attributes * attributes / 2;
            walked += bytes;
            within("comparisons of attributes in a page", comparisons as usize, ATTRIBUTE_COMPARISONS_MAX as usize)?;
            within("bytes of tags in a page", walked, WALKS_MAX * html.len())?;
        }
    }
    Ok(())
}

/// Where a tag is read: the states of the HTML standard (§13.2.5.8 to .39) that matter for counting.
#[derive(Clone, Copy)]
enum Within {
    TagName,
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Quoted(u8),
    Unquoted,
}

/// How many attributes the tag has whose name begins here, and how many bytes it takes.
fn count_attributes(tag: &[u8]) -> (u64, usize) {
    let mut attributes = 0;
    let mut within = Within::TagName;
    for (index, &byte) in tag.iter().enumerate() {
        let space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0C);
        within = match (within, byte) {
            (Within::Quoted(quote), _) if byte == quote => Within::BeforeName,
            (Within::Quoted(_), _) => continue,
            (_, b'>') => return (attributes, index + 1),
            (Within::BeforeValue, b'"' | b'\'') => Within::Quoted(byte),
            (Within::BeforeValue, _) if space => Within::BeforeValue,
            (Within::BeforeValue | Within::Unquoted, _) if !space => Within::Unquoted,
            (Within::Unquoted, _) | (_, b'/') => Within::BeforeName,
            (Within::TagName | Within::BeforeName, _) if space => Within::BeforeName,
            (Within::TagName, _) => Within::TagName,
            (Within::Name | Within::AfterName, b'=') => Within::BeforeValue,
            (Within::Name | Within::AfterName, _) if space => Within::AfterName,
            (Within::Name, _) => Within::Name,
            _ => {
                attributes += 1;
                Within::Name
            }
        };
    }
    (attributes, tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_counted_as_a_browser_does() {
        for (tag, attributes) in [
            ("p>", 0),
            ("br/>", 0),
            ("a href=x>b", 1),
            ("a href = 'x > y' b c=d/e f/g>", 5),
            ("a x=\"1\"y='2'z>", 3),
            ("a 'x=1 =y=2>", 2),
            ("a b=\"never closed c d e", 1),
        ] {
            assert_eq!(count_attributes(tag.as_bytes()).0, attributes, "{tag}");
        }
    }
}
