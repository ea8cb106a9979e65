//! The program on a terminal: somebody is asked, says no, changes their mind, goes away. The
//! terminal is made by `script` (util-linux); where there is none, the tests say so and are skipped.
#![cfg(all(feature = "llama", target_os = "linux"))]
#![expect(clippy::print_stderr, reason = "says why a test is skipped")]
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failing helper fails its test; the tools beside the program need a path"
)]

mod common;

use common::alone;
use common::place::Place;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Nothing that is waited for takes so long, even where other programs keep the machine busy.
const LONG: Duration = Duration::from_secs(120);

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

/// The program on a terminal of its own.
struct OnTerminal {
    child: Child,
    input: ChildStdin,
    output: Arc<(Mutex<String>, Condvar)>,
    /// How much of the output was expected already.
    seen: usize,
}

impl OnTerminal {
    fn start(place: &Place, columns: u16, arguments: &[&str]) -> Option<Self> {
        let words: Vec<String> = [env!("CARGO_BIN_EXE_snaffle")]
            .iter()
            .chain(arguments)
            .map(|word| format!("'{word}'"))
            .collect();
        let line = format!("stty cols {columns} rows 30; exec {}", words.join(" "));
        let like = place.command(&[]);
        let mut command = Command::new("script");
        command
            .args([
                "--quiet",
                "--flush",
                "--return",
                "--command",
                &line,
                "/dev/null",
            ])
            .current_dir(place.folder.path())
            .env_clear()
            .envs(
                like.get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                eprintln!("skipped: script: {error}");
                return None;
            }
        };
        let input = child.stdin.take().unwrap();
        let mut stream = child.stdout.take().unwrap();
        let output = Arc::new((Mutex::new(String::new()), Condvar::new()));
        let shared = Arc::clone(&output);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            let mut pending = Vec::new();
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                pending.extend_from_slice(&buffer[..count]);
                // A character may come in two pieces.
                let whole = match std::str::from_utf8(&pending) {
                    Ok(_) => pending.len(),
                    Err(error) => error.valid_up_to(),
                };
                let text: Vec<u8> = pending.drain(..whole).collect();
                let mut screen = shared.0.lock().unwrap();
                screen.push_str(&String::from_utf8(text).unwrap());
                shared.1.notify_all();
            }
        });
        Some(Self {
            child,
            input,
            output,
            seen: 0,
        })
    }

    /// Waits until `text` is on the screen, in whatever colours, after what was waited for before.
    fn expect(&mut self, text: &str) {
        let start = Instant::now();
        let mut output = self.output.0.lock().unwrap();
        loop {
            let plain = anstream::adapter::strip_str(&output).to_string();
            if let Some(at) = plain.get(self.seen..).and_then(|new| new.find(text)) {
                self.seen += at + text.len();
                return;
            }
            let left = LONG.saturating_sub(start.elapsed());
            assert!(!left.is_zero(), "no {text:?} in {:?}", &output[..]);
            output = self.output.1.wait_timeout(output, left).unwrap().0;
        }
    }

    fn send(&mut self, keys: &str) {
        self.input.write_all(keys.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    /// `kill -9` to the program that `script` runs.
    fn kill_program(&self) {
        let id = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        let program = children.split_whitespace().next().unwrap().parse().unwrap();
        let program = rustix::process::Pid::from_raw(program).unwrap();
        rustix::process::kill_process(program, rustix::process::Signal::KILL).unwrap();
    }

    /// Its exit code, and all that it showed.
    fn end(mut self) -> (i32, String) {
        let start = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code().unwrap_or(-1);
            }
            assert!(start.elapsed() < LONG, "{}", self.output.0.lock().unwrap());
            std::thread::sleep(Duration::from_millis(20));
        };
        let text = self.output.0.lock().unwrap().clone();
        (code, text)
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

const UNLOCK: &str = "unlock the front door";
const LIGHT: &str = "turn on the kitchen light";

/// The single task of the journal.
fn task(place: &Place) -> (String, String) {
    let tasks = place.tasks();
    assert_eq!(tasks.len(), 1, "{tasks:?}");
    let text = |name: &str| tasks[0][name].as_str().unwrap().to_owned();
    (text("id"), text("status"))
}

#[test]
fn a_person_is_asked_and_their_word_counts() {
    let _alone = alone();
    for (answer, code, shown) in [
        ("n\n", 9, "not approved"),
        ("y\n", 0, "locked: true → false"),
    ] {
        let Some(place) = Place::new() else { return };
        let before = place.house();
        let Some(mut terminal) = OnTerminal::start(&place, 100, &["run", UNLOCK]) else {
            return;
        };
        terminal.expect("unlock");
        terminal.expect("device: front door  allow? [y/N] ");
        assert_eq!(place.house(), before, "asked first");
        terminal.send(answer);
        terminal.expect(shown);
        let (ended, text) = terminal.end();
        assert_eq!(ended, code, "{text}");
        assert_eq!(place.house() == before, code == 9);
    }
}

#[test]
fn ctrl_c_at_a_question_is_no_answer_and_the_question_comes_again() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    let before = place.house();
    let Some(mut terminal) = OnTerminal::start(&place, 100, &["run", UNLOCK]) else {
        return;
    };
    terminal.expect("allow? [y/N] ");
    terminal.send(CTRL_C);
    terminal.expect("stopped: cancelled");
    terminal.expect("snaffle task resume ");
    let (code, text) = terminal.end();
    assert_eq!(code, 130, "{text}");
    assert_eq!(place.house(), before);
    let (id, status) = task(&place);
    assert_eq!(status, "stopped");

    let mut terminal = OnTerminal::start(&place, 100, &["task", "resume", &id]).unwrap();
    terminal.expect("allow? [y/N] ");
    terminal.send("да\n");
    terminal.expect("locked: true → false");
    let (code, text) = terminal.end();
    assert_eq!(code, 0, "{text}");
    assert_eq!(task(&place).1, "answered");
}

