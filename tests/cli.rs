//! The program as a person meets it: help, settings, and every kind of bad input with its one
//! line and its exit code. No test here needs a model; those are in `cli_model.rs`.
#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod common;

use common::program::{snaffle, text};
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    snaffle(folder, arguments).output().unwrap()
}

/// The exit code and both streams, with the folder's name taken out.
fn outcome(folder: &Path, output: &Output) -> (i32, String, String) {
    let hide = |bytes: &[u8]| text(bytes).replace(&*folder.to_string_lossy(), "FOLDER");
    (
        output.status.code().unwrap_or(-1),
        hide(&output.stdout),
        hide(&output.stderr),
    )
}

#[test]
fn help_reads_well() {
    let folder = tempfile::tempdir().unwrap();
    for (name, arguments) in [
        ("help", &["-h"][..]),
        ("help_run", &["run", "-h"]),
        ("help_long_run", &["run", "--help"]),
        ("help_generate", &["generate", "-h"]),
        ("help_decide", &["decide", "-h"]),
        ("help_model_pull", &["model", "pull", "-h"]),
        ("help_bench_home", &["bench", "home", "-h"]),
    ] {
        let (code, out, err) = outcome(folder.path(), &run(folder.path(), arguments));
        assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
        insta::assert_snapshot!(name, out);
    }
}

#[test]
fn the_long_help_ends_with_the_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let (_, out, _) = outcome(folder.path(), &run(folder.path(), &["--help"]));
    assert!(out.trim_end().ends_with(&snaffle::cli::exit::Exit::help()));
}

#[test]
fn settings_say_where_they_come_from() {
    let folder = tempfile::tempdir().unwrap();
    let file = "max_turns = 3\nhouse = \"h.toml\"\n\n[policy]\nunlock = \"deny\"\n";
    fs::write(folder.path().join("snaffle.toml"), file).unwrap();
    let output = snaffle(
        folder.path(),
        &["config", "show", "--changed", "--seed", "7"],
    )
    .env("SNAFFLE_TOP_P", "0.5")
    .output()
    .unwrap();
    let (code, out, err) = outcome(folder.path(), &output);
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!("config_show", out);
}

#[test]
fn json_is_one_object_a_line_on_success_and_on_failure() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, _) = outcome(
        folder.path(),
        &run(folder.path(), &["--json", "config", "show"]),
    );
    assert_eq!(code, 0);
    for line in out.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(value["name"].is_string());
    }
    let (code, out, err) = outcome(folder.path(), &run(folder.path(), &["--json", "run", " "]));
    assert_eq!((code, out.as_str()), (5, ""));
    let value: serde_json::Value = serde_json::from_str(&err).unwrap();
    assert_eq!(value["error"]["kind"], "input");
}

#[test]
fn json_mode_writes_json_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in FILES {
        fs::write(folder.path().join(name), content).unwrap();
    }
    fs::write(folder.path().join("ok.gbnf"), "root ::= \"a\"\n").unwrap();
    let torn = "{\"event\":\"note\"}\n{\"event\":\"no";
    fs::write(folder.path().join("torn.jsonl"), torn).unwrap();
    fs::write(folder.path().join("cut.jsonl"), "").unwrap();
    let (code, out, err) = outcome(
        folder.path(),
        &run(folder.path(), &["trace", "show", "cut.jsonl"]),
    );
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", ""));
    for (arguments, code) in [
        (&["config", "show"][..], 0),
        (&["config", "explain"], 0),
        (&["completions", "fish"], 0),
        (&["model", "list"], 0),
        (&["model", "verify"], 0),
        (&["model", "info", "not.gguf"], 4),
        (&["model", "pull", "nothing-like-it"], 4),
        (&["grammar", "check", "ok.gbnf"], 0),
        (&["grammar", "check", "bad.gbnf"], 5),
        (&["task", "list"], 0),
        (&["task", "show", "1"], 8),
        (&["task", "resume", "1"], 8),
        (&["trace", "list"], 0),
        (&["trace", "show", "torn.jsonl"], 0),
        (&["trace", "show", "cut.jsonl"], 0),
        (&["trace", "show", "not.gguf"], 5),
        (&["run", "--house", "twice.toml", "x"], 5),
        (&["generate", "x"], 4),
        (&["frobnicate"], 2),
        (&["run", "--top-p"], 2),
    ] {
        let arguments = [&["--json"], arguments].concat();
        let (exit, out, err) = outcome(folder.path(), &run(folder.path(), &arguments));
        assert_eq!(exit, code, "{arguments:?}: {err}");
        for line in out.lines().chain(err.lines()) {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(value.is_object(), "{arguments:?}: {line}");
        }
        if code != 0 {
            assert_eq!(out, "", "{arguments:?}");
            let value: serde_json::Value = serde_json::from_str(&err).unwrap();
            assert_eq!(value["error"]["code"], code, "{arguments:?}");
        }
    }
    let journal = folder.path().join(".snaffle/journal.sqlite");
    assert!(!journal.exists(), "looking makes no journal");
}

