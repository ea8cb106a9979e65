//! Time, passed in so that a test can set it.

use jiff::Timestamp;
use std::time::{Duration, Instant};

/// Tells the time.
pub trait Clock {
    /// The time of day, for journals and traces.
    fn now(&self) -> Timestamp;

    /// Time since the clock was made, for limits; never goes back.
    fn elapsed(&self) -> Duration;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// Starts at zero now.
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
