//! The few styles that everything printed uses. Streams take them out where colour is off.

use anstyle::{AnsiColor, Style};
use clap::builder::Styles;

/// What matters most: names, the request.
pub const STRONG: Style = Style::new().bold();
/// What can be passed over: figures, paths.
pub const FAINT: Style = Style::new().dimmed();
/// What went well, and what changed.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// What wants attention.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// What went wrong.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// What a tool is called.
pub const NAME: Style = AnsiColor::Cyan.on_default();

/// How clap's own texts look.
pub const HELP: Styles = Styles::plain()
    .header(STRONG)
    .usage(STRONG)
    .literal(NAME)
    .error(BAD)
    .invalid(WARN)
    .valid(GOOD);

/// `text` in `style`.
pub fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}
