//! A definition as a picture: a Mermaid state diagram, or an SVG drawing that stands alone.
//!
//! The drawing is layered: a state stands in the row that is its distance from the start, ways on
//! lead down, ways back bend around the right.

use super::definition::{Definition, On};
use super::flow::{self, Edge};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

/// A way between two states, with all that leads along it.
struct Way<'d> {
    from: &'d str,
    to: &'d str,
    labels: Vec<String>,
}

/// The ways that transitions make, in the order of the states from the start on.
fn ways<'d>(definition: &'d Definition, order: &[&'d str]) -> Vec<Way<'d>> {
    let mut ways: Vec<Way<'d>> = Vec::new();
    let edges = flow::edges(definition);
    for from in order {
        for edge in edges.iter().filter(|edge| edge.from == *from) {
            let Some(label) = label(definition, edge) else {
                continue;
            };
            let known = ways
                .iter_mut()
                .find(|way| way.from == edge.from && way.to == edge.to);
            match known {
                Some(way) if way.labels.contains(&label) => {}
                Some(way) => way.labels.push(label),
                None => ways.push(Way {
                    from: edge.from,
                    to: edge.to,
                    labels: vec![label],
                }),
            }
        }
    }
    ways
}

/// What leads along an edge; `None`: it is no transition that is written.
fn label(definition: &Definition, edge: &Edge<'_>) -> Option<String> {
    let transition = definition.states.get(edge.from)?.go.get(edge.transition?)?;
    let mut text = match (transition.on, &transition.tool) {
        (On::Success, Some(tool)) => tool.clone(),
        (on, Some(tool)) => format!("{tool}: {}", on.as_str()),
        (on, None) => on.as_str().to_owned(),
    };
    for (at, when) in transition.when.iter().enumerate() {
        text.push_str(if at == 0 { " if " } else { " and " });
        text.push_str(&when.to_string());
    }
    Some(text)
}

/// States with their distance from the start, nearest first; states that nothing leads to last.
fn rows(definition: &Definition) -> Vec<Vec<&str>> {
    let edges = flow::edges(definition);
    let mut distance: BTreeMap<&str, usize> = BTreeMap::new();
    let mut queue = VecDeque::new();
    if let Some((start, _)) = definition.states.get_key_value(&definition.start) {
        distance.insert(start, 0);
        queue.push_back(start.as_str());
    }
    while let Some(from) = queue.pop_front() {
        let next = distance.get(from).map_or(0, |distance| distance + 1);
        for edge in edges.iter().filter(|edge| edge.from == from) {
            if !distance.contains_key(edge.to) {
                distance.insert(edge.to, next);
                queue.push_back(edge.to);
            }
        }
    }
    let deepest = distance.values().copied().max().map_or(0, |most| most + 1);
    let mut rows: Vec<Vec<&str>> = vec![Vec::new(); deepest];
    let mut lost = Vec::new();
    for name in definition.states.keys() {
        match distance.get(name.as_str()).and_then(|at| rows.get_mut(*at)) {
            Some(row) => row.push(name),
            None => lost.push(name.as_str()),
        }
    }
    if !lost.is_empty() {
        rows.push(lost);
    }
    rows
}

/// The tools of a state in a line.
fn tools(definition: &Definition, name: &str) -> String {
    let Some(state) = definition.states.get(name).filter(|state| !state.end) else {
        return String::new();
    };
    match &state.tools {
        None => "any tool".to_owned(),
        Some(tools) if tools.is_empty() => "no tool".to_owned(),
        Some(tools) => tools.join(", "),
    }
}

/// A Mermaid state diagram (`stateDiagram-v2`).
pub fn mermaid(definition: &Definition) -> String {
    let rows = rows(definition);
    let order: Vec<&str> = rows.iter().flatten().copied().collect();
    // Names are any text; Mermaid's are not.
    let id = |name: &str| {
        let at = order.iter().position(|known| *known == name);
        format!("s{}", at.unwrap_or(order.len()))
    };
    let mut text = String::from("stateDiagram-v2\n");
    for name in &order {
        let tools = tools(definition, name);
        let line = if tools.is_empty() {
            plain(name)
        } else {
            format!("{}<br/>{}", plain(name), plain(&tools))
        };
        let _ = writeln!(text, "    state \"{line}\" as {}", id(name));
    }
    if definition.states.contains_key(&definition.start) {
        let _ = writeln!(text, "    [*] --> {}", id(&definition.start));
    }
    for way in ways(definition, &order) {
        let labels: Vec<String> = way.labels.iter().map(|label| plain(label)).collect();
        let _ = writeln!(
            text,
            "    {} --> {} : {}",
            id(way.from),
            id(way.to),
            labels.join("<br/>")
        );
    }
    for (name, state) in definition.states.iter().filter(|(_, state)| state.end) {
        let outcome = if state.failed { " : failed" } else { "" };
        let _ = writeln!(text, "    {} --> [*]{outcome}", id(name));
    }
    text
}

/// Text without what means something to Mermaid.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '#' | ';' | ':' | '<' | '>' | '&' | '{' | '}' | '%' | '`' => {
                let _ = write!(out, "#{};", u32::from(c));
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Sizes in the drawing, in pixels.
const WIDTH: usize = 210;
const HEIGHT: usize = 52;
const GAP: usize = 60;
const ROW: usize = 150;
const MARGIN: usize = 30;
/// Height of a line of a label.
const LINE: usize = 14;

/// An SVG drawing that needs nothing beside it.
pub fn svg(definition: &Definition) -> String {
    let rows = rows(definition);
    let order: Vec<&str> = rows.iter().flatten().copied().collect();
    let widest = rows.iter().map(Vec::len).max().unwrap_or(1).max(1);
    let ways = ways(definition, &order);
    let back = ways.iter().filter(|way| !leads_down(&rows, way)).count();
    let inner = widest * WIDTH + (widest - 1) * GAP;
    let (width, height) = (
        2 * MARGIN + inner + GAP + back * 26 + 260,
        2 * MARGIN + rows.len().saturating_sub(1) * ROW + HEIGHT,
    );
    let mut places: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (number, row) in rows.iter().enumerate() {
        let taken = row.len() * WIDTH + row.len().saturating_sub(1) * GAP;
        let left = MARGIN + (inner - taken) / 2;
        for (at, name) in row.iter().enumerate() {
            places.insert(name, (left + at * (WIDTH + GAP), MARGIN + number * ROW));
        }
    }
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{}</title>\n\
         <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" \
         markerHeight=\"8\" orient=\"auto-start-reverse\"><path d=\"M0 0 8 4 0 8z\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        escaped(&definition.name)
    );
    let mut bend = 0;
    for way in &ways {
        let (Some(&from), Some(&to)) = (places.get(way.from), places.get(way.to)) else {
            continue;
        };
        if leads_down(&rows, way) {
            down(&mut text, from, to, &way.labels);
        } else {
            around(
                &mut text,
                from,
                to,
                MARGIN + inner + GAP / 2 + bend * 26,
                &way.labels,
            );
            bend += 1;
        }
    }
    for name in &order {
        if let Some(&place) = places.get(name) {
            state_box(&mut text, definition, name, place);
        }
    }
    text.push_str("</svg>\n");
    text
}

