//! The program where nothing can be written: a full disk and a read-only folder, one after another
//! in the place of everything that a run writes. Real ones, in a mount namespace of the test's own;
//! where the system does not allow that, the tests say so and are skipped.
#![cfg(all(feature = "llama", target_os = "linux"))]
#![expect(clippy::print_stderr, reason = "says why a test is skipped")]
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failing helper fails its test; the tools beside the program need a path"
)]

mod common;

use common::alone;
use common::place::{Place, read};
use std::process::{Command, Stdio};

/// `$1`: `full` or `read-only`; `$2`: what must not change; the rest is the program's command line.
/// What lies in `before` lies in the folder `narrow` when the program is run. Ends with the
/// program's code; with 98 where a file is another one afterwards, with 99 where a temporary one
/// was left.
const SCRIPT: &str = r#"
mount -t tmpfs -o size=512k none narrow || exit 97
how=$1 watched=$2; shift 2
cp -r before/. narrow/
case $how in
full) dd if=/dev/zero of=narrow/filler bs=1k 2>/dev/null ;;
read-only) mount -o remount,ro narrow || exit 97 ;;
esac
known=$(find $watched -type f)
cksum $known >sums
"$SNAFFLE" "$@"
code=$?
cksum $known | cmp -s - sums || { echo "files changed: $(cksum $known | diff sums -)" >&2; exit 98; }
left=$(find narrow -name '.*' ! -name '*.lock')
[ -z "$left" ] || { echo "left over: $left" >&2; exit 99; }
exit $code
"#;

/// Runs the program with the folder `narrow` in this state; `None` where that is not permitted.
fn narrowed(
    place: &Place,
    how: &str,
    watched: &str,
    arguments: &[&str],
) -> Option<(i32, String, String)> {
    for folder in ["narrow", "before"] {
        std::fs::create_dir_all(place.folder.path().join(folder)).unwrap();
    }
    let like = place.command(&[]);
    let mut command = Command::new("unshare");
    command
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            SCRIPT,
            "sh",
        ])
        .args([how, watched])
        .args(arguments)
        .current_dir(place.folder.path())
        .env_clear()
        .envs(
            like.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("SNAFFLE", env!("CARGO_BIN_EXE_snaffle"))
        .stdin(Stdio::null());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: unshare: {error}");
            return None;
        }
    };
    let (code, out, err) = read(&output);
    if code == 97 || err.starts_with("unshare: ") {
        eprintln!("skipped: no mount namespace here: {err}");
        return None;
    }
    Some((code, out, err))
}

const REQUEST: &str = "turn on the kitchen light";

/// What is narrow, and the flags that put it there.
const NARROW: [(&str, &[&str]); 6] = [
    ("house", &["--house", "narrow/house.toml"]),
    ("journal", &["--journal", "narrow/journal.sqlite"]),
    (
        "journal's folder",
        &["--journal", "narrow/new/journal.sqlite"],
    ),
    ("state", &["--state-dir", "narrow/state"]),
    ("trace", &["--trace-dir", "narrow/traces"]),
    ("outbox", &["--outbox", "narrow/outbox"]),
];

fn one_line_and_nothing_changed(how: &str) {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    // A journal that a run has left, a house, an outbox with a message.
    let before = place.folder.path().join("before");
    std::fs::create_dir_all(before.join("outbox")).unwrap();
    std::fs::write(before.join("outbox/1.eml"), "Subject: x\r\n").unwrap();
    let house = place.folder.path().join("house.toml");
    std::fs::copy(house, before.join("house.toml")).unwrap();
    let (code, _, err) = place.run(&[
        "run",
        "--journal",
        "before/journal.sqlite",
        "--yes",
        REQUEST,
    ]);
    assert_eq!(code, 0, "{err}");

    for (what, flags) in NARROW {
        let mut arguments = vec!["run"];
        arguments.extend(flags);
        arguments.push("turn on the bedroom light");
        let Some((code, _, err)) = narrowed(&place, how, "narrow house.toml", &arguments) else {
            return;
        };
        assert_eq!(code, 8, "{how} {what}: {err}");
        let mut lines = err.lines();
        assert!(
            lines.next().unwrap().starts_with("error: "),
            "{what}: {err}"
        );
        assert!(
            lines.all(|line| line.starts_with(" hint: ")),
            "{what}: {err}"
        );
        let reason = ["No space left", "disk is full", "Read-only", "read-only"];
        assert!(
            reason.iter().any(|words| err.contains(words)),
            "{what}: {err}"
        );
    }
    // No task was begun in the journal that could be written.
    assert!(place.tasks().is_empty());

    // A prefix that cannot be kept costs time, nothing else.
    let flags = ["run", "--prefix-cache", "narrow/prefix", REQUEST];
    let Some((code, out, err)) = narrowed(&place, how, "narrow", &flags) else {
        return;
    };
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("turn_on"), "{out}");
    assert!(err.starts_with("warning: "), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
}

#[test]
fn a_full_disk_gets_one_line_and_changes_nothing() {
    one_line_and_nothing_changed("full");
}

#[test]
fn a_read_only_folder_gets_one_line_and_changes_nothing() {
    one_line_and_nothing_changed("read-only");
}
