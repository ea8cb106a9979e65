//! A small home of our own in the data set's form.

use super::dataset::{Case, read};
use super::mapping::{World, map};
use super::run::{group, run};
use crate::agent::{Clock, NoExamples, Settings, SystemClock};
use crate::bench::episode::Player;
use crate::bench::record::Record;
use crate::model::{Cancel, ScriptedGenerator};
use serde_json::json;

const FIXTURES: &str = r#"---
areas:
  - name: Kitchen
    id: kitchen
    floor: Ground
devices:
  - name: Lamp
    id: lamp
entities:
  - name: Lamp
    id: light.lamp
    area: kitchen
    device: lamp
    state: "off"
    attributes:
      supported_color_modes: [brightness]
      brightness: 51
  - name: Lamp
    id: switch.lamp
    attributes:
      device_class: switch.SwitchDeviceClass.OUTLET
    state: True
  - name: Blind
    id: cover.blind
    area: kitchen
    state: False
    attributes:
      device_class: cover.CoverDeviceClass.BLIND
      supported_features: [cover.CoverEntityFeature.SET_POSITION]
  - name: Speaker
    id: media_player.speaker
    state: playing
  - name: Fan
    id: fan.fan
    state: "off"
  - name: Heating
    id: climate.heating
    attributes: {hvac_mode: heat, current_temperature: 19, target_temperature: 21.5}
  - name: Warmth
    id: sensor.warmth
    state: 19.5
    attributes: {native_unit_of_measurement: °C}
  - name: Robot
    id: vacuum.robot
    state: docked
  - name: List
    id: todo.list
"#;

const REQUESTS: &str = r#"---
category: mixed
tests:
  - sentences: [Lamp on, Turn on the lamp]
    expect_changes:
      light.lamp: {state: "on"}
    ignore_changes:
      light.lamp: [brightness]
  - sentences: [Open the blind]
    setup:
      cover.blind: {state: closed, attributes: {current_position: 0}}
    expect_changes:
      cover.blind: {state: open}
  - sentences: [Blind to 50%]
    expect_changes:
      cover.blind: {state: open, attributes: {current_position: 50}}
  - sentences: [Turn on something]
    expect_changes:
      light.lamp: {state: "off"}
  - sentences: [Louder]
    expect_changes:
      media_player.speaker: {attributes: {volume_level: 0.9}}
  - sentences: [Pause]
    expect_changes:
      media_player.speaker: {state: paused}
  - sentences: [Fan on]
    expect_changes:
      fan.fan: {state: "on", attributes: {percentage: 100}}
  - sentences: [Fan at half speed]
    expect_changes:
      fan.fan: {state: "on", attributes: {percentage: 50}}
  - sentences: [Write down milk]
    expect_changes:
      todo.list: {state: "1"}
  - sentences: [Lights on here]
    context_device: speaker
    expect_changes:
      light.lamp: {state: "on"}
"#;

fn cases(fixtures: &str, requests: &str) -> Result<Vec<Case>, String> {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    fs_err::create_dir(&home).unwrap();
    fs_err::create_dir(folder.path().join("other")).unwrap();
    fs_err::write(home.join("_fixtures.yaml"), fixtures).unwrap();
    fs_err::write(home.join("mixed.yaml"), requests).unwrap();
    read(folder.path()).map_err(|error| error.to_string())
}

#[test]
fn what_has_a_counterpart_is_mapped_and_the_rest_has_its_reason() {
    let found: Vec<(String, Result<String, String>)> = cases(FIXTURES, REQUESTS)
        .unwrap()
        .iter()
        .map(|case| {
            let mapped = map(case).map(|world| group(case, &world));
            (case.id.clone(), mapped)
        })
        .collect();
    let mixed = || Ok("mixed".to_owned());
    let because = |why: &str| Err(why.to_owned());
    let expected = [
        ("1.1", mixed()),
        ("1.2", mixed()),
        ("2.1", mixed()),
        ("3.1", mixed()),
        ("4.1", Ok("nothing to change".to_owned())),
        (
            "5.1",
            because("media_player.volume_level has no counterpart"),
        ),
        (
            "6.1",
            because("a media_player that is \"paused\" has no counterpart"),
        ),
        ("7.1", mixed()),
        ("8.1", because("fan.percentage has no counterpart")),
        ("9.1", because("todo has no counterpart")),
        (
            "10.1",
            because("it depends on the device that it is said to"),
        ),
    ]
    .map(|(number, mapped)| (format!("home/mixed/{number}"), mapped));
    assert_eq!(found, expected);
}