/// Whether a way leads to a later row.
fn leads_down(rows: &[Vec<&str>], way: &Way<'_>) -> bool {
    let row = |name| rows.iter().position(|row| row.contains(&name));
    row(way.from) < row(way.to)
}

fn down(text: &mut String, from: (usize, usize), to: (usize, usize), labels: &[String]) {
    let (x1, y1) = (from.0 + WIDTH / 2, from.1 + HEIGHT);
    let (x2, y2) = (to.0 + WIDTH / 2, to.1);
    let middle = usize::midpoint(y1, y2);
    let _ = writeln!(
        text,
        "<path d=\"M{x1} {y1}C{x1} {middle} {x2} {middle} {x2} {y2}\" fill=\"none\" \
         stroke=\"#555\" marker-end=\"url(#tip)\"/>"
    );
    write_labels(text, (usize::midpoint(x1, x2) + 6, middle), labels);
}

fn around(
    text: &mut String,
    from: (usize, usize),
    to: (usize, usize),
    right: usize,
    labels: &[String],
) {
    let (x1, y1) = (from.0 + WIDTH, from.1 + HEIGHT / 2 + 8);
    let (x2, y2) = (to.0 + WIDTH, to.1 + HEIGHT / 2 - 8);
    let _ = writeln!(
        text,
        "<path d=\"M{x1} {y1}C{right} {y1} {right} {y2} {x2} {y2}\" fill=\"none\" \
         stroke=\"#999\" stroke-dasharray=\"4 3\" marker-end=\"url(#tip)\"/>"
    );
    let x = right.saturating_sub((right.saturating_sub(x1.max(x2))) / 4) + 4;
    write_labels(text, (x, usize::midpoint(y1, y2)), labels);
}

