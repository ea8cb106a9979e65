//! Arrays and objects.

use super::super::algebra::Outcome;
use super::super::error::SchemaError;
use super::super::options::KeyOrder;
use super::super::shape::{
    ANY, ArraySet, NEVER, ObjectSet, PatternId, Property, Scope, StringSet, TermId,
};
use super::json::Style;
use super::{Emitter, json};
use crate::grammar::ast::{Expr, Member, Others, Unordered};

/// Rules for counting properties, at most.
const MAX_COUNTED: u64 = 20_000;
/// Patterns of names that are told apart.
const MAX_PATTERNS: usize = 10;
/// Optional items that are nested within one rule.
const MAX_NESTED: usize = 16;

impl Emitter<'_, '_> {
    pub(super) fn length(&self, value: u64) -> Outcome<u32> {
        u32::try_from(value).map_err(|_| {
            SchemaError::Limit {
                pointer: self.algebra.document.pointer(self.node),
                which: "items, properties or characters that must be there",
                limit: u32::MAX as usize,
            }
            .into()
        })
    }

    /// The default bound of an array's items, if there is one; reported.
    pub(super) fn items_bound(&mut self, min: u64) -> Option<u32> {
        self.algebra.options.bounds.items.map(|bound| {
            self.algebra
                .sites
                .bounded(self.node, "maxItems", format!("{bound} items by default"));
            bound.max(u32::try_from(min).unwrap_or(u32::MAX))
        })
    }

    /// The JSON arrays of `set`.
    pub(super) fn array(&mut self, set: &ArraySet, hint: &str) -> Outcome<Expr> {
        let options = self.algebra.options;
        let style = Style::new(self.builder, &options);
        if set.unique {
            if let Some(expr) = self.distinct(set, style)? {
                return Ok(expr);
            }
            self.weakened(&set.origins, "array", "no grammar compares items");
        }
        let mut set = set.clone();
        let hint_item = format!("{hint}-item");
        if let [contains] = set.contains.clone().as_slice()
            && contains.min == 1
            && contains.max.is_none()
            && set.prefix.is_empty()
            && set.min <= 1
            && set.max.is_none()
        {
            let wanted = self.algebra.all([set.rest, contains.term]);
            let item = self.value(set.rest, &hint_item)?;
            let wanted = self.value(wanted, &hint_item)?;
            let bound = options.bounds.items;
            return Ok(Expr::seq([
                style.open("["),
                Expr::repeat(Expr::seq([item.clone(), style.comma()]), 0, bound),
                wanted,
                Expr::repeat(Expr::seq([style.comma(), item]), 0, bound),
                style.close("]"),
            ]));
        }
        if !set.contains.is_empty() {
            if let Some(expr) = self.containing(&set, hint, style)? {
                return Ok(expr);
            }
            let why = "no grammar of bearable size counts these items";
            self.weakened(&set.origins, "array", why);
            for contains in &set.contains {
                set.min = set.min.max(contains.min);
            }
        }
        let min = self.length(set.min)?;
        let max = match set.max {
            Some(max) => u32::try_from(max).ok(),
            None if set.rest == NEVER => Some(self.length(set.prefix.len() as u64)?),
            None => self.items_bound(set.min),
        };
        if max.is_some_and(|max| max < min) {
            return Ok(Expr::Alt(Vec::new()));
        }
        if max == Some(0) {
            return Ok(Expr::seq([style.open("["), style.close("]")]));
        }
        let known = set.prefix.len() as u32;
        let mut tail = Expr::Empty;
        if set.rest != NEVER && max.is_none_or(|max| max > known) {
            let item = self.value(set.rest, &hint_item)?;
            let least = min.saturating_sub(known);
            let most = max.map(|max| max - known);
            tail = if known == 0 {
                let more = Expr::seq([style.comma(), item.clone()]);
                let list = Expr::seq([
                    item,
                    Expr::repeat(more, least.saturating_sub(1), most.map(|most| most - 1)),
                ]);
                if least == 0 {
                    Expr::optional(list)
                } else {
                    list
                }
            } else {
                let more = Expr::seq([style.comma(), item]);
                Expr::repeat(more, least, most)
            };
        }
        for index in (0..set.prefix.len()).rev() {
            let item = self.value(set.prefix[index], &format!("{hint}-{}", index + 1))?;
            let comma = if index == 0 {
                Expr::Empty
            } else {
                style.comma()
            };
            tail = Expr::seq([comma, item, tail]);
            if index as u32 >= min {
                tail = Expr::optional(tail);
                if index % MAX_NESTED == MAX_NESTED - 1 {
                    tail = self.rule(&format!("{hint}-tail"), tail);
                }
            }
        }
        Ok(Expr::seq([style.open("["), tail, style.close("]")]))
    }

