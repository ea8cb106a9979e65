//! The rules that all schemas share: any JSON value, strings, numbers, whitespace, literals.
//!
//! They have fixed names and are found again in the builder, so that several schemas in one
//! grammar share them.

use serde_json::Value;

use super::super::options::{SchemaOptions, Whitespace};
use crate::grammar::ast::{CharClass, Expr, GrammarBuilder, RuleId};

/// The rule `name` with this body: the one in the builder if there is one, else a new one.
fn shared(
    builder: &mut GrammarBuilder,
    name: &str,
    body: impl Fn(&mut GrammarBuilder, RuleId) -> Expr,
) -> RuleId {
    if let Some(known) = builder.find(name) {
        let wanted = body(builder, known);
        if builder.rule_mut(known).body == wanted {
            return known;
        }
    }
    let id = builder.reserve(name);
    let body = body(builder, id);
    builder.define(id, body);
    id
}

fn class(ranges: &[(char, char)]) -> Expr {
    Expr::Class(CharClass::from_ranges(ranges.iter().copied()))
}

fn text(text: &str) -> Expr {
    Expr::literal(text)
}

fn digits(min: u32, max: Option<u32>) -> Expr {
    Expr::repeat(class(&[('0', '9')]), min, max)
}

/// Characters that need no escape.
pub fn plain() -> CharClass {
    CharClass::from_ranges([('\0', '\u{1F}'), ('"', '"'), ('\\', '\\')]).negated()
}

/// One code point of a JSON string, escaped or not. Lone surrogates are not written.
pub fn string_char(builder: &mut GrammarBuilder) -> RuleId {
    let escape = shared(builder, "string-escape", |_, _| {
        let hex = || class(&[('0', '9'), ('a', 'f'), ('A', 'F')]);
        let octet = |n| Expr::repeat(hex(), n, Some(n));
        Expr::seq([
            text("\\"),
            Expr::alt([
                class(&[
                    ('"', '"'),
                    ('\\', '\\'),
                    ('/', '/'),
                    ('b', 'b'),
                    ('f', 'f'),
                    ('n', 'n'),
                    ('r', 'r'),
                    ('t', 't'),
                ]),
                Expr::seq([
                    text("u"),
                    Expr::alt([
                        Expr::seq([
                            class(&[('0', '9'), ('a', 'c'), ('e', 'f'), ('A', 'C'), ('E', 'F')]),
                            octet(3),
                        ]),
                        Expr::seq([
                            class(&[('d', 'd'), ('D', 'D')]),
                            class(&[('0', '7')]),
                            octet(2),
                        ]),
                        Expr::seq([
                            class(&[('d', 'd'), ('D', 'D')]),
                            class(&[('8', '9'), ('a', 'b'), ('A', 'B')]),
                            octet(2),
                            text("\\u"),
                            class(&[('d', 'd'), ('D', 'D')]),
                            class(&[('c', 'f'), ('C', 'F')]),
                            octet(2),
                        ]),
                    ]),
                ]),
            ]),
        ])
    });
    shared(builder, "string-char", |_, _| {
        Expr::alt([Expr::Class(plain()), Expr::Rule(escape)])
    })
}

/// A code point that must be escaped, in its one canonical escape.
pub fn escaped(builder: &mut GrammarBuilder) -> RuleId {
    shared(builder, "string-escaped", |_, _| {
        let short = [
            ('"', '"'),
            ('\\', '\\'),
            ('b', 'b'),
            ('f', 'f'),
            ('n', 'n'),
            ('r', 'r'),
            ('t', 't'),
        ];
        Expr::seq([
            text("\\"),
            Expr::alt([
                class(&short),
                Expr::seq([
                    text("u00"),
                    Expr::alt([
                        Expr::seq([text("0"), class(&[('0', '7'), ('b', 'b'), ('e', 'f')])]),
                        Expr::seq([text("1"), class(&[('0', '9'), ('a', 'f')])]),
                    ]),
                ]),
            ]),
        ])
    })
}

