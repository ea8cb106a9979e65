//! `snaffle decide`: a question, what there is to choose from, and how likely each of it is.

use super::args_decide::Decide;
use super::context::Context;
use super::engine::Engine;
use super::error::Failure;
use super::exit::Exit;
use super::input;
use super::interrupt::Interrupts;
use super::style::{FAINT, GOOD, STRONG, paint};
use crate::decide::{Choice, Decider, Level, Options};
use crate::trace::{sanitize, sanitize_line};
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::io::{self, Write};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Strength of the calibration where neither a setting nor the manifest has one.
const ALPHA: f64 = 0.0;

/// Columns of the longest bar.
const BAR: usize = 20;

/// Columns that an option has in the table.
const WIDEST: usize = 40;

/// Options that the table and an error show, the likeliest.
const SHOWN: usize = 12;

/// What the answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Choice,
    YesNo,
    Levels,
}

/// Runs it.
///
/// # Errors
/// A wrong input, a model that cannot be used, or that nothing is likely enough.
pub fn run(context: &mut Context, args: &Decide) -> Result<Exit, Failure> {
    let settings = context.settings(&args.settings.given)?;
    let (form, options) = options(args)?;
    let question = input::question(&args.question)?;
    let interrupts = Interrupts::install()?;
    let cancel = interrupts.begin();
    let mut engine = Engine::open(&settings, &ProgressBar::hidden())?;
    let alpha = settings.alpha.or(engine.alpha()).unwrap_or(ALPHA);
    let mut decider = Decider {
        generator: &mut engine.generator,
        alpha,
        cancel,
    };
    let choice = decider.choose(&question, &options)?;
    let decided = args.at_least.is_none_or(|p| choice.probability() >= p);
    let terminal = &mut context.terminal;
    if terminal.json {
        terminal.write_json(&as_json(&choice, form, decided, alpha))?;
    } else if !terminal.out.is_terminal() {
        // The answer is one of the person's own words: it goes out as it came in.
        if decided {
            writeln!(io::stdout().lock(), "{}", choice.option())?;
        }
    } else {
        if decided {
            writeln!(terminal.out, "{}", paint(STRONG, sanitize(choice.option())))?;
        }
        if !terminal.quiet {
            let columns = terminal.columns().unwrap_or(80);
            write!(terminal.out, "{}", table(&choice, form, columns))?;
        }
    }
    match args.at_least {
        Some(least) if !decided => Err(undecided(&choice, least)),
        _ => Ok(Exit::Success),
    }
}

fn options(args: &Decide) -> Result<(Form, Options), Failure> {
    let split = |list: &Option<String>, each: &[String]| match list {
        Some(list) => list.split(',').map(str::to_owned).collect(),
        None => each.to_vec(),
    };
    if args.yes_no {
        return Ok((Form::YesNo, Options::yes_no()));
    }
    let (form, texts) = if args.levels.is_some() || !args.level.is_empty() {
        (Form::Levels, split(&args.levels, &args.level))
    } else {
        (Form::Choice, split(&args.options, &args.option))
    };
    Ok((form, Options::new(texts)?))
}

/// Nothing is likely enough: what there is, in one line.
fn undecided(choice: &Choice, least: f64) -> Failure {
    let ranked = choice.ranked();
    let shown: Vec<String> = ranked
        .iter()
        .take(SHOWN)
        .map(|(text, probability)| format!("{text} {}", percent(*probability)))
        .collect();
    let more = match ranked.len().saturating_sub(SHOWN) {
        0 => String::new(),
        left => format!(", {left} more"),
    };
    // Rounded down: it must not read like what it does not reach.
    let message = format!(
        "nothing is decided: {:?} has {:.3}, less than {least}",
        choice.option(),
        (choice.probability() * 1000.0).floor() / 1000.0
    );
    Failure::new(Exit::Unfinished, message).hint(format!("{}{more}", shown.join(", ")))
}

fn as_json(choice: &Choice, form: Form, decided: bool, alpha: f64) -> Value {
    let options: Vec<Value> = choice
        .options
        .iter()
        .map(|(text, probability)| json!({ "option": text, "probability": probability }))
        .collect();
    let answer = match form {
        _ if !decided => Value::Null,
        Form::YesNo => (choice.taken == 0).into(),
        Form::Choice | Form::Levels => choice.option().into(),
    };
    let mut value = json!({
        "decided": decided,
        "answer": answer,
        "probability": choice.probability(),
        "options": options,
    });
    if form == Form::Levels {
        let level = Level::from(choice.clone());
        value["level"] = level.number.into();
        value["expected"] = level.expected.into();
    }
    let stats = &choice.stats;
    value["alpha"] = alpha.into();
    value["prompt_evaluated"] = stats.prompt_evaluated.into();
    value["prompt_reused"] = stats.prompt_reused.into();
    value["seconds"] = stats.total_time.as_secs_f64().into();
    value
}

