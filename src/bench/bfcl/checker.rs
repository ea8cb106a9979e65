//! The verdict of the Berkeley leaderboard on one output, rule by rule.
//!
//! It follows `bfcl_eval/eval_checker/ast_eval/ast_checker.py` (version 2026.3.23) for Python,
//! oddities included: a figure is comparable only if the same outputs pass. Where that code raises
//! an exception, which ends the leaderboard's own run, the output is wrong with
//! [`ErrorType::CheckerRaises`].

use super::dataset::{Category, Function, Question};
use super::value::{Type, Value, member};
use serde_json::Value as Json;

/// Why an output is wrong, by the leaderboard's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorType {
    /// The text is no list of calls.
    DecoderFailed,
    /// What was read is not a list of `{name: {argument: value}}`.
    DecoderWrongFormat,
    /// A call where none is right.
    IrrelevanceCalled,
    /// No call where one is right.
    RelevanceNotCalled,
    /// Simple: not exactly one call.
    SimpleWrongCount,
    /// Multiple: not as many calls as the answer.
    MultipleWrongCount,
    /// Parallel: not as many calls as the answer.
    ParallelWrongCount,
    /// Parallel: no unused call fits one of the answers.
    CannotFindMatch,
    /// Another function.
    WrongFunctionName,
    /// A required parameter is missing.
    MissingRequired,
    /// A parameter that schema or answer does not know.
    UnexpectedParameter,
    /// A parameter that the answer needs is missing.
    MissingOptional,
    /// A value of another type.
    TypeSimple,
    /// An item of another type.
    TypeNested,
    /// A text that is none of the answers.
    ValueString,
    /// A list that is none of the answers.
    ValueList,
    /// A dictionary with a key too many or too few.
    ValueDictKey,
    /// A dictionary with a value that is none of the answers.
    ValueDictValue,
    /// A list with another number of dictionaries.
    ValueListDictCount,
    /// Any other value that is none of the answers.
    ValueOther,
    /// A dictionary for which the answer has none.
    DictUnclear,
    /// A list of dictionaries for which the answer has none.
    ListDictUnclear,
    /// The leaderboard's checker raises an exception here.
    CheckerRaises,
}

impl ErrorType {
    /// The leaderboard's name, `checker_raises` aside.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DecoderFailed => "ast_decoder:decoder_failed",
            Self::DecoderWrongFormat => "ast_decoder:decoder_wrong_output_format",
            Self::IrrelevanceCalled => "irrelevance_error:decoder_success",
            Self::RelevanceNotCalled => "relevance_error:decoder_failed",
            Self::SimpleWrongCount => "simple_function_checker:wrong_count",
            Self::MultipleWrongCount => "multiple_function_checker:wrong_count",
            Self::ParallelWrongCount => "parallel_function_checker_no_order:wrong_count",
            Self::CannotFindMatch => "parallel_function_checker_no_order:cannot_find_match",
            Self::WrongFunctionName => "simple_function_checker:wrong_func_name",
            Self::MissingRequired => "simple_function_checker:missing_required",
            Self::UnexpectedParameter => "simple_function_checker:unexpected_param",
            Self::MissingOptional => "simple_function_checker:missing_optional",
            Self::TypeSimple => "type_error:simple",
            Self::TypeNested => "type_error:nested",
            Self::ValueString => "value_error:string",
            Self::ValueList => "value_error:list/tuple",
            Self::ValueDictKey => "value_error:dict_key",
            Self::ValueDictValue => "value_error:dict_value",
            Self::ValueListDictCount => "value_error:list_dict_count",
            Self::ValueOther => "value_error:others",
            Self::DictUnclear => "dict_checker:unclear",
            Self::ListDictUnclear => "list_dict_checker:unclear",
            Self::CheckerRaises => "checker_raises",
        }
    }
}

impl std::fmt::Display for ErrorType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How the outputs write a function's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// As the question has it, dots included.
    #[default]
    AsGiven,
    /// With `_` for `.`, as interfaces demand that know no dots in names.
    Underscored,
}

