//! Random texts that a grammar accepts: a walk over its automaton.
//!
//! A walk ends because it heads for the end: each automaton state knows its distance to acceptance,
//! no step is taken from which the end would be out of reach, and every so often, and always once
//! the text is long enough, the step is the first of a shortest way there.

use rand::{Rng, RngExt};

use super::limits::LimitError;
use super::recogniser::Recogniser;

/// How long sampled texts get, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleLength {
    /// From here on a text takes the shortest way to its end.
    pub wanted: usize,
    /// No text is longer.
    pub most: usize,
}

impl Default for SampleLength {
    fn default() -> Self {
        Self {
            wanted: 200,
            most: 65_536,
        }
    }
}

/// Why there is no sample.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// Every text of the grammar is longer than allowed.
    #[error("the shortest text that the grammar accepts has {shortest} bytes, more than {most}")]
    TooLong {
        /// Bytes of the shortest text.
        shortest: u64,
        /// Bytes allowed.
        most: usize,
    },
    /// A limit of the engine was exceeded.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// One step in so many heads for the end although the text is still short.
const HEADS_FOR_THE_END: u32 = 8;

/// Characters of several scripts, taken where a text leaves ASCII and the grammar allows them.
const CHARACTERS: [char; 12] = [
    'é', 'ß', 'ж', 'я', '中', '文', '日', 'ع', 'अ', '한', '🐎', '☀',
];

/// A random text of the grammar, by a walk from its beginning.
///
/// # Errors
/// [`SampleError::TooLong`] where no text is short enough, [`SampleError::Limit`] where the engine
/// meets a limit.
///
/// ```
/// use rand::SeedableRng;
/// use snaffle::grammar::{Limits, Recogniser, SampleLength, gbnf, sample};
///
/// let limits = Limits::default();
/// let grammar = gbnf::parse("root ::= [a-z]* \".\"", &limits)?.grammar;
/// let mut recogniser = Recogniser::new(&grammar, &limits)?;
/// let mut random = rand::rngs::StdRng::seed_from_u64(1);
/// let text = sample(&mut recogniser, &mut random, SampleLength::default())?;
/// assert!(recogniser.matches(text.as_bytes())?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sample(
    recogniser: &mut Recogniser,
    random: &mut impl Rng,
    length: SampleLength,
) -> Result<String, SampleError> {
    recogniser.reset();
    if recogniser.distance() > length.most as u64 {
        return Err(SampleError::TooLong {
            shortest: recogniser.distance(),
            most: length.most,
        });
    }
    let mut text: Vec<u8> = Vec::new();
    loop {
        let hurry = text.len() as u64 + recogniser.distance() >= length.wanted as u64;
        let heads = hurry || random.random_range(0..HEADS_FOR_THE_END) == 0;
        if recogniser.is_accepting() && (heads || !recogniser.goes_on()) {
            break;
        }
        if !heads && step(recogniser, random, &mut text, length.most)? {
            continue;
        }
        let Some(byte) = recogniser.closing_byte() else {
            break;
        };
        recogniser.push(byte)?;
        text.push(byte);
    }
    recogniser.reset();
    // Grammars are over code points: whatever they accept is UTF-8.
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A random step from which the end stays within `most` bytes; `false` if that was not found.
fn step(
    recogniser: &mut Recogniser,
    random: &mut impl Rng,
    text: &mut Vec<u8>,
    most: usize,
) -> Result<bool, LimitError> {
    let start = recogniser.position();
    let before = text.len();
    let Some(byte) = choose(recogniser, random) else {
        return Ok(false);
    };
    if byte < 0x80 || !character(recogniser, random, text)? {
        recogniser.go_to(start);
        recogniser.push(byte)?;
        text.push(byte);
    }
    if text.len() as u64 + recogniser.distance() > most as u64 {
        recogniser.go_to(start);
        text.truncate(before);
        return Ok(false);
    }
    Ok(true)
}

/// Moves past a familiar character beyond ASCII; `false` where the one picked does not fit.
fn character(
    recogniser: &mut Recogniser,
    random: &mut impl Rng,
    text: &mut Vec<u8>,
) -> Result<bool, LimitError> {
    let picked = CHARACTERS[random.random_range(0..CHARACTERS.len())];
    let mut buffer = [0; 4];
    let bytes = picked.encode_utf8(&mut buffer).as_bytes();
    let fits = recogniser.push_all(bytes)? == bytes.len();
    if fits {
        text.extend_from_slice(bytes);
    }
    Ok(fits)
}

/// A byte that can follow: first its kind, then one of that kind, so that punctuation, on which the
/// structure of most texts hangs, is as likely as letters.
fn choose(recogniser: &Recogniser, random: &mut impl Rng) -> Option<u8> {
    let mut kinds: [Vec<u8>; 5] = Default::default();
    for byte in recogniser.allowed() {
        let kind = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b' ' => 0,
            b'0'..=b'9' => 1,
            b'!'..=b'~' => 2,
            0x80.. => 3,
            _ => 4,
        };
        kinds[kind].push(byte);
    }
    // Letters as likely as digits and punctuation together; control characters are rare.
    const WEIGHTS: [u32; 5] = [8, 4, 4, 2, 1];
    let weight = |kind: usize| {
        if kinds[kind].is_empty() {
            0
        } else {
            WEIGHTS[kind]
        }
    };
    let total: u32 = (0..kinds.len()).map(weight).sum();
    if total == 0 {
        return None;
    }
    let mut ticket = random.random_range(0..total);
    for (kind, bytes) in kinds.iter().enumerate() {
        if ticket < weight(kind) {
            return Some(bytes[random.random_range(0..bytes.len())]);
        }
        ticket -= weight(kind);
    }
    None
}
