//! The symptoms that are looked for: one file each, listed in [`FINDINGS`].

mod copy_by_hand;
mod counter_by_hand;
mod few_huge_documents;
mod many_small_documents;
mod old_shapes;
mod repeated_aggregation;
mod repeated_discriminator;
mod second_read;
mod several_kinds;
mod unbounded_array;
mod window_by_hand;

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
pub const FINDINGS: &[&Symptom] = &[
    &copy_by_hand::SYMPTOM,
    &counter_by_hand::SYMPTOM,
    &few_huge_documents::SYMPTOM,
    &many_small_documents::SYMPTOM,
    &old_shapes::SYMPTOM,
    &repeated_aggregation::SYMPTOM,
    &repeated_discriminator::SYMPTOM,
    &second_read::SYMPTOM,
    &several_kinds::SYMPTOM,
    &unbounded_array::SYMPTOM,
    &window_by_hand::SYMPTOM,
];

/// Those that show in commands only; all others rest on the data, and traffic speaks for or against them.
pub const IN_TRAFFIC: &[&str] = &[repeated_aggregation::SYMPTOM.name, second_read::SYMPTOM.name];

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
