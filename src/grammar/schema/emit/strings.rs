//! String sets to expressions: repetition, patterns directly, or through an automaton.

use super::super::shape::{PatternId, StringSet};
use super::super::text::automaton::Automaton;
use super::super::text::re::{Re, intersection};
use super::{Emitter, json};
use crate::grammar::ast::{CharClass, Expr, RuleId};

/// Nesting of automaton states within one rule.
const INLINE_DEPTH: usize = 6;

impl Emitter<'_, '_> {
    /// The JSON strings of `set`; sets of some size share a rule.
    pub(super) fn string(&mut self, set: &StringSet, hint: &str) -> Expr {
        if set.only.is_some() {
            return self.fresh_string(set, hint);
        }
        if let Some(known) = self.strings.get(set) {
            return known.clone();
        }
        let named = match set.patterns.as_slice() {
            [(pattern, true)] => self.algebra.patterns.get(*pattern).name.clone(),
            _ => None,
        };
        let hint = named.as_deref().unwrap_or(hint);
        let mut expr = self.fresh_string(set, hint);
        if super::weight(&expr) > 12 {
            expr = self.rule(hint, expr);
        }
        self.strings.insert(set.clone(), expr.clone());
        expr
    }

    fn fresh_string(&mut self, set: &StringSet, hint: &str) -> Expr {
        let options = self.algebra.options;
        if let Some(only) = &set.only {
            return Expr::alt(only.iter().map(|text| Expr::literal(json::quoted(text))));
        }
        let bound = options.bounds.string;
        if set.patterns.is_empty() && set.except.is_empty() {
            if set.min == 0 && set.max.is_none() {
                self.bounded_string();
                return Expr::Rule(json::string(self.builder, &options));
            }
            let min = u32::try_from(set.min).unwrap_or(u32::MAX);
            let max = match set.max {
                Some(max) => u32::try_from(max).ok(),
                None => {
                    self.bounded_string();
                    bound.map(|bound| bound.max(min))
                }
            };
            let char = self.string_char();
            return quoted(Expr::repeat(Expr::Rule(char), min, max));
        }
        if set.patterns.is_empty()
            && set.min <= 1
            && set.max.is_none()
            && set.except.iter().map(String::len).sum::<usize>() < 20_000
        {
            let mut except: Vec<&str> = set.except.iter().map(String::as_str).collect();
            if set.min == 1 {
                except.push("");
            }
            return self.excluding(&except, hint);
        }
        if let [(pattern, true)] = set.patterns.as_slice()
            && set.except.is_empty()
            && let Some(expr) = self.direct(*pattern, set)
        {
            return expr;
        }
        match self.string_automaton(set) {
            Some(automaton) => {
                self.bounded_string();
                let body = self.automaton(&automaton, hint, &Expr::literal("\""));
                Expr::seq([Expr::literal("\""), body])
            }
            None => {
                // Without the exclusions and lengths perhaps?
                let why = "together they take too large an automaton";
                self.weakened(&set.origins, "string", why);
                let positive: Vec<PatternId> = set
                    .patterns
                    .iter()
                    .filter(|part| part.1)
                    .map(|part| part.0)
                    .collect();
                for pattern in positive {
                    let alone = StringSet {
                        patterns: vec![(pattern, true)],
                        ..StringSet::default()
                    };
                    if let Some(expr) = self.direct(pattern, &alone) {
                        return expr;
                    }
                }
                let alone = StringSet {
                    min: set.min,
                    max: set.max,
                    ..StringSet::default()
                };
                self.string(&alone, hint)
            }
        }
    }

    /// The rule of one code point.
    fn string_char(&mut self) -> RuleId {
        let rule = match self.shared.char {
            Some(known) => known,
            None => json::string_char(self.builder),
        };
        self.shared.char = Some(rule);
        rule
    }

    fn bounded_string(&mut self) {
        if let Some(bound) = self.algebra.options.bounds.string {
            self.algebra.sites.bounded(
                self.node,
                "maxLength",
                format!("{bound} code points by default"),
            );
        }
    }

    /// A pattern written out as it stands, with the length bounds in its repetition.
    fn direct(&mut self, pattern: PatternId, set: &StringSet) -> Option<Expr> {
        let re = self.algebra.patterns.get(pattern).anchored()?;
        let re = re.with_width(set.min, set.max)?;
        if re.width().1.is_none() {
            self.bounded_string();
        }
        Some(quoted(self.expression(&re)))
    }

