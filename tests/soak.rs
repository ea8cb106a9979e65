//! Real `kill -9` at random moments, again and again, until each task has come to its end: never
//! an effect twice, never one lost without a word.
//!
//! The model is random logits, so that a run takes a moment. `SNAFFLE_SOAK` sets the number of
//! kills (100 here, 1,000 in `scripts/soak`).
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test says what went wrong by failing, and a soak what it did"
)]

mod common;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Bills to pay (the world can be asked whether one is paid), to stamp (it cannot), and to mark
/// (twice is the same as once).
const WORLD: &str = r#"
[world]
bills = ["A1", "A2", "A3", "A4"]
paid = []
stamps = []
marks = [{ bill = "A1", marked = false }, { bill = "A2", marked = false }, { bill = "A3", marked = false }, { bill = "A4", marked = false }]

[[tool]]
name = "list"
description = "List the bills."
effect = "read"
give = { bills = { from = "/bills" } }

[[tool]]
name = "pay"
description = "Pay a bill."
effect = "change"
domains = { bill = { from = "/bills" } }
add = [{ to = "/paid", value = "{bill}" }]
give = { paid = "{bill}" }
check = { from = "/paid", is = "{bill}" }
parameters = { type = "object", properties = { bill = { type = "string" } }, required = ["bill"] }

[[tool]]
name = "stamp"
description = "Stamp a bill."
effect = "change"
domains = { bill = { from = "/bills" } }
add = [{ to = "/stamps", value = "{bill}" }]
give = { stamped = "{bill}" }
parameters = { type = "object", properties = { bill = { type = "string" } }, required = ["bill"] }

[[tool]]
name = "mark"
description = "Mark a bill."
effect = "change"
idempotent = true
domains = { bill = { from = "/bills" } }
set = [{ of = { from = "/marks", where = { bill = "{bill}" } }, value = { marked = true } }]
give = { marked = "{bill}" }
parameters = { type = "object", properties = { bill = { type = "string" } }, required = ["bill"] }
"#;

const TASK: &str = r#"
name = "bills"
goal = "settle the bills"
start = "look"
uses = ["world.toml"]
[limits]
turns = 100
tokens = 1000000

[state.look]
tools = ["list"]
ask = false
remember = [
    { pointer = "/bills", fact = "to pay" },
    { pointer = "/bills", fact = "to stamp" },
    { pointer = "/bills", fact = "to mark" },
]
go = [{ on = "success", to = "pay" }]

[state.pay]
tools = ["pay"]
ask = false
bind = [{ tool = "pay", argument = "bill", fact = "to pay" }]
strike = [{ tool = "pay", argument = "bill", fact = "to pay" }]
go = [{ on = "success", when = [{ fact = "to pay", empty = true }], to = "stamp" }]

[state.stamp]
tools = ["stamp"]
ask = false
bind = [{ tool = "stamp", argument = "bill", fact = "to stamp" }]
strike = [{ tool = "stamp", argument = "bill", fact = "to stamp" }]
go = [{ on = "success", when = [{ fact = "to stamp", empty = true }], to = "mark" }]

[state.mark]
tools = ["mark"]
ask = false
bind = [{ tool = "mark", argument = "bill", fact = "to mark" }]
strike = [{ tool = "mark", argument = "bill", fact = "to mark" }]
go = [{ on = "success", when = [{ fact = "to mark", empty = true }], to = "done" }]

[state.done]
end = true
"#;

