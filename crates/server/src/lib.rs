//! Messages to commands and back, on any [`Front`]. Knows no store, no pattern and no file.
//!
//! Reading order: [`run`] accepts connections; `connection` reads a message and writes the reply; `dispatch` finds the command,
//! its session and its concerns; `commands` has one file per command; `request` and `params` are what a command reads,
//! `reply` is what it writes; `workload` counts what clients do, and `profiler` keeps single operations.

mod batch;
mod bindings;
mod client;
mod commands;
mod concern;
mod connection;
mod counters;
mod cursors;
mod dispatch;
mod entitled;
pub mod identity;
mod index_stats;
mod labels;
mod listener;
mod namespace;
mod options;
mod params;
mod parsed;
mod profiler;
mod reply;
mod request;
mod route;
mod session;
mod sink;
mod sources;
mod state;
mod statements;
mod workload;

pub use commands::{Access, COMMANDS, Command};
pub use listener::run;
pub use options::Options;

use document::backend::Front;
