//! Exponentials over whole vocabularies, fast enough to be free beside a model's own work.

/// `e^x` for `x ≤ 0` with a relative error below 10⁻⁵; 0 below about −87.
///
/// Branch-free, so that the compiler turns loops over it into vector instructions: the standard
/// one takes 1.3 ms for 262,144 logits on a slow core, a twentieth of a token of a tiny model.
/// Range reduction to 2ⁿ·2ᶠ with |f| ≤ ½ and a Taylor polynomial for 2ᶠ.
#[inline]
pub(super) fn exp(x: f32) -> f32 {
    /// Adding and subtracting this rounds to the nearest whole number.
    const ROUNDER: f32 = 12_582_912.0;
    let scaled = (x * std::f32::consts::LOG2_E).clamp(-126.0, 0.0);
    let whole = (scaled + ROUNDER) - ROUNDER;
    let f = scaled - whole;
    let power = 1.0
        + f * (std::f32::consts::LN_2
            + f * (0.240_226_5
                + f * (0.055_504_11
                    + f * (0.009_618_129 + f * (0.001_333_355_8 + f * 0.000_154_035_3)))));
    let scale = f32::from_bits(((whole as i32 + 127) as u32) << 23);
    if x < -87.0 { 0.0 } else { power * scale }
}

/// The greatest of `values`; −∞ where there is none.
pub(super) fn greatest(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; 16];
    let chunks = values.chunks_exact(16);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = if value > *lane { value } else { *lane };
        }
    }
    lanes.iter().chain(rest).fold(
        f32::NEG_INFINITY,
        |best, &value| {
            if value > best { value } else { best }
        },
    )
}

/// `Σ e^(value − top)`; `top` is the greatest of them.
pub(super) fn sum_of_exponentials(values: &[f32], top: f32) -> f64 {
    let mut lanes = [0.0_f32; 16];
    let chunks = values.chunks_exact(16);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane += exp(value - top);
        }
    }
    let sum: f64 = lanes.iter().map(|&lane| f64::from(lane)).sum();
    sum + rest
        .iter()
        .map(|&value| f64::from(exp(value - top)))
        .sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_right_to_one_in_a_hundred_thousand() {
        for step in 0..870_000 {
            let x = -(step as f32) / 10_000.0;
            let expected = f64::from(x).exp();
            let error = (f64::from(exp(x)) - expected).abs() / expected;
            assert!(error < 1e-5, "{x}: {error}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-88.0), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
    }

    #[test]
    fn sums_agree_with_the_plain_way() {
        for length in [0, 1, 15, 16, 17, 1000] {
            let values: Vec<f32> = (0..length).map(|n| ((n * 37) % 101) as f32 / 7.0).collect();
            let top = greatest(&values);
            let plain = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(top, plain);
            let sum: f64 = values.iter().map(|&v| f64::from(v - top).exp()).sum();
            assert!((sum_of_exponentials(&values, top) - sum).abs() <= sum * 2e-5);
        }
    }
}
