//! The symptoms that are looked for: one file each, listed in [`FINDINGS`].

mod unbounded_array;

use crate::report::Finding;
use crate::survey::Survey;
use document::Result;
use std::future::Future;
use std::pin::Pin;

/// What looking for a symptom gives.
pub type Found<'a> = Pin<Box<dyn Future<Output = Result<Vec<Finding>>> + Send + 'a>>;

/// One symptom. What it looks at and what speaks against it are sentences for the guide.
pub struct Symptom {
    pub name: &'static str,
    /// The pattern that cures it.
    pub pattern: &'static str,
    /// The sentence of the symptom table.
    pub help: &'static str,
    pub looks_at: &'static str,
    pub reasons_against: &'static str,
    pub find: for<'a> fn(&'a Survey<'a>) -> Found<'a>,
}

/// All symptoms, sorted by name.
pub const FINDINGS: &[&Symptom] = &[&unbounded_array::SYMPTOM];

#[cfg(test)]
mod tests;

#[cfg(test)]
mod registry_tests {
    use super::*;

    #[test]
    fn the_registry_is_sorted_unique_and_documented() {
        assert!(FINDINGS.is_sorted_by(|first, second| first.name < second.name), "sorted, no name twice");
        for symptom in FINDINGS {
            for text in [symptom.help, symptom.looks_at, symptom.reasons_against] {
                assert!(
                    text.len() > 10 && text.ends_with('.') && text.starts_with(char::is_uppercase),
                    "{}: {text}",
                    symptom.name
                );
            }
        }
    }
}
