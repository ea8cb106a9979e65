//! Runs a program within limits: its own process group, a reduced environment, no shell, bounded
//! time and output. Whatever it started is killed with it.

use crate::tool::text::last_lines;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Variables that a program keeps from the harness's environment, beside those declared.
const ENVIRONMENT: [&str; 9] = [
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TERM",
];
/// How long the pipes are waited on before the process is looked after.
const TICK: Duration = Duration::from_millis(20);
/// Bytes of standard error that are kept, from its end.
const COMPLAINT: usize = 16 << 10;

/// A program and its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The executable file.
    pub executable: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Where it runs.
    pub folder: PathBuf,
    /// Names of further environment variables that it keeps.
    pub environment: Vec<String>,
    /// Then it is killed.
    pub timeout: Duration,
    /// Bytes of standard output; then it is killed.
    pub max_output: usize,
}

/// Why a program gave no result.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started.
    #[error("cannot start {}: {source}", executable.display())]
    Start {
        /// The executable file.
        executable: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It ran too long and was killed.
    #[error("killed after {} s{}", timeout.as_secs_f64(), said(complaint))]
    Timeout {
        /// The limit.
        timeout: Duration,
        /// The end of its standard error.
        complaint: String,
    },
    /// It printed too much and was killed.
    #[error("killed after printing more than {limit} bytes")]
    Output {
        /// The limit.
        limit: usize,
    },
    /// It ended with a code that is not 0, or by a signal.
    #[error("{}{}", ended(status), said(complaint))]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// The end of its standard error.
        complaint: String,
    },
    /// Its pipes failed.
    #[error("lost contact: {0}")]
    Pipe(#[from] io::Error),
}

impl ProcessError {
    /// Whether it may have done what it was asked: it was cut off in the middle.
    pub fn effect_unknown(&self) -> bool {
        match self {
            Self::Start { .. } => false,
            Self::Timeout { .. } | Self::Output { .. } | Self::Pipe(_) => true,
            // A program that ends by itself with a code says that it failed.
            Self::Failed { status, .. } => status.code().is_none(),
        }
    }
}

fn said(complaint: &str) -> String {
    if complaint.is_empty() {
        String::new()
    } else {
        format!(": {complaint}")
    }
}

fn ended(status: &ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("failed with exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "failed".to_owned(),
    }
}

impl Program {
    /// Runs it with `input` on its standard input; what it prints is the result.
    ///
    /// # Errors
    /// [`ProcessError`]. The program and all that it started in its process group is then dead.
    pub fn run(&self, input: &[u8]) -> Result<Vec<u8>, ProcessError> {
        let start = Instant::now();
        let kept = self.kept_environment();
        let child = Command::new(&self.executable)
            .args(&self.arguments)
            .current_dir(&self.folder)
            .env_clear()
            .envs(kept)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|source| ProcessError::Start {
                executable: self.executable.clone(),
                source,
            })?;
        let mut group = Group(child);
        let (output, complaint, status) = self.attend(&mut group.0, input, start)?;
        if status.success() {
            Ok(output)
        } else {
            Err(ProcessError::Failed {
                status,
                complaint: last_lines(&complaint, 5, 300),
            })
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the program's environment is handed on, not read as a setting"
    )]
    fn kept_environment(&self) -> Vec<(&str, OsString)> {
        ENVIRONMENT
            .iter()
            .copied()
            .chain(self.environment.iter().map(String::as_str))
            .filter_map(|name| Some((name, std::env::var_os(name)?)))
            .collect()
    }

    /// Feeds and drains the pipes until the program has ended.
    fn attend(
        &self,
        child: &mut Child,
        mut input: &[u8],
        start: Instant,
    ) -> Result<(Vec<u8>, Vec<u8>, ExitStatus), ProcessError> {
        let mut stdin = child.stdin.take();
        let mut stdout = child.stdout.take();
        let mut stderr = child.stderr.take();
        if let Some(pipe) = &stdin {
            unblock(pipe)?;
        }
        if let Some(pipe) = &stdout {
            unblock(pipe)?;
        }
        if let Some(pipe) = &stderr {
            unblock(pipe)?;
        }
        let mut output = Vec::new();
        let mut complaint = Vec::new();
        loop {
            // What has ended before the pipes are read has nothing more to say after it. Pipes
            // that a survivor of its group holds open are not waited for.
            let status = child.try_wait()?;
            if input.is_empty() {
                stdin = None;
            }
            if let Some(pipe) = &mut stdin {
                match pipe.write(input) {
                    Ok(written) => input = input.get(written..).unwrap_or_default(),
                    Err(error) if waits(&error) => {}
                    // It does not read its input: that is its business.
                    Err(_) => stdin = None,
                }
            }
            if let Some(pipe) = &mut stdout
                && drain(pipe, &mut output, self.max_output.saturating_add(1))?
            {
                stdout = None;
            }
            if output.len() > self.max_output {
                return Err(ProcessError::Output {
                    limit: self.max_output,
                });
            }
            if let Some(pipe) = &mut stderr {
                let most = complaint.len() + (64 << 10);
                let ended = drain(pipe, &mut complaint, most)?;
                let surplus = complaint.len().saturating_sub(COMPLAINT);
                complaint.drain(..surplus);
                if ended {
                    stderr = None;
                }
            }
            if let Some(status) = status {
                return Ok((output, complaint, status));
            }
            let left = self.timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(ProcessError::Timeout {
                    timeout: self.timeout,
                    complaint: last_lines(&complaint, 5, 300),
                });
            }
            let mut waiting = Vec::with_capacity(3);
            if let Some(pipe) = &stdin {
                waiting.push(PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::OUT));
            }
            if let Some(pipe) = &stdout {
                waiting.push(PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN));
            }
            if let Some(pipe) = &stderr {
                waiting.push(PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN));
            }
            // With both outputs closed the end is near, and nothing but time to wait for.
            let tick = if stdout.is_none() && stderr.is_none() {
                Duration::from_millis(1)
            } else {
                TICK
            };
            let wait = tick.min(left);
            let timeout = Timespec {
                tv_sec: 0,
                tv_nsec: i64::from(wait.subsec_nanos()),
            };
            match poll(&mut waiting, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(ProcessError::Pipe(error.into())),
            }
        }
    }
}

/// A child that takes its process group with it, whichever way its run ends.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // The group is there as long as the child is not reaped or a member lives.
        if let Ok(id) = i32::try_from(self.0.id())
            && let Some(group) = Pid::from_raw(id)
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

fn unblock(pipe: &impl AsFd) -> io::Result<()> {
    let flags = fcntl_getfl(pipe)?;
    fcntl_setfl(pipe, flags | OFlags::NONBLOCK)?;
    Ok(())
}

fn waits(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// Reads what is there, up to `limit` bytes in all; says whether the pipe is at its end.
fn drain(pipe: &mut impl Read, into: &mut Vec<u8>, limit: usize) -> io::Result<bool> {
    let mut buffer = [0; 8192];
    while into.len() < limit {
        let room = buffer.len().min(limit - into.len());
        match pipe.read(&mut buffer[..room]) {
            Ok(0) => return Ok(true),
            Ok(read) => into.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if waits(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