fn write_labels(text: &mut String, (x, y): (usize, usize), labels: &[String]) {
    let top = y.saturating_sub(labels.len().saturating_sub(1) * LINE / 2);
    for (at, label) in labels.iter().enumerate() {
        let _ = writeln!(
            text,
            "<text x=\"{x}\" y=\"{}\" font-size=\"11\" fill=\"#333\">{}</text>",
            top + at * LINE,
            escaped(&short(label, 44))
        );
    }
}

fn state_box(text: &mut String, definition: &Definition, name: &str, (x, y): (usize, usize)) {
    let state = definition.states.get(name);
    let (fill, stroke) = match state {
        Some(state) if state.end && state.failed => ("#fbe5e1", "#b3432b"),
        Some(state) if state.end => ("#e2f2e4", "#2f7a3a"),
        _ if name == definition.start => ("#e3edfb", "#2b5fb3"),
        _ => ("#f6f6f4", "#777"),
    };
    let _ = writeln!(
        text,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"8\" \
         fill=\"{fill}\" stroke=\"{stroke}\"/>"
    );
    let tools = tools(definition, name);
    let middle = x + WIDTH / 2;
    let first = if tools.is_empty() { y + 31 } else { y + 22 };
    let _ = writeln!(
        text,
        "<text x=\"{middle}\" y=\"{first}\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>",
        escaped(&short(name, 28))
    );
    if !tools.is_empty() {
        let _ = writeln!(
            text,
            "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\" font-size=\"11\" fill=\"#555\">{}</text>",
            y + 40,
            escaped(&short(&tools, 34))
        );
    }
}

fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Text as XML takes it: control characters are not allowed at all.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Definition {
        toml::from_str(
            "name='book <a> flight'\nstart='search'\n\
             [state.search]\ntools=['search_flights']\nremember=[{fact='flights'}]\n\
             go=[{on='success',when=[{fact='flights',empty=false}],to='choose'},{on='failure',to='lost: \"x\"'}]\n\
             [state.choose]\ntools=['book_flight','search_flights']\n\
             go=[{on='success',tool='book_flight',to='booked'},{on='failure',to='search'}]\n\
             [state.booked]\nend=true\n[state.'lost: \"x\"']\nend=true\nfailed=true\n",
        )
        .unwrap()
    }

    #[test]
    fn drawn_as_mermaid() {
        insta::assert_snapshot!(mermaid(&definition()));
    }

    #[test]
    fn drawn_as_svg() {
        insta::assert_snapshot!(svg(&definition()));
    }

    #[test]
    fn anything_can_be_drawn() {
        let mut wrong = definition();
        wrong.start = "nowhere".into();
        for definition in [wrong, Definition::builtin()] {
            assert!(mermaid(&definition).starts_with("stateDiagram-v2\n"));
            let svg = svg(&definition);
            assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN"));
        }
    }
}
