//! What a caller can choose: whitespace, key order, formats, default bounds and limits.

/// Where whitespace is written between the tokens of the JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Whitespace {
    /// None: `{"a":1,"b":[1,2]}`.
    Compact,
    /// One space after each comma and colon, as models write it: `{"a": 1, "b": [1, 2]}`.
    #[default]
    Spaced,
    /// At most `max` spaces, tabs or line feeds at every place where JSON allows whitespace,
    /// except before and after the whole value.
    Flexible {
        /// The longest run of whitespace at one place.
        max: u32,
    },
}

/// In which order the keys of an object may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum KeyOrder {
    /// As the schema lists them; undeclared keys come last.
    #[default]
    Schema,
    /// In any order, each declared key at most once, undeclared ones anywhere between. A grammar
    /// of many such keys cannot be printed as GBNF
    /// ([`to_gbnf`](crate::grammar::Grammar::to_gbnf)).
    Any,
}

/// Upper bounds for what the schema leaves unbounded. Small models fall into endless repetition;
/// a bound ends it. `None` switches a bound off. Each bound that was applied is reported in the
/// [coverage](super::Coverage).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Code points of a string without `maxLength`, and of an undeclared key.
    pub string: Option<u32>,
    /// Items of an array without `maxItems`.
    pub items: Option<u32>,
    /// Undeclared properties of an object without `maxProperties`.
    pub properties: Option<u32>,
    /// Digits before the decimal point of a number. Integers of 18 digits fit into 64 bits, so
    /// that readers and validators calculate with them exactly.
    pub integer_digits: Option<u32>,
    /// Digits after the decimal point of a number.
    pub fraction_digits: Option<u32>,
    /// Digits of an exponent.
    pub exponent_digits: Option<u32>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            string: Some(32_768),
            items: Some(4_096),
            properties: Some(1_024),
            integer_digits: Some(18),
            fraction_digits: Some(20),
            exponent_digits: Some(3),
        }
    }
}

impl Bounds {
    /// No bound at all.
    pub fn none() -> Self {
        Self {
            string: None,
            items: None,
            properties: None,
            integer_digits: None,
            fraction_digits: None,
            exponent_digits: None,
        }
    }
}

/// What a schema may cost. Exceeding one that has no weaker form is a
/// [`SchemaError::Limit`](super::SchemaError::Limit); where a weaker grammar exists, the keyword
/// is reported as checked after generation instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Nesting of the schema document, and of schemas applied to the same value. A level costs
    /// about a kilobyte of stack. Refused beyond.
    pub depth: usize,
    /// JSON values in the schema document. Refused beyond.
    pub nodes: usize,
    /// Rules of the grammar. Refused beyond.
    pub rules: usize,
    /// Combined schemas (a schema, or several that apply to one value). Each costs some hundred
    /// bytes and microseconds. Refused beyond.
    pub terms: usize,
    /// Alternatives that one type of value may be split into. Checked afterwards beyond.
    pub alternatives: usize,
    /// States of the automaton of one string or number. Checked afterwards beyond.
    pub states: usize,
    /// Values of one `enum`. Refused beyond.
    pub values: usize,
    /// Values that the items of an array may have for `uniqueItems` to be in the grammar. Checked
    /// afterwards beyond.
    pub distinct: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 192,
            nodes: 2_000_000,
            rules: 200_000,
            terms: 200_000,
            alternatives: 48,
            states: 2_000,
            values: 100_000,
            distinct: 1_024,
        }
    }
}

/// How a schema is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SchemaOptions {
    /// Whitespace of the JSON text.
    pub whitespace: Whitespace,
    /// Order of the keys of an object.
    pub key_order: KeyOrder,
    /// What an absent `additionalProperties` means where an object declares properties: `true`
    /// allows undeclared ones, as the standard says; `false` is the stricter habit of tool calls.
    pub additional_properties: bool,
    /// Whether `format` is enforced (`true`) or an annotation.
    pub formats: bool,
    /// Whether the grammar is to be printed as GBNF, which has no sets of members: `uniqueItems`
    /// and `contains` are in the grammar only where that takes few rules, and checked afterwards
    /// beyond. [`KeyOrder::Any`] is not affected.
    pub gbnf: bool,
    /// Bounds where the schema has none.
    pub bounds: Bounds,
    /// What the schema may cost.
    pub limits: Limits,
}

impl Default for SchemaOptions {
    fn default() -> Self {
        Self {
            whitespace: Whitespace::default(),
            key_order: KeyOrder::default(),
            additional_properties: true,
            formats: true,
            gbnf: false,
            bounds: Bounds::default(),
            limits: Limits::default(),
        }
    }
}
