//! Lines that a person types while a run goes on: a line reaches the next turn (steering), a line
//! that begins with `+` is what they want next, when the run would stop (follow-up).

use crate::model::Cancel;
use std::collections::VecDeque;
use std::io::BufRead;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Lines that may wait to be read; then whoever writes them waits.
const WAITING: usize = 64;

/// Longest line that is taken in, in bytes.
const LONGEST: u64 = 64 << 10;

/// How often a question looks whether the run was cancelled.
const TICK: Duration = Duration::from_millis(100);

/// Reads lines as they come, on a thread of its own, so that nobody has to wait for one.
#[derive(Debug)]
pub struct Inbox {
    lines: Receiver<Vec<u8>>,
    steering: VecDeque<String>,
    following: VecDeque<String>,
}

impl Inbox {
    /// Reads from what `open` gives (standard input's lock, say), until its end.
    pub fn new<R: BufRead>(open: impl FnOnce() -> R + Send + 'static) -> Self {
        let (sender, lines) = sync_channel(WAITING);
        // It ends with the program: nothing can interrupt a read.
        std::thread::spawn(move || {
            let mut reader = open();
            while let Some(line) = one_line(&mut reader) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            lines,
            steering: VecDeque::new(),
            following: VecDeque::new(),
        }
    }

    /// Sorts what has come so far.
    pub fn sort(&mut self) {
        while let Ok(line) = self.lines.try_recv() {
            self.take(&String::from_utf8_lossy(&line));
        }
    }

    fn take(&mut self, line: &str) {
        let line = line.trim();
        match line.strip_prefix('+') {
            Some(next) if !next.trim().is_empty() => {
                self.following.push_back(next.trim().to_owned());
            }
            None if !line.is_empty() => self.steering.push_back(line.to_owned()),
            _ => {}
        }
    }

    /// A line for the next turn, if one has come.
    pub fn steer(&mut self) -> Option<String> {
        self.sort();
        self.steering.pop_front()
    }

    /// What is wanted next, if that was said.
    pub fn follow_up(&mut self) -> Option<String> {
        self.sort();
        self.following.pop_front()
    }

    /// Waits for a line that answers a question. Whoever asks calls [`sort`](Self::sort) before
    /// the question can be seen: what was typed earlier is no answer, what is typed at the sight
    /// of it is. `None` at the end of the lines, or where `cancel` was set meanwhile.
    pub fn answer(&self, cancel: &Cancel) -> Option<String> {
        while !cancel.is_cancelled() {
            match self.lines.recv_timeout(TICK) {
                Ok(line) => return Some(String::from_utf8_lossy(&line).trim().to_owned()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        None
    }

    /// Waits for the next request; what was typed too late for the last run counts. Whoever
    /// prompts for it calls [`sort`](Self::sort) before the prompt can be seen: an empty line
    /// typed at the sight of it wants a new prompt, and is given back.
    pub fn request(&mut self) -> Option<Vec<u8>> {
        let waiting = self.following.pop_front();
        match waiting.or_else(|| self.steering.pop_front()) {
            Some(line) => Some(line.into_bytes()),
            None => self.lines.recv().ok(),
        }
    }
}

/// The next line; `None` at the end, where the stream fails, or at a line that never ends.
fn one_line(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = std::io::Read::take(&mut *reader, LONGEST).read_until(b'\n', &mut bytes);
    match read {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Write};

    /// An inbox and the other end of its stream.
    fn inbox() -> (Inbox, std::io::PipeWriter) {
        let (reader, writer) = std::io::pipe().unwrap();
        (Inbox::new(move || BufReader::new(reader)), writer)
    }

    /// What `look` sees, once a line has had time to come through.
    fn soon<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
        for _ in 0..500 {
            if let Some(seen) = look() {
                return Some(seen);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        None
    }

    #[test]
    fn lines_are_sorted_and_nobody_waits() {
        let (mut inbox, mut writer) = inbox();
        assert_eq!((inbox.steer(), inbox.follow_up()), (None, None));
        writer
            .write_all("the red one\n+ and then the door\n\n+\nquickly\n".as_bytes())
            .unwrap();
        assert_eq!(soon(|| inbox.steer()).as_deref(), Some("the red one"));
        assert_eq!(soon(|| inbox.steer()).as_deref(), Some("quickly"));
        assert_eq!(inbox.follow_up().as_deref(), Some("and then the door"));
        assert_eq!((inbox.steer(), inbox.follow_up()), (None, None));
    }

    #[test]
    fn an_answer_comes_after_its_question() {
        let (mut inbox, mut writer) = inbox();
        writer.write_all(b"yes\n").unwrap();
        let early = soon(|| {
            inbox.sort();
            inbox.steering.front().cloned()
        });
        assert_eq!(early.as_deref(), Some("yes"));
        writer.write_all(b"no\n").unwrap();
        let cancel = Cancel::default();
        assert_eq!(inbox.answer(&cancel).as_deref(), Some("no"));
        assert_eq!(inbox.steer().as_deref(), Some("yes"));
        cancel.cancel();
        assert_eq!(inbox.answer(&cancel), None, "nobody waits any longer");
        drop(writer);
        assert_eq!(inbox.answer(&Cancel::default()), None);
        assert_eq!(inbox.request(), None);
    }

    #[test]
    fn an_empty_line_at_a_prompt_is_given_back() {
        let (mut inbox, mut writer) = inbox();
        writer.write_all(b"the light\n").unwrap();
        let early = soon(|| {
            inbox.sort();
            inbox.steering.front().cloned()
        });
        assert_eq!(early.as_deref(), Some("the light"));
        // The prompt is being written; the line below it is there before anybody waits for one.
        writer.write_all(b"\nthe door\n").unwrap();
        std::thread::sleep(TICK);
        let mut next = || inbox.request().map(|line| String::from_utf8(line).unwrap());
        assert_eq!(next().as_deref(), Some("the light"));
        assert_eq!(next().as_deref(), Some("\n"));
        assert_eq!(next().as_deref(), Some("the door\n"));
    }
}
