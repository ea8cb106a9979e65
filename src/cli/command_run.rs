//! `snaffle run` and `snaffle task resume`: one request, or one after another, to its end.
//!
//! Everything that can be wrong is looked at before the journal is touched: settings, request,
//! house, tools, policy, model, the request's length.

use super::args::{Resume, Run, Settle};
use super::config::layers::{Layers, Source};
use super::config::registry::{Setting, find};
use super::context::Context;
use super::definition;
use super::engine::Engine;
use super::error::{Failure, exit_of};
use super::exit::Exit;
use super::inbox::Inbox;
use super::input;
use super::interrupt::Interrupts;
use super::person::{Asker, Lines, Present};
use super::settings::Settings;
use super::style::{NAME, paint};
use super::terminal::{Terminal, input_or};
use super::view::{Style, View};
use super::world;
use crate::agent::{Agent, FromPool, StopReason, SystemClock};
use crate::model::{Cancel, Generator, Message, Prompt, Role};
use crate::task::{ActiveTask, Definition, Journal, JournalError, Settlement, TaskError, TaskId};
use crate::tool::Registry;
use crate::tool::command::Program;
use crate::trace::{JsonLines, Null, Retention, Trace, TraceSettings};
use anstream::AutoStream;
use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::io::{self, BufRead, Stdout, Write};
use std::path::Path;
use std::time::Duration;

/// Longest time that the program after a turn may take.
const HOOK_TIME: Duration = Duration::from_secs(60);

/// Most bytes that it may print.
const HOOK_OUTPUT: usize = 1 << 20;

/// Runs it.
///
/// # Errors
/// Whatever keeps a request from being worked on.
pub fn run(context: &mut Context, args: &Run) -> Result<Exit, Failure> {
    let layers = context.layers(&args.settings.given)?;
    let mut settings = context.resolve(&layers)?;
    let source = match &settings.task {
        Some(path) => Some(definition::read(path)?),
        None => None,
    };
    let goal = source
        .as_ref()
        .and_then(|source| source.definition.goal.clone());
    let request = match &args.request {
        Some(text) => Some(input::request(text)?),
        None if args.interactive => None,
        None => Some(goal.ok_or_else(|| {
            Failure::new(Exit::Usage, "the request is missing")
                .hint("say what is to be done, or give the definition a `goal`")
        })?),
    };
    if let Some(source) = &source {
        take_limits(&mut settings, &layers, source.definition.limits);
    }
    let interrupts = Interrupts::install()?;
    let record = recorded(&layers, &context.surroundings.folder);
    let mut run = Runner::open(context, settings, args.yes, record, source)?;
    run.explain = args.explain;
    if args.listen || context.terminal.can_ask() {
        run.inbox = Some(Inbox::new(|| io::stdin().lock()));
    }
    match request {
        Some(request) => run.request(context, &request, &interrupts.begin()),
        None => interactive(context, &mut run, &interrupts),
    }
}

/// A definition's limits hold where no file, variable or flag says otherwise.
fn take_limits(settings: &mut Settings, layers: &Layers, limits: crate::task::Limits) {
    let is_default = |name: &str| {
        let mut all = layers.iter();
        all.any(|resolved| resolved.setting.name == name && resolved.source == Source::Default)
    };
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    if let (Some(turns), true) = (limits.turns, is_default("max_turns")) {
        settings.max_turns = number(turns.into());
    }
    if let (Some(tokens), true) = (limits.tokens, is_default("max_run_tokens")) {
        settings.max_run_tokens = number(tokens);
    }
    if let (Some(seconds), true) = (limits.seconds, is_default("max_seconds")) {
        settings.max_time = Duration::from_secs(seconds);
    }
    if let (Some(failures), true) = (limits.failures, is_default("max_attempts")) {
        settings.max_attempts = number(failures.into());
    }
}

