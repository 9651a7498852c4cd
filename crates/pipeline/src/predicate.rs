//! Conditions on the columns of a table, as people write them: `split == 'train' and width >= 224`.
//!
//! ```text
//! condition   = all { "or" all }
//! all         = one { "and" one }
//! one         = "not" one | "(" condition ")" | column [ comparison ]
//! comparison  = ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) literal | [ "not" ] "in" "(" literal { "," literal } ")"
//! column      = name | "`" any name "`"
//! literal     = number | "'" text "'" | '"' text '"' | "true" | "false"
//! ```
//!
//! A column alone is a condition where it is a boolean. What is missing or null meets no comparison but `!=` and `not in`, as in Python.

use std::cmp::Ordering;

/// The longest condition, and how deep it may be nested.
const BYTES_MAX: usize = 64 << 10;
const DEPTH_MAX: usize = 64;

/// A condition on the columns of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicate {
    columns: Vec<String>,
    root: Node,
}

/// What a column has in a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Datum {
    /// Nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
    /// A field of a text file, which is a number to those who compare it with one. Nothing, where it is empty.
    Written(String),
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Any(Vec<Node>),
    All(Vec<Node>),
    Not(Box<Node>),
    Flag(usize),
    Compare(usize, Operator, Literal),
    In(usize, Vec<Literal>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, PartialEq)]
enum Literal {
    Int(i64),
    Float(f64),
    Text(String),
    Bool(bool),
}

impl Predicate {
    /// Reads a condition, or says what is wrong with it and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > BYTES_MAX {
            return Err(format!("it has {} bytes, more than {BYTES_MAX}", text.len()));
        }
        let tokens = tokens(text)?;
        let mut parser = Parser { tokens: &tokens, at: 0, end: text.chars().count(), columns: Vec::new(), depth: 0 };
        let root = parser.any()?;
        match parser.peek() {
            None => Ok(Self { columns: parser.columns, root }),
            Some(_) => Err(parser.unexpected("`and`, `or` or the end")),
        }
    }

    /// The columns that it names, each once.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Whether a row meets it that has `values` in [its columns](Self::columns); or what cannot be compared.
    pub fn holds(&self, values: &[Datum]) -> Result<bool, String> {
        self.holds_in(&self.root, values)
    }

    fn holds_in(&self, node: &Node, values: &[Datum]) -> Result<bool, String> {
        Ok(match node {
            Node::Any(nodes) => {
                for node in nodes {
                    if self.holds_in(node, values)? {
                        return Ok(true);
                    }
                }
                false
            }
            Node::All(nodes) => {
                for node in nodes {
                    if !self.holds_in(node, values)? {
                        return Ok(false);
                    }
                }
                true
            }
            Node::Not(node) => !self.holds_in(node, values)?,
            Node::Flag(column) => match value_of(values, *column) {
                Datum::Null => false,
                Datum::Bool(is) => *is,
                Datum::Written(text) if text.trim().is_empty() => false,
                Datum::Written(text) => boolean(text)
                    .ok_or_else(|| self.wrong(*column, &shown(text), "not a boolean", "compare it with something"))?,
                other => return Err(self.wrong(*column, &other.shown(), "not a boolean", "compare it with something")),
            },
            Node::Compare(column, operator, literal) => {
                let ordering = self.compare(*column, value_of(values, *column), literal)?;
                match operator {
                    Operator::Equal => ordering == Some(Ordering::Equal),
                    Operator::Unequal => ordering != Some(Ordering::Equal),
                    Operator::Less => ordering == Some(Ordering::Less),
                    Operator::LessOrEqual => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
                    Operator::Greater => ordering == Some(Ordering::Greater),
                    Operator::GreaterOrEqual => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
                }
            }
            Node::In(column, literals) => {
                let value = value_of(values, *column);
                for literal in literals {
                    if self.compare(*column, value, literal)? == Some(Ordering::Equal) {
                        return Ok(true);
                    }
                }
                false
            }
        })
    }

    /// How a value compares with a literal; not at all where it is null.
    fn compare(&self, column: usize, value: &Datum, literal: &Literal) -> Result<Option<Ordering>, String> {
        let number = |literal: &Literal| match literal {
            Literal::Int(number) => Some(*number as f64),
            Literal::Float(number) => Some(*number),
            _ => None,
        };
        Ok(match (value, literal) {
            (Datum::Null, _) => None,
            (Datum::Written(text), Literal::Int(_) | Literal::Float(_) | Literal::Bool(_))
                if text.trim().is_empty() =>
            {
                None
            }
            (Datum::Text(text) | Datum::Written(text), Literal::Text(other)) => Some(text.as_str().cmp(other)),
            (Datum::Bool(is), Literal::Bool(other)) => Some(is.cmp(other)),
            (Datum::Int(number), Literal::Int(other)) => Some(number.cmp(other)),
            (Datum::Int(found), _) if number(literal).is_some() => {
                number(literal).and_then(|other| (*found as f64).partial_cmp(&other))
            }
            (Datum::Float(found), _) if number(literal).is_some() => {
                number(literal).and_then(|other| found.partial_cmp(&other))
            }
            (Datum::Written(text), Literal::Bool(other)) => {
                let found = boolean(text).ok_or_else(|| {
                    self.wrong(column, &shown(text), "not a boolean", "write the other side in quotes")
                })?;
                Some(found.cmp(other))
            }
            (Datum::Written(text), Literal::Int(other)) if text.trim().parse::<i64>().is_ok() => {
                text.trim().parse::<i64>().ok().map(|found| found.cmp(other))
            }
            (Datum::Written(text), _) => {
                let found: f64 = text.trim().parse().map_err(|_| {
                    self.wrong(
                        column,
                        &shown(text),
                        "not a number",
                        "write the other side in quotes to compare strings",
                    )
                })?;
                number(literal).and_then(|other| found.partial_cmp(&other))
            }
            (value, literal) => {
                let (what, remedy) = match literal {
                    Literal::Text(_) => ("not a string", "write the other side without quotes"),
                    Literal::Bool(_) => ("not a boolean", "compare it with what it is"),
                    _ => ("not a number", "write the other side in quotes to compare strings"),
                };
                return Err(self.wrong(column, &value.shown(), what, remedy));
            }
        })
    }

    fn wrong(&self, column: usize, found: &str, what: &str, remedy: &str) -> String {
        format!("the column `{}` has {found}, which is {what}: {remedy}", self.columns[column])
    }
}