#[test]
fn states_are_carried_over() {
    let world = map(&cases(FIXTURES, REQUESTS).unwrap()[0]).unwrap();
    assert_eq!(
        serde_json::to_value(&world.before).unwrap(),
        json!({
            "Lamp": {"on": false, "brightness": 20},
            "Lamp switch": {"on": true},
            "Blind": {"open": false, "position": 0},
            "Speaker": {"on": true},
            "Fan": {"on": false},
            "Heating": {"temperature": 21.5, "current": 19.0, "on": true},
            "Warmth": {"value": 19.5, "unit": "°C"},
            "Robot": {"on": false},
        })
    );
    assert_eq!(world.after["Lamp"]["on"], true);
    assert_eq!(world.left_out, ["todo.list"]);
}

fn play(number: usize, replies: &[&str]) -> (Record, World) {
    let case = cases(FIXTURES, REQUESTS).unwrap().remove(number);
    let world = map(&case).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut generator = ScriptedGenerator::new(replies.iter().copied());
    let mut player = Player {
        generator: &mut generator,
        examples: &mut NoExamples,
        clock: &|| -> Box<dyn Clock> { Box::new(SystemClock::start()) },
        settings: Settings {
            // What scripted calls do is looked at, not whether they were asked for.
            grounding: false,
            ..Settings::default()
        },
        cancel: Cancel::default(),
    };
    let path = folder.path().join("house.toml");
    let record = run(&mut player, &case, &world, &path).unwrap().unwrap();
    (record, world)
}

fn call(tool: &str, arguments: serde_json::Value) -> String {
    json!({"calls": [{"tool": tool, "arguments": arguments}]}).to_string()
}

#[test]
fn the_states_afterwards_decide() {
    let done = r#"{"answer": "Done."}"#;
    let on = |device: &str| call("turn_on", json!({ "device": device }));
    let (lamp, fan) = (on("Lamp"), on("Fan"));
    let open = call("open", json!({"device": "Blind"}));
    let half = call("set_position", json!({"device": "Blind", "position": 50}));
    let dim = call(
        "set_brightness",
        json!({"device": "Lamp", "brightness": 90}),
    );
    for (number, replies, error, wrong_effects) in [
        (0, vec![lamp.as_str(), done], None, 0),
        // The brightness is ignored.
        (0, vec![dim.as_str(), done], None, 0),
        (0, vec![done], Some("Lamp: on"), 0),
        (0, vec![&lamp, &fan, done], Some("Fan: on"), 1),
        (
            0,
            vec!["{", &lamp, done],
            Some("not at the first attempt: truncated"),
            0,
        ),
        // How far it is open is not stated, then it is.
        (2, vec![&open, done], None, 0),
        (2, vec![&half, done], None, 0),
        (3, vec![&half, done], None, 0),
        (3, vec![&open, done], Some("Blind: position"), 1),
        (4, vec![r#"{"ask": "What?"}"#], None, 0),
        (4, vec![&lamp, done], Some("Lamp: on"), 1),
    ] {
        let (record, _) = play(number, &replies);
        assert_eq!(record.error.as_deref(), error, "{number} {replies:?}");
        assert_eq!(record.wrong_effects, wrong_effects, "{number} {replies:?}");
        assert_eq!(record.right, error.is_none());
    }
}

#[test]
fn what_is_no_data_set_is_said() {
    for (fixtures, requests, says) in [
        ("a: [", REQUESTS, "_fixtures.yaml: "),
        (FIXTURES, "category: x", "mixed.yaml: "),
        (
            FIXTURES,
            "category: x\ntests:\n  - sentences: [a]\n    expect_changes:\n      light.none: {state: \"on\"}",
            "mixed.yaml: test 1: the home has no entity \"light.none\"",
        ),
    ] {
        let error = cases(fixtures, requests).unwrap_err();
        assert!(
            error.contains(says) && error.lines().count() == 1,
            "{error}"
        );
    }
    let empty = tempfile::tempdir().unwrap();
    let error = read(empty.path()).unwrap_err().to_string();
    assert!(error.contains("no folder with a _fixtures.yaml"), "{error}");
    assert!(read(&empty.path().join("none")).is_err());
}