    /// The JSON objects of `set`.
    pub(super) fn object(&mut self, set: &ObjectSet, hint: &str) -> Outcome<Expr> {
        let options = self.algebra.options;
        let style = Style::new(self.builder, &options);
        let node = self.node;
        let mut pairs = Vec::new();
        for property in &set.properties {
            if property.term == NEVER {
                if property.required {
                    return Ok(Expr::Alt(Vec::new()));
                }
                continue;
            }
            if !property.required && self.algebra.is_empty(property.term)? {
                continue;
            }
            let value = self.value(property.term, &property.name)?;
            pairs.push(Pair {
                key: json::quoted(&property.name),
                value: Expr::seq([style.colon(), value]),
                required: property.required,
            });
            self.node = node;
        }
        let extra = self.extra(set, hint, style)?;
        let required = pairs.iter().filter(|pair| pair.required).count() as u64;
        let total = pairs.len() as u64;
        let min = set.min.saturating_sub(required);
        let counted = min > 0 || set.max.is_some_and(|max| max < total || extra.is_some());
        if extra.is_some() && min > 1 {
            // A key may be written twice, and then counts once: too few where two are needed.
            self.weakened(
                &set.origins,
                "object",
                "an undeclared key may be written twice",
            );
        }
        let bound = match set.max {
            Some(_) => None,
            None => options.bounds.properties,
        };
        if extra.is_some()
            && let Some(bound) = bound
        {
            self.algebra.sites.bounded(
                self.node,
                "maxProperties",
                format!("{bound} undeclared properties by default"),
            );
        }
        let body = if options.key_order == KeyOrder::Any {
            self.any_order(pairs, extra, set, style, bound)?
        } else if counted {
            self.counted(&pairs, extra, set, hint, style, bound)?
        } else {
            self.sequence(&pairs, extra, hint, style, bound)
        };
        Ok(Expr::seq([style.open("{"), body, style.close("}")]))
    }

    /// Pairs in any order, each required one there.
    fn any_order(
        &self,
        pairs: Vec<Pair>,
        extra: Option<Expr>,
        set: &ObjectSet,
        style: Style,
        bound: Option<u32>,
    ) -> Outcome<Expr> {
        let members = pairs.into_iter().map(|pair| Member {
            key: pair.key,
            value: pair.value,
            required: pair.required,
        });
        let set = Unordered {
            members: members.collect(),
            separator: style.comma(),
            min: self.length(set.min)?,
            max: set.max.and_then(|max| u32::try_from(max).ok()),
            others: extra.map(|item| Others {
                item,
                guard: bound.map(|bound| bound.max(u32::try_from(set.min).unwrap_or(u32::MAX))),
            }),
        };
        Ok(match set {
            // Nothing to put in order.
            Unordered {
                ref members,
                others: None,
                ..
            } if members.is_empty() => {
                if set.min == 0 {
                    Expr::Empty
                } else {
                    Expr::Alt(Vec::new())
                }
            }
            set => Expr::Unordered(Box::new(set)),
        })
    }

