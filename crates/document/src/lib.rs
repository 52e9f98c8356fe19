//! What a BSON document is and what can be done to it: the MongoDB query language as data and pure functions.
//!
//! Reading order: [`raw`] (bytes), [`value`] (what they mean, order, numbers, paths), [`filter`], [`pipeline::expr`],
//! [`project`], [`update`], [`pipeline`], [`text`], then the nouns between the layers: [`op`] and [`backend`]; [`traffic`] is what is counted about commands.
//!
//! Nothing here does I/O, reads a clock or makes ids: "now" and new ids are arguments ([`Env`]).

pub mod backend;
pub mod code;
mod command;
pub mod env;
pub mod error;
pub mod filter;
pub mod op;
pub mod pipeline;
pub mod project;
pub mod raw;
pub mod spill;
pub mod text;
pub mod traffic;
pub mod update;
pub mod value;

pub use code::Code;
pub use env::Env;
pub use error::{Error, Result};
pub use raw::{Array, ArrayWriter, Blob, Doc, DocWriter, Text};
pub use value::Value;
