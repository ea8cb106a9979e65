//! How well confidences agree with what was right.
//!
//! M. P. Naeini et al., "Obtaining well calibrated probabilities using Bayesian binning", AAAI 2015
//! (expected calibration error, ten bins of equal width); G. W. Brier, "Verification of forecasts
//! expressed in terms of probability", Monthly Weather Review 78 (1950).

use super::plot::svg;
use crate::bench::interval::Share;
use std::fmt::Write as _;

/// Number of bins.
const BINS: usize = 10;

/// Confidences of one run, binned.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Calibration {
    /// The bins that are not empty: mean confidence, share that is right.
    pub bins: Vec<(f64, Share)>,
    /// Expected calibration error, between 0 and 1.
    pub error: f64,
    /// Brier score, between 0 (best) and 1.
    pub brier: f64,
}

impl Calibration {
    /// Bins confidences between 0 and 1.
    pub(super) fn of(stated: &[(f64, bool)]) -> Self {
        let mut bins = [(0.0, Share::default()); BINS];
        let mut brier = 0.0;
        for &(confidence, right) in stated {
            let bin = bin_of(confidence);
            bins[bin].0 += confidence;
            bins[bin].1.count(right);
            brier += (confidence - f64::from(u8::from(right))).powi(2);
        }
        let all = stated.len().max(1) as f64;
        let bins: Vec<(f64, Share)> = bins
            .into_iter()
            .filter(|(_, share)| share.of > 0)
            .map(|(sum, share)| (sum / share.of as f64, share))
            .collect();
        let error = bins
            .iter()
            .map(|(mean, share)| (mean - share.rate()).abs() * share.of as f64 / all)
            .sum();
        Self {
            bins,
            error,
            brier: brier / all,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a confidence lies between 0 and 1"
)]
fn bin_of(confidence: f64) -> usize {
    ((confidence.clamp(0.0, 1.0) * BINS as f64) as usize).min(BINS - 1)
}

/// What was right against what was promised; the diagonal is perfect calibration, a dot's area
/// grows with its number of requests.
pub(super) fn diagram(calibration: &Calibration, class: &str) -> String {
    const SIDE: f64 = 220.0;
    const LEFT: f64 = 44.0;
    const TOP: f64 = 8.0;
    let x = |value: f64| LEFT + value * SIDE;
    let y = |value: f64| TOP + (1.0 - value) * SIDE;
    let mut inner = format!(
        "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{SIDE}\" height=\"{SIDE}\"/>\
         <line class=\"rule dashed\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
        x(0.0),
        y(0.0),
        x(1.0),
        y(1.0)
    );
    for tenth in [0.0, 0.5, 1.0] {
        let _ = write!(
            inner,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{tenth}</text>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{tenth}</text>",
            x(tenth),
            TOP + SIDE + 16.0,
            LEFT - 6.0,
            y(tenth) + 4.0
        );
    }
    let _ = write!(
        inner,
        "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">confidence</text>\
         <text class=\"tick\" transform=\"translate(12 {:.1}) rotate(-90)\" \
         text-anchor=\"middle\">right</text><g class=\"{class}\">",
        x(0.5),
        TOP + SIDE + 34.0,
        y(0.5)
    );
    let most = calibration.bins.iter().map(|(_, share)| share.of).max();
    for (mean, share) in &calibration.bins {
        let (low, high) = share.interval();
        let radius = 2.5 + 5.0 * (share.of as f64 / most.unwrap_or(1) as f64).sqrt();
        let _ = write!(
            inner,
            "<g><title>{} of {} right at a mean confidence of {mean:.2}</title>\
             <line class=\"whisker\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
             <circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\"/></g>",
            share.right,
            share.of,
            x(*mean),
            x(*mean),
            y(low),
            y(high),
            x(*mean),
            y(share.rate()),
        );
    }
    inner.push_str("</g>");
    svg(LEFT + SIDE + 12.0, TOP + SIDE + 42.0, &inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_the_mean_distance_from_the_diagonal() {
        // Two bins: 0.95 promised and 1/2 right, 0.2 promised and 0/2 right.
        let found = Calibration::of(&[(0.95, true), (0.95, false), (0.2, false), (0.2, false)]);
        assert_eq!(found.bins.len(), 2);
        assert!(
            (found.error - (0.45 + 0.2) / 2.0).abs() < 1e-12,
            "{found:?}"
        );
        let brier = (0.05_f64.powi(2) + 0.95_f64.powi(2) + 2.0 * 0.2_f64.powi(2)) / 4.0;
        assert!((found.brier - brier).abs() < 1e-12, "{found:?}");
        let perfect = Calibration::of(&[(1.0, true), (0.0, false)]);
        assert_eq!((perfect.error, perfect.brier), (0.0, 0.0));
        assert!(!diagram(&Calibration::of(&[]), "c0").contains("NaN"));
    }
}