fn snaffle(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = common::program::snaffle(folder, arguments);
    command
        .env("SNAFFLE_MODEL", "random")
        .env("SNAFFLE_TRACE_KEEP", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// How a process ended: its exit code, or `None` where it was killed.
fn end(mut child: Child, after: Duration) -> (Option<i32>, String) {
    let start = Instant::now();
    loop {
        if child.try_wait().unwrap().is_some() {
            break;
        }
        if start.elapsed() >= after {
            child.kill().unwrap();
            break;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), err)
}

fn json_lines(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let output = snaffle(folder, arguments).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {err}");
    assert_eq!(err, "", "{arguments:?}");
    let out = String::from_utf8(output.stdout).unwrap();
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A list of the world, sorted.
fn list(folder: &Path, name: &str) -> Vec<String> {
    let Ok(text) = fs::read_to_string(folder.join("world.state.json")) else {
        return Vec::new();
    };
    let state: Value = serde_json::from_str(&text).unwrap();
    let mut items: Vec<String> = state[name]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            item.as_str()
                .map_or_else(|| item.to_string(), str::to_owned)
        })
        .collect();
    items.sort();
    items
}

/// The bill of the stamp whose outcome nobody knows.
fn undecided(folder: &Path, id: &str) -> String {
    let events = json_lines(folder, &["task", "show", "--json", id]);
    let last = events
        .iter()
        .map(|entry| &entry["event"])
        .rfind(|event| event["event"] == "intent")
        .unwrap();
    assert_eq!(
        last["call"]["tool"], "stamp",
        "the others can be looked up or repeated"
    );
    last["call"]["arguments"]["bill"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn killed_at_any_moment_it_goes_on() {
    let wanted: usize = std::env::var("SNAFFLE_SOAK")
        .map_or(100, |text| text.parse().expect("SNAFFLE_SOAK is a number"));
    let mut random = ChaCha8Rng::seed_from_u64(20_261_130);
    let (mut tasks, mut kills, mut asked, mut longest) = (0, 0, 0, Duration::from_millis(400));
    let bills = ["A1", "A2", "A3", "A4"];
    while kills < wanted {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::write(folder.join("world.toml"), WORLD).unwrap();
        fs::write(folder.join("task.toml"), TASK).unwrap();
        let seed = tasks.to_string();
        tasks += 1;
        let mut settle: Option<&str> = None;
        let mut id: Option<String> = None;
        // The first task is left alone, to see how long one takes.
        let alone = tasks == 1;
        for attempt in 0.. {
            assert!(attempt < 300, "the task does not come to its end");
            let mut command = match &id {
                None => snaffle(folder, &["run", "--task", "task.toml", "--seed", &seed]),
                Some(id) => {
                    let mut command = snaffle(folder, &["task", "resume", id]);
                    command.args(settle.map(|how| ["--settle", how]).into_iter().flatten());
                    command
                }
            };
            let after = if alone {
                Duration::from_secs(600)
            } else {
                longest.mul_f64(random.random_range(0.0..1.0))
            };
            let start = Instant::now();
            let (code, err) = end(command.spawn().unwrap(), after);
            match code {
                None => kills += 1,
                Some(0) => {
                    if alone {
                        longest = start.elapsed();
                    }
                    break;
                }
                // Told, and nothing executed: a person looks at the world.
                Some(10) => {
                    let id = id.as_deref().expect("a fresh task has no past");
                    assert!(err.contains("may have taken effect"), "{err}");
                    let bill = undecided(folder, id);
                    let there = list(folder, "stamps").contains(&bill);
                    settle = Some(if there { "happened" } else { "did-not-happen" });
                    asked += 1;
                    continue;
                }
                Some(code) => panic!("task {tasks}: exit code {code}: {err}"),
            }
            settle = None;
            if id.is_none() && folder.join(".snaffle/journal.sqlite").exists() {
                let rows = json_lines(folder, &["task", "list", "--json"]);
                assert!(rows.len() <= 1, "{rows:?}");
                id = rows
                    .first()
                    .map(|row| row["id"].as_str().unwrap().to_owned());
            }
            if id.is_none() {
                assert!(list(folder, "paid").is_empty(), "an effect without a task");
            }
        }
        assert_eq!(list(folder, "paid"), bills, "task {tasks}");
        assert_eq!(list(folder, "stamps"), bills, "task {tasks}");
        assert!(
            list(folder, "marks")
                .iter()
                .all(|mark| mark.contains("true"))
        );
        let rows = json_lines(folder, &["task", "list", "--json"]);
        assert_eq!(rows[0]["status"], "answered", "{rows:?}");
    }
    eprintln!("{kills} kills in {tasks} tasks; {asked} times a person had to say what happened");
    assert!(
        asked > 0 || wanted < 50,
        "no kill hit the moment that this is about"
    );
}

/// A program that a command tool started may outlive the harness: resuming waits for it.
#[test]
fn a_program_that_outlives_the_harness_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(
        folder.join("slow.sh"),
        "echo begun > begun\nsleep 2\necho done >> log\necho '{\"ok\": true}'\n",
    )
    .unwrap();
    fs::write(
        folder.join("tools.toml"),
        "[[tool]]\nname = 'slow'\ndescription = 'Slow.'\neffect = 'change'\n\
         program = ['sh', 'slow.sh']\ncheck = ['sh', '-c', 'grep -q done log']\n",
    )
    .unwrap();
    fs::write(
        folder.join("task.toml"),
        "name = 'n'\ngoal = 'g'\nstart = 'a'\nuses = ['tools.toml']\n\
         [state.a]\ntools = ['slow']\nask = false\ngo = [{ on = 'success', to = 'z' }]\n\
         [state.z]\nend = true\n",
    )
    .unwrap();
    let mut child = snaffle(folder, &["run", "--task", "task.toml"])
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !folder.join("begun").exists() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "the tool does not begin"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        !folder.join("log").exists(),
        "the program was to outlive the harness"
    );
    let rows = json_lines(folder, &["task", "list", "--json"]);
    let id = rows[0]["id"].as_str().unwrap();
    let output = snaffle(folder, &["task", "resume", id]).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(err.contains("waiting for a program"), "{err}");
    assert_eq!(fs::read_to_string(folder.join("log")).unwrap(), "done\n");
}
