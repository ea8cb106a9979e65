//! A small assistant's tools: adding, the weather from a local file, mail into an outbox folder,
//! the size of a file. Everything they touch is local and named by settings.

mod add;
mod email;
mod files;
mod weather;

pub use add::AddTwoNumbers;
pub use email::{Clock, SendEmail};
pub use files::{FilesError, GetFileSize};
pub use weather::{GetWeather, WeatherError};