    /// An expression without assertions, JSON-escaped.
    pub(super) fn expression(&mut self, re: &Re) -> Expr {
        match re {
            Re::Class(class) => self.characters(class),
            Re::Concat(parts) => Expr::seq(
                parts
                    .iter()
                    .map(|part| self.expression(part))
                    .collect::<Vec<_>>(),
            ),
            Re::Alt(parts) => Expr::alt(
                parts
                    .iter()
                    .map(|part| self.expression(part))
                    .collect::<Vec<_>>(),
            ),
            Re::Repeat { re, min, max } => {
                let max = max.or(self.algebra.options.bounds.string.map(|b| b.max(*min)));
                Expr::repeat(self.expression(re), *min, max)
            }
            Re::Empty | Re::Start | Re::End | Re::Boundary(_) | Re::Look { .. } => Expr::Empty,
        }
    }

    /// One code point of `class` as JSON writes it within a string.
    pub(super) fn characters(&mut self, class: &CharClass) -> Expr {
        if class.ranges() == [('\0', char::MAX)] {
            return Expr::Rule(self.string_char());
        }
        if let [(a, b)] = class.ranges()
            && a == b
        {
            let quoted = json::quoted(&a.to_string());
            return Expr::literal(&quoted[1..quoted.len() - 1]);
        }
        let plain = intersection(class, &self.shared.plain);
        if intersection(class, &self.shared.special) == self.shared.special {
            // All that must be escaped is in the class: a rule that is shared.
            let escaped = match self.shared.escaped {
                Some(known) => known,
                None => json::escaped(self.builder),
            };
            self.shared.escaped = Some(escaped);
            return Expr::alt([Expr::Class(plain), Expr::Rule(escaped)]);
        }
        let mut parts = Vec::new();
        if !plain.is_empty() {
            parts.push(Expr::Class(plain));
        }
        let mut short = Vec::new();
        let mut long: [Vec<(char, char)>; 2] = [Vec::new(), Vec::new()];
        for (c, mark) in [
            ('"', '"'),
            ('\\', '\\'),
            ('\u{8}', 'b'),
            ('\u{C}', 'f'),
            ('\n', 'n'),
            ('\r', 'r'),
            ('\t', 't'),
        ] {
            if class.contains(c) {
                short.push((mark, mark));
            }
        }
        for code in 0..32u8 {
            if class.contains(char::from(code)) && ![8, 9, 10, 12, 13].contains(&code) {
                let low = char::from_digit(u32::from(code % 16), 16).unwrap_or('0');
                long[usize::from(code / 16)].push((low, low));
            }
        }
        if !short.is_empty() {
            parts.push(Expr::seq([
                Expr::literal("\\"),
                Expr::Class(CharClass::from_ranges(short)),
            ]));
        }
        for (index, ranges) in long.into_iter().enumerate() {
            if !ranges.is_empty() {
                parts.push(Expr::seq([
                    Expr::literal(format!("\\u00{index}")),
                    Expr::Class(CharClass::from_ranges(ranges)),
                ]));
            }
        }
        Expr::alt(parts)
    }

    /// All constraints of the set as one automaton.
    fn string_automaton(&mut self, set: &StringSet) -> Option<Automaton> {
        let limit = self.algebra.options.limits.states;
        let mut all: Option<Automaton> = None;
        let mut parts = Vec::new();
        for &(pattern, positive) in &set.patterns {
            let one = self.algebra.patterns.automaton(pattern)?.clone();
            parts.push(if positive { one } else { one.complement() });
        }
        if !set.except.is_empty() {
            let texts = set.except.iter().map(String::as_str);
            parts.push(Automaton::of_texts(texts, limit)?.complement());
        }
        for part in parts {
            all = Some(match all {
                None => part,
                Some(all) => all.intersection(&part, limit)?,
            });
        }
        let mut all = match all {
            Some(all) => all,
            None => Automaton::new(&Re::all(), true, limit)?,
        };
        if set.min > 0 || set.max.is_some() {
            all = all.with_length(set.min, set.max, limit)?;
        }
        Some(all)
    }