impl Datum {
    fn shown(&self) -> String {
        match self {
            Self::Null => "nothing".to_owned(),
            Self::Bool(is) => format!("`{is}`"),
            Self::Int(number) => format!("`{number}`"),
            Self::Float(number) => format!("`{number}`"),
            Self::Text(text) | Self::Written(text) => shown(text),
        }
    }
}

fn value_of(values: &[Datum], column: usize) -> &Datum {
    values.get(column).unwrap_or(&Datum::Null)
}

fn shown(text: &str) -> String {
    format!("`{}`", text.chars().take(40).collect::<String>())
}

fn boolean(text: &str) -> Option<bool> {
    match text.trim() {
        "true" | "True" | "TRUE" | "1" => Some(true),
        "false" | "False" | "FALSE" | "0" => Some(false),
        _ => None,
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// A name, or a word of the language.
    Word(String),
    /// A name in backticks.
    Name(String),
    Literal(Literal),
    Operator(Operator),
    Open,
    Close,
    Comma,
}

/// The tokens of a text, each with the number of its first letter, counted from 1.
fn tokens(text: &str) -> Result<Vec<(usize, Token)>, String> {
    let letters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        let start = at;
        let letter = letters[at];
        let next = letters.get(at + 1).copied();
        at += 1;
        let token = match letter {
            _ if letter.is_whitespace() => continue,
            '(' | '[' => Token::Open,
            ')' | ']' => Token::Close,
            ',' => Token::Comma,
            '=' | '!' | '<' | '>' => {
                let with_equals = next == Some('=');
                at += usize::from(with_equals);
                Token::Operator(match (letter, with_equals) {
                    ('=', true) => Operator::Equal,
                    ('!', true) => Operator::Unequal,
                    ('<', true) => Operator::LessOrEqual,
                    ('>', true) => Operator::GreaterOrEqual,
                    ('<', false) => Operator::Less,
                    ('>', false) => Operator::Greater,
                    ('=', false) => return Err(format!("`=` at letter {} compares nothing: write `==`", start + 1)),
                    _ => return Err(format!("`!` at letter {} means nothing: write `not`, or `!=`", start + 1)),
                })
            }
            '\'' | '"' | '`' => {
                let (content, end) = quoted(&letters, at, letter)
                    .ok_or_else(|| format!("the quote at letter {} is not closed", start + 1))?;
                at = end;
                if letter == '`' { Token::Name(content) } else { Token::Literal(Literal::Text(content)) }
            }
            _ if letter.is_ascii_digit()
                || matches!(letter, '-' | '+' | '.')
                    && next.is_some_and(|next| next.is_ascii_digit() || next == '.') =>
            {
                while letters.get(at).is_some_and(|&letter| {
                    letter.is_ascii_alphanumeric()
                        || letter == '.'
                        || matches!(letter, '-' | '+') && matches!(letters[at - 1], 'e' | 'E')
                }) {
                    at += 1;
                }
                let written: String = letters[start..at].iter().collect();
                let number = match written.parse::<i64>() {
                    Ok(number) => Some(Literal::Int(number)),
                    Err(_) => written.parse::<f64>().ok().filter(|number| number.is_finite()).map(Literal::Float),
                };
                Token::Literal(number.ok_or_else(|| format!("`{written}` at letter {} is not a number", start + 1))?)
            }
            _ if letter.is_alphabetic() || letter == '_' => {
                while letters.get(at).is_some_and(|&letter| letter.is_alphanumeric() || matches!(letter, '_' | '.')) {
                    at += 1;
                }
                Token::Word(letters[start..at].iter().collect())
            }
            other => return Err(format!("`{other}` at letter {} means nothing", start + 1)),
        };
        tokens.push((start + 1, token));
    }
    Ok(tokens)
}