/// A rule that an output breaks.
type Broken = ErrorType;

/// Checks the decoded output of a question; `None` where there was nothing to decode.
///
/// # Errors
/// The first rule that it breaks, in the leaderboard's order.
pub fn check(question: &Question, output: Option<&Value>, names: Names) -> Result<(), ErrorType> {
    match question.category {
        Category::Irrelevance | Category::LiveIrrelevance => {
            if output.is_some_and(is_call) {
                Err(ErrorType::IrrelevanceCalled)
            } else {
                Ok(())
            }
        }
        Category::LiveRelevance => {
            if output.is_some_and(is_call) {
                Ok(())
            } else {
                Err(ErrorType::RelevanceNotCalled)
            }
        }
        _ => {
            let calls = output.ok_or(ErrorType::DecoderFailed)?;
            let calls = calls_of(calls).ok_or(ErrorType::DecoderWrongFormat)?;
            check_calls(question, calls, names)
        }
    }
}

/// `[{name: {argument: value, …}}, …]`, possibly empty.
fn calls_of(output: &Value) -> Option<&[Value]> {
    let calls = output.as_list()?;
    let is_one = |call: &Value| matches!(call.as_dict(), Some([(_, arguments)]) if arguments.as_dict().is_some());
    calls.iter().all(is_one).then_some(calls)
}

/// Whether there is a call at all. What is not in the format counts as none.
fn is_call(output: &Value) -> bool {
    calls_of(output).is_some_and(|calls| !calls.is_empty())
}

fn check_calls(question: &Question, calls: &[Value], names: Names) -> Result<(), Broken> {
    let answers = question.answers.as_slice();
    match question.category {
        Category::Parallel
        | Category::ParallelMultiple
        | Category::LiveParallel
        | Category::LiveParallelMultiple => parallel(question, calls, names),
        Category::Multiple | Category::LiveMultiple => {
            if calls.len() != answers.len() {
                return Err(ErrorType::MultipleWrongCount);
            }
            let (Some(call), Some(answer)) = (calls.first(), answers.first()) else {
                return Err(ErrorType::CheckerRaises);
            };
            one(described(question, answer)?, call, answer, names)
        }
        _ => {
            let [call] = calls else {
                return Err(ErrorType::SimpleWrongCount);
            };
            let (Some(function), Some(answer)) = (question.functions.first(), answers.first())
            else {
                return Err(ErrorType::CheckerRaises);
            };
            one(function, call, answer, names)
        }
    }
}

/// The function that an answer calls.
fn described<'q>(question: &'q Question, answer: &Value) -> Result<&'q Function, Broken> {
    let name = answer
        .as_dict()
        .and_then(|members| members.first())
        .and_then(|(name, _)| name.as_str());
    question
        .functions
        .iter()
        .find(|function| Some(function.name.as_str()) == name)
        .ok_or(ErrorType::CheckerRaises)
}

/// Each answer in turn takes the first unused call that fits it; nothing is ever given back.
fn parallel(question: &Question, calls: &[Value], names: Names) -> Result<(), Broken> {
    if calls.len() != question.answers.len() {
        return Err(ErrorType::ParallelWrongCount);
    }
    let mut used = vec![false; calls.len()];
    for answer in &question.answers {
        let function = described(question, answer)?;
        let mut found = false;
        for (call, used) in calls.iter().zip(&mut used) {
            if *used {
                continue;
            }
            match one(function, call, answer, names) {
                Ok(()) => {
                    *used = true;
                    found = true;
                    break;
                }
                Err(ErrorType::CheckerRaises) => return Err(ErrorType::CheckerRaises),
                Err(_) => {}
            }
        }
        if !found {
            return Err(ErrorType::CannotFindMatch);
        }
    }
    Ok(())
}

