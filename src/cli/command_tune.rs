//! `snaffle model tune`: fits α, the weight of the blanked prompt in calibrated choice, or how much
//! likelier a call is taken to be, to a suite of requests, and says what that gains.
//!
//! All values are tried on a request before the next one comes: its prompt is evaluated once. No
//! file is changed, and a suite that the benchmark measures is refused: a figure must not be
//! measured on what it was fitted to.

use super::args_bench::{Fitted, Runs, Tune};
use super::bench_houses::{fresh_house, houses};
use super::bench_requests::{pick, read_suite};
use super::bench_run::{Attempt, Suite};
use super::context::Context;
use super::error::Failure;
use super::exit::Exit;
use super::style::{FAINT, STRONG, paint};
use crate::agent::{Clock, Settings as AgentSettings, SystemClock};
use crate::bench::episode::Player;
use crate::bench::home::{Graded, grade};
use crate::bench::interval::Share;
use crate::bench::mcnemar::Paired;
use crate::bench::overlap::{plain, shared};
use crate::bench::record::shown;
use crate::bench::suite::Request;
use crate::bench::tune::{Answered, Fit, SIGNIFICANT, TuneError, fit};
use crate::trace::sanitize_line;
use serde_json::{Value, json};
use siphasher::sip::SipHasher13;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::slice::from_ref;

/// Runs it.
///
/// # Errors
/// A suite that the benchmark measures, is wrong, or is too small; a model that cannot be used.
pub fn run(context: &mut Context, args: &Tune) -> Result<Exit, Failure> {
    let mut settings = context.settings(&args.settings.given)?;
    settings.model.clone_from(&args.model);
    let all = read_suite(Some(&args.suite))?;
    refuse_measured(&args.suite, &all, &read_suite(None)?)?;
    let houses = houses(
        args.houses.as_deref(),
        all.iter().map(|request| request.house.as_str()),
    )?;
    let name = format!("tune {:016x}", fingerprint(&all, &houses));
    let requests = pick(all, None, args.limit)?;
    let grid = args.fit.grid(&args.grid)?;
    // What is too little to be dealt is not run first.
    check_size(&requests, args)?;
    let runs = Runs {
        output: args.output.clone(),
        no_baseline: true,
        repeat: 1,
        resume: args.resume.clone(),
    };
    let mut suite = Suite::open(context, &name, &settings, &runs, &[], 0, |agent| {
        // Nobody is there, and everything is to be tried.
        agent.ask_below = None;
        agent.grounding = false;
        agent.dry_run = false;
    })?;
    let what = args.fit;
    let default = what.of(&suite.agent);
    let candidates = candidates(&grid, default);
    suite.asks(requests.len() * candidates.len());
    let cancel = suite.cancel.clone();
    let folder = tempfile::tempdir()?;
    let mut results: Vec<Vec<Graded>> = Vec::new();
    suite.each(&mut |measuring, attempt| {
        let Attempt {
            generator,
            mut examples,
            agent,
            ..
        } = attempt;
        for request in &requests {
            let mut by_weight = Vec::with_capacity(candidates.len());
            for candidate in &candidates {
                let mut agent = agent.clone();
                what.set(&mut agent, *candidate);
                let mut player = Player {
                    generator: &mut *generator,
                    examples: &mut examples,
                    clock: &|| -> Box<dyn Clock> { Box::new(SystemClock::start()) },
                    settings: agent,
                    cancel: cancel.clone(),
                };
                let mut fresh =
                    |request: &Request| fresh_house(folder.path(), &houses, &request.house);
                let mut one = |request: &Request| {
                    grade(&mut player, &mut fresh, request)
                        .map_err(|error| Failure::new(Exit::Internal, error.to_string()))
                };
                by_weight.extend(measuring.run(
                    &what.label(*candidate),
                    0,
                    from_ref(request),
                    |request| &request.id,
                    &mut one,
                )?);
            }
            if by_weight.len() < candidates.len() {
                break;
            }
            results.push(by_weight);
        }
        Ok(())
    })?;
    if cancel.is_cancelled() {
        suite.abandon();
        return Err(
            Failure::new(Exit::Cancelled, "cancelled; nothing was fitted")
                .hint("with --resume FILE, the same command goes on where it was"),
        );
    }
    let seed = suite.agent.sampling.seed;
    let tried = Tried {
        requests: &requests,
        results: &results,
        candidates: &candidates,
    };
    let tuned = Tuned {
        what,
        fit: fit(&tried.answered(&grid, default), args.folds as usize, seed)
            .map_err(|error| too_small(&error))?,
        grid: &grid,
        default,
        requests: requests.len(),
        seconds: results.iter().flatten().map(|g| g.spent.seconds).sum(),
    };
    let mut value = suite.head();
    tuned.add_to(&mut value);
    let text = tuned.text(&suite.engine.name());
    suite.finish(context, &value, &text)
}

