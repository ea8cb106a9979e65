//! A task out of a seed: which orders there are, what is right at each step.

use crate::call::Call;
use crate::task::load::parse;
use crate::task::{Definition, LoadError};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::path::Path;

/// Orders of a task.
pub const ORDERS: usize = 10;

/// Steps of a task: five for an order.
pub const STEPS: usize = ORDERS * Kind::ALL.len();

/// The definition, but for its first order.
const DEFINITION: &str = include_str!("../../../benches/suites/steps.toml");

/// The five steps of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The order's number leads to all that is to be known of it.
    LookUp,
    /// Walking to its shelf.
    Walk,
    /// Picking its article.
    Pick,
    /// Packing it in its box.
    Pack,
    /// Shipping it to its city.
    Ship,
}

impl Kind {
    /// In the order in which they are done.
    pub const ALL: [Self; 5] = [Self::LookUp, Self::Walk, Self::Pick, Self::Pack, Self::Ship];

    /// The kind of a step, counted from 0.
    pub fn of(step: usize) -> Self {
        Self::ALL[step % Self::ALL.len()]
    }

    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::LookUp => "look up",
            Self::Walk => "walk",
            Self::Pick => "pick",
            Self::Pack => "pack",
            Self::Ship => "ship",
        }
    }

    /// The tool that does it.
    pub fn tool(self) -> &'static str {
        match self {
            Self::LookUp => "look_up_order",
            Self::Walk => "walk_to_shelf",
            Self::Pick => "pick_article",
            Self::Pack => "pack_in_box",
            Self::Ship => "ship_to_city",
        }
    }

    /// The tool's one argument.
    pub fn argument(self) -> &'static str {
        match self {
            Self::LookUp => "order",
            Self::Walk => "shelf",
            Self::Pick => "article",
            Self::Pack => "box",
            Self::Ship => "city",
        }
    }
}

/// An order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its number.
    pub number: String,
    /// What is ordered.
    pub article: String,
    /// Where it lies.
    pub shelf: String,
    /// Who wants it.
    pub customer: String,
    /// Where it goes.
    pub city: String,
    /// What it is packed in.
    pub size: String,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its name: `seed-number`.
    pub id: String,
    /// Its orders, in the order in which they are to be sent.
    pub orders: Vec<Order>,
    /// All that can be named at a step of each kind, in the order of [`Kind::ALL`].
    values: [Vec<String>; 5],
}

const ARTICLES: [&str; 28] = [
    "kettle",
    "umbrella",
    "lantern",
    "chess set",
    "rope",
    "toaster",
    "globe",
    "drum",
    "mirror",
    "ladder",
    "hammock",
    "teapot",
    "compass",
    "blanket",
    "basket",
    "clock",
    "kite",
    "anvil",
    "saddle",
    "vase",
    "telescope",
    "violin",
    "candle",
    "anchor",
    "puzzle",
    "helmet",
    "carpet",
    "whistle",
];
const CITIES: [&str; 20] = [
    "Oslo", "Lisbon", "Krakow", "Vienna", "Turin", "Ghent", "Riga", "Porto", "Basel", "Cork",
    "Malmo", "Bergen", "Tartu", "Graz", "Lyon", "Sofia", "Bilbao", "Utrecht", "Aarhus", "Dresden",
];
const CUSTOMERS: [&str; 16] = [
    "Lindgren", "Chen", "Okafor", "Rossi", "Novak", "Haddad", "Larsen", "Mendes", "Kim", "Weber",
    "Ivanova", "Silva", "Moreau", "Yilmaz", "Nagy", "Costa",
];
const SIZES: [&str; 6] = ["small", "medium", "large", "flat", "long", "cooled"];

