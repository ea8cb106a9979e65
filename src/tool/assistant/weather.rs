//! `get_weather`: what a local file says of the cities in it; the file may change meanwhile.

use crate::call::{CheckedCall, Domains, Effect, ToolSpec};
use crate::tool::text::read_file;
use crate::tool::{Outcome, Tool, ToolError, text_argument};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io;
use std::path::PathBuf;

/// Tells the weather of a city.
#[derive(Debug)]
pub struct GetWeather {
    path: PathBuf,
    spec: ToolSpec,
}

/// What can be wrong with a weather file.
#[derive(Debug, thiserror::Error)]
pub enum WeatherError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// It is not TOML (or JSON, where the file is called so) of this form.
    #[error("{}:{line}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
}

/// `[[city]]` tables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    city: Vec<City>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct City {
    #[serde(rename(serialize = "city"))]
    name: String,
    /// °C.
    temperature: f64,
    /// In words: "light rain".
    sky: String,
    /// Percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    humidity: Option<u8>,
    /// km/h.
    #[serde(skip_serializing_if = "Option::is_none")]
    wind: Option<f64>,
}

impl GetWeather {
    /// The weather in the file at `path`, which is read once to see that it is one.
    ///
    /// # Errors
    /// [`WeatherError`].
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, WeatherError> {
        let tool = Self {
            path: path.into(),
            spec: ToolSpec {
                name: "get_weather".into(),
                description: "Tell the weather in a city.".into(),
                parameters: json!({
                    "type": "object",
                    "properties": {"city": {"type": "string"}},
                    "required": ["city"],
                    "additionalProperties": false,
                }),
                effect: Effect::Read,
                idempotent: true,
            },
        };
        tool.cities()?;
        Ok(tool)
    }

    fn cities(&self) -> Result<Vec<City>, WeatherError> {
        let text = read_file(&self.path)?;
        let invalid = |line: usize, message: String| WeatherError::Invalid {
            path: self.path.clone(),
            line,
            message: message.trim().replace('\n', ", "),
        };
        let report: Report = if self.path.extension().is_some_and(|ext| ext == "json") {
            serde_json::from_str(&text).map_err(|e| invalid(e.line(), e.to_string()))?
        } else {
            toml::from_str(&text).map_err(|e| {
                let start = e.span().map_or(0, |span| span.start);
                let before = text.as_bytes().iter().take(start);
                let line = before.filter(|&&byte| byte == b'\n').count() + 1;
                invalid(line, e.message().to_owned())
            })?
        };
        Ok(report.city)
    }
}

impl Tool for GetWeather {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn domains(&self) -> Result<Domains, ToolError> {
        let mut names: Vec<Value> = Vec::new();
        for city in self.cities()? {
            let name = Value::from(city.name);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(Domains::from([("city".to_owned(), names)]))
    }

    fn run(&mut self, call: &CheckedCall) -> Result<Outcome, ToolError> {
        let name = text_argument(call, "city")?;
        let city = self.cities()?.into_iter().find(|city| city.name == name);
        let city = city.ok_or_else(|| ToolError::new(format!("nothing is known of {name}")))?;
        let result = serde_json::to_value(city).map_err(|e| ToolError::new(e.to_string()))?;
        Ok(Outcome {
            result,
            changes: Vec::new(),
        })
    }
}

impl From<WeatherError> for ToolError {
    fn from(error: WeatherError) -> Self {
        Self::new(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Call, FailureKind, Policy, Verdict};
    use crate::tool::Registry;

    #[test]
    fn the_file_says_the_weather() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            (
                "w.toml",
                "[[city]]\nname = \"上海\"\ntemperature = 21.5\nsky = \"clear\"\nwind = 9\n",
            ),
            (
                "w.json",
                r#"{"city": [{"name": "上海", "temperature": 21.5, "sky": "clear", "wind": 9}]}"#,
            ),
        ];
        for (name, text) in files {
            let path = folder.path().join(name);
            fs_err::write(&path, text).unwrap();
            let mut registry = Registry::new();
            registry
                .register(Box::new(GetWeather::new(&path).unwrap()))
                .unwrap();
            let moves = registry.moves(&Policy::default()).unwrap();
            let unknown = moves.check(Call::new("get_weather", [("city", "Atlantis")]));
            assert_eq!(unknown.unwrap_err().kind, FailureKind::OutsideDomain);
            let Ok(Verdict::Checked(call)) =
                moves.check(Call::new("get_weather", [("city", "上海")]))
            else {
                panic!("not checked");
            };
            let expected =
                json!({"city": "上海", "temperature": 21.5, "sky": "clear", "wind": 9.0});
            assert_eq!(registry.run(&call).unwrap().result, expected);
            fs_err::write(&path, "").unwrap();
            assert!(registry.run(&call).is_err());
        }
    }

    #[test]
    fn a_wrong_file_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.toml");
        fs_err::write(&path, "[[city]]\nname = \"A\"\nsky = 5\n").unwrap();
        let error = GetWeather::new(&path).unwrap_err().to_string();
        assert!(error.contains("w.toml:3: "), "{error}");
        let missing = GetWeather::new(folder.path().join("none.toml")).unwrap_err();
        assert!(missing.to_string().contains("none.toml"));
    }
}
