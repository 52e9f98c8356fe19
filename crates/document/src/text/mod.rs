//! Text search: what the words of a text are, how much a document is about them, and whether it matches a `$text`.
//!
//! Reading order: [`Language`] and [`tokenizer`] (a text as terms), [`TextSpec`] (which texts of a document an index holds),
//! [`score`] (its terms and their weight), [`Search`] (the argument of `$text`), [`TextQuery`] (what it asks of an index), [`node`]
//! (`$text` in a filter). The score of a found document travels with it through a pipeline ([`carried`]).
//!
//! Everything here is a pure function of bytes; an index keeps the terms, and a scan of them adds up the scores.

pub mod carried;
mod delimiters;
mod fold;
mod language;
mod matching;
pub mod node;
mod query;
mod score;
mod search;
mod spec;
mod stop_words;
mod tokenizer;

#[cfg(test)]
mod tests;

pub use language::Language;
pub use node::TextNode;
pub use query::TextQuery;
pub use search::Search;
pub use spec::{MAX_WEIGHT, TextSpec};