#[test]
fn colour_is_for_those_who_want_it() {
    let folder = tempfile::tempdir().unwrap();
    let shown = |arguments: &[&str]| text(&run(folder.path(), arguments).stdout);
    assert!(!shown(&["config", "show"]).contains('\u{1b}'), "piped");
    let coloured = ["--color", "always", "config", "show"];
    assert!(shown(&coloured).contains('\u{1b}'));
    assert!(!shown(&["--color", "never", "config", "show"]).contains('\u{1b}'));
}

#[test]
fn completions_are_written_for_every_shell() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, out, _) = outcome(folder.path(), &run(folder.path(), &["completions", shell]));
        assert_eq!(code, 0);
        assert!(out.contains("dry-run"), "{shell}");
    }
}

/// A command line and what it must come to: the code, and what the first line on standard error
/// says.
struct Bad {
    arguments: &'static [&'static str],
    code: i32,
    says: &'static str,
}

const fn bad(arguments: &'static [&'static str], code: i32, says: &'static str) -> Bad {
    Bad {
        arguments,
        code,
        says,
    }
}

/// Files that the cases below name.
const FILES: [(&str, &str); 18] = [
    (
        "task.toml",
        "name = 'n'\nstart = 'a'\n[state.a]\ntools = ['none']\ngo = [{ on = 'success', to = 'b' }]\n",
    ),
    ("typo.toml", "name = 'n'\nstart = 'a'\nstat = {}\n"),
    (
        "goalless.toml",
        "name = 'n'\nstart = 'a'\nuses = ['world.toml']\n[state.a]\ntools = ['t']\n\
         go = [{ on = 'success', to = 'z' }]\n[state.z]\nend = true\n",
    ),
    (
        "world.toml",
        "[world]\nlist = []\n[[tool]]\nname = 't'\ndescription = 'd'\neffect = 'read'\n",
    ),
    ("bad.gbnf", "root ::= \"yes | \"no\"\n"),
    ("left.gbnf", "root ::= a\na ::= a \"x\" | \"y\"\n"),
    ("rootless.gbnf", "start ::= \"a\"\n"),
    (
        "kind.toml",
        "name = \"H\"\n[[area]]\nid = \"hall\"\n\n[[device]]\nid = \"lamp\"\nkind = \"toaster\"\narea = \"hall\"\nstate = { on = false }\n",
    ),
    (
        "twice.toml",
        "name = \"H\"\n[[area]]\nid = \"hall\"\n\n[[device]]\nid = \"lamp\"\nkind = \"switch\"\narea = \"hall\"\nstate = { on = false }\n\n[[device]]\nid = \"lamp\"\nkind = \"switch\"\narea = \"hall\"\nstate = { on = false }\n",
    ),
    (
        "good.toml",
        "name = \"H\"\n[[area]]\nid = \"hall\"\n\n[[device]]\nid = \"lamp\"\nkind = \"switch\"\narea = \"hall\"\nstate = { on = false }\n",
    ),
    (
        "schema.toml",
        "[[tool]]\nname = \"t\"\ndescription = \"d\"\nprogram = [\"sh\"]\n[tool.parameters]\ntype = 7\n",
    ),
    (
        "program.toml",
        "[[tool]]\nname = \"t\"\ndescription = \"d\"\nprogram = [\"no-such-program-here\"]\n[tool.parameters]\ntype = \"object\"\n",
    ),
    ("unknown.toml", "model = \"a\"\ntempature = 1\n"),
    ("not.gguf", "hello, this is no model at all"),
    ("empty.gguf", ""),
    ("examples.jsonl", "{\"request\": 1}\n"),
    ("words.json", "not json"),
    (
        "many.json",
        r#"{"properties":{"a":{},"b":{},"c":{},"d":{},"e":{},"f":{},"g":{},"h":{}}}"#,
    ),
];

