//! The shipped tasks in a folder of their own, and two models that need no file: one that knows
//! the way, and one that writes at random.

use snaffle::agent::{
    Agent, AgentError, Clock, Doubt, Layout, Limits, NoExamples, Observer, Person, Report,
    Settings, ToolsInPrompt,
};
use snaffle::call::{Call, ToolSpec};
use snaffle::decode::SessionGenerator;
use snaffle::mask::{Lexicon, MaskStore, Matcher};
use snaffle::model::{
    Cancel, ChatTemplate, GenerateError, GenerateRequest, Generation, GenerationStats, Generator,
    Prompt, RandomSession, Sampling, Stop,
};
use snaffle::task::{ActiveTask, Definition, Pending, Settlement, Source, TaskId};
use snaffle::tool::home::HouseFile;
use snaffle::tool::{Registry, Tool, home, simulated};
use snaffle::trace::Null;
use snaffle::vocab::Vocabulary;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A shipped task and a way through it.
pub struct Example {
    pub name: &'static str,
    /// Calls that lead to its end, each as (tool, arguments); of those that are legal the *first*
    /// is made.
    pub way: &'static [(&'static str, &'static str)],
    /// Lists of its world that its effects add to, with the number of items at the end.
    pub effects: &'static [(&'static str, usize)],
}

