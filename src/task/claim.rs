//! Answers that claim an effect although no call had one.
//!
//! A small model likes to say "I've turned off the light" without having done anything. The check
//! is a plain heuristic over claim words, in English, Russian and Chinese; an answer in another
//! language is never flagged. It errs on the side of silence: "the door is locked" reports a
//! state and is not flagged; "I locked the door", "it has been locked", "done" are. A passive
//! claim ("has been locked", "已锁") is also what one says after reading a state, so it counts only
//! where no call succeeded at all; so does a state that is told as tools tell it ("hall fan: on").

use super::event::StepResult;
use super::flag::{Flag, FlagReason};
use super::state::Task;
use regex::Regex;
use std::sync::LazyLock;

/// Participles of effects, in English.
macro_rules! english {
    () => {
        "turned|switched|set|dimmed|brightened|raised|lowered|locked|unlocked|opened|closed|shut|\
         sent|emailed|mailed|started|stopped|changed|adjusted|activated|deactivated|enabled|\
         disabled|deleted|created|saved|booked|scheduled|updated|moved|completed|finished|done"
    };
}

/// Claims made by who did it.
static ACTIVE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let english = concat!(
        r"\b(?:i|we)(?:['’]ve| have| did| just| already| now)*(?: just| already| now)? (?:",
        english!(),
        r")\b|(?:^|[.!,;:]\s*)(?:ok(?:ay)?,? |sure,? |successfully )*(?:",
        english!(),
        r")\b"
    );
    // The past tense agrees with gender and number: -л, -ла, -ло, -ли.
    let russian = r"\b(?:включил|выключил|отключил|открыл|закрыл|запер|отпер|заблокировал|разблокировал|установил|поставил|отправил|послал|сделал|изменил|приглушил|погасил|зажёг|зажег|запустил|остановил)(?:а|и|о)?\b|\b(?:готово|сделано)\b";
    let chinese = r"(?:我|已|已经|帮您|帮你|为您|为你)[^。，,.]{0,12}?(?:打开|开启|关闭|关掉|关上|锁上|锁好|解锁|设置|调|发送|完成)[^。，,.]{0,12}?了|(?:打开|开启|关闭|关掉|关上|锁上|锁好|解锁|设置|设定|发送|调好|办好|搞定|做好|完成)了";
    Regex::new(&format!("(?i){english}|{russian}|{chinese}")).ok()
});

/// Claims that could as well report a state.
static PASSIVE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let english = concat!(
        r"\b(?:has|have)(?: now| just| already)? been(?: successfully)? (?:",
        english!(),
        r")\b|\b(?:is|are) now (?:on|off|open|",
        english!(),
        r")\b|\b(?:was|were)(?: successfully)? (?:",
        english!(),
        r")\b|\b\w+: (?:on|off|open)(?:$|[.,;!])"
    );
    let russian = r"\bтеперь (?:включ|выключ|открыт|закрыт|заперт|заблокирован)\p{L}*|\b(?:был[аио]?) (?:включ|выключ|открыт|закрыт|заперт|отправлен|установлен)\p{L}*|\b\w+: (?:включ|выключ|открыт|закрыт|заперт)\p{L}*";
    let chinese = r"(?:已|已经|被)(?:打开|开启|关闭|关掉|关上|锁|解锁|设置|设为|调|发送|完成)|\p{Han}+[：:] ?已?(?:开|关|锁|解锁)(?:$|[，。；！])";
    Regex::new(&format!("(?i){english}|{russian}|{chinese}")).ok()
});

/// Flags an answer that claims an effect although no call of the task had one.
pub fn flag_answer(answer: &str, task: &Task) -> Option<Flag> {
    if task.effects > 0 {
        return None;
    }
    let found = |pattern: &LazyLock<Option<Regex>>| {
        let found = pattern.as_ref()?.find(answer)?;
        Some(
            found
                .as_str()
                .trim_matches(|c: char| !c.is_alphanumeric())
                .to_owned(),
        )
    };
    let words = match found(&ACTIVE) {
        // "front door: locked" is what was read.
        Some(words) if task.reads > 0 && !is_personal(&words) && was_read(&words, task) => None,
        None if task.reads == 0 => found(&PASSIVE),
        words => words,
    }?;
    Some(Flag {
        reason: FlagReason::ClaimsEffect,
        words,
    })
}