#[test]
fn what_is_stopped_or_killed_in_the_middle_goes_on() {
    let _alone = alone();
    for killed in [false, true] {
        let Some(place) = Place::new() else { return };
        let before = place.house();
        let Some(mut terminal) = OnTerminal::start(&place, 100, &["run", LIGHT]) else {
            return;
        };
        // The request is on record; the model reads it.
        terminal.expect("kitchen light");
        terminal.expect("reading ");
        if killed {
            terminal.kill_program();
            let (code, text) = terminal.end();
            assert_eq!(code, 137, "{text}");
        } else {
            terminal.send(CTRL_C);
            terminal.expect("stopped: cancelled");
            let (code, text) = terminal.end();
            assert_eq!(code, 130, "{text}");
        }
        assert_eq!(place.house(), before);
        let (id, status) = task(&place);
        assert_eq!(status, if killed { "interrupted" } else { "stopped" });
        let (code, out, err) = place.run(&["task", "resume", &id]);
        assert_eq!(code, 0, "{out}{err}");
        assert!(out.contains("on: false → true"), "{out}");
        assert_eq!(task(&place), (id, "answered".to_owned()));
    }
}

#[test]
fn requests_come_one_after_another() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    let Some(mut terminal) = OnTerminal::start(&place, 100, &["run", "--interactive"]) else {
        return;
    };
    terminal.expect("snaffle>");
    terminal.send("turn on the kitchen light\n");
    terminal.expect("on: false → true");
    terminal.expect("trace ");
    terminal.expect("snaffle>");
    // Nothing said, nothing done.
    terminal.send("  \n");
    terminal.expect("snaffle>");
    terminal.send("turn off the kitchen light\n");
    terminal.expect("on: true → false");
    terminal.expect("snaffle>");
    terminal.send(CTRL_D);
    let (code, text) = terminal.end();
    assert_eq!(code, 0, "{text}");
    assert!(
        text.ends_with('\n'),
        "the shell's prompt has a line of its own: {text:?}"
    );
    assert_eq!(place.tasks().len(), 2);
}

#[test]
fn a_narrow_terminal_and_no_colour() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    let arguments = ["run", "--dry-run", "--color", "never", LIGHT];
    let Some(mut terminal) = OnTerminal::start(&place, 40, &arguments) else {
        return;
    };
    terminal.expect("(dry run: not executed)");
    terminal.expect("trace ");
    let (code, text) = terminal.end();
    assert_eq!(code, 0, "{text}");
    assert!(
        !text.contains("\u{1b}[1m") && !text.contains("\u{1b}[3"),
        "{text:?}"
    );
    for line in text.lines().filter(|line| !line.contains("trace ")) {
        // What moves the cursor (progress) is followed by what stays.
        let stays = line.rsplit("\u{1b}[2K").next().unwrap_or_default();
        assert!(stays.trim_end().chars().count() <= 40, "{line:?}");
    }
}
