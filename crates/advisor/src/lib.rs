//! Looks at documents, relations and traffic through a backend, and proposes declarations. Reads only.
//!
//! Reading order: [`Options`] (what is asked), [`thresholds`] (what counts as a symptom), [`reader`] (bounded reads), [`sample`] (which
//! documents), [`shape`] (what they are like), [`survey`] (all of it together), [`findings`] (one file per symptom), [`report`] (the
//! answer as JSON and as text).
//!
//! One database is looked at after the other, and what is kept of each is bounded in bytes ([`options::MEMORY`]).

pub mod age;
pub mod declare;
pub mod findings;
pub mod kept;
pub mod measured;
pub mod options;
pub mod order;
pub mod reader;
pub mod relation;
pub mod report;
pub mod rules;
pub mod sample;
pub mod shape;
pub mod statistics;
pub mod survey;
pub mod thresholds;
pub mod traffic;
pub mod values;

#[cfg(test)]
mod testing;

pub use options::{Cancel, Log, Options};
pub use report::{Against, Finding, LookedAt, Report, Severity};

use document::Result;
use document::backend::Backend;
use document::op::Context;
use reader::Reader;
use std::time::Instant;
use survey::Survey;

/// Learns how far the work is.
pub trait Progress: Send + Sync {
    /// So many documents of about so many are looked at, now of this collection.
    fn show(&self, done: u64, total: u64, what: &str);
}

/// Nobody watches.
pub struct Unwatched;

impl Progress for Unwatched {
    fn show(&self, _done: u64, _total: u64, _what: &str) {}
}

/// Looks at the databases, and says what it found, strongest first. When it is told to stop ([`Options::cancel`]) it reports on what it
/// has seen.
pub async fn advise(
    backend: &dyn Backend,
    context: &Context,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Report> {
    let began = Instant::now();
    let reader = Reader::new(backend, context.clone(), options);
    let mut report = Report::default();
    let databases = survey::databases(&reader, options, &mut report.looked_at).await?;
    let traffic = traffic::gather(&reader, &databases, options).await?;
    report.looked_at.traffic = traffic.sources.clone();
    report.looked_at.sees_commands = traffic.shows_commands();
    for name in &databases {
        if options.cancel.is_set() {
            break;
        }
        let survey = Survey::of(&reader, name, options, &traffic, &mut report.looked_at, progress).await?;
        for symptom in findings::FINDINGS {
            report.findings.extend((symptom.find)(&survey).await?.into_iter().filter(|finding| survey.is_new(finding)));
        }
    }
    report.looked_at.interrupted = options.cancel.is_set();
    report.looked_at.seconds = began.elapsed().as_secs_f64();
    report.sort();
    Ok(report)
}