/// A suite that shares a request with the one that `bench home` measures is none to fit anything
/// to.
fn refuse_measured(path: &Path, all: &[Request], measured: &[Request]) -> Result<(), Failure> {
    let shared = shared(all, measured);
    let Some(first) = shared.first() else {
        return Ok(());
    };
    let message = format!(
        "{}: {} of {} requests {} of the suite that `bench home` measures, the first one {} \
         (\"{}\")",
        path.display(),
        shared.len(),
        all.len(),
        if shared.len() == 1 { "is" } else { "are" },
        sanitize_line(&first.id),
        sanitize_line(&crate::call::json::shortened(&first.request, 60)),
    );
    Err(Failure::input(message)
        .hint("a weight must not be fitted to what it is measured on: write requests of your own"))
}

/// What the results of a request depend on, beside the settings.
fn fingerprint(all: &[Request], houses: &BTreeMap<String, String>) -> u64 {
    let mut hasher = SipHasher13::new();
    for request in all {
        (&request.id, &request.house, &request.request).hash(&mut hasher);
        format!("{:?}", request.right).hash(&mut hasher);
    }
    houses.hash(&mut hasher);
    hasher.finish()
}

fn check_size(requests: &[Request], args: &Tune) -> Result<(), Failure> {
    let answered: Vec<Answered> = requests
        .iter()
        .map(|request| answered(request, &[], false))
        .collect();
    fit(&answered, args.folds as usize, 0)
        .map(|_| ())
        .map_err(|error| too_small(&error))
}

fn too_small(error: &TuneError) -> Failure {
    Failure::input(error.to_string()).hint("add requests, or deal them to fewer --folds")
}

impl Fitted {
    /// What is tried, in the order of how much it interferes, none twice, with 0.
    fn grid(self, given: &[f64]) -> Result<Vec<f64>, Failure> {
        let usual: &[f64] = match self {
            Self::Alpha => &[0.25, 0.5, 0.75, 1.0],
            Self::CallBias => &[-4.0, -2.0, -1.0, 1.0, 2.0, 4.0],
        };
        let mut grid = if given.is_empty() { usual } else { given }.to_vec();
        let wrong = |alpha: &&f64| !(0.0..=1.0).contains(*alpha);
        if let (Self::Alpha, Some(wrong)) = (self, grid.iter().find(wrong)) {
            let message = format!("--grid: a weight is between 0 and 1, not {wrong}");
            return Err(Failure::new(Exit::Usage, message));
        }
        grid.push(0.0);
        // −0 is 0.
        grid.iter_mut().for_each(|value| *value += 0.0);
        grid.sort_by(|a, b| a.abs().total_cmp(&b.abs()).then(a.total_cmp(b)));
        grid.dedup();
        Ok(grid)
    }

    /// What holds now.
    fn of(self, agent: &AgentSettings) -> Option<f64> {
        match self {
            Self::Alpha => agent.alpha,
            Self::CallBias => agent.call_bias,
        }
    }

    fn set(self, agent: &mut AgentSettings, value: Option<f64>) {
        match self {
            Self::Alpha => agent.alpha = value,
            Self::CallBias => agent.call_bias = value,
        }
    }

    /// As a setting.
    fn name(self) -> &'static str {
        match self {
            Self::Alpha => "alpha",
            Self::CallBias => "call_bias",
        }
    }

    /// As people write it.
    fn sign(self) -> &'static str {
        match self {
            Self::Alpha => "α",
            Self::CallBias => "bias",
        }
    }

    fn label(self, value: Option<f64>) -> String {
        match value {
            Some(value) => format!("{} {value}", self.sign()),
            None => "token by token".to_owned(),
        }
    }
}