/// The probabilities as bars: options the likeliest first, levels in their order.
fn table(choice: &Choice, form: Form, columns: usize) -> String {
    let rows: Vec<(String, f64)> = match form {
        Form::Levels => choice.options.clone(),
        Form::Choice | Form::YesNo => {
            let ranked = choice.ranked().into_iter();
            ranked.map(|(text, p)| (text.to_owned(), p)).collect()
        }
    };
    let best = sanitize_line(choice.option()).into_owned();
    // Margin, two spaces, ` 100%`.
    let room = columns.saturating_sub(2 + 2 + BAR + 1 + 4).clamp(8, WIDEST);
    let names: Vec<String> = rows
        .iter()
        .take(SHOWN)
        .map(|(text, _)| cut(&sanitize_line(text), room))
        .collect();
    let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let mut out = String::from("\n");
    for (name, (text, probability)) in names.iter().zip(&rows) {
        let style = if sanitize_line(text) == best {
            GOOD
        } else {
            FAINT
        };
        let gap = " ".repeat(width - name.width());
        let bar = bar(*probability);
        let rest = " ".repeat(BAR - bar.chars().count());
        let bar = paint(style, bar);
        let percent = percent(*probability);
        out.push_str(&format!("  {name}{gap}  {bar}{rest} {percent:>4}\n"));
    }
    if rows.len() > SHOWN {
        out.push_str(&format!("  … {} more\n", rows.len() - SHOWN));
    }
    if form == Form::Levels {
        let expected = Level::from(choice.clone()).expected;
        let line = format!(
            "expected: {expected:.2}, levels counted from 1 to {}",
            rows.len()
        );
        out.push_str(&format!("\n  {}\n", paint(FAINT, line)));
    }
    out
}

/// A bar of up to [`BAR`] columns, in halves.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a probability is between 0 and 1"
)]
fn bar(probability: f64) -> String {
    let halves = (probability * (2 * BAR) as f64).round() as usize;
    let halves = halves.min(2 * BAR);
    format!("{}{}", "█".repeat(halves / 2), "▌".repeat(halves % 2))
}

/// Never 0% or 100% of what is not quite that.
fn percent(probability: f64) -> String {
    if probability > 0.0 && probability < 0.01 {
        "<1%".to_owned()
    } else if probability > 0.99 && probability < 1.0 {
        ">99%".to_owned()
    } else {
        format!("{:.0}%", probability * 100.0)
    }
}

/// `text` in no more than `room` columns.
fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut width = 1;
    for c in text.chars() {
        width += c.width().unwrap_or(0);
        if width > room {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::choice;

    fn shown(options: &[(&str, f64)], taken: usize, form: Form, columns: usize) -> String {
        let choice = choice(options, taken);
        let table = table(&choice, form, columns);
        anstream::adapter::strip_str(&table).to_string()
    }

    #[test]
    fn probabilities_are_drawn() {
        let options = [
            ("кухня", 0.2),
            ("a\u{1b}[2J", 0.003),
            ("打开客厅的灯", 0.777),
            ("a text that has more words than there is room for", 0.02),
        ];
        insta::assert_snapshot!(shown(&options, 2, Form::Choice, 80));
        insta::assert_snapshot!(shown(&options, 2, Form::Choice, 50));
        let levels = [("low", 0.25), ("medium", 0.5), ("high", 0.25)];
        insta::assert_snapshot!(shown(&levels, 1, Form::Levels, 80));
        let many: Vec<(String, f64)> = (0..40).map(|n| (n.to_string(), 0.025)).collect();
        let many: Vec<(&str, f64)> = many.iter().map(|(t, p)| (t.as_str(), *p)).collect();
        let text = shown(&many, 0, Form::Choice, 80);
        assert!(text.ends_with("\n  … 28 more\n"), "{text}");
    }

    #[test]
    fn machines_get_the_answer_in_its_type() {
        let (yes, no) = (("yes", 0.25), ("no", 0.75));
        for (form, decided, answer) in [
            (Form::YesNo, true, json!(false)),
            (Form::YesNo, false, Value::Null),
            (Form::Choice, true, json!("no")),
            (Form::Levels, true, json!("no")),
        ] {
            let value = as_json(&choice(&[yes, no], 1), form, decided, 0.5);
            assert_eq!(value["answer"], answer);
            assert_eq!(value["options"][1]["probability"], 0.75);
            let expected = (form == Form::Levels).then_some(1.75);
            assert_eq!(value["expected"].as_f64(), expected);
        }
    }

    #[test]
    fn percentages_do_not_round_doubt_away() {
        for (probability, expected) in [
            (0.0, "0%"),
            (0.004, "<1%"),
            (0.5, "50%"),
            (0.996, ">99%"),
            (1.0, "100%"),
        ] {
            assert_eq!(percent(probability), expected);
        }
    }
}