/// Whether a claim says who did it.
fn is_personal(words: &str) -> bool {
    let first = words.split(|c: char| !c.is_alphabetic()).next();
    first.is_some_and(|first| first.eq_ignore_ascii_case("i") || first.eq_ignore_ascii_case("we"))
}

/// Whether the last result holds the last of these words.
fn was_read(words: &str, task: &Task) -> bool {
    let Some(StepResult::Ok(value)) = task.last.as_ref().and_then(|last| last.result.as_ref())
    else {
        return false;
    };
    let last = words.split_whitespace().next_back().map(str::to_lowercase);
    let said = value.to_string().to_lowercase();
    last.is_some_and(|last| {
        said.split(|c: char| !c.is_alphanumeric())
            .any(|word| word == last)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Call;
    use crate::task::LastStep;
    use crate::task::{ActiveTask, Definition, TaskId};

    fn task(reads: u32, effects: u32) -> Task {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let id = TaskId::new(now, 0);
        let active = ActiveTask::unrecorded(
            id,
            "goal",
            Definition::builtin(),
            serde_json::Value::Null,
            now,
        );
        let mut task = active.unwrap().task().clone();
        (task.reads, task.effects) = (reads, effects);
        task
    }

    #[test]
    fn what_was_read_may_be_told() {
        let mut task = task(1, 0);
        task.last = Some(LastStep {
            step: 1,
            call: Call::new("get_state", [("device", "front door")]),
            result: Some(StepResult::Ok(
                serde_json::json!({"locked": true, "text": "front door: locked"}),
            )),
        });
        for answer in ["front door: locked", "Locked.", "OK, locked"] {
            assert_eq!(flag_answer(answer, &task), None, "{answer}");
        }
        for answer in [
            "I have locked it",
            "We locked the door",
            "front door: opened",
        ] {
            assert!(flag_answer(answer, &task).is_some(), "{answer}");
        }
        task.last = None;
        assert!(flag_answer("front door: locked", &task).is_some());
    }

    #[test]
    fn the_patterns_compile() {
        assert!(ACTIVE.is_some() && PASSIVE.is_some());
    }

    #[test]
    fn claims_without_an_effect_are_flagged() {
        for (answer, words) in [
            ("I've turned off the kitchen light.", "I've turned"),
            ("I have just locked the front door", "I have just locked"),
            ("Done! Anything else?", "Done"),
            ("OK, turned on.", "OK, turned"),
            ("We already sent it", "We already sent"),
            ("Sure, done", "Sure, done"),
            ("The light has been turned on.", "has been turned"),
            ("The door is now locked.", "is now locked"),
            ("The email was sent.", "was sent"),
            ("Я включила свет на кухне.", "включила"),
            ("Готово!", "Готово"),
            ("Дверь теперь закрыта", "теперь закрыта"),
            ("Письмо было отправлено.", "было отправлено"),
            ("我已经把灯打开了。", "我已经把灯打开了"),
            ("好的，设置好了，关闭了", "关闭了"),
            ("门已锁", "已锁"),
            ("hall fan: on", "fan: on"),
            ("kitchen light: off, brightness 80%", "light: off"),
            ("свет на кухне: включён", "кухне: включён"),
            ("厨房灯：开", "厨房灯：开"),
        ] {
            let flag = flag_answer(answer, &task(0, 0));
            let found = flag.map(|flag| flag.words);
            assert_eq!(found.as_deref(), Some(words), "{answer}");
            assert_eq!(flag_answer(answer, &task(0, 1)), None, "{answer}");
        }
    }

    #[test]
    fn reports_and_refusals_are_not() {
        for answer in [
            "The door is locked.",
            "The kitchen light is on, at 60%.",
            "There is no attic light.",
            "The meeting: on Monday",
            "Opening hours: open from nine",
            "You're welcome!",
            "I can turn on the light if you like.",
            "I cannot do that: the fan has no speed setting.",
            "The set of tools is small.",
            "Дверь закрыта.",
            "Я не нашёл такой лампы.",
            "Свет включён.",
            "Могу включить свет.",
            "门是锁着的。",
            "没有这个设备。",
            "客厅的灯开着。",
            "",
        ] {
            assert_eq!(flag_answer(answer, &task(0, 0)), None, "{answer}");
        }
        // After a look, a passive form reports what was seen.
        for answer in [
            "The door has been locked.",
            "The light is now on.",
            "门已锁",
            "hall fan: on",
        ] {
            assert_eq!(flag_answer(answer, &task(1, 0)), None, "{answer}");
        }
    }
}
