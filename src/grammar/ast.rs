//! The syntax tree of a grammar: rules over Unicode code points.
//!
//! Both front ends (GBNF text and JSON Schema) build this tree and the automaton is lowered from
//! it. It knows nothing of bytes or tokens.

use std::fmt;

/// Index of a rule within its [`Grammar`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(pub u32);

/// A set of code points, kept as sorted, disjoint, non-adjacent inclusive ranges of scalar values
/// (surrogates are never members).
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct CharClass {
    ranges: Vec<(char, char)>,
}

impl CharClass {
    /// Builds a class from inclusive ranges in any order; ranges that overlap or touch are merged.
    /// A range whose start is above its end is dropped.
    pub fn from_ranges(ranges: impl IntoIterator<Item = (char, char)>) -> Self {
        let mut ranges: Vec<(char, char)> = ranges.into_iter().filter(|(a, b)| a <= b).collect();
        ranges.sort_unstable();
        let mut merged: Vec<(char, char)> = Vec::with_capacity(ranges.len());
        for (start, end) in ranges {
            match merged.last_mut() {
                Some(last) if start <= last.1 || Some(start) == successor(last.1) => {
                    last.1 = last.1.max(end);
                }
                _ => merged.push((start, end)),
            }
        }
        Self { ranges: merged }
    }

    /// The class of every code point (GBNF's `.`).
    pub fn any() -> Self {
        Self::from_ranges([('\0', char::MAX)])
    }

    /// Every code point that is not in this class.
    #[must_use]
    pub fn negated(&self) -> Self {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 1);
        let mut next = Some('\0');
        for &(start, end) in &self.ranges {
            if let Some(from) = next
                && from < start
                && let Some(to) = predecessor(start)
            {
                ranges.push((from, to));
            }
            next = successor(end);
        }
        if let Some(from) = next {
            ranges.push((from, char::MAX));
        }
        Self::from_ranges(ranges)
    }

    /// The ranges, sorted, disjoint and not adjacent.
    pub fn ranges(&self) -> &[(char, char)] {
        &self.ranges
    }

    /// Whether `c` is a member.
    pub fn contains(&self, c: char) -> bool {
        self.ranges
            .binary_search_by(|&(start, end)| {
                if c < start {
                    std::cmp::Ordering::Greater
                } else if c > end {
                    std::cmp::Ordering::Less
                } else {
                    std::cmp::Ordering::Equal
                }
            })
            .is_ok()
    }

    /// Whether the class has no member: nothing matches it.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

impl fmt::Debug for CharClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.ranges.iter().map(|(a, b)| (a, b)))
            .finish()
    }
}

/// The scalar value after `c`, skipping the surrogate gap.
fn successor(c: char) -> Option<char> {
    match c {
        '\u{D7FF}' => Some('\u{E000}'),
        char::MAX => None,
        c => char::from_u32(u32::from(c) + 1),
    }
}

/// The scalar value before `c`, skipping the surrogate gap.
fn predecessor(c: char) -> Option<char> {
    match c {
        '\u{E000}' => Some('\u{D7FF}'),
        '\0' => None,
        c => char::from_u32(u32::from(c) - 1),
    }
}

/// What a rule matches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// The empty string.
    Empty,
    /// These code points, in this order.
    Literal(String),
    /// One code point of the class. An empty class matches nothing.
    Class(CharClass),
    /// Each in turn.
    Seq(Vec<Expr>),
    /// Any one of them. No alternative at all matches nothing.
    Alt(Vec<Expr>),
    /// `expr` at least `min` times, at most `max` times (`None`: without bound). Never unrolled.
    Repeat {
        /// What is repeated.
        expr: Box<Expr>,
        /// Fewest times.
        min: u32,
        /// Most times; `None`: without bound.
        max: Option<u32>,
    },
    /// Another rule.
    Rule(RuleId),
    /// Members in any order, each at most once.
    Unordered(Box<Unordered>),
    /// One particular token of the vocabulary (`<[1000]>`, `<think>`), or with `negated` any other
    /// single token. Has no meaning in bytes: it is resolved where a vocabulary is known.
    Token {
        /// Which token.
        token: TokenReference,
        /// Whether it is any other one.
        negated: bool,
    },
}

