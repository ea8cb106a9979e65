//! Plots as SVG: shares with their intervals, and bars.

use super::text::{escaped, short};
use crate::bench::interval::Share;
use std::fmt::Write as _;

/// Characters of a label; the rest is in its tooltip.
const LABEL: usize = 34;

/// A share in a plot.
pub(super) struct Dot<'r> {
    pub group: &'r str,
    pub label: &'r str,
    pub class: String,
    pub share: Share,
}

/// A row a share: a dot with its interval, on a scale from 0 to 100%.
pub(super) fn dots(dots: &[Dot<'_>]) -> String {
    const LEFT: f64 = 250.0;
    const WIDTH: f64 = 560.0;
    const ROW: f64 = 24.0;
    let x = |rate: f64| LEFT + rate * WIDTH;
    let mut rows = String::new();
    let mut y = 12.0;
    let mut group = None;
    for dot in dots {
        if group != Some(dot.group) {
            group = Some(dot.group);
            y += 14.0;
            let _ = write!(
                rows,
                "<text class=\"head\" x=\"0\" y=\"{y:.0}\">{}</text>",
                short(dot.group, LABEL)
            );
            y += ROW - 4.0;
        }
        let (low, high) = dot.share.interval();
        let middle = y - 4.0;
        let _ = write!(
            rows,
            "<g class=\"{}\"><title>{}: {} of {}</title>\
             <text x=\"{:.0}\" y=\"{y:.0}\" text-anchor=\"end\">{}</text>\
             <line class=\"whisker\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>\
             <circle cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"4.5\"/>\
             <text class=\"value\" x=\"{:.0}\" y=\"{y:.0}\">{:.1}%</text></g>",
            dot.class,
            escaped(dot.label),
            dot.share.right,
            dot.share.of,
            LEFT - 12.0,
            short(dot.label, LABEL),
            x(low),
            x(high),
            x(dot.share.rate()),
            LEFT + WIDTH + 12.0,
            dot.share.rate() * 100.0,
        );
        y += ROW;
    }
    let bottom = y - 8.0;
    let mut scale = String::new();
    for percent in (0..=100).step_by(20) {
        let at = x(f64::from(percent) / 100.0);
        let _ = write!(
            scale,
            "<line class=\"rule\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"12\" y2=\"{bottom:.0}\"/>\
             <text class=\"tick\" x=\"{at:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{percent}%</text>",
            bottom + 16.0
        );
    }
    svg(LEFT + WIDTH + 70.0, bottom + 24.0, &(scale + &rows))
}

/// A bar in a plot.
pub(super) struct Bar<'r> {
    pub label: &'r str,
    pub class: String,
    pub value: f64,
}

/// Bars from 0 to the largest value.
pub(super) fn bars(bars: &[Bar<'_>]) -> String {
    const WIDTH: f64 = 420.0;
    const ROOM: f64 = 70.0;
    let largest = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let mut rows = String::new();
    let mut y = 4.0;
    for bar in bars {
        let length = if largest > 0.0 {
            (bar.value / largest * (WIDTH - ROOM)).max(1.0)
        } else {
            1.0
        };
        let _ = write!(
            rows,
            "<g class=\"{}\"><title>{}</title><text x=\"0\" y=\"{:.0}\">{}</text>\
             <rect x=\"0\" y=\"{:.0}\" width=\"{length:.1}\" height=\"10\" rx=\"2\"/>\
             <text class=\"value\" x=\"{:.1}\" y=\"{:.0}\">{}</text></g>",
            bar.class,
            escaped(bar.label),
            y + 12.0,
            short(bar.label, 60),
            y + 18.0,
            length + 8.0,
            y + 27.0,
            number(bar.value),
        );
        y += 38.0;
    }
    svg(WIDTH, y, &rows)
}

/// Three significant digits.
fn number(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    }
}

/// A drawing of this size that shrinks with the page.
pub(super) fn svg(width: f64, height: f64, inner: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {width:.0} {height:.0}\" style=\"max-width:{width:.0}px\" \
         role=\"img\">{inner}</svg>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_stand_where_their_share_is() {
        let drawn = dots(&[Dot {
            group: "g",
            label: "<x>",
            class: "c0".into(),
            share: Share { right: 1, of: 2 },
        }]);
        // Half of 560 from 250 on.
        assert!(drawn.contains("cx=\"530.0\""), "{drawn}");
        assert!(
            drawn.contains("&lt;x&gt;") && !drawn.contains("<x>"),
            "{drawn}"
        );
    }

    #[test]
    fn bars_are_as_long_as_their_values_say() {
        let bar = |value| Bar {
            label: "b",
            class: "c1".into(),
            value,
        };
        let drawn = bars(&[bar(200.0), bar(100.0), bar(0.0)]);
        for width in ["width=\"350.0\"", "width=\"175.0\"", "width=\"1.0\""] {
            assert!(drawn.contains(width), "{drawn}");
        }
        assert!(!bars(&[bar(0.0)]).contains("NaN"));
        assert!(bars(&[]).starts_with("<svg"));
    }
}
