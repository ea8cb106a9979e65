//! A schema and its instances, as MaskBench and the official JSON Schema test suite have them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A schema with instances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Its name.
    pub id: String,
    /// The schema.
    pub schema: Value,
    /// Its instances; there may be none.
    #[serde(default)]
    pub tests: Vec<Test>,
    /// Whether `format` is enforced.
    #[serde(default = "yes")]
    pub formats: bool,
}

fn yes() -> bool {
    true
}

/// An instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Test {
    /// Whether it satisfies the schema.
    pub valid: bool,
    /// The instance.
    pub data: Value,
}

/// Why a file is none of these.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct CaseError {
    /// Where in the file.
    pub place: String,
    /// What is wrong.
    pub problem: String,
}

impl Case {
    /// Reads a line of MaskBench: `{"id": …, "schema": …, "tests": [{"valid": …, "data": …}]}`.
    ///
    /// # Errors
    /// What is wrong with it, for `line` (from 1).
    pub fn from_line(text: &str, line: usize) -> Result<Self, CaseError> {
        serde_json::from_str(text).map_err(|error| CaseError {
            place: format!("line {line}"),
            problem: error.to_string(),
        })
    }

    /// Whether there are both valid and invalid instances.
    pub fn has_both(&self) -> bool {
        self.tests.iter().any(|test| test.valid) && self.tests.iter().any(|test| !test.valid)
    }
}

/// Reads a file of the official suite: groups of tests, each with its schema. Schemas that do not
/// name their dialect get `dialect`.
///
/// # Errors
/// What is wrong with the file, and where.
pub fn read_suite(
    text: &str,
    name: &str,
    dialect: &str,
    formats: bool,
) -> Result<Vec<Case>, CaseError> {
    #[derive(Deserialize)]
    struct Group {
        description: String,
        schema: Value,
        tests: Vec<Test>,
    }
    let groups: Vec<Group> = serde_json::from_str(text).map_err(|error| CaseError {
        place: name.to_owned(),
        problem: error.to_string(),
    })?;
    Ok(groups
        .into_iter()
        .map(|group| Case {
            id: format!("{name}: {}", group.description),
            schema: with_dialect(group.schema, dialect),
            tests: group.tests,
            formats,
        })
        .collect())
}

/// Boolean schemas cannot name a dialect and need none.
fn with_dialect(schema: Value, dialect: &str) -> Value {
    match schema {
        Value::Object(members) if !members.contains_key("$schema") => {
            let mut named = Map::new();
            named.insert("$schema".to_owned(), Value::from(dialect));
            named.extend(members);
            Value::Object(named)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_kinds_of_files_are_read() {
        let line = r#"{"id": "a", "schema": {}, "tests": [{"valid": true, "data": 1}], "x": 1}"#;
        let case = Case::from_line(line, 1).unwrap();
        assert!(case.formats && !case.has_both());
        let suite = r#"[{"description": "d", "schema": {"type": "null"},
            "tests": [{"description": "t", "data": null, "valid": true},
                      {"description": "f", "data": 1, "valid": false}]}]"#;
        let cases = read_suite(suite, "type", "uri", false).unwrap();
        assert_eq!(cases[0].id, "type: d");
        assert_eq!(cases[0].schema, json!({"$schema": "uri", "type": "null"}));
        assert!(cases[0].has_both());
        let error = Case::from_line("{", 7).unwrap_err();
        assert!(error.to_string().starts_with("line 7: "), "{error}");
    }
}