/// All that is tried: the grid, and what holds without any of them where that is another.
fn candidates(grid: &[f64], default: Option<f64>) -> Vec<Option<f64>> {
    let mut candidates: Vec<Option<f64>> = grid.iter().copied().map(Some).collect();
    if !candidates.contains(&default) {
        candidates.insert(0, default);
    }
    candidates
}

fn answered(request: &Request, right: &[bool], default: bool) -> Answered {
    Answered {
        group: format!("{} {}", request.lang, request.kind.name()),
        plain: plain(&request.request),
        right: right.to_vec(),
        default,
    }
}

/// What came of it.
struct Tuned<'a> {
    what: Fitted,
    fit: Fit,
    grid: &'a [f64],
    default: Option<f64>,
    requests: usize,
    seconds: f64,
}

/// What was tried: for each request, a result with each candidate.
struct Tried<'a> {
    requests: &'a [Request],
    results: &'a [Vec<Graded>],
    candidates: &'a [Option<f64>],
}

impl Tried<'_> {
    /// What was right with each weight of the grid, and by default.
    fn answered(&self, grid: &[f64], default: Option<f64>) -> Vec<Answered> {
        let right = |graded: &[Graded], alpha: Option<f64>| {
            let at = self.candidates.iter().position(|known| *known == alpha);
            at.and_then(|at| graded.get(at)).is_some_and(|g| g.right)
        };
        self.requests
            .iter()
            .zip(self.results)
            .map(|(request, graded)| {
                let with = |alpha: &f64| right(graded, Some(*alpha));
                let by_weight: Vec<bool> = grid.iter().map(with).collect();
                answered(request, &by_weight, right(graded, default))
            })
            .collect()
    }
}

impl Tuned<'_> {
    fn value(&self, at: usize) -> f64 {
        self.grid.get(at).copied().unwrap_or_default()
    }

    /// The line for a manifest or a settings file.
    fn line(&self) -> String {
        format!("{} = {}", self.what.name(), self.value(self.fit.best))
    }

    /// Adds what was found to the report.
    fn add_to(&self, value: &mut Value) {
        let fit = &self.fit;
        let name = self.what.name();
        let share = |share: Share| {
            let (low, high) = share.interval();
            json!({ "right": share.right, "of": share.of, "rate": share.rate(),
                    "low": low, "high": high })
        };
        let gained = |paired: Paired| {
            let p_value = paired.p_value();
            json!({ "better": paired.first, "worse": paired.second, "p_value": p_value,
                    "beyond_chance": p_value < SIGNIFICANT })
        };
        let weights: Vec<Value> = self
            .grid
            .iter()
            .zip(&fit.shares)
            .map(|(value, of)| json!({ name: value, "share": share(*of) }))
            .collect();
        let chosen: Vec<f64> = fit.chosen.iter().map(|at| self.value(*at)).collect();
        value["requests"] = self.requests.into();
        value["folds"] = chosen.len().into();
        value["default"] = json!({ name: self.default, "share": share(fit.default) });
        value["weights"] = weights.into();
        value["fitted"] = self.value(fit.best).into();
        value[format!("fold_{name}s")] = json!(chosen);
        value["cross_validated"] = share(fit.cross_validated);
        value["against_default"] = gained(fit.against_default);
        value["against_zero"] = gained(fit.against_first);
        value["seconds"] = self.seconds.into();
        value["line"] = self.line().into();
    }

    /// What a person reads.
    fn text(&self, model: &str) -> String {
        let fit = &self.fit;
        let mut text = String::new();
        let _ = writeln!(text, "{:<28}{:>24}", "right, first attempt", model);
        let mut row = |name: &str, share: Share, note: &str| {
            let _ = writeln!(text, "{name:<28}{:>24}{}", shown(share), paint(FAINT, note));
        };
        if !self.grid.iter().any(|value| Some(*value) == self.default) {
            row(
                &self.what.label(self.default),
                fit.default,
                "  as it is now",
            );
        }
        for (at, share) in fit.shares.iter().enumerate() {
            let value = Some(self.value(at));
            let note = match (at == fit.best, value == self.default) {
                (true, true) => "  fitted; as it is now",
                (true, false) => "  fitted",
                (false, true) => "  as it is now",
                (false, false) => "",
            };
            row(&self.what.label(value), *share, note);
        }
        row("fitted, cross-validated", fit.cross_validated, "");
        let chosen: Vec<String> = fit
            .chosen
            .iter()
            .map(|at| self.value(*at).to_string())
            .collect();
        let _ = writeln!(
            text,
            "\n{} folds, each answered with the {} that serves the others best: {}",
            chosen.len(),
            self.what.sign(),
            chosen.join(", ")
        );
        for (name, paired) in [
            (&"than now".to_owned(), fit.against_default),
            (
                &format!("than with {} 0", self.what.sign()),
                fit.against_first,
            ),
        ] {
            let _ = writeln!(text, "{}", sentence(name, paired));
        }
        let _ = writeln!(text, "\n{}", paint(STRONG, self.line()));
        let _ = writeln!(
            text,
            "goes into the model's entry of models.toml, or into snaffle.toml; no file was changed."
        );
        let _ = writeln!(text, "{}", self.verdict());
        text
    }

    /// Whether what was fitted is worth setting.
    fn verdict(&self) -> &'static str {
        let gained = self.fit.against_default;
        if Some(self.value(self.fit.best)) == self.default {
            "It is what holds now."
        } else if gained.p_value() >= SIGNIFICANT {
            "It differs from what holds now by no more than chance: nothing speaks for it."
        } else if gained.first > gained.second {
            "What it gains over what holds now is beyond chance."
        } else {
            "It is worse than what holds now, beyond chance."
        }
    }
}