pub const EXAMPLES: [Example; 4] = [
    Example {
        name: "flight",
        way: &[
            (
                "notify_passenger",
                r#"{"passenger": "Ada Lindgren", "booking": "B1"}"#,
            ),
            (
                "book_flight",
                r#"{"flight": "SN 105", "passenger": "Ada Lindgren"}"#,
            ),
            ("search_flights", r#"{"to": "Oslo"}"#),
        ],
        effects: &[("bookings", 1), ("messages", 1)],
    },
    Example {
        name: "approval",
        way: &[
            (
                "notify_author",
                r#"{"author": "Mira", "document": "contract with Nordwind", "decision": "approved"}"#,
            ),
            (
                "approve_document",
                r#"{"document": "contract with Nordwind"}"#,
            ),
            (
                "check_document",
                r#"{"document": "contract with Nordwind"}"#,
            ),
        ],
        effects: &[("decisions", 1), ("messages", 1)],
    },
    Example {
        name: "desktop",
        way: &[
            ("close_program", r#"{"program": "editor"}"#),
            ("close_program", r#"{"program": "browser"}"#),
            ("save_file", r#"{"program": "editor", "name": "note.txt"}"#),
            (
                "type_text",
                r#"{"program": "editor", "text": "the heating is repaired"}"#,
            ),
            ("open_program", r#"{"program": "editor"}"#),
            ("list_open_programs", "{}"),
        ],
        effects: &[("keys", 1), ("files", 1)],
    },
    Example {
        name: "night",
        way: &[
            ("turn_off", r#"{"device": "kitchen light"}"#),
            ("turn_off", r#"{"device": "living room lamp"}"#),
            ("turn_off", r#"{"device": "hall light"}"#),
            ("turn_off", r#"{"device": "bedroom light"}"#),
            ("close", r#"{"device": "bedroom window"}"#),
            ("close", r#"{"device": "living room curtains"}"#),
            ("lock", r#"{"device": "front door"}"#),
        ],
        effects: &[],
    },
];

/// What the model would write for one call.
pub fn reply(tool: &str, arguments: &str) -> String {
    format!("{{\"calls\": [{{\"tool\": \"{tool}\", \"arguments\": {arguments}}}]}}")
}

/// Copies the files of a shipped task into `folder`.
pub fn lay_out(name: &str, folder: &Path) {
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples");
    for file in [
        format!("tasks/{name}.toml"),
        format!("tasks/{name}.world.toml"),
        "houses/maple.toml".to_owned(),
    ] {
        let from = examples.join(&file);
        if from.exists() {
            std::fs::copy(&from, folder.join(from.file_name().unwrap())).unwrap();
        }
    }
}

/// The tools of a task that was laid out in `folder`, each passed through `watch`.
pub fn tools_in(
    name: &str,
    folder: &Path,
    watch: &dyn Fn(Box<dyn Tool>) -> Box<dyn Tool>,
) -> Registry {
    let world = folder.join(format!("{name}.world.toml"));
    let tools = if world.exists() {
        simulated::tools(&world).unwrap()
    } else {
        home::tools(&Arc::new(
            HouseFile::open(folder.join("maple.toml")).unwrap(),
        ))
    };
    let mut registry = Registry::new();
    registry.register_all(tools.into_iter().map(watch)).unwrap();
    registry
}

/// The definition of a task that was laid out in `folder`, without a fault.
pub fn definition_in(name: &str, folder: &Path, registry: &Registry) -> Definition {
    let source = Source::read(&folder.join(format!("{name}.toml"))).unwrap();
    let tools: Vec<Arc<ToolSpec>> = registry.specs().cloned().collect();
    assert_eq!(source.faults(Some(&tools)), [], "{name}");
    source.definition
}

/// A list of a simulated world, as it is now.
pub fn list_in(name: &str, folder: &Path, list: &str) -> Vec<serde_json::Value> {
    let path = folder.join(format!("{name}.world.state.json"));
    let Ok(text) = std::fs::read_to_string(path) else {
        return Vec::new();
    };
    let state: serde_json::Value = serde_json::from_str(&text).unwrap();
    state[list].as_array().cloned().unwrap_or_default()
}

/// A model that knows the way: it writes the first of its replies that the grammar accepts.
pub struct Guide {
    replies: Vec<String>,
    lexicon: Arc<Lexicon>,
    store: Arc<MaskStore>,
}

impl Guide {
    pub fn new(way: &[(&str, &str)]) -> Self {
        Self {
            replies: way.iter().map(|(tool, args)| reply(tool, args)).collect(),
            lexicon: Arc::new(Lexicon::new(Arc::new(Vocabulary::of_bytes()))),
            store: Arc::new(MaskStore::new(8 << 20)),
        }
    }
}

impl Generator for Guide {
    fn name(&self) -> &str {
        "guide"
    }

    fn obeys_grammar(&self) -> bool {
        true
    }

    fn capacity(&self) -> usize {
        1 << 20
    }

    fn count(&mut self, _prompt: &Prompt) -> Result<usize, GenerateError> {
        Ok(1)
    }

    fn generate(&mut self, request: &GenerateRequest<'_>) -> Result<Generation, GenerateError> {
        let grammar = request.grammar.unwrap();
        let limits = snaffle::mask::Limits::default();
        let start = Matcher::new(grammar, &self.lexicon, &self.store, &limits).unwrap();
        let legal = self.replies.iter().find(|reply| {
            let mut matcher = start.clone();
            matcher.accept_bytes(reply.as_bytes()).unwrap() && matcher.is_accepting()
        });
        let Some(text) = legal else {
            unreachable!("no way on in\n{grammar}")
        };
        Ok(Generation {
            text: text.clone(),
            stop: Stop::Complete,
            log_probability: None,
            choices: Vec::new(),
            stats: GenerationStats::default(),
        })
    }
}

/// Random logits over bytes.
pub fn random(seed: u64) -> SessionGenerator {
    let vocabulary = Arc::new(Vocabulary::of_bytes());
    SessionGenerator::new(
        "random",
        Box::new(RandomSession::new(Arc::clone(&vocabulary), 1 << 18, seed)),
        Box::new(ChatTemplate::plain()),
        Arc::new(Lexicon::new(vocabulary)),
        Arc::new(MaskStore::new(8 << 20)),
        snaffle::mask::Limits::default(),
    )
}

/// A person who says yes to everything, answers every question, and settles by `settle`.
pub struct Agreeable<F>(pub F);

impl<F: FnMut(&Pending) -> Option<Settlement>> Person for Agreeable<F> {
    fn approve(&mut self, _call: &Call, _spec: &ToolSpec, _doubt: Option<&Doubt>) -> bool {
        true
    }

    fn reply(&mut self, _question: &str) -> Option<String> {
        Some("go on".to_owned())
    }

    fn settle(&mut self, pending: &Pending) -> Option<Settlement> {
        (self.0)(pending)
    }
}

/// Settings that leave room for whatever a random model writes.
pub fn settings(turns: usize) -> Settings {
    Settings {
        limits: Limits {
            turns,
            tokens: 1 << 24,
            turn_tokens: 4096,
            time: Duration::from_secs(600),
            attempts: 3,
        },
        sampling: Sampling::default(),
        layout: Layout {
            tools: ToolsInPrompt::None,
            ..Layout::default()
        },
        ..Settings::default()
    }
}

/// Works on a task to its end.
pub fn work(
    task: &mut ActiveTask,
    registry: &mut Registry,
    generator: &mut dyn Generator,
    person: &mut dyn Person,
    observer: &mut dyn Observer,
    clock: &dyn Clock,
    settings: Settings,
) -> Result<Report, AgentError> {
    Agent {
        generator,
        tools: registry,
        examples: &mut NoExamples,
        person,
        observer,
        trace: &mut Null,
        clock,
        cancel: Cancel::default(),
        settings,
    }
    .run(task)
}

/// An id for the task of a test.
pub fn id(number: u32) -> TaskId {
    TaskId::new(jiff::Timestamp::UNIX_EPOCH, number)
}
