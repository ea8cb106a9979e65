//! What the model can act on: the tools that the settings name.

use super::engine::Engine;
use super::error::Failure;
use super::exit::Exit;
use super::input::read_text;
use super::settings::Settings;
use super::suggest::nearest;
use crate::agent::{FromPool, Layout, Limits, Settings as AgentSettings, ToolsInPrompt, Unsure};
use crate::call::Policy;
use crate::call::policy::Permission;
use crate::fewshot::{Example, LearnedFile, Pool};
use crate::task::Definition;
use crate::tool::assistant::{AddTwoNumbers, GetFileSize, GetWeather, SendEmail};
use crate::tool::home::HouseFile;
use crate::tool::text::read_file;
use crate::tool::{Registry, Tool, command, home, simulated};
use crate::trace::sanitize_line;
use std::path::Path;
use std::sync::Arc;

/// Below so many weights a list of tools in the prompt confuses a model more than it helps.
const TOOLS_CONFUSE_BELOW: u64 = 600_000_000;

/// Who mail is from.
const SENDER: &str = "snaffle@localhost";

/// All tools that the settings name. The house is held as long as they live, so that no other run
/// acts on it, except in a dry run, which changes nothing.
///
/// # Errors
/// A house, tool or data file that is wrong; a house that another run holds.
pub fn registry(settings: &Settings) -> Result<Registry, Failure> {
    let mut registry = Registry::new();
    if let Some(path) = &settings.house {
        let house = Arc::new(HouseFile::open(path)?);
        if !settings.dry_run {
            house.hold()?;
        }
        registry.register_all(home::tools(&house))?;
    }
    if settings.assistant {
        registry.register_all(assistant_tools(settings)?)?;
    }
    for path in &settings.tools {
        registry.register_all(declared_tools(path)?)?;
    }
    if registry.is_empty() {
        return Err(Failure::new(Exit::Config, "there is no tool to act with")
            .hint("--house, --tools or --assistant give some"));
    }
    Ok(registry)
}

/// The tools that a file declares: a simulated world's, or commands.
fn declared_tools(path: &Path) -> Result<Vec<Box<dyn Tool>>, Failure> {
    // What cannot be read here is told by whoever reads it in earnest.
    let text = read_file(path).unwrap_or_default();
    if simulated::is_world(&text) {
        Ok(simulated::tools(path)?)
    } else {
        Ok(command::tools(path)?)
    }
}

/// The tools of one house.
///
/// # Errors
/// A house file that is wrong.
pub fn home_tools(path: &Path) -> Result<Vec<Box<dyn Tool>>, Failure> {
    Ok(home::tools(&Arc::new(HouseFile::open(path)?)))
}

fn assistant_tools(settings: &Settings) -> Result<Vec<Box<dyn Tool>>, Failure> {
    let mut tools: Vec<Box<dyn Tool>> = vec![Box::new(AddTwoNumbers::default())];
    if let Some(path) = &settings.weather {
        tools.push(Box::new(GetWeather::new(path)?));
    }
    if let Some(folder) = &settings.outbox {
        let clock = Box::new(jiff::Timestamp::now);
        let mail = SendEmail::new(folder, SENDER, clock)?;
        if !settings.dry_run {
            mail.try_outbox()?;
        }
        tools.push(Box::new(mail));
    }
    if let Some(folder) = &settings.workspace {
        tools.push(Box::new(GetFileSize::new(folder)?));
    }
    Ok(tools)
}

/// What the agent works by.
///
/// # Errors
/// A policy that cannot be.
pub fn agent_settings(
    settings: &Settings,
    engine: &Engine,
    approve_all: bool,
) -> Result<AgentSettings, Failure> {
    let tools = match settings.tools_in_prompt.as_deref() {
        Some("none") => ToolsInPrompt::None,
        Some("names") => ToolsInPrompt::Names,
        Some(_) => ToolsInPrompt::Full,
        None if engine.info.parameters < TOOLS_CONFUSE_BELOW => ToolsInPrompt::None,
        None => ToolsInPrompt::Full,
    };
    Ok(AgentSettings {
        policy: policy(settings)?,
        limits: Limits {
            turns: settings.max_turns,
            tokens: settings.max_run_tokens,
            turn_tokens: settings.max_tokens,
            time: settings.max_time,
            attempts: settings.max_attempts,
        },
        sampling: settings.sampling.clone(),
        max_calls: settings.max_calls,
        alpha: settings.alpha.or(engine.alpha()),
        examples: settings
            .max_examples
            .or(engine.examples())
            .unwrap_or(AgentSettings::default().examples),
        layout: Layout {
            tools,
            ..Layout::default()
        },
        dry_run: settings.dry_run,
        approve_all,
        call_bias: settings.call_bias.or(engine.call_bias()),
        ask_below: (settings.ask_below > 0.0).then_some(settings.ask_below),
        unsure: match settings.unsure.as_str() {
            "look-again" => Unsure::LookAgain,
            _ => Unsure::Ask,
        },
        grounding: settings.grounding,
        ..AgentSettings::default()
    })
}

