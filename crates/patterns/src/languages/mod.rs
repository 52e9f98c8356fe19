//! The languages that code for people is written in: how each writes values and names. What is written is with `print`, and with
//! the shapes.

pub(crate) mod javascript;
pub(crate) mod literals;
pub(crate) mod python;
pub mod yaml;

/// What code is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Mongosh,
    Node,
    Python,
}

impl Language {
    pub const ALL: [(&'static str, Language); 3] =
        [("mongosh", Language::Mongosh), ("node", Language::Node), ("python", Language::Python)];

    pub fn named(name: &str) -> Option<Language> {
        Language::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, language)| language)
    }
}