/// `better than now at 5 requests, worse at 2: p = 0.45, no more than chance`
fn sentence(than: &str, paired: Paired) -> String {
    let p_value = paired.p_value();
    let verdict = if p_value < SIGNIFICANT {
        "beyond chance"
    } else {
        "no more than chance"
    };
    format!(
        "better {than} at {} requests, worse at {}: p {}, {verdict}",
        paired.first,
        paired.second,
        if p_value < 0.001 {
            "< 0.001".to_owned()
        } else {
            format!("= {p_value:.3}")
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fit of two weights, of which the second is right at `right` of 40 requests, the default
    /// at 20.
    fn tuned(right: usize, default: Option<f64>) -> (Fit, Option<f64>) {
        let answered: Vec<Answered> = (0..40)
            .map(|at| Answered {
                group: "en direct".to_owned(),
                plain: at.to_string(),
                right: vec![at < 10, at < right],
                default: at < 20,
            })
            .collect();
        (fit(&answered, 4, 0).unwrap(), default)
    }

    #[test]
    fn what_is_said_of_a_gain_is_what_the_test_says() {
        for (right, default, says) in [
            (22, None, "no more than chance: nothing speaks for it"),
            (35, None, "is beyond chance"),
            (11, None, "worse than what holds now"),
            (35, Some(0.5), "what holds now."),
        ] {
            let (fit, default) = tuned(right, default);
            let grid = [0.0, 0.5];
            let tuned = Tuned {
                what: Fitted::Alpha,
                fit,
                grid: &grid,
                default,
                requests: 40,
                seconds: 1.0,
            };
            let text = anstream::adapter::strip_str(&tuned.text("tiny")).to_string();
            assert!(text.contains(says), "{text}");
            assert!(text.contains("\nalpha = 0.5\n"), "{text}");
            assert!(
                text.lines().all(|line| line.chars().count() <= 100),
                "{text}"
            );
        }
    }

    #[test]
    fn weights_are_tried_once_each_and_what_holds_now_with_them() {
        let tried = |what: Fitted, given: &[f64]| what.grid(given).unwrap();
        assert_eq!(
            tried(Fitted::Alpha, &[1.0, 0.5, 0.5, -0.0]),
            [0.0, 0.5, 1.0]
        );
        assert_eq!(tried(Fitted::Alpha, &[]), [0.0, 0.25, 0.5, 0.75, 1.0]);
        let biases = tried(Fitted::CallBias, &[2.0, -1.0, 1.0, -2.0]);
        assert_eq!(biases, [0.0, -1.0, 1.0, -2.0, 2.0]);
        assert!(Fitted::Alpha.grid(&[0.5, -0.5]).is_err());
        let grid = [0.0, 0.5];
        assert_eq!(candidates(&grid, Some(0.5)), [Some(0.0), Some(0.5)]);
        assert_eq!(candidates(&grid, None), [None, Some(0.0), Some(0.5)]);
    }
}