impl Plan {
    /// The task of this number of a seed.
    pub fn new(seed: u64, number: usize) -> Self {
        let stream = u64::try_from(number).unwrap_or(u64::MAX);
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(stream);
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let shelves: Vec<String> = ["A", "B", "C", "D", "E", "F"]
            .iter()
            .flat_map(|row| (1..=9).map(move |place| format!("{row}{place}")))
            .collect();
        let mut numbers: Vec<String> = Vec::new();
        while numbers.len() < ORDERS + 6 {
            let number = random.random_range(1000..9999_u32).to_string();
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        let shelves = some(&mut random, shelves, 12);
        let articles = some(&mut random, owned(&ARTICLES), 14);
        let cities = some(&mut random, owned(&CITIES), 8);
        let customers: Vec<String> = some(&mut random, owned(&CUSTOMERS), ORDERS);
        let sizes: Vec<String> = owned(&SIZES);
        let mut one = |values: &[String]| values[random.random_range(0..values.len())].clone();
        let orders = numbers
            .iter()
            .zip(&articles)
            .zip(customers)
            .take(ORDERS)
            .map(|((number, article), customer)| Order {
                number: number.clone(),
                article: article.clone(),
                customer,
                shelf: one(&shelves),
                city: one(&cities),
                size: one(&sizes),
            })
            .collect();
        let mut values = [numbers, shelves, articles, sizes, cities];
        for values in &mut values {
            values.sort_unstable();
        }
        Self {
            id: format!("{seed}-{number}"),
            orders,
            values,
        }
    }

    /// All that can be named at a step of this kind.
    pub fn values(&self, kind: Kind) -> &[String] {
        &self.values[kind as usize]
    }

    /// The call that is right at a step, counted from 0; `None` after the last.
    pub fn right(&self, step: usize) -> Option<Call> {
        let order = self.orders.get(step / Kind::ALL.len())?;
        let kind = Kind::of(step);
        let value = match kind {
            Kind::LookUp => &order.number,
            Kind::Walk => &order.shelf,
            Kind::Pick => &order.article,
            Kind::Pack => &order.size,
            Kind::Ship => &order.city,
        };
        Some(Call::new(kind.tool(), [(kind.argument(), value.as_str())]))
    }

    /// What is asked for.
    pub fn request(&self) -> String {
        let first = self.orders.first().map_or("", |order| &order.number);
        format!(
            "Send ten orders, one after another. For each: look it up, walk to its shelf, pick its \
             article, pack it in its box, ship it to its city. Shipping says which order is next. \
             Begin with order {first}."
        )
    }

    /// The task's definition.
    ///
    /// # Errors
    /// None while the tests pass.
    pub fn definition(&self) -> Result<Definition, LoadError> {
        let path = Path::new("benches/suites/steps.toml");
        let mut definition = parse(DEFINITION, path, None)?.definition;
        if let Some(first) = self.orders.first() {
            let number = first.number.clone().into();
            definition.facts.insert("order".to_owned(), number);
        }
        Ok(definition)
    }
}

/// `count` of `values`, in any order.
fn some(random: &mut ChaCha8Rng, mut values: Vec<String>, count: usize) -> Vec<String> {
    let mut chosen = Vec::with_capacity(count);
    while chosen.len() < count && !values.is_empty() {
        chosen.push(values.swap_remove(random.random_range(0..values.len())));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_seed_and_a_number_make_a_task() {
        let mut seen = BTreeSet::new();
        for seed in 0..5 {
            for number in 0..5 {
                let plan = Plan::new(seed, number);
                assert_eq!(plan, Plan::new(seed, number));
                assert_eq!(plan.orders.len(), ORDERS);
                assert!(plan.right(STEPS - 1).is_some() && plan.right(STEPS).is_none());
                seen.insert(format!("{:?}", plan.orders));
            }
        }
        assert_eq!(seen.len(), 25);
    }

    #[test]
    fn what_is_right_can_be_named_and_was_said() {
        for seed in 0..100 {
            let plan = Plan::new(seed, 0);
            for step in 0..STEPS {
                let call = plan.right(step).unwrap();
                let kind = Kind::of(step);
                let value = call.arguments[kind.argument()].as_str().unwrap();
                assert!(plan.values(kind).iter().any(|known| known == value));
            }
        }
    }

    #[test]
    fn the_definition_has_no_fault_and_binds_nothing() {
        let plan = Plan::new(1, 0);
        let done = std::sync::Arc::default();
        let specs: Vec<_> =
            super::super::warehouse::tools(&std::sync::Arc::new(plan.clone()), &done)
                .iter()
                .map(|tool| std::sync::Arc::new(tool.spec().clone()))
                .collect();
        let definition = plan.definition().unwrap();
        assert_eq!(definition.faults(Some(&specs)), []);
        assert_eq!(definition.facts["order"], plan.orders[0].number.as_str());
        for state in definition.states.values() {
            assert!(state.bind.is_empty() && state.guard.is_empty());
            assert!(state.end || state.purpose.is_some());
        }
    }
}