/// Items in any order with a separator between them: members that are known by their keys, each
/// at most once, and possibly others. GBNF has no such construct; it is matched with the set of
/// the members that were there, never as an alternation of permutations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unordered {
    /// The members, each with a key of its own.
    pub members: Vec<Member>,
    /// Between two items.
    pub separator: Expr,
    /// Items that are not members.
    pub others: Option<Others>,
    /// Fewest items, members and others together.
    pub min: u32,
    /// Most items, members and others together; `None`: without bound.
    pub max: Option<u32>,
}

/// An item that an [`Unordered`] knows by its key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// What it begins with and is known by. Empty where it is known by its value alone, which then
    /// is not empty.
    pub key: String,
    /// What follows the key.
    pub value: Expr,
    /// Whether it must be there.
    pub required: bool,
}

/// The items of an [`Unordered`] that are not its members. A text that is both is matched as
/// either, so what is to come only once must not match here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Others {
    /// One such item. It never matches the empty string, even where the expression does.
    pub item: Expr,
    /// Most of them; `None`: without bound. A guard against runaway repetition rather than a part
    /// of what is meant, so GBNF, which cannot count across members, is printed without it.
    pub guard: Option<u32>,
}

impl Unordered {
    /// The fewest and shortest items that make a text, given the length of the shortest text of an
    /// expression: positions of members, and how many others. `None` if there is no text.
    pub fn shortest(&self, length: impl Fn(&Expr) -> Option<u64>) -> Option<(Vec<usize>, u32)> {
        let mut chosen = Vec::new();
        let mut optional = Vec::new();
        for (at, member) in self.members.iter().enumerate() {
            match length(&member.value) {
                None if member.required => return None,
                None => {}
                Some(_) if member.required => chosen.push(at),
                Some(value) => optional.push((value.saturating_add(member.key.len() as u64), at)),
            }
        }
        let lack = (self.min as usize).saturating_sub(chosen.len());
        optional.sort_unstable();
        let other = self.others.as_ref().and_then(|others| {
            let most = others.guard.unwrap_or(u32::MAX);
            length(&others.item).map(|length| (length, most as usize))
        });
        let dear = other.map_or(usize::MAX, |(length, _)| {
            optional.partition_point(|member| member.0 <= length)
        });
        let cheap = lack.min(optional.len()).min(dear);
        let others = (lack - cheap).min(other.map_or(0, |(_, most)| most));
        let members = lack - others;
        let items = chosen.len() + lack;
        if members > optional.len()
            || self.max.is_some_and(|max| items > max as usize)
            || (items > 1 && length(&self.separator).is_none())
        {
            return None;
        }
        chosen.extend(optional[..members].iter().map(|member| member.1));
        Some((chosen, others as u32))
    }

    /// The expressions that it is made of.
    pub fn parts(&self) -> impl Iterator<Item = &Expr> {
        let values = self.members.iter().map(|member| &member.value);
        let others = self.others.iter().map(|others| &others.item);
        values.chain(others).chain([&self.separator])
    }

    /// The expressions that it is made of, for changing.
    pub fn parts_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let values = self.members.iter_mut().map(|member| &mut member.value);
        let others = self.others.iter_mut().map(|others| &mut others.item);
        values.chain(others).chain([&mut self.separator])
    }
}

/// How a grammar names a token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TokenReference {
    /// By its number: `<[1000]>`.
    Id(u32),
    /// By its text, angle brackets included: `<think>`.
    Text(String),
}

impl Expr {
    /// A literal, or [`Expr::Empty`] for the empty string.
    pub fn literal(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() {
            Self::Empty
        } else {
            Self::Literal(text)
        }
    }

    /// A sequence, flattened; one element stands for itself, none is [`Expr::Empty`].
    pub fn seq(parts: impl IntoIterator<Item = Expr>) -> Self {
        let mut flat: Vec<Self> = Vec::new();
        let mut add = |part| match (flat.last_mut(), part) {
            (_, Self::Empty) => {}
            (Some(Self::Literal(last)), Self::Literal(text)) => last.push_str(&text),
            (_, part) => flat.push(part),
        };
        for part in parts {
            match part {
                Self::Seq(inner) => inner.into_iter().for_each(&mut add),
                part => add(part),
            }
        }
        match flat.len() {
            0 => Self::Empty,
            1 => flat.swap_remove(0),
            _ => Self::Seq(flat),
        }
    }

