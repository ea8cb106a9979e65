//! `snaffle decide` as it is written.

use super::flags::{Deciding, SettingFlags};
use clap::ArgGroup;

/// `snaffle decide`.
#[derive(Debug, clap::Args)]
#[command(
    group = ArgGroup::new("form").required(true),
    after_help = "Options are weighed whole. --alpha subtracts that share of their score without the \
                  question; where it is not set, what was fitted for the model, else nothing."
)]
pub struct Decide {
    /// What is to be decided; `-` reads it from standard input
    pub question: String,
    /// What there is to choose from, with commas between
    #[arg(long, value_name = "A,B,…", group = "form", allow_hyphen_values = true)]
    pub options: Option<String>,
    /// An option that may have commas in it; repeated for each
    #[arg(long, value_name = "TEXT", group = "form", allow_hyphen_values = true)]
    pub option: Vec<String>,
    /// Decide between yes and no
    #[arg(long, group = "form")]
    pub yes_no: bool,
    /// Levels from the lowest to the highest, with commas between
    #[arg(
        long,
        value_name = "LOW,…,HIGH",
        group = "form",
        allow_hyphen_values = true
    )]
    pub levels: Option<String>,
    /// A level that may have commas in it; repeated for each, the lowest first
    #[arg(long, value_name = "TEXT", group = "form", allow_hyphen_values = true)]
    pub level: Vec<String>,
    /// Decide nothing (and exit with 6) where the likeliest is less likely than this, 0 to 1
    #[arg(long, value_name = "P", value_parser = probability, allow_negative_numbers = true)]
    pub at_least: Option<f64>,
    /// Settings.
    #[command(flatten)]
    pub settings: SettingFlags<Deciding>,
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (0.0..=1.0).contains(&number) => Ok(number),
        _ => Err("a probability is a number from 0 to 1".to_owned()),
    }
}