const BAD: &[Bad] = &[
    bad(&["frobnicate"], 2, "unrecognized subcommand"),
    bad(&["run"], 2, "required arguments"),
    bad(&["run", "--top-p", "2", "x"], 3, "--top-p is 2"),
    bad(
        &["run", "--config", "unknown.toml", "x"],
        3,
        "unknown.toml:2: there is no setting \"tempature\"",
    ),
    bad(&["run", "--config", "none.toml", "x"], 3, "none.toml"),
    bad(
        &[
            "run",
            "--model",
            "random",
            "--house",
            "good.toml",
            "--policy",
            "opne=deny",
            "x",
        ],
        3,
        "there is no tool \"opne\"",
    ),
    bad(
        &["trace", "show", "world.toml"],
        5,
        "world.toml is no trace",
    ),
    bad(
        &["run", "--policy", "unlock=perhaps", "x"],
        3,
        "it wants allow, ask or deny",
    ),
    bad(
        &[
            "run",
            "--policy",
            "@nothing=deny",
            "--house",
            "good.toml",
            "x",
        ],
        3,
        "@nothing",
    ),
    bad(
        &["run", "--assistant=false", "x"],
        3,
        "there is no tool to act with",
    ),
    bad(&["run", ""], 5, "the request is empty"),
    bad(&["run", " \t "], 5, "the request is empty"),
    bad(&["run", "-"], 5, "the request is empty"),
    bad(&["run", "--house", "none.toml", "x"], 5, "none.toml"),
    bad(&["run", "--house", "kind.toml", "x"], 5, "kind.toml:7:"),
    bad(&["run", "--house", "twice.toml", "x"], 5, "twice.toml:12:"),
    bad(&["run", "--tools", "schema.toml", "x"], 5, "schema.toml:"),
    bad(
        &["run", "--tools", "program.toml", "x"],
        5,
        "no-such-program-here",
    ),
    bad(
        &["run", "--examples", "examples.jsonl", "x"],
        5,
        "examples.jsonl",
    ),
    bad(&["run", "x"], 4, "the model smollm2-135m is not there yet"),
    bad(
        &["run", "--model", "smolm2-135m", "x"],
        4,
        "no model \"smolm2-135m\"",
    ),
    bad(
        &["run", "--model", "./none.gguf", "x"],
        4,
        "no model file ./none.gguf",
    ),
    bad(&["run", "--model", "not.gguf", "x"], 4, "not a GGUF file"),
    bad(
        &["run", "--model", "empty.gguf", "x"],
        4,
        "the file is empty",
    ),
    bad(
        &["model", "pull", "nothing-like-it"],
        4,
        "the manifest has no model",
    ),
    bad(&["model", "info", "not.gguf"], 4, "not a GGUF file"),
    bad(&["model", "verify", "smollm2-135m"], 4, "is not there"),
    bad(&["grammar", "check", "bad.gbnf"], 5, "bad.gbnf: line 1"),
    bad(&["grammar", "check", "left.gbnf"], 5, "left"),
    bad(&["grammar", "check", "rootless.gbnf"], 5, "root"),
    bad(
        &["grammar", "check", "none.gbnf"],
        5,
        "none.gbnf: No such file",
    ),
    bad(&["grammar", "check", "."], 5, "is a folder"),
    bad(&["grammar", "compile", "words.json"], 5, "not JSON"),
    bad(
        &["grammar", "compile", "--key-order", "any", "many.json"],
        5,
        "many.json: rule `root` has 8 members in any order",
    ),
    bad(
        &["generate", "--key-order", "any", "x"],
        2,
        "--schema <FILE>",
    ),
    bad(&["generate", "--grammar", "left.gbnf", "x"], 5, "left"),
    bad(&["generate", ""], 5, "the request is empty"),
    bad(&["decide", "x"], 2, "required arguments"),
    bad(
        &["decide", "--yes-no", "--levels", "a,b", "x"],
        2,
        "cannot be used with",
    ),
    bad(
        &["decide", "--yes-no", "--at-least", "1.5", "x"],
        2,
        "a probability is a number from 0 to 1",
    ),
    bad(
        &["decide", "--yes-no", "--alpha", "2", "x"],
        3,
        "--alpha is 2",
    ),
    bad(&["decide", "--yes-no", " "], 5, "the question is empty"),
    bad(&["decide", "--yes-no", "-"], 5, "the question is empty"),
    bad(
        &["decide", "--options", "a", "x"],
        5,
        "two options or more, not 1",
    ),
    bad(
        &["decide", "--options", "a,,b", "x"],
        5,
        "option 2 is empty",
    ),
    bad(
        &["decide", "--levels", "low,high, low", "x"],
        5,
        "the option \"low\" is there twice",
    ),
    bad(
        &["decide", "--yes-no", "x"],
        4,
        "the model smollm2-135m is not there yet",
    ),
    bad(
        &[
            "decide",
            "--model",
            "random",
            "--options",
            "one,two",
            "--at-least",
            "1",
            "x",
        ],
        6,
        "nothing is decided: ",
    ),
    bad(&["task", "show", "1"], 8, "journal"),
    bad(&["task", "rewind", "1", "--to", "1"], 8, "journal"),
    bad(&["task", "rewind", "1"], 2, "required arguments"),
    bad(
        &["task", "graph", "none.toml"],
        5,
        "none.toml: No such file",
    ),
    bad(&["task", "graph", "."], 5, "is a folder"),
    bad(
        &["task", "check", "typo.toml"],
        5,
        "typo.toml:3: unknown field `stat`",
    ),
    bad(
        &["task", "check", "goalless.toml", "--tools", "bad.gbnf"],
        5,
        "bad.gbnf:1",
    ),
    bad(
        &["run", "--task", "task.toml", "--house", "good.toml", "x"],
        5,
        "task.toml:4: there is no tool \"none\"",
    ),
    bad(
        &["run", "--task", "none.toml", "x"],
        5,
        "none.toml: No such file",
    ),
    bad(
        &["run", "--task", "goalless.toml", "--model", "random"],
        2,
        "the request is missing",
    ),
    bad(
        &[
            "run",
            "--task",
            "goalless.toml",
            "--model",
            "random",
            "--after-turn",
            "none",
            "x",
        ],
        8,
        "none",
    ),
    bad(&["trace", "show", "1"], 5, "there is no trace \"1\""),
    bad(&["bench", "home", "--suite", "words.json"], 5, "words.json"),
];