    /// Pairs in order, each required one there, with the commas where they belong.
    fn sequence(
        &mut self,
        pairs: &[Pair],
        extra: Option<Expr>,
        hint: &str,
        style: Style,
        bound: Option<u32>,
    ) -> Expr {
        let more = extra
            .clone()
            .map(|extra| Expr::repeat(Expr::seq([style.comma(), extra]), 0, bound));
        if let Some(first) = pairs.iter().position(|pair| pair.required) {
            let mut parts = Vec::new();
            for (index, pair) in pairs.iter().enumerate() {
                parts.push(if index < first {
                    Expr::optional(Expr::seq([pair.expr(), style.comma()]))
                } else if index == first {
                    pair.expr()
                } else {
                    let part = Expr::seq([style.comma(), pair.expr()]);
                    if pair.required {
                        part
                    } else {
                        Expr::optional(part)
                    }
                });
            }
            parts.extend(more);
            return Expr::seq(parts);
        }
        // Nothing is required: whichever comes first has no comma.
        let mut alternatives = Vec::new();
        let mut tail = more.unwrap_or(Expr::Empty);
        if let Some(extra) = extra {
            alternatives.push(Expr::seq([
                extra.clone(),
                Expr::repeat(
                    Expr::seq([style.comma(), extra]),
                    0,
                    bound.map(|bound| bound.saturating_sub(1)),
                ),
            ]));
        }
        for (index, pair) in pairs.iter().enumerate().rev() {
            alternatives.push(Expr::seq([pair.expr(), tail.clone()]));
            if index > 0 {
                let optional = Expr::optional(Expr::seq([style.comma(), pair.expr()]));
                let next = Expr::seq([optional, tail]);
                tail = if pairs.len() > 2 {
                    self.rule(&format!("{hint}-more"), next)
                } else {
                    next
                };
            }
        }
        alternatives.reverse();
        if alternatives.is_empty() {
            Expr::Empty
        } else {
            Expr::optional(Expr::alt(alternatives))
        }
    }

    /// The same with a bound on the number of properties.
    fn counted(
        &mut self,
        pairs: &[Pair],
        extra: Option<Expr>,
        set: &ObjectSet,
        hint: &str,
        style: Style,
        bound: Option<u32>,
    ) -> Outcome<Expr> {
        let total = pairs.len() as u64;
        let clamp = set.max.map_or(set.min, |max| max.max(set.min)).min(total);
        if (clamp + 1).saturating_mul(total) > MAX_COUNTED {
            let why = "too many properties to count them";
            self.weakened(&set.origins, "object", why);
            return Ok(self.sequence(pairs, extra, hint, style, bound));
        }
        // after[count]: what may follow the pairs so far, given how many there were.
        let mut after: Vec<Option<Expr>> = Vec::new();
        for count in 0..=clamp {
            let left = set.max.map(|max| max.saturating_sub(count));
            let wanted = set.min.saturating_sub(count);
            let over = set.max.is_some_and(|max| count > max);
            after.push(match &extra {
                _ if over => None,
                None => (wanted == 0).then_some(Expr::Empty),
                Some(extra) => {
                    let least = self.length(wanted)?;
                    let most = match left {
                        Some(left) => u32::try_from(left).ok(),
                        None => bound.map(|bound| bound.max(least)),
                    };
                    if most.is_some_and(|most| most < least) {
                        None
                    } else if most == Some(0) {
                        Some(Expr::Empty)
                    } else if count == 0 {
                        let more = Expr::seq([style.comma(), extra.clone()]);
                        let list = Expr::seq([
                            extra.clone(),
                            Expr::repeat(more, least.saturating_sub(1), most.map(|most| most - 1)),
                        ]);
                        Some(if least == 0 {
                            Expr::optional(list)
                        } else {
                            list
                        })
                    } else {
                        let more = Expr::seq([style.comma(), extra.clone()]);
                        Some(Expr::repeat(more, least, most))
                    }
                }
            });
        }
        for (index, pair) in pairs.iter().enumerate().rev() {
            let mut now = Vec::new();
            for count in 0..=clamp {
                if count > index as u64 {
                    // So many cannot have been there yet.
                    now.push(None);
                    continue;
                }
                let comma = if count == 0 {
                    Expr::Empty
                } else {
                    style.comma()
                };
                let full = set.max.is_some_and(|max| count >= max);
                let next = if full {
                    None
                } else {
                    after
                        .get((count + 1).min(clamp) as usize)
                        .cloned()
                        .flatten()
                };
                let with = next.map(|next| Expr::seq([comma, pair.expr(), next]));
                let without = if pair.required {
                    None
                } else {
                    after.get(count as usize).cloned().flatten()
                };
                now.push(match (with, without) {
                    (Some(with), Some(without)) => {
                        let both = if without == Expr::Empty {
                            Expr::optional(with)
                        } else {
                            Expr::alt([with, without])
                        };
                        Some(self.rule(&format!("{hint}-more"), both))
                    }
                    (one, other) => one.or(other),
                });
            }
            after = now;
        }
        Ok(after
            .into_iter()
            .next()
            .flatten()
            .unwrap_or(Expr::Alt(Vec::new())))
    }

