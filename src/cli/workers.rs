//! Work in other processes of this same program: a piece that takes too long, takes too much or
//! dies costs only itself.
//!
//! A worker says that it is ready, then answers each line on its standard input with lines of JSON
//! on its standard output, of which the last has `"done"`.

use super::error::Failure;
use super::exit::Exit;
use crate::model::Cancel;
use serde_json::Value;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait until a worker is ready: it loads vocabularies.
const START: Duration = Duration::from_secs(300);
/// How often a waiting thread looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(200);
/// How much longer than its limit a piece may take by the clock, on a machine that is busy.
pub const PATIENCE: u32 = 12;
/// Bytes of a worker's last words that are kept.
const LAST_WORDS: usize = 4_096;

/// Workers, and what each is started with.
#[derive(Debug)]
pub struct Pool {
    /// Arguments of the program.
    pub arguments: Vec<OsString>,
    /// How many work at once.
    pub jobs: usize,
    /// Longest time between two lines of an answer: of the processor's time where the system tells
    /// it, so that other programs do not count, and at most [`PATIENCE`] times as long by the clock.
    pub limit: Duration,
    /// Stops the work.
    pub cancel: Cancel,
}

/// How a piece of work ended; with the lines that were answered until then.
#[derive(Debug)]
pub enum Ended {
    /// The whole answer.
    Done(Vec<Value>),
    /// It took longer than the limit.
    Late(Vec<Value>),
    /// The worker ran out of memory.
    OutOfMemory(Vec<Value>),
    /// The worker died.
    Died(Vec<Value>, String),
}

struct Worker {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    last_words: Arc<Mutex<Vec<u8>>>,
}

impl Pool {
    /// Hands out `pieces`, a line each; `done` is told of each as it ends, in whatever order, by
    /// its number.
    ///
    /// # Errors
    /// A worker that does not start.
    pub fn run(
        &self,
        pieces: &[String],
        done: &mut dyn FnMut(usize, Ended),
    ) -> Result<(), Failure> {
        let next = Mutex::new(0..pieces.len());
        let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
        let (sender, ended) = channel();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..self.jobs.clamp(1, pieces.len().max(1)))
                .map(|_| {
                    let sender = sender.clone();
                    scope.spawn(|| -> Result<(), Failure> {
                        let sender = sender;
                        let mut worker: Option<Worker> = None;
                        while !self.cancel.is_cancelled()
                            && let Some(at) = take()
                        {
                            let mut own = match worker.take() {
                                Some(worker) => worker,
                                None => self.start()?,
                            };
                            let (end, alive) = self.answer(&mut own, &pieces[at]);
                            if alive {
                                worker = Some(own);
                            } else {
                                // It may have ended by itself already.
                                _ = own.child.kill();
                                _ = own.child.wait();
                            }
                            if sender.send((at, end)).is_err() {
                                break;
                            }
                        }
                        if let Some(Worker {
                            mut child, input, ..
                        }) = worker
                        {
                            drop(input);
                            _ = child.wait();
                        }
                        Ok(())
                    })
                })
                .collect();
            drop(sender);
            for (at, end) in ended {
                done(at, end);
            }
            for thread in threads {
                match thread.join() {
                    Ok(result) => result?,
                    Err(_) => return Err(Failure::new(Exit::Internal, "a thread panicked")),
                }
            }
            Ok(())
        })
    }

    fn start(&self) -> Result<Worker, Failure> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let lost = || Failure::new(Exit::Internal, "a worker has no streams");
        let input = child.stdin.take().ok_or_else(lost)?;
        let output = child.stdout.take().ok_or_else(lost)?;
        let mut errors = child.stderr.take().ok_or_else(lost)?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let last_words = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&last_words);
        thread::spawn(move || {
            let mut buffer = [0; 1024];
            while let Ok(count @ 1..) = errors.read(&mut buffer) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&buffer[..count]);
                let surplus = kept.len().saturating_sub(LAST_WORDS);
                kept.drain(..surplus);
            }
        });
        let mut worker = Worker {
            child,
            input,
            lines,
            last_words,
        };
        match worker.lines.recv_timeout(START) {
            Ok(_) => Ok(worker),
            Err(_) => {
                _ = worker.child.kill();
                let how = worker.how_it_ended();
                Err(Failure::new(
                    Exit::Internal,
                    format!("a worker did not start: {how}"),
                ))
            }
        }
    }

    /// The answer to one piece, and whether the worker can go on.
    fn answer(&self, worker: &mut Worker, piece: &str) -> (Ended, bool) {
        let mut replies = Vec::new();
        let written = writeln!(worker.input, "{piece}").and_then(|()| worker.input.flush());
        if written.is_ok() {
            let mut asked = Instant::now();
            let mut used = worker.processor_time();
            loop {
                match worker.lines.recv_timeout(LOOK) {
                    Ok(line) => {
                        asked = Instant::now();
                        used = worker.processor_time();
                        let Ok(reply) = serde_json::from_str::<Value>(&line) else {
                            continue;
                        };
                        if reply.get("done").is_some() {
                            return (Ended::Done(replies), true);
                        }
                        replies.push(reply);
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        let waited = asked.elapsed();
                        let spent = match (used, worker.processor_time()) {
                            (Some(before), Some(now)) => now.saturating_sub(before),
                            _ => waited,
                        };
                        if spent >= self.limit
                            || waited >= self.limit * PATIENCE
                            || self.cancel.is_cancelled()
                        {
                            return (Ended::Late(replies), false);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        }
        let how = worker.how_it_ended();
        if how.contains("memory allocation of") || how.contains("bad_alloc") {
            (Ended::OutOfMemory(replies), false)
        } else {
            (Ended::Died(replies, how), false)
        }
    }
}

impl Worker {
    /// The processor's time that the worker has had; it works in its main thread alone.
    fn processor_time(&self) -> Option<Duration> {
        let path = format!("/proc/{}/schedstat", self.child.id());
        let text = std::fs::read_to_string(path).ok()?;
        let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
        Some(Duration::from_nanos(nanoseconds))
    }

    /// The exit status of an ended worker, and its last words.
    fn how_it_ended(&mut self) -> String {
        let status = match self.child.wait() {
            Ok(status) => describe(status),
            Err(error) => error.to_string(),
        };
        // The thread that reads them may be a moment behind.
        thread::sleep(Duration::from_millis(50));
        let words = self
            .last_words
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let words = String::from_utf8_lossy(&words);
        let words: String = words.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{status}: {words}")
    }
}

#[cfg(unix)]
fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => status.to_string(),
    }
}

#[cfg(not(unix))]
fn describe(status: ExitStatus) -> String {
    status.to_string()
}

/// Limits what this process may still allocate to `bytes` beyond what it has now; allocating more
/// ends it. Where the system does not say what it has, there is no limit.
///
/// # Errors
/// Where the system refuses.
#[cfg(target_os = "linux")]
pub fn limit_memory(bytes: u64) -> Result<(), Failure> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let status = fs_err::read_to_string("/proc/self/status")?;
    let held = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kibibytes = held.and_then(|held| held.split_whitespace().next()?.parse::<u64>().ok());
    let Some(kibibytes) = kibibytes else {
        return Ok(());
    };
    let most = kibibytes * 1024 + bytes;
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    setrlimit(Resource::As, limit).map_err(|error| Failure::from(std::io::Error::from(error)))
}

/// Limits nothing on this system.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn limit_memory(_bytes: u64) -> Result<(), Failure> {
    Ok(())
}