/// What stands between quotes, where `at` is behind the first, and where it ends. A backslash before a quote or a backslash takes it as it is.
fn quoted(letters: &[char], mut at: usize, quote: char) -> Option<(String, usize)> {
    let mut content = String::new();
    loop {
        match *letters.get(at)? {
            letter if letter == quote => return Some((content, at + 1)),
            '\\' if letters.get(at + 1).is_some_and(|&next| next == quote || next == '\\') => {
                content.push(letters[at + 1]);
                at += 2;
            }
            letter => {
                content.push(letter);
                at += 1;
            }
        }
    }
}

struct Parser<'a> {
    tokens: &'a [(usize, Token)],
    at: usize,
    /// How many letters there are.
    end: usize,
    columns: Vec<String>,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(found)) if found.eq_ignore_ascii_case(word))
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        self.at += usize::from(is);
        is
    }

    fn take(&mut self, token: &Token) -> bool {
        let is = self.peek() == Some(token);
        self.at += usize::from(is);
        is
    }

    fn unexpected(&self, wanted: &str) -> String {
        match self.tokens.get(self.at) {
            Some((letter, _)) => format!("at letter {letter} comes something else than {wanted}"),
            None => format!("it ends at letter {}, where {wanted} is missing", self.end),
        }
    }

    fn any(&mut self) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("it is nested deeper than {DEPTH_MAX} times"));
        }
        let mut nodes = vec![self.all()?];
        while self.take_word("or") {
            nodes.push(self.all()?);
        }
        self.depth -= 1;
        Ok(if nodes.len() == 1 { nodes.swap_remove(0) } else { Node::Any(nodes) })
    }

    fn all(&mut self) -> Result<Node, String> {
        let mut nodes = vec![self.one()?];
        while self.take_word("and") {
            nodes.push(self.one()?);
        }
        Ok(if nodes.len() == 1 { nodes.swap_remove(0) } else { Node::All(nodes) })
    }

    fn one(&mut self) -> Result<Node, String> {
        let mut negated = false;
        while self.take_word("not") {
            negated = !negated;
        }
        let node = if self.take(&Token::Open) {
            let node = self.any()?;
            if !self.take(&Token::Close) {
                return Err(self.unexpected("`)`"));
            }
            node
        } else {
            self.comparison()?
        };
        Ok(if negated { Node::Not(Box::new(node)) } else { node })
    }

    fn comparison(&mut self) -> Result<Node, String> {
        let column = match self.peek() {
            Some(Token::Name(name)) => name.clone(),
            Some(Token::Word(word)) if !is_reserved(word) => word.clone(),
            Some(Token::Literal(_)) => return Err(self.unexpected("a column (which stands left of its comparison)")),
            _ => return Err(self.unexpected("the name of a column")),
        };
        self.at += 1;
        let column = self.columns.iter().position(|known| *known == column).unwrap_or_else(|| {
            self.columns.push(column);
            self.columns.len() - 1
        });
        if let Some(Token::Operator(operator)) = self.peek() {
            let operator = *operator;
            self.at += 1;
            return Ok(Node::Compare(column, operator, self.literal()?));
        }
        let negated = self.take_word("not");
        if !self.take_word("in") {
            return if negated { Err(self.unexpected("`in`")) } else { Ok(Node::Flag(column)) };
        }
        if !self.take(&Token::Open) {
            return Err(self.unexpected("`(`"));
        }
        let mut literals = Vec::new();
        while !self.take(&Token::Close) {
            literals.push(self.literal()?);
            if !self.take(&Token::Comma) && self.peek() != Some(&Token::Close) {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
        let node = Node::In(column, literals);
        Ok(if negated { Node::Not(Box::new(node)) } else { node })
    }

    fn literal(&mut self) -> Result<Literal, String> {
        let literal = match self.peek() {
            Some(Token::Literal(literal)) => literal.clone(),
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("true") => Literal::Bool(true),
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("false") => Literal::Bool(false),
            Some(Token::Word(word)) => {
                return Err(format!("`{word}` stands where a value is wanted: write a text in quotes, `'{word}'`"));
            }
            _ => return Err(self.unexpected("a number, a text in quotes, `true` or `false`")),
        };
        self.at += 1;
        Ok(literal)
    }
}

fn is_reserved(word: &str) -> bool {
    ["and", "or", "not", "in", "true", "false"].iter().any(|reserved| word.eq_ignore_ascii_case(reserved))
}

#[cfg(test)]
mod tests;
