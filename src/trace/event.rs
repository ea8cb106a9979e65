//! What a trace tells: one event a line.

use serde::Serialize;
use serde_json::{Map, Value};

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run begins.
    RunStarted {
        /// This program's version.
        version: String,
        /// The model's name or file.
        model: String,
        /// The task, where it is journaled.
        #[serde(skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// What the person asked for.
        request: String,
        /// Settings that matter for reading the rest.
        settings: Value,
    },
    /// The prompt of a turn.
    Prompt {
        /// The turn, counted from 1.
        turn: u32,
        /// The prompt, in order.
        sections: Vec<Section>,
        /// Its length in tokens.
        tokens: u64,
        /// Those of them that are in no section: the chat template's own.
        #[serde(skip_serializing_if = "Option::is_none")]
        template: Option<u64>,
    },
    /// The grammar of a turn. The sink stores its text once, under its hash.
    Grammar {
        /// The turn.
        turn: u32,
        /// The text, in GBNF.
        text: String,
    },
    /// The few-shot examples that a prompt shows.
    Examples {
        /// The turn.
        turn: u32,
        /// Each as (id, request, reply).
        shown: Vec<(String, String, String)>,
    },
    /// What was generated.
    Generated {
        /// The turn.
        turn: u32,
        /// The text.
        text: String,
        /// Why it ended.
        stop: String,
        /// Natural logarithm of its probability.
        #[serde(skip_serializing_if = "Option::is_none")]
        log_probability: Option<f64>,
        /// Figures.
        figures: Figures,
        /// Its tokens one by one, where they were asked for.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tokens: Vec<Token>,
    },
    /// A choice of a closed set, with what every alternative scored.
    Choice {
        /// The turn.
        turn: u32,
        /// What was chosen: `tool`, or `turn_on.device`.
        place: String,
        /// The alternatives, best first.
        options: Vec<Scored>,
    },
    /// What was generated is no usable turn.
    Rejected {
        /// The turn.
        turn: u32,
        /// The kind of failure.
        kind: String,
        /// What was wrong, where.
        message: String,
    },
    /// A checked call is about to run.
    Call {
        /// Its step, counted from 1.
        step: u32,
        /// The tool.
        tool: String,
        /// The arguments.
        arguments: Map<String, Value>,
    },
    /// A person or the policy decided about a call.
    Approval {
        /// The tool.
        tool: String,
        /// The arguments.
        arguments: Map<String, Value>,
        /// Whether it may run.
        allowed: bool,
        /// Who decided and why.
        by: String,
    },
    /// What a call gave.
    Result {
        /// The call's step.
        step: u32,
        /// Whether it succeeded.
        ok: bool,
        /// The result, or the error's message.
        result: Value,
        /// What changed in the world.
        changes: Vec<String>,
        /// How long it ran, in microseconds.
        microseconds: u64,
    },
    /// The model is given a hint.
    Hint {
        /// The turn that failed.
        turn: u32,
        /// The kind of failure.
        kind: String,
        /// The hint.
        text: String,
    },
    /// The task moved to another state.
    StateMoved {
        /// From this one.
        from: String,
        /// To that one.
        to: String,
    },
    /// The task learned facts.
    Facts {
        /// New values by name.
        set: Map<String, Value>,
    },
    /// The model asks the person.
    Asked {
        /// The question.
        question: String,
    },
    /// The person replied.
    Replied {
        /// What was said.
        text: String,
    },
    /// The final answer.
    Answered {
        /// What the person is told.
        text: String,
        /// Why it is not to be believed, if so.
        #[serde(skip_serializing_if = "Option::is_none")]
        flagged: Option<String>,
    },
    /// The run ends.
    RunEnded {
        /// Why.
        reason: String,
        /// Turns, all tokens and all times of the run.
        turns: u32,
        /// Sums over the run.
        figures: Figures,
    },
    /// Anything else.
    Note {
        /// What it is about.
        name: String,
        /// The details.
        data: Value,
    },
}

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Section {
    /// What it is: `role`, `tools`, `examples`, `facts`, `request`, …
    pub name: String,
    /// Its text.
    pub text: String,
    /// Its tokens, where the backend can tell them apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// Figures of a generation or a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Prompt tokens that were already evaluated.
    pub prompt_reused: u64,
    /// Prompt tokens that were evaluated now.
    pub prompt_evaluated: u64,
    /// Tokens that were forced.
    pub forced: u64,
    /// Tokens that were chosen.
    pub chosen: u64,
    /// Masks asked for.
    pub masks: u64,
    /// Masks computed.
    pub masks_computed: u64,
    /// Time in masks, in microseconds.
    pub mask_microseconds: u64,
    /// Time in prefill, in microseconds.
    pub prefill_microseconds: u64,
    /// Time in all, in microseconds.
    pub total_microseconds: u64,
}

/// One generated token.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Token {
    /// Its text (invalid UTF-8 replaced).
    pub text: String,
    /// Whether nothing else was possible.
    pub forced: bool,
    /// Tokens that the grammar allowed.
    pub allowed: u32,
    /// Time for its mask, in nanoseconds.
    pub mask_nanoseconds: u64,
}

/// An alternative of a choice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scored {
    /// The alternative.
    pub text: String,
    /// Its probability among the alternatives.
    pub probability: f64,
}