/// The rest of any string, the closing quote included.
pub fn string_rest(builder: &mut GrammarBuilder, char: RuleId, bound: Option<u32>) -> RuleId {
    shared(builder, "string-rest", |_, _| {
        Expr::seq([Expr::repeat(Expr::Rule(char), 0, bound), text("\"")])
    })
}

/// Any string.
pub fn string(builder: &mut GrammarBuilder, options: &SchemaOptions) -> RuleId {
    let char = string_char(builder);
    shared(builder, "string", |_, _| {
        Expr::seq([
            text("\""),
            Expr::repeat(Expr::Rule(char), 0, options.bounds.string),
            text("\""),
        ])
    })
}

/// Any integer.
pub fn integer(builder: &mut GrammarBuilder, options: &SchemaOptions) -> RuleId {
    shared(builder, "integer", |_, _| {
        let positive = positive(options);
        Expr::alt([text("0"), Expr::seq([Expr::optional(text("-")), positive])])
    })
}

/// An integer from 1, without a sign.
fn positive(options: &SchemaOptions) -> Expr {
    let most = options.bounds.integer_digits;
    Expr::seq([
        class(&[('1', '9')]),
        digits(0, most.map(|n| n.saturating_sub(1))),
    ])
}

fn natural(options: &SchemaOptions) -> Expr {
    Expr::alt([text("0"), positive(options)])
}

/// Any number.
pub fn number(builder: &mut GrammarBuilder, options: &SchemaOptions) -> RuleId {
    shared(builder, "number", |_, _| {
        Expr::seq([
            Expr::optional(text("-")),
            natural(options),
            Expr::optional(Expr::seq([
                text("."),
                digits(1, options.bounds.fraction_digits),
            ])),
            Expr::optional(Expr::seq([
                class(&[('e', 'e'), ('E', 'E')]),
                Expr::optional(class(&[('+', '+'), ('-', '-')])),
                exponent(options),
            ])),
        ])
    })
}

/// Digits of an exponent: at most 307, so that the number stays within what readers can hold.
fn exponent(options: &SchemaOptions) -> Expr {
    match options.bounds.exponent_digits {
        Some(most) if most >= 3 => Expr::alt([
            digits(1, Some(2)),
            Expr::seq([class(&[('0', '1')]), digits(2, Some(2))]),
            Expr::seq([text("2"), class(&[('0', '5')]), digits(1, Some(1))]),
        ]),
        most => digits(1, most),
    }
}

/// `true` or `false`.
pub fn boolean(builder: &mut GrammarBuilder) -> RuleId {
    shared(builder, "boolean", |_, _| {
        Expr::alt([text("true"), text("false")])
    })
}

/// Any JSON value.
pub fn value(builder: &mut GrammarBuilder, options: &SchemaOptions) -> RuleId {
    if let Some(known) = builder.find("value")
        && let Some(object) = builder.find("object")
        && let Some(array) = builder.find("array")
        && let Expr::Alt(parts) = builder.rule_mut(known).body.clone()
        && parts.first() == Some(&Expr::Rule(object))
        && parts.get(1) == Some(&Expr::Rule(array))
    {
        return known;
    }
    let id = builder.reserve("value");
    let string = string(builder, options);
    let number = number(builder, options);
    let boolean = boolean(builder);
    let style = Style::new(builder, options);
    let object = builder.reserve("object");
    let array = builder.reserve("array");
    let pair = Expr::seq([Expr::Rule(string), style.colon(), Expr::Rule(id)]);
    let list = |item: Expr, most: Option<u32>| {
        let more = Expr::seq([style.comma(), item.clone()]);
        Expr::optional(Expr::seq([
            item,
            Expr::repeat(more, 0, most.map(|n| n.saturating_sub(1))),
        ]))
    };
    let members = list(pair, options.bounds.properties);
    builder.define(
        object,
        Expr::seq([style.open("{"), members, style.close("}")]),
    );
    let items = list(Expr::Rule(id), options.bounds.items);
    builder.define(array, Expr::seq([style.open("["), items, style.close("]")]));
    builder.define(
        id,
        Expr::alt([
            Expr::Rule(object),
            Expr::Rule(array),
            Expr::Rule(string),
            Expr::Rule(number),
            Expr::Rule(boolean),
            text("null"),
        ]),
    );
    id
}