/// Goes on with a task, with the settings that it was begun with where no flag says otherwise.
///
/// # Errors
/// As [`run`], and that there is no such task.
pub fn resume(context: &mut Context, args: &Resume) -> Result<Exit, Failure> {
    let answer = args.answer.as_ref().map(|said| said.trim().to_owned());
    if answer.as_ref().is_some_and(String::is_empty) {
        return Err(Failure::new(Exit::Usage, "--answer is empty"));
    }
    let path = context.settings(&args.settings.given)?.journal;
    // Only looked at, until everything else is right.
    let journal = Journal::open_read_only(&path)?;
    let id = journal.find(&args.id)?;
    let record = journal.read(&id)?;
    drop(journal);
    let task = crate::task::Task::fold(&id, &record.entries).map_err(TaskError::from)?;
    let mut flags = as_flags(&task.settings);
    flags.extend(args.settings.given.iter().cloned());
    let layers = context.layers(&flags)?;
    let mut settings = context.resolve(&layers)?;
    // The journal has the definition as it was; its file may have changed since.
    settings.tools.extend(task.definition.uses.iter().cloned());
    take_limits(&mut settings, &layers, task.definition.limits);
    let interrupts = Interrupts::install()?;
    let wait = settings.max_time;
    let mut run = Runner::open(context, settings, args.yes, Value::Null, None)?;
    run.explain = args.explain;
    run.settlement = args.settle.map(|settle| match settle {
        Settle::Happened => Settlement::Happened,
        Settle::DidNotHappen => Settlement::DidNotHappen,
        Settle::Repeat => Settlement::Repeat,
    });
    run.answer = answer;
    let trace = run.trace(id.as_str())?;
    let mut active = match taken_up(context, &path, &id, wait) {
        Ok(active) => active,
        Err(failure) => {
            discard(trace.as_ref());
            return Err(failure);
        }
    };
    if context.terminal.can_ask() {
        run.inbox = Some(Inbox::new(|| io::stdin().lock()));
    }
    let cancel = interrupts.begin();
    let view = run.view(&context.terminal, &cancel);
    run.work(context, &mut active, view, trace, &cancel)
}

/// Takes the task up, once no program that an earlier run of it started is still running.
fn taken_up(
    context: &mut Context,
    journal: &Path,
    id: &TaskId,
    wait: Duration,
) -> Result<ActiveTask, Failure> {
    let journal = Journal::open(journal)?.with_program_wait(Duration::ZERO);
    match ActiveTask::resume(&journal, id, Timestamp::now()) {
        Err(TaskError::Journal(JournalError::ProgramRunning { .. })) => {
            let note = "waiting for a program that the task started and that is still running";
            context.terminal.note(note);
            let journal = journal.with_program_wait(wait);
            Ok(ActiveTask::resume(&journal, id, Timestamp::now())?)
        }
        resumed => Ok(resumed?),
    }
}

/// Nothing was begun: its trace has nothing to say.
fn discard(trace: &dyn Trace) {
    if let Some(path) = trace.path() {
        _ = fs_err::remove_file(path);
    }
}

/// Requests line by line, until the input ends.
fn interactive(
    context: &mut Context,
    run: &mut Runner,
    interrupts: &Interrupts,
) -> Result<Exit, Failure> {
    let mut last = Exit::Success;
    loop {
        if let Some(inbox) = &mut run.inbox {
            inbox.sort();
        }
        if context.terminal.can_ask() {
            write!(context.terminal.err, "{} ", paint(NAME, "snaffle>"))?;
            context.terminal.err.flush()?;
        }
        let line = match &mut run.inbox {
            Some(inbox) => inbox.request(),
            None => {
                let mut line = Vec::new();
                let read = io::stdin().lock().read_until(b'\n', &mut line)?;
                (read > 0).then_some(line)
            }
        };
        let Some(line) = line else {
            if context.terminal.can_ask() {
                writeln!(context.terminal.err)?;
            }
            return Ok(last);
        };
        let Ok(line) = String::from_utf8(line) else {
            let failure = Failure::input("the request is not UTF-8 text");
            context.terminal.fail(&failure);
            last = failure.exit;
            continue;
        };
        let request = line.trim();
        if request.is_empty() {
            continue;
        }
        if matches!(request, "exit" | "quit") {
            return Ok(last);
        }
        let cancel = interrupts.begin();
        match run.request(context, request, &cancel) {
            Ok(exit) => last = exit,
            // What is wrong with one request need not be wrong with the next.
            Err(failure)
                if matches!(failure.exit, Exit::Input | Exit::Unfinished | Exit::Waiting) =>
            {
                context.terminal.fail(&failure);
                last = failure.exit;
            }
            Err(failure) => return Err(failure),
        }
        interrupts.end();
    }
}