#[test]
fn bad_input_gets_one_line_and_a_code_of_its_kind() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in FILES {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let mut wrong = Vec::new();
    for case in BAD {
        let (code, out, err) = outcome(folder.path(), &run(folder.path(), case.arguments));
        let right = code == case.code
            && out.is_empty()
            && err.starts_with("error: ")
            && err.contains(case.says)
            // One line, perhaps an excerpt with its caret or clap's usage; never a backtrace.
            && err.lines().count() <= 6;
        if !right {
            wrong.push(format!(
                "{:?}: code {code}, not {}, {err}{out}",
                case.arguments, case.code
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let journal = folder.path().join(".snaffle/journal.sqlite");
    assert!(!journal.exists(), "bad input must not touch the journal");
}

/// A GGUF header: version 3, so many tensors and values, and what follows.
fn gguf(tensors: u64, values: u64, rest: &[u8]) -> Vec<u8> {
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend(tensors.to_le_bytes());
    bytes.extend(values.to_le_bytes());
    bytes.extend(rest);
    bytes
}

fn gguf_text(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

/// A key with a text as its value.
fn gguf_value(name: &str, text: &str) -> Vec<u8> {
    [gguf_text(name), 8_u32.to_le_bytes().into(), gguf_text(text)].concat()
}

/// A tensor of 32-bit numbers.
fn gguf_tensor(dimensions: &[u64], offset: u64) -> Vec<u8> {
    let mut bytes = gguf_text("token_embd.weight");
    bytes.extend((dimensions.len() as u32).to_le_bytes());
    bytes.extend(dimensions.iter().flat_map(|d| d.to_le_bytes()));
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(offset.to_le_bytes());
    bytes.extend([0; 4096]);
    bytes
}

#[test]
fn hostile_model_files_are_refused_before_anything_is_allocated() {
    let folder = tempfile::tempdir().unwrap();
    let named = gguf_value("general.architecture", "llama");
    let with = |tensor: Vec<u8>| gguf(1, 1, &[named.clone(), tensor].concat());
    // Arrays in arrays in arrays, none of them ending.
    let mut nested = gguf_text("a");
    nested.extend(9_u32.to_le_bytes());
    for _ in 0..100_000 {
        nested.extend(9_u32.to_le_bytes());
        nested.extend(1_u64.to_le_bytes());
    }
    let mut endless = gguf_text("a");
    endless.extend(9_u32.to_le_bytes());
    endless.extend(8_u32.to_le_bytes());
    endless.extend((1_u64 << 61).to_le_bytes());
    let control = gguf(
        0,
        1,
        &gguf_value("general.architecture", "\u{1b}[2J\n\u{202e}x"),
    );
    let cases: [(&str, Vec<u8>); 12] = [
        ("cut off in the header", b"GGUF\x03\0".to_vec()),
        ("of another version", b"GGUF\x63\0\0\0".to_vec()),
        ("more tensors than bytes", gguf(1 << 60, 1, &named)),
        ("more values than bytes", gguf(0, 1 << 62, &named)),
        (
            "a text longer than the file",
            gguf(0, 1, &(1_u64 << 63).to_le_bytes()),
        ),
        ("an array longer than the file", gguf(0, 1, &endless)),
        ("arrays in arrays", gguf(0, 1, &nested)),
        (
            "dimensions that overflow",
            with(gguf_tensor(&[1 << 40, 1 << 40], 0)),
        ),
        ("too many dimensions", with(gguf_tensor(&[1; 9], 0))),
        (
            "an offset outside of the file",
            with(gguf_tensor(&[32], 1 << 50)),
        ),
        ("a name for the terminal", control),
        ("nothing but a header", gguf(0, 0, &[])),
    ];
    for (what, bytes) in cases {
        fs::write(folder.path().join("m.gguf"), bytes).unwrap();
        for arguments in [
            &["run", "--model", "m.gguf", "x"][..],
            &["model", "info", "m.gguf"],
        ] {
            let (code, out, err) = outcome(folder.path(), &run(folder.path(), arguments));
            assert_eq!((code, out.as_str()), (4, ""), "{what}: {err}");
            assert!(err.starts_with("error: m.gguf"), "{what}: {err}");
            assert_eq!(err.lines().count(), 1, "{what}: {err}");
            assert!(!err.contains('\u{1b}'), "{what}: {err}");
        }
    }
}

#[test]
fn two_runs_meet_at_the_house_whatever_their_state_folders_are() {
    let folder = tempfile::tempdir().unwrap();
    let house = FILES
        .iter()
        .find(|(name, _)| *name == "good.toml")
        .unwrap()
        .1;
    fs::write(folder.path().join("good.toml"), house).unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    let file = snaffle::tool::home::HouseFile::open(folder.path().join("good.toml")).unwrap();
    file.hold().unwrap();
    for house in ["good.toml", "sub/../good.toml"] {
        let arguments = ["run", "--house", house, "--state-dir", "elsewhere", "x"];
        let (code, out, err) = outcome(folder.path(), &run(folder.path(), &arguments));
        assert_eq!((code, out.as_str()), (7, ""), "{err}");
        let says = "error: another run is acting on the house FOLDER/good.toml\n hint: ";
        assert!(err.starts_with(says), "{err}");
    }
    // Looking needs no lock: what is missing then is the model.
    let arguments = ["run", "--house", "good.toml", "--dry-run", "x"];
    let (code, _, err) = outcome(folder.path(), &run(folder.path(), &arguments));
    assert_eq!(code, 4, "{err}");
    drop(file);
    let arguments = ["run", "--house", "good.toml", "x"];
    let (code, _, err) = outcome(folder.path(), &run(folder.path(), &arguments));
    assert_eq!(code, 4, "{err}");
    assert_eq!(
        fs::read_to_string(folder.path().join("good.toml")).unwrap(),
        house
    );
}

#[test]
#[cfg(unix)]
fn files_without_an_end_do_not_fill_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code) in [
        (&["run", "--house", "/dev/zero", "x"][..], 5),
        (&["run", "--tools", "/dev/zero", "x"], 5),
        (&["run", "--weather", "/dev/zero", "x"], 5),
        (&["run", "--examples", "/dev/zero", "x"], 5),
        (&["run", "--config", "/dev/zero", "x"], 3),
        (&["run", "--model", "/dev/zero", "x"], 4),
        (&["grammar", "check", "/dev/zero"], 5),
        (&["generate", "--schema", "/dev/zero", "x"], 5),
    ] {
        let (exit, out, err) = outcome(folder.path(), &run(folder.path(), arguments));
        assert_eq!((exit, out.as_str()), (code, ""), "{arguments:?}: {err}");
        assert!(
            err.starts_with("error: ") && err.contains("/dev/zero"),
            "{err}"
        );
    }
}

#[test]
fn a_hundred_thousand_parentheses_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let deep = format!(
        "root ::= {}\"a\"{}\n",
        "(".repeat(100_000),
        ")".repeat(100_000)
    );
    fs::write(folder.path().join("deep.gbnf"), deep).unwrap();
    let (code, _, err) = outcome(
        folder.path(),
        &run(folder.path(), &["grammar", "check", "deep.gbnf"]),
    );
    assert_eq!(code, 5, "{err}");
    assert!(err.starts_with("error: deep.gbnf"), "{err}");
    assert!(err.len() < 1000, "{} bytes", err.len());
}

#[test]
#[cfg(unix)]
fn a_reader_that_leaves_is_no_error_to_talk_about() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = snaffle(folder.path(), &["config", "explain"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let (code, _, err) = outcome(folder.path(), &output);
    // Where the program was faster than the reader, there was nothing to notice.
    assert!(matches!(code, 0 | 141), "{code}");
    assert_eq!(err, "");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = snaffle(folder.path(), &["config", "explain"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let (code, _, err) = outcome(folder.path(), &output);
    assert_eq!(code, 8);
    assert!(
        err.starts_with("error: standard output: No space left on device"),
        "{err}"
    );
}

/// A folder with a shipped task.
fn with_task(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/tasks");
    for file in [format!("{name}.toml"), format!("{name}.world.toml")] {
        fs::copy(examples.join(&file), folder.path().join(&file)).unwrap();
    }
    folder
}

#[test]
fn definitions_are_checked_and_drawn() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for name in ["flight", "approval", "desktop", "night"] {
        let file = examples.join(format!("tasks/{name}.toml"));
        let house = examples.join("houses/maple.toml");
        let (file, house) = (file.to_str().unwrap(), house.to_str().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let check = ["task", "check", file, "--house", house];
        let (code, out, err) = outcome(folder.path(), &run(folder.path(), &check));
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        assert!(
            out.ends_with("states, sound\n") && out.lines().count() == 1,
            "{out}"
        );
    }
    let folder = with_task("flight");
    for (format, beginning) in [("mermaid", "stateDiagram-v2\n"), ("svg", "<svg ")] {
        let graph = ["task", "graph", "flight.toml", "--format", format];
        let (code, out, _) = outcome(folder.path(), &run(folder.path(), &graph));
        assert_eq!(code, 0);
        assert!(
            out.starts_with(beginning) && out.contains("notify_passenger"),
            "{out}"
        );
    }
    fs::write(
        folder.path().join("wrong.toml"),
        "name = 'n'\nstart = 'a'\nuses = ['flight.world.toml']\n[state.a]\n\
         tools = ['search_flight']\ngo = [{ on = 'success', to = 'b' }]\n[state.c]\nend = true\n",
    )
    .unwrap();
    let (code, out, err) = outcome(
        folder.path(),
        &run(folder.path(), &["task", "check", "wrong.toml"]),
    );
    assert_eq!((code, err.as_str()), (5, ""));
    insta::assert_snapshot!("task_check", out);
}

#[test]
fn a_task_runs_without_a_model_and_is_rewound() {
    let folder = with_task("flight");
    let place = folder.path();
    let begin = [
        "run",
        "--task",
        "flight.toml",
        "--model",
        "random",
        "--seed",
    ];
    // A model that writes at random does not always find the way.
    let code = (0..40)
        .map(|seed| {
            let seed = seed.to_string();
            let arguments: Vec<&str> = begin.into_iter().chain([seed.as_str()]).collect();
            outcome(place, &run(place, &arguments)).0
        })
        .find(|code| *code == 0);
    assert_eq!(code, Some(0));
    let (_, out, _) = outcome(place, &run(place, &["--json", "task", "list"]));
    let done = out
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .find(|task| task["status"] == "answered")
        .unwrap();
    let id = done["id"].as_str().unwrap();
    let (code, out, _) = outcome(place, &run(place, &["task", "resume", id]));
    assert_eq!(code, 0, "{out}");
    let (code, out, err) = outcome(place, &run(place, &["task", "rewind", id, "--to", "1"]));
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("stands after step 1 again"), "{out}");
    assert!(
        out.contains("not undone: what was done in the world stays done"),
        "{out}"
    );
    assert!(out.contains("bookings: + {"), "{out}");
    let (_, out, _) = outcome(place, &run(place, &["task", "show", id]));
    assert!(
        out.contains("(abandoned)") && out.contains("rewound"),
        "{out}"
    );
    for (to, says) in [("--to=99", "no step 99"), ("--event=999", "no event 999")] {
        let (code, _, err) = outcome(place, &run(place, &["task", "rewind", id, to]));
        assert_eq!(code, 5, "{err}");
        assert!(err.contains(says), "{err}");
    }
}

#[test]
fn a_broken_journal_can_be_read_and_rewound() {
    let folder = with_task("desktop");
    let place = folder.path();
    let (code, _, err) = outcome(
        place,
        &run(
            place,
            &[
                "run",
                "--task",
                "desktop.toml",
                "--model",
                "random",
                "--max-turns",
                "3",
            ],
        ),
    );
    assert!(matches!(code, 0 | 6 | 10 | 11), "{err}");
    let (_, out, _) = outcome(place, &run(place, &["--json", "task", "list"]));
    let row: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    let id = row["id"].as_str().unwrap();
    let journal = place.join(".snaffle/journal.sqlite");
    let connection = rusqlite::Connection::open(&journal).unwrap();
    let harm = "UPDATE event SET body = body || ' ' WHERE sequence > 6";
    assert!(connection.execute(harm, []).unwrap() > 0);
    drop(connection);
    let (code, _, err) = outcome(place, &run(place, &["task", "resume", id]));
    assert_eq!(code, 5, "{err}");
    assert!(
        err.contains("can only be read") && err.contains("task rewind"),
        "{err}"
    );
    let (code, out, err) = outcome(place, &run(place, &["task", "show", id]));
    assert_eq!(code, 0);
    assert!(
        out.contains("created") && err.contains("damaged") && err.contains("rewind"),
        "{err}"
    );
    let (code, _, err) = outcome(place, &run(place, &["task", "rewind", id, "--to", "1"]));
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("the journal was damaged"), "{err}");
    let (code, _, err) = outcome(
        place,
        &run(place, &["task", "resume", id, "--max-turns", "1"]),
    );
    assert!(matches!(code, 0 | 6 | 10 | 11), "{err}");
}

#[test]
fn what_the_model_is_unsure_of_is_asked_about() {
    let mut codes = Vec::new();
    for seed in 0..12 {
        let folder = with_task("desktop");
        let place = folder.path();
        let seed = format!("--seed={seed}");
        let arguments = [
            "run",
            "--task=desktop.toml",
            "--model=random",
            "--ask-below=1",
            "--yes",
            &seed,
        ];
        let (code, out, err) = outcome(place, &run(place, &arguments));
        codes.push(code);
        if code == 9 {
            assert!(err.contains("nobody is there to ask"), "{out}{err}");
        }
        let changed = fs::read_dir(place).unwrap().any(|entry| {
            let name = entry.unwrap().file_name();
            name.to_string_lossy().ends_with("state.json")
        });
        assert!(!changed, "{out}{err}");
    }
    assert!(codes.contains(&9), "{codes:?}");
}

#[test]
#[cfg(unix)]
fn a_program_after_each_turn_can_stop_the_run() {
    use std::os::unix::fs::PermissionsExt;
    let folder = with_task("desktop");
    let place = folder.path();
    let hook = place.join("hook.sh");
    let script =
        "#!/bin/sh\nread -r task\ncase $task in *'\"turn\":1'*) echo enough >&2; exit 1;; esac\n";
    fs::write(&hook, script).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let arguments = [
        "run",
        "--task",
        "desktop.toml",
        "--model",
        "random",
        "--after-turn",
        "hook.sh",
    ];
    let (code, out, err) = outcome(place, &run(place, &arguments));
    assert_eq!(code, 12, "{out}{err}");
    assert!(
        out.contains("stopped after a turn: failed with exit code 1: enough"),
        "{out}"
    );
    assert!(err.contains("task resume"), "{err}");
}

#[test]
fn lines_on_standard_input_steer_where_they_are_listened_to() {
    use std::io::Write;
    let folder = with_task("desktop");
    let place = folder.path();
    let arguments = [
        "--json",
        "run",
        "--task",
        "desktop.toml",
        "--model",
        "random",
        "--listen",
        "--max-turns",
        "30",
    ];
    let mut child = snaffle(place, &arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // A run may be over before a line has come through: then it was not heard.
    _ = input.write_all(b"the cheapest one\n+ and another\n");
    drop(input);
    let (code, out, err) = outcome(place, &child.wait_with_output().unwrap());
    assert!(matches!(code, 0 | 6 | 10 | 11), "{code} {err}");
    let events: Vec<serde_json::Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = events.last().unwrap();
    assert_eq!(last["event"], "stopped");
    assert!(last["why"].as_str().is_some_and(|why| !why.is_empty()));
    assert!(
        events.iter().any(|event| event["event"] == "heard"),
        "{out}"
    );
}

#[test]
fn a_decision_is_one_of_the_options_and_says_how_likely_each_is() {
    let folder = tempfile::tempdir().unwrap();
    let decide = |arguments: &[&str]| {
        let all = [&["decide", "--model", "random"], arguments].concat();
        outcome(folder.path(), &run(folder.path(), &all))
    };
    let parsed = |(code, out, err): (i32, String, String)| -> serde_json::Value {
        assert_eq!((code, err.as_str()), (0, ""));
        serde_json::from_str(&out).unwrap()
    };
    // Piped: the answer and nothing else, in the person's own words.
    let (code, out, err) = decide(&[
        "Which?",
        "--option",
        "one, two",
        "--option",
        "\"три\" 三 💡",
    ]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        matches!(out.as_str(), "one, two\n" | "\"три\" 三 💡\n"),
        "{out}"
    );

    let value = parsed(decide(&["Is it?", "--yes-no", "--json", "--alpha", "0.5"]));
    let options = value["options"].as_array().unwrap();
    let probability = |at: usize| options[at]["probability"].as_f64().unwrap();
    assert!((probability(0) + probability(1) - 1.0).abs() < 1e-9);
    assert_eq!(value["answer"], probability(0) > probability(1));
    assert_eq!(
        (&value["decided"], &value["alpha"]),
        (&true.into(), &0.5.into())
    );

    let value = parsed(decide(&["How?", "--levels", "low,middle,high", "--json"]));
    let number = value["level"].as_u64().unwrap();
    assert_eq!(
        value["answer"],
        ["low", "middle", "high"][number as usize - 1]
    );
    let expected = value["expected"].as_f64().unwrap();
    assert!((1.0..=3.0).contains(&expected));

    // Too unsure: machines see why, and both streams are JSON.
    let (code, out, err) = decide(&[
        "Is it?",
        "--options",
        "one,two",
        "--json",
        "--at-least",
        "1",
    ]);
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &value["answer"]), (6, &serde_json::Value::Null));
    let error: serde_json::Value = serde_json::from_str(&err).unwrap();
    assert_eq!(error["error"]["kind"], "unfinished");
    let (code, out, err) = decide(&["Is it?", "--options", "one,two", "--at-least", "1"]);
    assert_eq!((code, out.as_str()), (6, ""));
    assert!(err.contains("hint: ") && err.contains("one "), "{err}");
}

#[test]
fn a_question_comes_on_standard_input() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["decide", "--model", "random", "--yes-no", "-"];
    let mut child = snaffle(folder.path(), &arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"Is it\nso?\n")
        .unwrap();
    let (code, out, err) = outcome(folder.path(), &child.wait_with_output().unwrap());
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(matches!(out.as_str(), "yes\n" | "no\n"), "{out}");
}

/// Random logits are over bytes: a section has as many tokens as its text has bytes, but for line
/// ends between two of them.
#[test]
fn prompts_are_explained_token_by_token() {
    let folder = with_task("flight");
    let place = folder.path();
    let begin = [
        "run",
        "--task",
        "flight.toml",
        "--model",
        "random",
        "--explain",
    ];
    let mut names = std::collections::BTreeSet::new();
    for seed in ["1", "2", "3", "4", "5", "6"] {
        let arguments = [&begin[..], &["--json", "--seed", seed]].concat();
        let (_, out, _) = outcome(place, &run(place, &arguments));
        let events: Vec<serde_json::Value> = out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let of = |kind: &str| -> Vec<&serde_json::Value> {
            events
                .iter()
                .filter(|event| event["event"] == kind)
                .collect()
        };
        let (prompts, generated) = (of("prompt"), of("generated"));
        assert!(!prompts.is_empty());
        assert_eq!(prompts.len(), of("turn_started").len());
        for (prompt, generated) in prompts.iter().zip(&generated) {
            let mut sum = prompt["template"].as_u64().unwrap();
            for section in prompt["sections"].as_array().unwrap() {
                let tokens = section["tokens"].as_u64().unwrap();
                let bytes = section["text"].as_str().unwrap().len() as u64;
                assert!(tokens.abs_diff(bytes) <= 1, "{section}");
                names.insert(section["name"].as_str().unwrap().to_owned());
                sum += tokens;
            }
            assert_eq!(prompt["tokens"], sum);
            assert_eq!(prompt["turn"], generated["turn"]);
            let read = ["prompt_reused", "prompt_evaluated"];
            let read: u64 = read
                .iter()
                .map(|key| generated[key].as_u64().unwrap())
                .sum();
            assert!(read == sum || read == 0, "{generated}");
        }
    }
    for name in ["role", "examples", "request", "facts", "step"] {
        assert!(names.contains(name), "{names:?}");
    }
    // For a person, also where nothing is done; and the trace has the same counts.
    let arguments = [&begin[..], &["--dry-run", "--seed", "1"]].concat();
    let (_, out, _) = outcome(place, &run(place, &arguments));
    assert!(out.contains("\n  1  prompt\n     role "), "{out}");
    assert!(
        out.contains("\n     in all ") && out.contains("\n     evaluated "),
        "{out}"
    );
    let traces = outcome(place, &run(place, &["trace", "list"])).1;
    let last = traces.lines().last().unwrap();
    let (_, shown, _) = outcome(place, &run(place, &["trace", "show", last]));
    assert!(shown.contains(" tokens: role "), "{shown}");
    // Without being asked for, nothing of it is shown.
    let (_, out, _) = outcome(place, &run(place, &begin[..5]));
    assert!(!out.contains("in all"), "{out}");
}
