//! Several runs compared in one HTML page that stands alone: no script, no font, no picture from
//! elsewhere. All text that comes from results is escaped.

mod plot;
mod reliability;
mod steps;
mod text;

use super::interval::Share;
use super::results::ResultRun;
use plot::{Bar, Dot};
use reliability::Calibration;
use std::fmt::Write as _;
use text::escaped;

/// The page for these runs; `title` is its heading.
pub fn page(title: &str, runs: &[ResultRun]) -> String {
    let labels = labels(runs);
    let suites = suites(runs);
    let mut body = String::new();
    overview(&mut body, runs, &labels, &suites);
    for suite in &suites {
        let members: Vec<Member<'_>> = runs
            .iter()
            .zip(&labels)
            .enumerate()
            .filter(|(_, (run, _))| run.suite == *suite)
            .map(|(number, (run, label))| Member { number, run, label })
            .collect();
        let _ = write!(
            body,
            "<section><h2>{}</h2>{}{}{}{}{}</section>",
            escaped(suite),
            groups_table(&members),
            over_steps(&members),
            pairs_table(&members),
            costs(&members),
            calibrations(&members),
        );
    }
    let title = escaped(title);
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title}</title><style>{STYLE}</style></head><body><main>\
         <h1>{title}</h1>{body}\
         <footer>Snaffle {version}. Intervals are 95% Wilson intervals; paired tests are McNemar's \
         exact test, two-sided, on the requests that both runs have; p* is p corrected by Holm's \
         method over the pairs of the table.</footer></main></body></html>\n"
    )
}

/// A run of a suite: its number among all runs gives its colour.
struct Member<'r> {
    number: usize,
    run: &'r ResultRun,
    label: &'r str,
}

/// A colour class; chance is grey.
fn colour(number: usize, run: &ResultRun) -> String {
    if run.is_baseline() {
        "chance".to_owned()
    } else {
        format!("c{}", number % 6)
    }
}

/// Names that tell the runs of a suite apart: with the file's name where two are alike.
fn labels(runs: &[ResultRun]) -> Vec<String> {
    let alike = |one: &ResultRun, label: &str| {
        let same = |run: &&ResultRun| run.suite == one.suite && run.label() == label;
        runs.iter().filter(same).count() > 1
    };
    runs.iter()
        .map(|run| {
            let label = run.label();
            if alike(run, &label) {
                format!("{label} ({})", run.file)
            } else {
                label
            }
        })
        .collect()
}

fn suites(runs: &[ResultRun]) -> Vec<String> {
    let mut suites: Vec<String> = Vec::new();
    for run in runs {
        if !suites.contains(&run.suite) {
            suites.push(run.suite.clone());
        }
    }
    suites
}

fn overview(body: &mut String, runs: &[ResultRun], labels: &[String], suites: &[String]) {
    let mut dots = Vec::new();
    for suite in suites {
        for (number, (run, label)) in runs.iter().zip(labels).enumerate() {
            if run.suite == *suite {
                dots.push(Dot {
                    group: suite,
                    label,
                    class: colour(number, run),
                    share: run.share(|_| true),
                });
            }
        }
    }
    let _ = write!(
        body,
        "<section><h2>Right at the first attempt</h2><figure>{}<figcaption>Share of requests, with \
         its interval. Grey: random logits under the same grammar.</figcaption></figure></section>",
        plot::dots(&dots)
    );
}