/// Everything that stays from request to request.
struct Runner {
    settings: Settings,
    approve_all: bool,
    /// What the journal keeps of the settings.
    record: Value,
    registry: Registry,
    examples: FromPool,
    engine: Engine,
    progress: ProgressBar,
    /// The task's definition, where there is one.
    definition: Option<Definition>,
    /// The program after each turn.
    hook: Option<Program>,
    /// What the person types while it runs, where that is listened to.
    inbox: Option<Inbox>,
    /// What came of an interrupted call, where it was said beforehand.
    settlement: Option<Settlement>,
    /// The answer to the first question, where it was said beforehand.
    answer: Option<String>,
    /// Whether prompts are shown.
    explain: bool,
}

impl Runner {
    fn open(
        context: &mut Context,
        mut settings: Settings,
        approve_all: bool,
        record: Value,
        source: Option<crate::task::Source>,
    ) -> Result<Self, Failure> {
        if let Some(source) = &source {
            settings
                .tools
                .extend(source.definition.uses.iter().cloned());
        }
        let registry = world::registry(&settings)?;
        world::check_policy(&settings, &registry)?;
        if let Some(source) = &source {
            definition::refuse_faults(source, &registry)?;
        }
        let (examples, damage) = world::learning_examples(&settings)?;
        if let Some(damage) = damage {
            context.terminal.warn(&damage);
        }
        world::policy(&settings)?;
        let hook = hook(&settings)?;
        let progress = progress(context.terminal.shows_progress());
        let mut engine = Engine::open(&settings, &progress)?;
        if let Err(failure) = engine.load_prefix(&settings) {
            // Only time is lost.
            let message = format!("the evaluated prefix is not taken up: {}", failure.message);
            context.terminal.warn(&message);
        }
        Ok(Self {
            settings,
            approve_all,
            record,
            registry,
            examples,
            engine,
            progress,
            definition: source.map(|source| source.definition),
            hook,
            inbox: None,
            settlement: None,
            answer: None,
            explain: false,
        })
    }

    /// One request, from a new task to its end.
    fn request(
        &mut self,
        context: &mut Context,
        request: &str,
        cancel: &Cancel,
    ) -> Result<Exit, Failure> {
        self.check_length(request)?;
        let definition = match &self.definition {
            Some(definition) => definition.clone(),
            None => world::definition(&self.settings, &self.registry, request)?,
        };
        let now = Timestamp::now();
        let id = TaskId::new(now, rand::random());
        let mut view = self.view(&context.terminal, cancel);
        view.announce(id.as_str(), request)?;
        // The trace first: what it cannot record must not be begun.
        let trace = self.trace(id.as_str())?;
        match self.begin(id, request, definition, now) {
            Ok(mut task) => self.work(context, &mut task, view, trace, cancel),
            Err(failure) => {
                discard(trace.as_ref());
                Err(failure)
            }
        }
    }

    fn view(&self, terminal: &Terminal, cancel: &Cancel) -> View<AutoStream<Stdout>> {
        let style = match (terminal.json, terminal.quiet) {
            (true, _) => Style::Json,
            (_, true) => Style::Quiet,
            _ => Style::Session,
        };
        let out = terminal.second_out();
        let columns = terminal.columns();
        let view = View::new(out, style, cancel.clone(), self.progress.clone(), columns);
        view.with_hook(self.hook.clone()).explaining(self.explain)
    }

