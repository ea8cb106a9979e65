//! Numbers that the request names and a call could not hold.
//!
//! Where a grammar bounds a number, a model that copies one beyond the bound is stopped in the
//! middle of it: of 500 degrees 5 is left, a valid call that nobody meant.

use crate::call::Call;
use crate::call::numbers::numbers;

/// A number of the request that a call holds the beginning of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CutNumber {
    pub(super) argument: String,
    /// As the request has it.
    pub(super) said: String,
}

/// The first number in `calls` that the request does not name, but a longer one that begins so.
pub(super) fn cut_number(request: &str, calls: &[Call]) -> Option<CutNumber> {
    let said: Vec<String> = numbers(request).into_iter().map(|n| n.text).collect();
    let arguments = calls.iter().flat_map(|call| &call.arguments);
    arguments
        .filter_map(|(name, value)| Some((name, value.as_number()?.to_string())))
        .find_map(|(name, written)| {
            let written = written.trim_start_matches('-').trim_end_matches(".0");
            let same = |said: &&String| said.parse::<f64>().ok() == written.parse().ok();
            if said.iter().any(|said| same(&said)) {
                return None;
            }
            let longer = said.iter().find(|said| said.starts_with(written))?;
            Some(CutNumber {
                argument: name.clone(),
                said: longer.clone(),
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_number_that_was_cut_is_found() {
        for (request, value, said) in [
            ("set the thermostat to 500 degrees", json!(5), Some("500")),
            ("dim it to 150%", json!(15), Some("150")),
            ("поставь 21,75 градуса", json!(21.5), None),
            ("поставь 21,55 градуса", json!(21.5), Some("21.55")),
            ("调到500度", json!(50.0), Some("500")),
            ("set it to 21.0", json!(21), None),
            ("set it to 21", json!(21.0), None),
            ("lamp 12 to 1%", json!(1), None),
            ("half open", json!(50), None),
            ("to 20 degrees", json!("2"), None),
            ("minus 15", json!(-15), None),
            ("", json!(1), None),
        ] {
            let call = Call::new("set", [("value", value.clone())]);
            let found = cut_number(request, &[call]).map(|cut| cut.said);
            assert_eq!(found.as_deref(), said, "{request}: {value}");
        }
    }
}