/// One call against one answer: the name, required parameters, each parameter given, then those
/// left out.
fn one(function: &Function, call: &Value, answer: &Value, names: Names) -> Result<(), Broken> {
    let raises = ErrorType::CheckerRaises;
    let allowed = answer
        .as_dict()
        .and_then(|members| members.first())
        .and_then(|(_, allowed)| allowed.as_dict())
        .ok_or(raises)?;
    let parameters = |name: &str| function.parameters.get(name);
    let properties = parameters("properties")
        .and_then(Json::as_object)
        .ok_or(raises)?;
    let required = parameters("required")
        .and_then(Json::as_array)
        .ok_or(raises)?;
    let name = match names {
        Names::AsGiven => function.name.clone(),
        Names::Underscored => function.name.replace('.', "_"),
    };
    let given = call.get(&name).ok_or(ErrorType::WrongFunctionName)?;
    let given = given.as_dict().ok_or(raises)?;
    for parameter in required {
        let parameter = parameter.as_str().ok_or(raises)?;
        if member(given, parameter).is_none() {
            return Err(ErrorType::MissingRequired);
        }
    }
    for (parameter, value) in given {
        let known = parameter
            .as_str()
            .and_then(|name| Some((properties.get(name)?, member(allowed, name)?)));
        let Some((schema, possible)) = known else {
            return Err(ErrorType::UnexpectedParameter);
        };
        parameter_fits(schema, value, possible)?;
    }
    for (parameter, possible) in allowed {
        let name = parameter.as_str().ok_or(raises)?;
        if member(given, name).is_none() && !may_be_left_out(possible)? {
            return Err(ErrorType::MissingOptional);
        }
    }
    Ok(())
}

/// Whether `""` is among the answers.
fn may_be_left_out(possible: &Value) -> Result<bool, Broken> {
    possible
        .contains(&Value::Str(String::new()))
        .ok_or(ErrorType::CheckerRaises)
}

fn type_of(word: &str) -> Option<Type> {
    match word {
        "string" | "any" => Some(Type::Str),
        "integer" => Some(Type::Int),
        "float" => Some(Type::Float),
        "boolean" => Some(Type::Bool),
        "array" | "tuple" => Some(Type::List),
        "dict" => Some(Type::Dict),
        _ => None,
    }
}

/// One parameter: its type, then its value.
fn parameter_fits(schema: &Json, value: &Value, possible: &Value) -> Result<(), Broken> {
    let raises = ErrorType::CheckerRaises;
    let word = schema.get("type").and_then(Json::as_str).ok_or(raises)?;
    let expected = type_of(word).ok_or(raises)?;
    let nested = if matches!(word, "array" | "tuple") {
        let items = schema.get("items").and_then(|items| items.get("type"));
        let items = items.and_then(Json::as_str).and_then(type_of);
        Some(items.ok_or(raises)?)
    } else {
        None
    };
    let converted = match (word, value) {
        ("tuple", Value::Tuple(items)) => Some(Value::List(items.clone())),
        ("float", Value::Int(int)) => Some(Value::Float(int.to_f64())),
        _ => None,
    };
    let value = converted.as_ref().unwrap_or(value);
    let is_variable = type_fits(value, possible, expected, nested)?;
    if !is_variable {
        match (expected, nested) {
            (Type::Dict, _) => return dict_fits(value, possible),
            (Type::List, Some(Type::Dict)) => return list_of_dicts_fits(value, possible),
            (Type::Str, _) => return text_fits(value, possible),
            (Type::List, _) => return list_fits(value, possible),
            _ => {}
        }
    }
    if possible.contains(value).ok_or(raises)? {
        Ok(())
    } else {
        Err(ErrorType::ValueOther)
    }
}

/// The type of the first answer that is not `""`.
fn type_of_answers(possible: &[Value]) -> Option<Type> {
    possible
        .iter()
        .find(|answer| !answer.is_empty_text())
        .map(Value::kind)
}