    /// An alternation; one alternative stands for itself.
    pub fn alt(alternatives: impl IntoIterator<Item = Expr>) -> Self {
        let mut all: Vec<Expr> = alternatives.into_iter().collect();
        if all.len() == 1 {
            all.swap_remove(0)
        } else {
            Self::Alt(all)
        }
    }

    /// A bounded or unbounded repetition.
    pub fn repeat(expr: Expr, min: u32, max: Option<u32>) -> Self {
        Self::Repeat {
            expr: Box::new(expr),
            min,
            max,
        }
    }

    /// `expr` or nothing.
    pub fn optional(expr: Expr) -> Self {
        Self::repeat(expr, 0, Some(1))
    }
}

/// A named rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Letters, digits and hyphens, as llama.cpp's GBNF allows.
    pub name: String,
    /// What it matches.
    pub body: Expr,
    /// Where the rule comes from, printed as a comment above it.
    pub comment: Option<String>,
    /// The body is made of live values that change from turn to turn: masks remembered for the
    /// rest of the grammar do not depend on it unless their walk entered it.
    pub volatile: bool,
}

/// A set of rules with a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grammar {
    rules: Vec<Rule>,
    root: RuleId,
}

impl Grammar {
    /// A grammar of `rules`, matching from `root`.
    ///
    /// # Panics
    /// If `root` or a rule reference is out of range, or two rules share a name: front ends
    /// report those as errors of their input before they come here.
    pub fn new(rules: Vec<Rule>, root: RuleId) -> Self {
        assert!(
            (root.0 as usize) < rules.len(),
            "the root is one of the rules"
        );
        let mut names = std::collections::HashSet::new();
        for rule in &rules {
            assert!(
                names.insert(rule.name.as_str()),
                "rule {} is defined once",
                rule.name
            );
        }
        Self { rules, root }
    }

    /// All rules; [`RuleId`] indexes this slice.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The rule that a whole text must match.
    pub fn root(&self) -> RuleId {
        self.root
    }

    /// The rule `id`.
    pub fn rule(&self, id: RuleId) -> &Rule {
        &self.rules[id.0 as usize]
    }

    /// The rule called `name`.
    pub fn find(&self, name: &str) -> Option<RuleId> {
        self.rules
            .iter()
            .position(|rule| rule.name == name)
            .map(|at| RuleId(at as u32))
    }
}

/// Builds a grammar rule by rule: rules may be referred to before they are defined.
#[derive(Debug, Default)]
pub struct GrammarBuilder {
    rules: Vec<Rule>,
    names: std::collections::HashMap<String, u32>,
}

impl GrammarBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reserves a rule under a name made from `hint`: characters that GBNF does not allow become
    /// hyphens, and a number is added where the name is taken. Its body is empty until
    /// [`define`](Self::define).
    pub fn reserve(&mut self, hint: &str) -> RuleId {
        let mut base: String = hint
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(64)
            .collect();
        if base.is_empty() || base.starts_with('-') {
            base.insert(0, 'r');
        }
        let mut name = base.clone();
        let mut number = 2;
        while self.names.contains_key(&name) {
            name = format!("{base}-{number}");
            number += 1;
        }
        let id = RuleId(self.rules.len() as u32);
        self.names.insert(name.clone(), id.0);
        self.rules.push(Rule {
            name,
            body: Expr::Empty,
            comment: None,
            volatile: false,
        });
        id
    }

    /// Sets what a reserved rule matches.
    pub fn define(&mut self, id: RuleId, body: Expr) -> &mut Rule {
        let rule = &mut self.rules[id.0 as usize];
        rule.body = body;
        rule
    }

    /// Reserves and defines in one step.
    pub fn add(&mut self, hint: &str, body: Expr) -> RuleId {
        let id = self.reserve(hint);
        self.define(id, body);
        id
    }

    /// The rule `id`, for changing.
    pub fn rule_mut(&mut self, id: RuleId) -> &mut Rule {
        &mut self.rules[id.0 as usize]
    }

    /// The rule called `name`, if there is one so far.
    pub fn find(&self, name: &str) -> Option<RuleId> {
        self.names.get(name).copied().map(RuleId)
    }

    /// How many rules there are so far.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there is no rule yet.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The finished grammar.
    pub fn finish(self, root: RuleId) -> Grammar {
        Grammar::new(self.rules, root)
    }
}