    /// The texts of an automaton, each followed by `end`.
    pub(super) fn automaton(&mut self, automaton: &Automaton, hint: &str, end: &Expr) -> Expr {
        let live = automaton.live();
        if !live.first().copied().unwrap_or(false) {
            return Expr::Alt(Vec::new());
        }
        let members = automaton.members();
        let edges: Vec<Vec<(u32, CharClass)>> = (0..automaton.states() as u32)
            .map(|state| {
                let mut edges = automaton.edges(state, &members);
                edges.retain(|edge| live[edge.0 as usize] && !edge.1.is_empty());
                edges
            })
            .collect();
        // A state that several others lead to gets a rule of its own.
        let mut degree = vec![0usize; edges.len()];
        for (state, edges) in edges.iter().enumerate() {
            if live[state] {
                for edge in edges.iter().filter(|edge| edge.0 as usize != state) {
                    degree[edge.0 as usize] += 1;
                }
            }
        }
        let mut rules: Vec<Option<RuleId>> = vec![None; edges.len()];
        let mut queue = Vec::new();
        let body = self.state(
            automaton, &edges, &degree, &mut rules, &mut queue, 0, 0, hint, end,
        );
        let mut start = None;
        if degree[0] > 0 {
            // The start is led back to: it is a rule like the others.
            let id = self.reserve(hint);
            start = Some(id);
            rules[0] = Some(id);
            queue.push((0, id));
        }
        while let Some((state, rule)) = queue.pop() {
            let body = self.state(
                automaton, &edges, &degree, &mut rules, &mut queue, state, 0, hint, end,
            );
            self.builder.define(rule, body);
        }
        start.map_or(body, Expr::Rule)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one recursion over one automaton"
    )]
    fn state(
        &mut self,
        automaton: &Automaton,
        edges: &[Vec<(u32, CharClass)>],
        degree: &[usize],
        rules: &mut Vec<Option<RuleId>>,
        queue: &mut Vec<(u32, RuleId)>,
        state: u32,
        depth: usize,
        hint: &str,
        end: &Expr,
    ) -> Expr {
        let mut alternatives = Vec::new();
        let mut own = None;
        for (target, class) in &edges[state as usize] {
            if *target == state {
                own = Some(self.characters(class));
                continue;
            }
            let at = *target as usize;
            // A chain costs no nesting, so it may be long.
            let chain = edges[at].len() <= 1;
            let next = if let Some(rule) = rules[at] {
                Expr::Rule(rule)
            } else if at != 0 && degree[at] <= 1 && (depth < INLINE_DEPTH || chain && depth < 64) {
                self.state(
                    automaton,
                    edges,
                    degree,
                    rules,
                    queue,
                    *target,
                    depth + 1,
                    hint,
                    end,
                )
            } else {
                let id = self.reserve(hint);
                rules[at] = Some(id);
                queue.push((*target, id));
                Expr::Rule(id)
            };
            let characters = self.characters(class);
            alternatives.push(Expr::seq([characters, next]));
        }
        if automaton.is_accepting(state) {
            alternatives.push(end.clone());
        }
        let rest = Expr::alt(alternatives);
        match own {
            Some(own) => {
                let bound = self.algebra.options.bounds.string;
                Expr::seq([Expr::repeat(own, 0, bound), rest])
            }
            None => rest,
        }
    }

    /// Every string but those.
    fn excluding(&mut self, except: &[&str], hint: &str) -> Expr {
        self.bounded_string();
        let mut sorted: Vec<Vec<char>> = except.iter().map(|text| text.chars().collect()).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let char = self.string_char();
        let bound = self.algebra.options.bounds.string;
        let rest = Expr::Rule(json::string_rest(self.builder, char, bound));
        let body = self.trie(&sorted, 0, &rest, hint, 0);
        Expr::seq([Expr::literal("\""), body])
    }

    /// What may follow the common first `at` characters of the sorted `words`.
    fn trie(
        &mut self,
        words: &[Vec<char>],
        at: usize,
        rest: &Expr,
        hint: &str,
        depth: usize,
    ) -> Expr {
        let ends = words.first().is_some_and(|word| word.len() == at);
        let words = if ends { &words[1..] } else { words };
        let mut alternatives = Vec::new();
        let mut taken = Vec::new();
        let mut from = 0;
        while from < words.len() {
            let c = words[from][at];
            let to = from + words[from..].partition_point(|word| word[at] == c);
            taken.push((c, c));
            let next = self.trie(&words[from..to], at + 1, rest, hint, depth + 1);
            let next = if depth % INLINE_DEPTH == INLINE_DEPTH - 1 {
                self.rule(&format!("{hint}-key"), next)
            } else {
                next
            };
            let character = self.characters(&CharClass::from_ranges([(c, c)]));
            alternatives.push(Expr::seq([character, next]));
            from = to;
        }
        let others = CharClass::from_ranges(taken).negated();
        let others = self.characters(&others);
        alternatives.push(Expr::seq([others, rest.clone()]));
        if !ends {
            alternatives.push(Expr::literal("\""));
        }
        Expr::alt(alternatives)
    }
}

fn quoted(body: Expr) -> Expr {
    Expr::seq([Expr::literal("\""), body, Expr::literal("\"")])
}

/// What every string needs, looked up or computed once.
pub(super) struct Shared {
    /// Characters that need no escape.
    plain: CharClass,
    /// Those that do.
    special: CharClass,
    /// The rule of one code point.
    char: Option<RuleId>,
    /// The rule of one that is escaped.
    escaped: Option<RuleId>,
}

impl Shared {
    pub(super) fn new() -> Self {
        let plain = json::plain();
        Self {
            special: plain.negated(),
            plain,
            char: None,
            escaped: None,
        }
    }
}