/// Whether the value's type is right; then, whether the answers have another type than the schema,
/// in which case the value is compared as it stands.
fn type_fits(
    value: &Value,
    possible: &Value,
    expected: Type,
    nested: Option<Type>,
) -> Result<bool, Broken> {
    let answers = possible.iterate().ok_or(ErrorType::CheckerRaises)?;
    let answered = type_of_answers(&answers);
    let is_variable = answered.is_some_and(|answered| answered != expected);
    let mut broken = ErrorType::TypeSimple;
    if value.kind() == expected {
        let Some(nested) = nested else {
            return Ok(is_variable);
        };
        let items = value.iterate().ok_or(ErrorType::CheckerRaises)?;
        for answer in answers.iter() {
            // An answer that is no list, `""` above all, lets every list pass.
            let mut fits = true;
            if answer.as_list().is_some() {
                for item in items.iter() {
                    match type_fits(item, answer, nested, None) {
                        Ok(_) => {}
                        Err(ErrorType::CheckerRaises) => return Err(ErrorType::CheckerRaises),
                        Err(_) => {
                            fits = false;
                            break;
                        }
                    }
                }
            }
            if fits {
                return Ok(is_variable);
            }
        }
        broken = ErrorType::TypeNested;
    }
    match answered {
        Some(answered) if answered == value.kind() => {
            if broken == ErrorType::TypeNested {
                Err(broken)
            } else {
                Ok(true)
            }
        }
        _ => Err(ErrorType::TypeSimple),
    }
}

/// A text without blanks and `,./-_*^`, in lower case, with `"` for `'`.
pub fn standardized(text: &str) -> String {
    let kept: String = text
        .chars()
        .filter(|c| !matches!(c, ' ' | ',' | '.' | '/' | '-' | '_' | '*' | '^'))
        .collect();
    kept.to_lowercase().replace('\'', "\"")
}

/// A value as it is compared: texts standardised, all else as it is.
fn standardized_value(value: &Value) -> Value {
    match value {
        Value::Str(text) => Value::Str(standardized(text)),
        other => other.clone(),
    }
}

fn text_fits(value: &Value, possible: &Value) -> Result<(), Broken> {
    let raises = ErrorType::CheckerRaises;
    let text = standardized(value.as_str().ok_or(raises)?);
    let answers = possible.indexed().ok_or(raises)?;
    let found = answers
        .iter()
        .filter_map(Value::as_str)
        .any(|answer| standardized(answer) == text);
    if found {
        Ok(())
    } else {
        Err(ErrorType::ValueString)
    }
}

fn list_fits(value: &Value, possible: &Value) -> Result<(), Broken> {
    let raises = ErrorType::CheckerRaises;
    let items = value.as_list().ok_or(raises)?;
    let items = Value::List(items.iter().map(standardized_value).collect());
    let mut found = false;
    for answer in possible.indexed().ok_or(raises)?.iter() {
        // `""` is a list without items here.
        let answer = answer.indexed().ok_or(raises)?;
        let answer = Value::List(answer.iter().map(standardized_value).collect());
        found |= items.equals(&answer);
    }
    if found {
        Ok(())
    } else {
        Err(ErrorType::ValueList)
    }
}

fn dict_fits(value: &Value, possible: &Value) -> Result<(), Broken> {
    let answers = possible.indexed().ok_or(ErrorType::CheckerRaises)?;
    dict_fits_any(value, &answers)
}

fn dict_fits_any(value: &Value, answers: &[Value]) -> Result<(), Broken> {
    let raises = ErrorType::CheckerRaises;
    let members = value.as_dict().ok_or(raises)?;
    let mut last = ErrorType::DictUnclear;
    for answer in answers {
        if answer.is_empty_text() {
            continue;
        }
        let allowed = answer.as_dict().ok_or(raises)?;
        match members_fit(members, allowed) {
            Ok(()) => return Ok(()),
            Err(ErrorType::CheckerRaises) => return Err(raises),
            Err(broken) => last = broken,
        }
    }
    Err(last)
}

