//! Whether a grammar accepts a value once the order of its members is set aside.

use serde_json::{Map, Value};
use smallvec::SmallVec;

use crate::call::json::quoted;
use crate::grammar::{LimitError, Position, Recogniser};

/// Members tried before giving up: a schema of `n` properties needs some `n²/2`.
const TRIES: usize = 20_000;

/// Places that a value may lead to which are followed up. One order of its members can lead to
/// another place than the next; the first that fits nearly always serves.
const FOLLOWED: [usize; 2] = [1, 8];

/// Whether some order of the members of `value`'s objects is accepted. A first that fits is
/// searched for with a bounded number of tries: `false` may mean that it was not found.
///
/// # Errors
/// If a limit of the engine is exceeded.
pub fn matches_in_some_order(
    recogniser: &mut Recogniser,
    value: &Value,
) -> Result<bool, LimitError> {
    let mut fits = false;
    for most in FOLLOWED {
        let mut search = Search {
            recogniser,
            tries: TRIES,
            most,
        };
        search.recogniser.reset();
        for end in search.ends(value)? {
            search.recogniser.go_to(end);
            fits |= search.recogniser.is_accepting();
        }
        if fits {
            break;
        }
    }
    recogniser.reset();
    Ok(fits)
}

/// Places in a text, none twice.
type Ends = SmallVec<[Position; 2]>;

struct Search<'a> {
    recogniser: &'a mut Recogniser,
    /// Members that may still be tried.
    tries: usize,
    /// Most places that a value may lead to.
    most: usize,
}

impl Search<'_> {
    /// Where `value` leads from here, with its members in orders that fit.
    fn ends(&mut self, value: &Value) -> Result<Ends, LimitError> {
        match value {
            Value::Object(members) => self.object_ends(members),
            Value::Array(items) => self.array_ends(items),
            scalar => self.text_ends(&scalar.to_string()),
        }
    }

    fn object_ends(&mut self, members: &Map<String, Value>) -> Result<Ends, LimitError> {
        let mut ends = Ends::new();
        if self.text("{")? {
            let mut left: Vec<(&String, &Value)> = members.iter().collect();
            self.place(&mut left, true, &mut ends)?;
        }
        Ok(ends)
    }

    fn array_ends(&mut self, items: &[Value]) -> Result<Ends, LimitError> {
        let mut ends = self.text_ends("[")?;
        for (at, item) in items.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            ends = self.each_end(ends, |search| {
                if search.text(separator)? {
                    search.ends(item)
                } else {
                    Ok(Ends::new())
                }
            })?;
        }
        self.each_end(ends, |search| search.text_ends("]"))
    }

    /// Where `step` leads from all of these, as far as they are followed up.
    fn each_end(
        &mut self,
        starts: Ends,
        mut step: impl FnMut(&mut Self) -> Result<Ends, LimitError>,
    ) -> Result<Ends, LimitError> {
        let mut all = Ends::new();
        for start in starts {
            self.recogniser.go_to(start);
            for end in step(self)? {
                self.add(&mut all, end);
            }
        }
        Ok(all)
    }

    fn add(&self, ends: &mut Ends, end: Position) {
        if ends.len() < self.most && !ends.contains(&end) {
            ends.push(end);
        }
    }

    /// Places the members that are left, and adds where the object's end leads. Where one that
    /// fits leads nowhere, another is tried.
    fn place(
        &mut self,
        left: &mut Vec<(&String, &Value)>,
        first: bool,
        ends: &mut Ends,
    ) -> Result<(), LimitError> {
        if left.is_empty() {
            if self.text("}")? {
                self.add(ends, self.recogniser.position());
            }
            return Ok(());
        }
        let start = self.recogniser.position();
        // Those that leave most of the others possible next come first.
        let mut fitting = Vec::new();
        for (at, &(key, value)) in left.iter().enumerate() {
            if self.tries == 0 {
                return Ok(());
            }
            self.tries -= 1;
            self.recogniser.go_to(start);
            for after in self.member_ends(key, value, first)? {
                let mut impossible = 0;
                for (other, _) in left.iter().filter(|&&(other, _)| other != key) {
                    self.recogniser.go_to(after);
                    let separated = format!(", {}: ", quoted(other));
                    impossible += usize::from(!self.text(&separated)?);
                }
                fitting.push((impossible, at, after));
            }
        }
        fitting.sort_by_key(|&(impossible, at, _)| (impossible, at));
        for (_, at, after) in fitting {
            self.recogniser.go_to(after);
            let taken = left.remove(at);
            let placed = self.place(left, false, ends);
            left.insert(at, taken);
            placed?;
            if ends.len() >= self.most {
                break;
            }
        }
        Ok(())
    }

    fn member_ends(&mut self, key: &str, value: &Value, first: bool) -> Result<Ends, LimitError> {
        let separator = if first { "" } else { ", " };
        if self.text(&format!("{separator}{}: ", quoted(key)))? {
            self.ends(value)
        } else {
            Ok(Ends::new())
        }
    }

    fn text_ends(&mut self, text: &str) -> Result<Ends, LimitError> {
        let mut ends = Ends::new();
        if self.text(text)? {
            ends.push(self.recogniser.position());
        }
        Ok(ends)
    }

    fn text(&mut self, text: &str) -> Result<bool, LimitError> {
        Ok(self.recogniser.push_all(text.as_bytes())? == text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::schema::{SchemaOptions, compile};
    use crate::grammar::{Limits, gbnf};
    use serde_json::json;

    #[test]
    fn order_alone_is_set_aside() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "object", "properties": {"x": {}, "y": {"type": "null"}}},
                "c": {"type": "string"},
            },
            "required": ["c"],
        });
        let grammar = compile(&schema, &SchemaOptions::default()).unwrap().grammar;
        let mut recogniser = Recogniser::new(&grammar, &Limits::default()).unwrap();
        for (value, expected) in [
            (json!({"c": "", "b": {"y": null, "x": 1}, "a": 1}), true),
            (json!({"z": 1, "c": "", "a": 1}), true),
            (json!({"c": "", "a": "wrong"}), false),
            (json!({"b": {}, "a": 1}), false),
        ] {
            let found = matches_in_some_order(&mut recogniser, &value).unwrap();
            assert_eq!(found, expected, "{value}");
        }
    }

    #[test]
    fn an_order_of_an_item_that_leads_nowhere_is_given_up() {
        // `{"a", "b"}` leads to a list that ends with 1, `{"b", "a"}` to one that ends with 2.
        let grammar = r#"root ::= "[" ({ab} ", 1" | {ba} ", 2") "]""#
            .replace("{ab}", r#""{\"a\": 0, \"b\": 0}""#)
            .replace("{ba}", r#""{\"b\": 0, \"a\": 0}""#);
        let limits = Limits::default();
        let grammar = gbnf::parse(&grammar, &limits).unwrap().grammar;
        let mut recogniser = Recogniser::new(&grammar, &limits).unwrap();
        for (value, expected) in [
            (json!([{"a": 0, "b": 0}, 1]), true),
            (json!([{"a": 0, "b": 0}, 2]), true),
            (json!([{"b": 0, "a": 0}, 1]), true),
            (json!([{"b": 0, "a": 0}, 3]), false),
        ] {
            let found = matches_in_some_order(&mut recogniser, &value).unwrap();
            assert_eq!(found, expected, "{value}");
        }
    }
}