/// A table with a row a group and a column a run.
fn groups_table(members: &[Member<'_>]) -> String {
    let mut groups: Vec<&str> = Vec::new();
    for item in members.iter().flat_map(|member| &member.run.items) {
        if !groups.contains(&item.group.as_str()) {
            groups.push(&item.group);
        }
    }
    let mut html = String::from("<div class=\"scroll\"><table><thead><tr><th>right</th>");
    for member in members {
        let class = colour(member.number, member.run);
        let _ = write!(
            html,
            "<th class=\"n\"><i class=\"{class}\"></i>{}</th>",
            escaped(member.label)
        );
    }
    html.push_str("</tr></thead><tbody>");
    let mut row = |name: &str, class: &str, of: &dyn Fn(&ResultRun) -> Share| {
        let _ = write!(html, "<tr{class}><th>{}</th>", escaped(name));
        for member in members {
            let _ = write!(html, "<td class=\"n\">{}</td>", share_cell(of(member.run)));
        }
        html.push_str("</tr>");
    };
    for group in &groups {
        row(group, "", &|run| run.share(|item| item.group == **group));
    }
    row("all", " class=\"sum\"", &|run| run.share(|_| true));
    html.push_str("</tbody></table></div>");
    html
}

fn share_cell(share: Share) -> String {
    if share.of == 0 {
        return "–".to_owned();
    }
    let (low, high) = share.interval();
    format!(
        "<b>{:.1}%</b> <small>{:.0}–{:.0} · {}/{}</small>",
        share.rate() * 100.0,
        low * 100.0,
        high * 100.0,
        share.right,
        share.of
    )
}

/// Success over the steps of tasks, where the runs have any.
fn over_steps(members: &[Member<'_>]) -> String {
    let lines: Vec<steps::Line<'_>> = members
        .iter()
        .filter_map(|member| {
            let class = colour(member.number, member.run);
            steps::Line::of(member.label, class, member.run)
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "<h3>Over steps</h3><figure>{}<figcaption>Share of steps that are right at the first \
         attempt, in blocks of {} steps, with its interval.</figcaption></figure>",
        steps::drawn(&lines),
        steps::BLOCK
    )
}

/// Every two runs on the requests that both have.
fn pairs_table(members: &[Member<'_>]) -> String {
    let mut pairs = Vec::new();
    for (at, one) in members.iter().enumerate() {
        for other in members.iter().skip(at + 1) {
            let paired = one.run.paired(other.run);
            if paired.total() > 0 {
                pairs.push((one, other, paired));
            }
        }
    }
    if pairs.is_empty() {
        return String::new();
    }
    let corrected = holm(
        &pairs
            .iter()
            .map(|(_, _, p)| p.p_value())
            .collect::<Vec<_>>(),
    );
    let mut html = String::from(
        "<h3>Paired</h3><div class=\"scroll\"><table><thead><tr><th>A</th><th>B</th>\
         <th class=\"n\">requests</th><th class=\"n\">both</th><th class=\"n\">only A</th>\
         <th class=\"n\">only B</th><th class=\"n\">neither</th><th class=\"n\">A − B</th>\
         <th class=\"n\">p</th><th class=\"n\">p*</th></tr></thead><tbody>",
    );
    for ((one, other, paired), corrected) in pairs.iter().zip(corrected) {
        let total = paired.total() as f64;
        let difference = (paired.first as f64 - paired.second as f64) / total * 100.0;
        let _ = write!(
            html,
            "<tr><th>{}</th><th>{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\"><b>{difference:+.1}</b></td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td></tr>",
            escaped(one.label),
            escaped(other.label),
            paired.total(),
            paired.both,
            paired.first,
            paired.second,
            paired.neither,
            probability(paired.p_value()),
            probability(corrected),
        );
    }
    html.push_str("</tbody></table></div>");
    html
}

/// S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
/// Statistics 6 (1979).
fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut corrected = vec![1.0; p_values.len()];
    let mut least: f64 = 0.0;
    for (rank, &at) in order.iter().enumerate() {
        least = least
            .max(p_values[at] * (p_values.len() - rank) as f64)
            .min(1.0);
        corrected[at] = least;
    }
    corrected
}

fn probability(p: f64) -> String {
    if p < 0.0001 {
        "&lt; 0.0001".to_owned()
    } else {
        format!("{p:.4}")
    }
}

/// Tokens and seconds for each call.
fn costs(members: &[Member<'_>]) -> String {
    let bars = |figure: &dyn Fn(&ResultRun) -> Option<f64>| -> Vec<Bar<'_>> {
        members
            .iter()
            .filter_map(|member| {
                Some(Bar {
                    label: member.label,
                    class: colour(member.number, member.run),
                    value: figure(member.run)?,
                })
            })
            .collect()
    };
    let tokens = bars(&|run| run.per_call(|item| item.tokens));
    let seconds = bars(&|run| run.per_call(|item| item.seconds));
    if tokens.is_empty() && seconds.is_empty() {
        return String::new();
    }
    format!(
        "<h3>Cost of a call</h3><div class=\"pair\"><figure>{}<figcaption>Tokens written, forced \
         ones included</figcaption></figure><figure>{}<figcaption>Seconds, evaluation of the prompt \
         included</figcaption></figure></div>",
        plot::bars(&tokens),
        plot::bars(&seconds)
    )
}

/// Reliability diagrams of the runs that state confidences.
fn calibrations(members: &[Member<'_>]) -> String {
    let mut figures = String::new();
    for member in members {
        let stated: Vec<(f64, bool)> = member
            .run
            .items
            .iter()
            .filter_map(|item| Some((item.confidence?, item.right)))
            .collect();
        if stated.is_empty() {
            continue;
        }
        let calibration = Calibration::of(&stated);
        let _ = write!(
            figures,
            "<figure>{}<figcaption>{}: expected calibration error {:.3}, Brier score {:.3}, {} \
             requests</figcaption></figure>",
            reliability::diagram(&calibration, &colour(member.number, member.run)),
            escaped(member.label),
            calibration.error,
            calibration.brier,
            stated.len(),
        );
    }
    if figures.is_empty() {
        return figures;
    }
    format!("<h3>Reliability</h3><div class=\"grid\">{figures}</div>")
}

const STYLE: &str = include_str!("style.css");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::read;
    use serde_json::json;

    fn runs() -> Vec<ResultRun> {
        let requests = |rights: [bool; 4]| {
            rights
                .iter()
                .enumerate()
                .map(|(at, right)| {
                    json!({"id": at.to_string(), "group": "<b>g", "right": right, "calls": [1],
                           "forced": 4, "chosen": 2, "seconds": 0.25, "confidence": 0.9})
                })
                .collect::<Vec<_>>()
        };
        let file = json!({"suite": "s&t", "reports": [
            {"model": "<script>alert(1)</script>", "requests": requests([true, true, true, false])},
            {"model": "random logits", "requests": requests([false, false, true, false])},
        ]});
        let mut runs = read("one", &file.to_string()).unwrap();
        runs.extend(read("two\"", &file.to_string()).unwrap());
        runs
    }

    #[test]
    fn a_page_stands_alone_and_escapes_what_it_shows() {
        let page = page("A & B", &runs());
        for part in [
            "<title>A &amp; B</title>",
            "<h2>s&amp;t</h2>",
            "&lt;script&gt;alert(1)&lt;/script&gt; (one)",
            "random logits (two&quot;)",
            "<th>&lt;b&gt;g</th>",
            "<b>75.0%</b> <small>30–95 · 3/4</small>",
            "<b>+50.0</b></td><td class=\"n\">0.5000</td>",
            "expected calibration error 0.150",
        ] {
            assert!(page.contains(part), "{part}");
        }
        for foreign in ["<script", "http:", "https:", "src=", "@import", "url("] {
            assert!(!page.contains(foreign), "{foreign}");
        }
    }

    #[test]
    fn p_values_are_corrected_for_their_number() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{corrected:?}");
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }
}
