//! Which tools may run, which need a person's yes, and which do not exist for the model.

use super::spec::{Effect, ToolSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the policy says about a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// It runs.
    Allow,
    /// It runs if a person says yes; without anybody to ask, it does not.
    Ask,
    /// It does not run, and is not in the grammar.
    Deny,
}

/// Why a policy was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A pattern that is no tool name.
    #[error(
        "policy: {pattern:?} is neither a tool's name, nor the beginning of one and a `*`, nor @read, @change or @risk"
    )]
    Pattern {
        /// As it was written.
        pattern: String,
    },
}

/// Permissions by tool. A rule's pattern is a tool's name, the beginning of one followed by `*`,
/// or `@read`, `@change`, `@risk` for every tool of that effect. A name goes before a beginning, a
/// longer beginning before a shorter one, and both before an effect; a lone `*` comes last before
/// the defaults: reading and changing are allowed, what is risky is asked about.
///
/// ```
/// use snaffle::call::policy::{Permission, Policy};
/// let policy = Policy::new([("get_*", Permission::Allow), ("unlock", Permission::Deny)])?;
/// # Ok::<(), snaffle::call::policy::PolicyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Default, Deserialize)]
#[serde(try_from = "BTreeMap<String, Permission>")]
pub struct Policy {
    exact: BTreeMap<String, Permission>,
    /// Beginnings, longest first.
    prefixes: Vec<(String, Permission)>,
    effects: BTreeMap<&'static str, Permission>,
    all: Option<Permission>,
}

impl Policy {
    /// A policy of these rules.
    ///
    /// # Errors
    /// A pattern that cannot match any tool.
    pub fn new<P: Into<String>>(
        rules: impl IntoIterator<Item = (P, Permission)>,
    ) -> Result<Self, PolicyError> {
        let mut policy = Self::default();
        for (pattern, permission) in rules {
            let pattern = pattern.into();
            if pattern == "*" {
                policy.all = Some(permission);
            } else if let Some(effect) = pattern.strip_prefix('@') {
                let name = [Effect::Read, Effect::Change, Effect::Risk]
                    .map(Effect::as_str)
                    .into_iter()
                    .find(|name| *name == effect)
                    .ok_or_else(|| PolicyError::Pattern {
                        pattern: pattern.clone(),
                    })?;
                policy.effects.insert(name, permission);
            } else if let Some(prefix) = pattern.strip_suffix('*')
                && ToolSpec::is_name(prefix)
            {
                policy.prefixes.push((prefix.to_owned(), permission));
            } else if ToolSpec::is_name(&pattern) {
                policy.exact.insert(pattern, permission);
            } else {
                return Err(PolicyError::Pattern { pattern });
            }
        }
        policy
            .prefixes
            .sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        Ok(policy)
    }

    /// What it says about a tool.
    pub fn permission(&self, spec: &ToolSpec) -> Permission {
        self.exact
            .get(&spec.name)
            .copied()
            .or_else(|| {
                self.prefixes
                    .iter()
                    .find(|(prefix, _)| spec.name.starts_with(prefix))
                    .map(|&(_, permission)| permission)
            })
            .or_else(|| self.effects.get(spec.effect.as_str()).copied())
            .or(self.all)
            .unwrap_or(match spec.effect {
                Effect::Read | Effect::Change => Permission::Allow,
                Effect::Risk => Permission::Ask,
            })
    }
}

impl TryFrom<BTreeMap<String, Permission>> for Policy {
    type Error = PolicyError;

    fn try_from(rules: BTreeMap<String, Permission>) -> Result<Self, PolicyError> {
        Self::new(rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Permission::{Allow, Ask, Deny};

    fn spec(name: &str, effect: Effect) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: serde_json::json!({"type": "object"}),
            effect,
            idempotent: true,
        }
    }

    #[test]
    fn the_most_specific_rule_decides() {
        type Rules = &'static [(&'static str, Permission)];
        let cases: [(Rules, &str, Effect, Permission); 9] = [
            (&[], "get_state", Effect::Read, Allow),
            (&[], "turn_on", Effect::Change, Allow),
            (&[], "unlock", Effect::Risk, Ask),
            (&[("*", Deny)], "get_state", Effect::Read, Deny),
            (
                &[("*", Deny), ("@read", Allow)],
                "get_state",
                Effect::Read,
                Allow,
            ),
            (
                &[("@risk", Deny), ("unlock", Allow)],
                "unlock",
                Effect::Risk,
                Allow,
            ),
            (
                &[("get_*", Ask), ("get_st*", Deny)],
                "get_state",
                Effect::Read,
                Deny,
            ),
            (
                &[("get_*", Ask), ("get_state", Allow)],
                "get_state",
                Effect::Read,
                Allow,
            ),
            (&[("get_*", Deny)], "unlock", Effect::Risk, Ask),
        ];
        for (rules, name, effect, expected) in cases {
            let policy = Policy::new(rules.iter().copied()).unwrap();
            assert_eq!(
                policy.permission(&spec(name, effect)),
                expected,
                "{rules:?} {name}"
            );
        }
    }

    #[test]
    fn patterns_that_match_nothing_are_refused() {
        for pattern in ["", "a b", "*x", "a*b", "@write", "**", "ключ"] {
            assert!(Policy::new([(pattern, Allow)]).is_err(), "{pattern}");
        }
    }

    #[test]
    fn settings_become_a_policy() {
        let policy: Policy = toml::from_str("unlock = 'deny'\n'get_*' = 'ask'").unwrap();
        assert_eq!(policy.permission(&spec("unlock", Effect::Risk)), Deny);
        let error = toml::from_str::<Policy>("'a b' = 'deny'").unwrap_err();
        assert!(error.to_string().contains("a b"), "{error}");
        assert!(toml::from_str::<Policy>("unlock = 'maybe'").is_err());
    }
}