    /// A request that can never fit is refused before anything is recorded.
    fn check_length(&mut self, request: &str) -> Result<(), Failure> {
        let message = Message {
            role: Role::User,
            content: request.to_owned(),
        };
        let prompt = Prompt {
            messages: vec![message],
            stable: 0,
        };
        let tokens = self.engine.generator.count(&prompt)?;
        let capacity = self.engine.generator.capacity();
        let reserved = self.settings.max_tokens.min(capacity / 2);
        if tokens + reserved > capacity {
            let message = format!(
                "the request has {tokens} tokens; the context of {capacity} holds {} of them",
                capacity - reserved
            );
            return Err(Failure::input(message).hint("shorten it, or set a larger --context"));
        }
        Ok(())
    }

    fn begin(
        &self,
        id: TaskId,
        request: &str,
        definition: Definition,
        now: Timestamp,
    ) -> Result<ActiveTask, Failure> {
        let record = self.record.clone();
        if self.settings.dry_run {
            return Ok(ActiveTask::unrecorded(
                id, request, definition, record, now,
            )?);
        }
        let journal = Journal::open(&self.settings.journal)?;
        Ok(ActiveTask::create(
            &journal, id, request, definition, record, now,
        )?)
    }

    fn work(
        &mut self,
        context: &mut Context,
        task: &mut ActiveTask,
        mut view: View<AutoStream<Stdout>>,
        mut trace: Box<dyn Trace>,
        cancel: &Cancel,
    ) -> Result<Exit, Failure> {
        let terminal = &context.terminal;
        let id = task.task().id.to_string();
        let present = terminal.can_ask().then(|| {
            let cancel = cancel.clone();
            Present {
                cancel: cancel.clone(),
                wait: Box::new(move || input_or(&cancel)),
                columns: terminal.columns(),
            }
        });
        let output: Box<dyn Write> = if terminal.json {
            Box::new(io::sink())
        } else {
            Box::new(terminal.second_err())
        };
        let input = match &mut self.inbox {
            Some(inbox) => Lines::Inbox(inbox),
            None => Lines::Stream(io::stdin().lock()),
        };
        let mut person = Asker::new(input, output, present, self.progress.clone())
            .with_settlement(self.settlement.take())
            .with_answer(self.answer.take());
        let clock = SystemClock::start();
        let settings = world::agent_settings(&self.settings, &self.engine, self.approve_all)?;
        let report = Agent {
            generator: &mut self.engine.generator,
            tools: &mut self.registry,
            examples: &mut self.examples,
            person: &mut person,
            observer: &mut view,
            trace: trace.as_mut(),
            clock: &clock,
            cancel: cancel.clone(),
            settings,
        }
        .run(task);
        // What could not be written explains why the run was stopped.
        view.finish()?;
        let unused = person.unused_answer();
        drop(person);
        if unused {
            context
                .terminal
                .warn("nothing was asked: --answer was not needed");
        }
        if let Some(trouble) = self.examples.take_trouble() {
            let message = format!("what was learned is not kept: {trouble}");
            context.terminal.warn(&message);
        }
        let report = report?;
        if let Err(error) = trace.finish() {
            context.terminal.warn(&error.to_string());
        }
        if let Err(failure) = self.engine.save_prefix(&self.settings) {
            let message = format!("the evaluated prefix is not kept: {}", failure.message);
            context.terminal.warn(&message);
        }
        if !self.settings.dry_run && can_be_resumed(&report.reason) {
            let asked = report.reason == StopReason::Asked;
            let answer = if asked { " --answer TEXT" } else { "" };
            let hint = format!("go on with it: snaffle task resume {id}{answer}");
            context.terminal.note(&hint);
        }
        let exit = exit_of(&report.reason);
        if context.terminal.quiet && exit != Exit::Success && report.text.is_none() {
            context
                .terminal
                .warn(&format!("stopped: {}", report.reason));
        }
        // Ctrl-C at a question leaves the question standing.
        if report.reason == StopReason::Asked && cancel.is_cancelled() {
            return Ok(Exit::Cancelled);
        }
        Ok(exit)
    }