/// The permissions that the settings state.
///
/// # Errors
/// A pattern that names no tool.
pub fn policy(settings: &Settings) -> Result<Policy, Failure> {
    let rules = settings.policy.iter().map(|(tool, word)| {
        let permission = match word.as_str() {
            "allow" => Permission::Allow,
            "ask" => Permission::Ask,
            _ => Permission::Deny,
        };
        (tool.clone(), permission)
    });
    Policy::new(rules).map_err(|error| Failure::new(Exit::Config, error.to_string()))
}

/// The tools that come with the program, whatever a run offers of them.
const BUILT_IN: [&str; 14] = [
    "turn_on",
    "turn_off",
    "set_brightness",
    "set_temperature",
    "set_position",
    "lock",
    "unlock",
    "open",
    "close",
    "get_state",
    "add_two_numbers",
    "get_weather",
    "send_email",
    "get_file_size",
];

/// That every rule of the policy is about a tool that there is: one that is misspelled would leave
/// allowed what was to be denied.
///
/// # Errors
/// A rule about no tool.
pub fn check_policy(settings: &Settings, registry: &Registry) -> Result<(), Failure> {
    let known = || {
        let own = registry.specs().map(|spec| spec.name.as_str());
        own.chain(BUILT_IN)
    };
    for pattern in settings.policy.keys() {
        let about = match pattern.strip_suffix('*') {
            Some(beginning) => known().any(|name| name.starts_with(beginning)),
            None => pattern.starts_with('@') || known().any(|name| name == pattern),
        };
        if !about {
            let message = format!("policy: there is no tool {:?}", sanitize_line(pattern));
            let failure = Failure::new(Exit::Config, message);
            return Err(match nearest(pattern, known()) {
                Some(near) => failure.hint(format!("is it {near:?}?")),
                None => {
                    let own: Vec<&str> = registry.specs().map(|spec| spec.name.as_str()).collect();
                    failure.hint(format!("those of this run: {}", own.join(", ")))
                }
            });
        }
    }
    Ok(())
}

/// The examples that a run begins with, and what is damaged among those that were learned. With
/// the setting `learn` it learns more; a dry run, in which nothing succeeds, does not.
///
/// # Errors
/// A file that is wrong.
pub fn learning_examples(settings: &Settings) -> Result<(FromPool, Option<String>), Failure> {
    if !settings.learn {
        return Ok((examples(settings)?, None));
    }
    let (pool, damage) = whole_pool(settings)?;
    let mut examples = from_pool(settings, pool)?;
    examples.seed = settings.sampling.seed;
    if !settings.dry_run {
        // What must not be written to traces is not written here either.
        let withheld = !settings.redact.is_empty() && !settings.keep_prompts;
        let file = (!withheld).then(|| LearnedFile::new(&settings.learned));
        examples = examples.learning(file);
    }
    Ok((examples, damage))
}

/// All examples, those that were learned or added included, and what is damaged among these.
///
/// # Errors
/// A file that is wrong.
pub fn whole_pool(settings: &Settings) -> Result<(Pool, Option<String>), Failure> {
    let mut pool = pool(settings)?;
    let file = LearnedFile::new(&settings.learned);
    let learned = file.read()?;
    let damage = learned.report(file.path());
    for example in learned.examples {
        pool.add(example);
    }
    Ok((pool, damage))
}

/// Examples that nobody learned: what is measured begins with these and learns nothing.
///
/// # Errors
/// A file that is wrong.
pub fn examples(settings: &Settings) -> Result<FromPool, Failure> {
    from_pool(settings, pool(settings)?)
}

/// Examples out of `pool`, and those of steps, where the settings name no files of their own.
fn from_pool(settings: &Settings, pool: Pool) -> Result<FromPool, Failure> {
    let examples = FromPool::new(pool);
    if !settings.examples.is_empty() {
        return Ok(examples);
    }
    let steps = Pool::steps().map_err(|error| Failure::input(error.to_string()))?;
    Ok(examples.with_steps(steps))
}

/// The pool of examples: the files that the settings name, else those that ship.
fn pool(settings: &Settings) -> Result<Pool, Failure> {
    if settings.examples.is_empty() {
        return Pool::seeds().map_err(|error| Failure::input(error.to_string()));
    }
    let mut pool = Pool::default();
    for path in &settings.examples {
        let examples = Example::parse_all(&read_text(path)?)
            .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
        for example in examples {
            pool.add(example);
        }
    }
    Ok(pool)
}

/// The built-in definition; with `select_tools` its states have only the tools nearest to the
/// request.
///
/// # Errors
/// A tool whose live values cannot be read.
pub fn definition(
    settings: &Settings,
    registry: &Registry,
    request: &str,
) -> Result<Definition, Failure> {
    let mut definition = Definition::builtin();
    if let Some(most) = settings.select_tools.filter(|most| *most < registry.len()) {
        let names = registry
            .select(request, most)
            .map_err(|error| Failure::input(error.to_string()))?;
        for state in definition.states.values_mut() {
            state.tools = Some(names.clone());
        }
    }
    Ok(definition)
}
