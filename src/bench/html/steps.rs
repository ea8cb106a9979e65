//! Success over the steps of tasks, as SVG: a line a run.

use super::plot::svg;
use super::text::{escaped, short};
use crate::bench::interval::Share;
use crate::bench::results::ResultRun;
use std::fmt::Write as _;

/// Steps of a point.
pub(super) const BLOCK: usize = 5;

/// A run in the plot.
pub(super) struct Line<'r> {
    label: &'r str,
    class: String,
    /// Block by block.
    shares: Vec<Share>,
}

impl<'r> Line<'r> {
    /// The line of a run whose items are steps; `None` where none is.
    pub(super) fn of(label: &'r str, class: String, run: &ResultRun) -> Option<Self> {
        let mut shares: Vec<Share> = Vec::new();
        for item in &run.items {
            let block = (item.step?.checked_sub(1)?) / BLOCK;
            if shares.len() <= block {
                shares.resize(block + 1, Share::default());
            }
            shares[block].count(item.right);
        }
        (!shares.is_empty()).then_some(Self {
            label,
            class,
            shares,
        })
    }
}

/// The lines over one scale from 0 to 100%, with a row for each below that says which it is.
pub(super) fn drawn(lines: &[Line<'_>]) -> String {
    const LEFT: f64 = 48.0;
    const WIDTH: f64 = 760.0;
    const TOP: f64 = 12.0;
    const HEIGHT: f64 = 260.0;
    const ROW: f64 = 20.0;
    let blocks = lines.iter().map(|line| line.shares.len()).max();
    let blocks = blocks.unwrap_or(1).max(1);
    let x = |block: usize| LEFT + (block as f64 + 0.5) / blocks as f64 * WIDTH;
    let y = |rate: f64| TOP + (1.0 - rate) * HEIGHT;
    let mut inner = String::new();
    for percent in (0..=100).step_by(20) {
        let at = y(f64::from(percent) / 100.0);
        let _ = write!(
            inner,
            "<line class=\"rule\" x1=\"{LEFT:.0}\" x2=\"{:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"tick\" x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{percent}%</text>",
            LEFT + WIDTH,
            LEFT - 8.0,
            at + 4.0
        );
    }
    let every = blocks.div_ceil(12);
    for block in (0..blocks).step_by(every) {
        let _ = write!(
            inner,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}–{}</text>",
            x(block),
            TOP + HEIGHT + 18.0,
            block * BLOCK + 1,
            (block + 1) * BLOCK
        );
    }
    let mut below = TOP + HEIGHT + 44.0;
    for line in lines {
        let _ = write!(
            inner,
            "<g class=\"{}\"><title>{}</title>",
            line.class,
            escaped(line.label)
        );
        let mut way = String::new();
        for (block, share) in line.shares.iter().enumerate() {
            if share.of == 0 {
                continue;
            }
            let (low, high) = share.interval();
            let (at, rate) = (x(block), share.rate());
            let _ = write!(
                inner,
                "<line class=\"whisker\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
                 <circle cx=\"{at:.1}\" cy=\"{:.1}\" r=\"3.5\"/>",
                y(low),
                y(high),
                y(rate)
            );
            let _ = write!(way, "{at:.1},{:.1} ", y(rate));
        }
        let _ = write!(
            inner,
            "<polyline class=\"way\" points=\"{}\"/>\
             <circle cx=\"{:.0}\" cy=\"{:.0}\" r=\"4.5\"/>\
             <text x=\"{:.0}\" y=\"{below:.0}\">{}</text></g>",
            way.trim_end(),
            LEFT + 6.0,
            below - 4.0,
            LEFT + 18.0,
            short(line.label, 90)
        );
        below += ROW;
    }
    svg(LEFT + WIDTH + 12.0, below, &inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::read;
    use serde_json::json;

    #[test]
    fn a_line_has_a_point_for_each_block() {
        let requests: Vec<_> = (1..=10)
            .map(|number| {
                json!({"id": number.to_string(), "right": number > 5,
                       "step": {"number": number}})
            })
            .collect();
        let file = json!({"suite": "steps", "reports": [{"model": "<m>", "requests": requests}]});
        let runs = read("f", &file.to_string()).unwrap();
        let line = Line::of("<m>", "c0".into(), &runs[0]).unwrap();
        assert_eq!(
            line.shares,
            [Share { right: 0, of: 5 }, Share { right: 5, of: 5 }]
        );
        let drawn = drawn(&[line]);
        assert!(
            drawn.contains("points=\"238.0,272.0 618.0,12.0\""),
            "{drawn}"
        );
        assert!(
            drawn.contains("&lt;m&gt;") && !drawn.contains("<m>"),
            "{drawn}"
        );
        let mut other = runs[0].clone();
        other.items[3].step = None;
        assert!(Line::of("m", "c0".into(), &other).is_none());
    }
}