    fn trace(&self, id: &str) -> Result<Box<dyn Trace>, Failure> {
        if self.settings.trace_keep == 0 {
            return Ok(Box::new(Null));
        }
        let mut settings = TraceSettings::new(self.settings.trace_dir.clone());
        settings.redact.clone_from(&self.settings.redact);
        settings.keep_prompts = self.settings.keep_prompts;
        settings.retention = Retention {
            files: self.settings.trace_keep,
            ..Retention::default()
        };
        let clock = Box::new(Timestamp::now);
        Ok(Box::new(JsonLines::create(&settings, id, clock)?))
    }
}

/// The program after each turn.
fn hook(settings: &Settings) -> Result<Option<Program>, Failure> {
    let Some(path) = &settings.after_turn else {
        return Ok(None);
    };
    let executable = fs_err::canonicalize(path)?;
    Ok(Some(Program {
        folder: executable.parent().unwrap_or(Path::new("/")).to_owned(),
        executable,
        arguments: Vec::new(),
        environment: Vec::new(),
        timeout: HOOK_TIME,
        max_output: HOOK_OUTPUT,
    }))
}

/// Shows how far the prompt is, where a person sees it. Nothing draws it on its own: a question
/// must stay on the screen while it is waited for.
fn progress(shown: bool) -> ProgressBar {
    if !shown {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("     reading {pos}/{len} tokens")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::no_length().with_style(style)
}

fn can_be_resumed(reason: &StopReason) -> bool {
    match reason {
        StopReason::Asked
        | StopReason::Stuck
        | StopReason::Hook(_)
        | StopReason::Refused
        | StopReason::TurnLimit
        | StopReason::TokenLimit
        | StopReason::TimeLimit
        | StopReason::Cancelled => true,
        StopReason::Answered
        | StopReason::AnswerFlagged
        | StopReason::Completed
        | StopReason::FailedEnd
        | StopReason::ToolEnded
        | StopReason::Repeated
        | StopReason::TooManyFailures
        | StopReason::DryRun => false,
    }
}

/// Settings that are not at their default, as the journal keeps them: paths from the root, so that
/// the task can be resumed in another folder.
fn recorded(layers: &Layers, folder: &Path) -> Value {
    let mut record = Map::new();
    for resolved in layers.iter().filter(|r| r.source != Source::Default) {
        let setting = resolved.setting;
        let Some(value) = &resolved.value else {
            continue;
        };
        if setting.name == "dry_run" {
            continue;
        }
        let text = setting.kind.to_text(value, |path| folder.join(path));
        record.insert(setting.name.to_owned(), text.into());
    }
    Value::Object(record)
}

/// The inverse of [`recorded`].
fn as_flags(record: &Value) -> Vec<(&'static Setting, String)> {
    let entries = record.as_object().into_iter().flatten();
    entries
        .filter_map(|(name, text)| Some((find(name)?, text.as_str()?.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::config::layers::Surroundings;
    use std::path::PathBuf;

    #[test]
    fn recorded_settings_are_read_back() {
        let flags: Vec<(&'static Setting, String)> = [
            ("house", "h.toml"),
            ("tools", "a.toml"),
            ("tools", "/b.toml"),
            ("policy", "unlock=deny"),
            ("policy", "turn_*=ask"),
            ("max_turns", "3"),
            ("dry_run", "true"),
        ]
        .map(|(name, text)| (find(name).unwrap(), text.to_owned()))
        .into();
        let surroundings = Surroundings::default();
        let layers = Layers::read(&surroundings, None, &flags).unwrap();
        let record = recorded(&layers, Path::new("/w"));
        let again = Layers::read(&surroundings, None, &as_flags(&record)).unwrap();
        let settings = Settings::resolve(&again, &surroundings).unwrap();
        assert_eq!(settings.house, Some(PathBuf::from("/w/h.toml")));
        let tools: Vec<PathBuf> = vec!["/w/a.toml".into(), "/b.toml".into()];
        assert_eq!(settings.tools, tools);
        assert_eq!(settings.policy["unlock"], "deny");
        assert_eq!(settings.policy["turn_*"], "ask");
        assert_eq!(settings.max_turns, 3);
        assert!(!settings.dry_run);
    }
}
