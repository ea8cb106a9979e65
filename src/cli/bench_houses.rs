//! The houses that the benchmarks act in.

use super::error::Failure;
use super::input::read_text;
use super::world;
use crate::tool::Registry;
use std::collections::BTreeMap;
use std::path::Path;

/// The houses that ship.
const HOUSES: [(&str, &str); 5] = [
    ("dacha", include_str!("../../examples/houses/dacha.toml")),
    (
        "harbour",
        include_str!("../../examples/houses/harbour.toml"),
    ),
    ("loft", include_str!("../../examples/houses/loft.toml")),
    ("lou", include_str!("../../examples/houses/lou.toml")),
    ("maple", include_str!("../../examples/houses/maple.toml")),
];

/// The texts of the houses of these names.
///
/// # Errors
/// A house that is not there.
pub fn houses<'n>(
    folder: Option<&Path>,
    names: impl IntoIterator<Item = &'n str>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut houses = BTreeMap::new();
    for name in names {
        if houses.contains_key(name) {
            continue;
        }
        let text = match folder {
            Some(folder) => read_text(&folder.join(format!("{name}.toml")))?,
            None => HOUSES
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, text)| (*text).to_owned())
                .ok_or_else(|| {
                    Failure::input(format!("no house {name:?} ships"))
                        .hint("--houses names the folder of your own")
                })?,
        };
        houses.insert(name.to_owned(), text);
    }
    Ok(houses)
}

/// The tools over a fresh copy of a house.
///
/// # Errors
/// A house that is wrong, or a folder that cannot be written.
pub fn fresh_house(
    folder: &Path,
    houses: &BTreeMap<String, String>,
    house: &str,
) -> Result<Registry, String> {
    let text = houses.get(house).map_or("", String::as_str);
    let path = folder.join("house.toml");
    fs_err::write(&path, text).map_err(|error| error.to_string())?;
    let tools = world::home_tools(&path).map_err(|failure| failure.message)?;
    let mut registry = Registry::new();
    registry
        .register_all(tools)
        .map_err(|error| error.to_string())?;
    Ok(registry)
}