/// Punctuation with its whitespace.
#[derive(Clone, Copy)]
pub struct Style {
    whitespace: Whitespace,
    rule: Option<RuleId>,
}

impl Style {
    /// The style of `options`.
    pub fn new(builder: &mut GrammarBuilder, options: &SchemaOptions) -> Self {
        let rule = match options.whitespace {
            Whitespace::Flexible { max } => Some(shared(builder, "ws", |_, _| space(max))),
            _ => None,
        };
        Self {
            whitespace: options.whitespace,
            rule,
        }
    }

    fn gap(self) -> Expr {
        match self.rule {
            Some(rule) => Expr::Rule(rule),
            None => Expr::Empty,
        }
    }

    fn after(self, mark: &str) -> Expr {
        match self.whitespace {
            Whitespace::Compact => text(mark),
            Whitespace::Spaced => text(&format!("{mark} ")),
            Whitespace::Flexible { .. } => Expr::seq([self.gap(), text(mark), self.gap()]),
        }
    }

    /// Between items.
    pub fn comma(self) -> Expr {
        self.after(",")
    }

    /// Between key and value.
    pub fn colon(self) -> Expr {
        self.after(":")
    }

    /// An opening bracket.
    pub fn open(self, bracket: &str) -> Expr {
        Expr::seq([text(bracket), self.gap()])
    }

    /// A closing bracket.
    pub fn close(self, bracket: &str) -> Expr {
        Expr::seq([self.gap(), text(bracket)])
    }
}

fn space(max: u32) -> Expr {
    Expr::repeat(
        class(&[(' ', ' '), ('\t', '\t'), ('\n', '\n')]),
        0,
        Some(max),
    )
}

/// The text of a JSON string, quotes included.
pub fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// The JSON text of `value`; nested values cost no stack.
pub fn literal(value: &Value, options: &SchemaOptions) -> Expr {
    enum Step<'v> {
        Value(&'v Value),
        Text(String),
        Gap,
    }
    let gap = match options.whitespace {
        Whitespace::Flexible { max } => space(max),
        _ => Expr::Empty,
    };
    let mark = |mark: &str| {
        let space = if options.whitespace == Whitespace::Spaced {
            " "
        } else {
            ""
        };
        Step::Text(format!("{mark}{space}"))
    };
    let mut stack = vec![Step::Value(value)];
    let mut parts = Vec::new();
    while let Some(step) = stack.pop() {
        let mut next = Vec::new();
        match step {
            Step::Text(text) => parts.push(Expr::literal(text)),
            Step::Gap => parts.push(gap.clone()),
            Step::Value(Value::Array(items)) if !items.is_empty() => {
                next.extend([Step::Text("[".into()), Step::Gap]);
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        next.extend([Step::Gap, mark(","), Step::Gap]);
                    }
                    next.push(Step::Value(item));
                }
                next.extend([Step::Gap, Step::Text("]".into())]);
            }
            Step::Value(Value::Object(members)) if !members.is_empty() => {
                next.extend([Step::Text("{".into()), Step::Gap]);
                for (index, (key, value)) in members.iter().enumerate() {
                    if index > 0 {
                        next.extend([Step::Gap, mark(","), Step::Gap]);
                    }
                    next.extend([Step::Text(quoted(key)), Step::Gap, mark(":"), Step::Gap]);
                    next.push(Step::Value(value));
                }
                next.extend([Step::Gap, Step::Text("}".into())]);
            }
            Step::Value(scalar) => parts.push(Expr::literal(scalar.to_string())),
        }
        stack.extend(next.into_iter().rev());
    }
    Expr::seq(parts)
}