fn members_fit(members: &[(Value, Value)], allowed: &[(Value, Value)]) -> Result<(), Broken> {
    let raises = ErrorType::CheckerRaises;
    let find = |members: &[(Value, Value)], key: &Value| {
        let found = members.iter().find(|(own, _)| own.equals(key));
        found.map(|(_, value)| value.clone())
    };
    let mut broken = None;
    for (key, value) in members {
        let Some(possible) = find(allowed, key) else {
            broken = Some(ErrorType::ValueDictKey);
            break;
        };
        let value = standardized_value(value);
        let possible = possible.indexed().ok_or(raises)?;
        let found = possible
            .iter()
            .any(|possible| standardized_value(possible).equals(&value));
        if !found {
            broken = Some(ErrorType::ValueDictValue);
            break;
        }
    }
    // A key that is missing has the last word.
    for (key, possible) in allowed {
        if find(members, key).is_none() && !may_be_left_out(possible)? {
            broken = Some(ErrorType::ValueDictKey);
            break;
        }
    }
    broken.map_or(Ok(()), Err)
}

fn list_of_dicts_fits(value: &Value, possible: &Value) -> Result<(), Broken> {
    let raises = ErrorType::CheckerRaises;
    let items = value.as_list().ok_or(raises)?;
    let mut last = ErrorType::ListDictUnclear;
    for answer in possible.indexed().ok_or(raises)?.iter() {
        let answers = answer.iterate().ok_or(raises)?;
        if answers.len() != items.len() {
            last = ErrorType::ValueListDictCount;
            continue;
        }
        // Indexing a dictionary by position raises; one without members is never indexed.
        if answer.as_dict().is_some() && !items.is_empty() {
            return Err(raises);
        }
        let mut fits = true;
        for (item, answer) in items.iter().zip(answers.iter()) {
            match dict_fits_any(item, std::slice::from_ref(answer)) {
                Ok(()) => {}
                Err(ErrorType::CheckerRaises) => return Err(raises),
                Err(broken) => {
                    last = broken;
                    fits = false;
                    break;
                }
            }
        }
        if fits {
            return Ok(());
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::bfcl::json::read;
    use ErrorType as E;

    /// A question about `f` with the parameters of `schema`, and about `g` that has none.
    fn question(category: Category, schema: &str, answers: &str) -> Question {
        let parameters = |properties: &str, required: &str| {
            serde_json::from_str(&format!(
                "{{\"type\": \"dict\", \"properties\": {{{properties}}}, \"required\": [{required}]}}"
            ))
            .unwrap()
        };
        let function = |name: &str, parameters| Function {
            name: name.into(),
            description: String::new(),
            parameters,
        };
        let required = if schema.starts_with("\"x\"") {
            "\"x\""
        } else {
            ""
        };
        Question {
            id: String::new(),
            category,
            messages: Vec::new(),
            functions: vec![
                function("f", parameters(schema, required)),
                function("g.h", parameters("", "")),
            ],
            answers: read(answers).unwrap().as_list().unwrap().to_vec(),
        }
    }

    fn verdict(question: &Question, output: &str) -> Result<(), E> {
        check(question, Some(&read(output).unwrap()), Names::AsGiven)
    }

    /// The verdict on `f` called with one parameter of this type; `possible` are the answers.
    fn value(schema: &str, possible: &str, given: &str) -> Result<(), E> {
        let schema = format!("\"x\": {{\"type\": {schema}}}");
        let answers = format!("[{{\"f\": {{\"x\": {possible}}}}}]");
        let question = question(Category::Simple, &schema, &answers);
        verdict(&question, &format!("[{{\"f\": {{\"x\": {given}}}}}]"))
    }

    #[test]
    fn counts_and_names() {
        let cases = [
            (
                Category::Simple,
                "[{\"f\": {}}]",
                "[]",
                Err(E::SimpleWrongCount),
            ),
            (
                Category::Simple,
                "[{\"f\": {}}]",
                "[{\"f\": {}}, {\"f\": {}}]",
                Err(E::SimpleWrongCount),
            ),
            (Category::Simple, "[{\"f\": {}}]", "[{\"f\": {}}]", Ok(())),
            (
                Category::Simple,
                "[{\"f\": {}}]",
                "[{\"g.h\": {}}]",
                Err(E::WrongFunctionName),
            ),
            (
                Category::Simple,
                "[{\"f\": {}}]",
                "[{\"f\": {}, \"g.h\": {}}]",
                Err(E::DecoderWrongFormat),
            ),
            (
                Category::Simple,
                "[{\"f\": {}}]",
                "[{\"f\": []}]",
                Err(E::DecoderWrongFormat),
            ),
            (
                Category::Simple,
                "[{\"f\": {}}]",
                "{\"f\": {}}",
                Err(E::DecoderWrongFormat),
            ),
            (
                Category::Multiple,
                "[{\"g.h\": {}}]",
                "[]",
                Err(E::MultipleWrongCount),
            ),
            (
                Category::LiveMultiple,
                "[{\"g.h\": {}}]",
                "[{\"g.h\": {}}]",
                Ok(()),
            ),
            (
                Category::Multiple,
                "[{\"g.h\": {}}]",
                "[{\"f\": {}}]",
                Err(E::WrongFunctionName),
            ),
            (
                Category::Multiple,
                "[{\"other\": {}}]",
                "[{\"f\": {}}]",
                Err(E::CheckerRaises),
            ),
            (
                Category::Parallel,
                "[{\"f\": {}}, {\"f\": {}}]",
                "[{\"f\": {}}]",
                Err(E::ParallelWrongCount),
            ),
            (Category::Irrelevance, "[]", "[]", Ok(())),
            (
                Category::Irrelevance,
                "[]",
                "[{\"f\": {}}]",
                Err(E::IrrelevanceCalled),
            ),
            (Category::LiveIrrelevance, "[]", "[{\"f\": 1}]", Ok(())),
            (
                Category::LiveRelevance,
                "[]",
                "[{\"whatever\": {}}]",
                Ok(()),
            ),
            (
                Category::LiveRelevance,
                "[]",
                "[]",
                Err(E::RelevanceNotCalled),
            ),
        ];
        for (category, answers, output, expected) in cases {
            let question = question(category, "", answers);
            assert_eq!(
                verdict(&question, output),
                expected,
                "{category:?} {output}"
            );
        }
        for (category, expected) in [
            (Category::Simple, Err(E::DecoderFailed)),
            (Category::Irrelevance, Ok(())),
            (Category::LiveRelevance, Err(E::RelevanceNotCalled)),
        ] {
            let question = question(category, "", "[{\"f\": {}}]");
            assert_eq!(check(&question, None, Names::AsGiven), expected);
        }
        let dotted = question(Category::Multiple, "", "[{\"g.h\": {}}]");
        let output = read("[{\"g_h\": {}}]").unwrap();
        assert_eq!(check(&dotted, Some(&output), Names::Underscored), Ok(()));
        assert_eq!(
            check(&dotted, Some(&output), Names::AsGiven),
            Err(E::WrongFunctionName)
        );
    }

    #[test]
    fn parallel_calls_are_matched_in_order_without_giving_back() {
        let schema = "\"x\": {\"type\": \"integer\"}";
        let answers = "[{\"f\": {\"x\": [1, 2]}}, {\"f\": {\"x\": [1]}}]";
        let question = question(Category::Parallel, schema, answers);
        // The first answer takes the 1 that only the second one needs.
        let ones = |a: u8, b: u8| format!("[{{\"f\": {{\"x\": {a}}}}}, {{\"f\": {{\"x\": {b}}}}}]");
        assert_eq!(verdict(&question, &ones(1, 2)), Err(E::CannotFindMatch));
        assert_eq!(verdict(&question, &ones(2, 1)), Ok(()));
        assert_eq!(verdict(&question, &ones(1, 1)), Ok(()));
        assert_eq!(verdict(&question, &ones(2, 2)), Err(E::CannotFindMatch));
    }

    #[test]
    fn parameters_are_required_known_and_complete() {
        let schema = "\"x\": {\"type\": \"integer\"}, \"y\": {\"type\": \"string\"}, \"z\": {\"type\": \"string\"}";
        let answers = "[{\"f\": {\"x\": [1], \"y\": [\"a\", \"\"], \"z\": [\"b\"]}}]";
        let question = question(Category::Simple, schema, answers);
        for (arguments, expected) in [
            ("\"x\": 1, \"z\": \"b\"", Ok(())),
            ("\"x\": 1, \"y\": \"a\", \"z\": \"b\"", Ok(())),
            ("\"x\": 1, \"y\": \"\", \"z\": \"b\"", Ok(())),
            ("\"z\": \"b\"", Err(E::MissingRequired)),
            (
                "\"x\": 1, \"w\": 1, \"z\": \"b\"",
                Err(E::UnexpectedParameter),
            ),
            ("\"x\": 1", Err(E::MissingOptional)),
            ("\"x\": 2", Err(E::ValueOther)),
        ] {
            let output = format!("[{{\"f\": {{{arguments}}}}}]");
            assert_eq!(verdict(&question, &output), expected, "{arguments}");
        }
    }

    #[test]
    fn types_come_before_values() {
        for (schema, possible, given, expected) in [
            ("\"integer\"", "[1]", "1", Ok(())),
            ("\"integer\"", "[1]", "true", Err(E::TypeSimple)),
            ("\"integer\"", "[1]", "1.0", Err(E::TypeSimple)),
            ("\"integer\"", "[1]", "\"1\"", Err(E::TypeSimple)),
            ("\"integer\"", "[1]", "null", Err(E::TypeSimple)),
            ("\"integer\"", "[\"n\"]", "\"n\"", Ok(())),
            ("\"integer\"", "[\"n\"]", "\"N\"", Err(E::ValueOther)),
            ("\"integer\"", "[\"\"]", "3", Err(E::ValueOther)),
            ("\"float\"", "[1]", "1", Ok(())),
            ("\"float\"", "[1.5]", "1.5", Ok(())),
            ("\"float\"", "[0]", "false", Err(E::TypeSimple)),
            ("\"boolean\"", "[true]", "true", Ok(())),
            ("\"boolean\"", "[true]", "1", Err(E::TypeSimple)),
            ("\"string\"", "[\"a\"]", "\"a\"", Ok(())),
            ("\"any\"", "[\"a\"]", "\"A\"", Ok(())),
            ("\"any\"", "[5]", "5", Ok(())),
            ("\"number\"", "[5]", "5", Err(E::CheckerRaises)),
            (
                "\"array\", \"items\": {\"type\": \"integer\"}",
                "[[1, 2]]",
                "[1, 2]",
                Ok(()),
            ),
            (
                "\"array\", \"items\": {\"type\": \"integer\"}",
                "[[1, 2]]",
                "[2, 1]",
                Err(E::ValueList),
            ),
            (
                "\"array\", \"items\": {\"type\": \"integer\"}",
                "[[1, 2]]",
                "[1, 2.0]",
                Err(E::TypeNested),
            ),
            (
                "\"array\", \"items\": {\"type\": \"integer\"}",
                "[[1, 2]]",
                "[true, 2]",
                Err(E::TypeNested),
            ),
            // One level deep only.
            (
                "\"array\", \"items\": {\"type\": \"array\"}",
                "[[[1]]]",
                "[[\"1\"]]",
                Err(E::ValueList),
            ),
            // An optional list lets any type of item pass.
            (
                "\"array\", \"items\": {\"type\": \"integer\"}",
                "[\"\", [1]]",
                "[\"1\"]",
                Err(E::ValueList),
            ),
            (
                "\"array\", \"items\": {\"type\": \"integer\"}",
                "[\"\", [1]]",
                "[]",
                Ok(()),
            ),
            // No float for an integer within a list.
            (
                "\"array\", \"items\": {\"type\": \"float\"}",
                "[[1.0]]",
                "[1]",
                Err(E::TypeNested),
            ),
            ("\"array\"", "[[1]]", "[1]", Err(E::CheckerRaises)),
            (
                "\"array\", \"items\": {\"type\": \"integer\"}",
                "[[1]]",
                "\"[1]\"",
                Err(E::TypeSimple),
            ),
        ] {
            assert_eq!(
                value(schema, possible, given),
                expected,
                "{schema} {possible} {given}"
            );
        }
    }

    #[test]
    fn texts_are_compared_without_case_blanks_and_marks() {
        assert_eq!(standardized(" A-b_c,.D/*^'e\""), "abcd\"e\"");
        for (possible, given, expected) in [
            ("[\"San Francisco, CA\"]", "\"san francisco CA\"", Ok(())),
            ("[\"don't\"]", "\"DON\\\"T\"", Ok(())),
            ("[\"a\"]", "\"b\"", Err(E::ValueString)),
            ("[\"a\", 5]", "\"5\"", Err(E::ValueString)),
            ("[\"a\", \"\"]", "\" \"", Ok(())),
        ] {
            assert_eq!(value("\"string\"", possible, given), expected, "{given}");
        }
        let list = "\"array\", \"items\": {\"type\": \"string\"}";
        assert_eq!(value(list, "[[\"A b\"]]", "[\"a-B\"]"), Ok(()));
    }

    #[test]
    fn dictionaries_are_compared_key_by_key() {
        for (possible, given, expected) in [
            (
                "[{\"a\": [1], \"b\": [\"X\", \"\"]}]",
                "{\"a\": 1.0}",
                Ok(()),
            ),
            (
                "[{\"a\": [1], \"b\": [\"X\", \"\"]}]",
                "{\"b\": \"x\", \"a\": true}",
                Ok(()),
            ),
            ("[{\"a\": [1]}]", "{\"a\": 2}", Err(E::ValueDictValue)),
            (
                "[{\"a\": [1]}]",
                "{\"a\": 1, \"c\": 1}",
                Err(E::ValueDictKey),
            ),
            (
                "[{\"a\": [1], \"b\": [1]}]",
                "{\"a\": 2}",
                Err(E::ValueDictKey),
            ),
            ("[{\"a\": [1]}, {\"a\": [2]}]", "{\"a\": 2}", Ok(())),
            ("[\"\"]", "{\"a\": 2}", Err(E::DictUnclear)),
            ("[{\"a\": \"bc\"}]", "{\"a\": \"b\"}", Ok(())),
            ("[{\"a\": \"bc\"}]", "{}", Ok(())),
            ("[{\"a\": 5}]", "{\"a\": 5}", Err(E::CheckerRaises)),
        ] {
            assert_eq!(
                value("\"dict\"", possible, given),
                expected,
                "{possible} {given}"
            );
        }
        let list = "\"array\", \"items\": {\"type\": \"dict\"}";
        for (possible, given, expected) in [
            (
                "[[{\"a\": [1]}, {\"a\": [2]}]]",
                "[{\"a\": 1}, {\"a\": 2}]",
                Ok(()),
            ),
            (
                "[[{\"a\": [1]}, {\"a\": [2]}]]",
                "[{\"a\": 2}, {\"a\": 1}]",
                Err(E::ValueDictValue),
            ),
            ("[[{\"a\": [1]}]]", "[]", Err(E::ValueListDictCount)),
            ("[[{\"a\": [1]}], \"\"]", "[]", Ok(())),
            ("[[{\"a\": [1]}], [{\"b\": [1]}]]", "[{\"b\": 1}]", Ok(())),
        ] {
            assert_eq!(value(list, possible, given), expected, "{possible} {given}");
        }
    }
}