    /// A property that is not known by name; nothing if there can be none.
    fn extra(&mut self, set: &ObjectSet, hint: &str, style: Style) -> Outcome<Option<Expr>> {
        let strict = !self.algebra.options.additional_properties
            && !set.properties.is_empty()
            && set.groups.is_empty();
        if strict || self.algebra.closed(set)? {
            return Ok(None);
        }
        let mut keys = vec![StringSet {
            except: set
                .properties
                .iter()
                .map(|property: &Property| property.name.to_string())
                .collect(),
            origins: set.origins.clone(),
            ..StringSet::default()
        }];
        for &names in &set.names {
            let shape = self.algebra.shape(names)?;
            let mut narrowed = Vec::new();
            for key in &keys {
                for names in &shape.strings {
                    let both = self.algebra.both_strings(key, names);
                    narrowed.extend(both);
                }
            }
            keys = narrowed;
        }
        let mut patterns: Vec<PatternId> = Vec::new();
        for group in &set.groups {
            let mentioned: &[PatternId] = match &group.scope {
                Scope::Matching(pattern) => std::slice::from_ref(pattern),
                Scope::Others(patterns) => patterns,
            };
            for &pattern in mentioned {
                if !patterns.contains(&pattern) {
                    patterns.push(pattern);
                }
            }
        }
        let mut alternatives = Vec::new();
        if patterns.len() > MAX_PATTERNS {
            let why = "too many patterns of names to tell apart";
            self.weakened(&set.origins, "object", why);
            for key in keys {
                alternatives.push((key, ANY));
            }
        } else {
            for key in keys {
                let mut parts: Vec<(StringSet, Vec<PatternId>)> = vec![(key, Vec::new())];
                for &pattern in &patterns {
                    let mut split = Vec::new();
                    for (key, matched) in parts {
                        for positive in [true, false] {
                            let one = StringSet {
                                patterns: vec![(pattern, positive)],
                                ..StringSet::default()
                            };
                            let Some(both) = self.algebra.both_strings(&key, &one) else {
                                continue;
                            };
                            if self.algebra.is_impossible_string(&both) {
                                continue;
                            }
                            let mut matched = matched.clone();
                            if positive {
                                matched.push(pattern);
                            }
                            split.push((both, matched));
                        }
                    }
                    parts = split;
                }
                for (key, matched) in parts {
                    let mut terms: Vec<TermId> = Vec::new();
                    for group in &set.groups {
                        let applies = match &group.scope {
                            Scope::Matching(pattern) => matched.contains(pattern),
                            Scope::Others(patterns) => {
                                !patterns.iter().any(|pattern| matched.contains(pattern))
                            }
                        };
                        if applies {
                            terms.push(group.term);
                        }
                    }
                    let term = self.algebra.all(terms);
                    if !self.algebra.is_empty(term)? {
                        alternatives.push((key, term));
                    }
                }
            }
        }
        let node = self.node;
        let mut exprs = Vec::new();
        for (key, term) in alternatives {
            let name = format!("{hint}-other");
            let key = self.string(&key, &name);
            let value = self.value(term, &name)?;
            self.node = node;
            exprs.push(Expr::seq([key, style.colon(), value]));
        }
        if exprs.is_empty() {
            return Ok(None);
        }
        let body = Expr::alt(exprs);
        Ok(Some(self.rule(&format!("{hint}-other"), body)))
    }
}

/// A declared property as it is written.
struct Pair {
    key: String,
    /// What follows the key.
    value: Expr,
    required: bool,
}

impl Pair {
    fn expr(&self) -> Expr {
        Expr::seq([Expr::literal(self.key.as_str()), self.value.clone()])
    }
}
