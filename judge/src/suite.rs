//! Runs all scripts: records the judge's answers, or compares a server's with recorded or live ones.

use std::path::{Path, PathBuf};

use anyhow::Result;
use bson::Document;

use crate::client::Client;
use crate::compare::compare;
use crate::json;
use crate::record::{self, Recorded};
use crate::run::Run;
use crate::script::{self, Case, Script};

/// The folder with `scripts/` and `recorded/`, and which cases to take.
pub struct Suite {
    scripts: Vec<Script>,
    recorded: PathBuf,
    filter: String,
}

/// What became of a run.
#[derive(Default)]
pub struct Outcome {
    pub passed: usize,
    /// Deliberate differences, not compared.
    pub skipped: usize,
    pub failures: Vec<Failure>,
}

/// A case that did not agree.
pub struct Failure {
    /// `area/topic: name of the case`.
    pub case: String,
    /// What was sent, what they said, what we said.
    pub report: String,
}

impl Suite {
    /// Reads the scripts; only cases whose full name contains `filter` will run.
    pub fn load(folder: &Path, filter: &str) -> Result<Self> {
        let scripts = script::load_all(&folder.join("scripts"))?;
        Ok(Self { scripts, recorded: folder.join("recorded"), filter: filter.to_owned() })
    }

    /// Asks the judge and writes down its answers, for whole scripts that the filter touches.
    pub fn record(&self, judge: &mut Client) -> Result<usize> {
        let mut count = 0;
        for script in &self.scripts {
            if !script.cases.iter().any(|case| self.wants(script, case)) {
                continue;
            }
            let wanted: Vec<&Case> = script.cases.iter().collect();
            let mut replies = Vec::new();
            for result in ask(judge, script, &wanted) {
                replies.push(result?);
            }
            count += replies.len();
            record::save(&self.recorded, script, replies)?;
        }
        Ok(count)
    }

    /// Compares a server with the recorded answers or, if a judge is given, with its live ones.
    pub fn compare(&self, server: &mut Client, mut judge: Option<&mut Client>) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        for script in &self.scripts {
            let wanted = |case: &&Case| self.wants(script, case) && case.options.differs.is_none();
            let cases: Vec<&Case> = script.cases.iter().filter(wanted).collect();
            outcome.skipped += script.cases.iter().filter(|case| self.wants(script, case)).count() - cases.len();
            if cases.is_empty() {
                continue;
            }
            let theirs: Vec<Result<Vec<Document>>> = match &mut judge {
                Some(judge) => ask(judge, script, &cases),
                None => {
                    let recorded = Recorded::load(&self.recorded, &script.name)?;
                    cases.iter().map(|case| recorded.replies(case).map(<[Document]>::to_vec)).collect()
                }
            };
            let ours = ask(server, script, &cases);
            for ((case, theirs), ours) in cases.iter().zip(theirs).zip(ours) {
                match verdict(case, theirs, ours) {
                    None => outcome.passed += 1,
                    Some(report) => {
                        outcome.failures.push(Failure { case: format!("{}: {}", script.name, case.name), report })
                    }
                }
            }
        }
        Ok(outcome)
    }

    fn wants(&self, script: &Script, case: &Case) -> bool {
        format!("{}: {}", script.name, case.name).contains(&self.filter)
    }
}

/// The replies of a server to each case.
fn ask(client: &mut Client, script: &Script, cases: &[&Case]) -> Vec<Result<Vec<Document>>> {
    let mut all = Vec::new();
    if script.share {
        let mut run = Run::new(client);
        let ready = cases.first().map_or(Ok(()), |case| run.set_up(case)).map_err(|error| format!("{error:#}"));
        for case in cases {
            all.push(ready.clone().map(|()| run.replies(case)).map_err(anyhow::Error::msg));
        }
        // A database that stays behind harms nobody: the next run has another name.
        let _ = run.tear_down();
        return all;
    }
    let mut run = Run::new(client);
    let mut before: Option<&Case> = None;
    for case in cases {
        let ready = match before {
            Some(before) if before.is_plain() && case.is_plain() && before.indexes == case.indexes => run.refill(case),
            _ => {
                let _ = run.tear_down();
                run.start_afresh();
                run.set_up(case)
            }
        };
        // After a failure the next case begins with a database of its own.
        before = ready.is_ok().then_some(*case);
        all.push(ready.map(|()| run.replies(case)));
    }
    let _ = run.tear_down();
    all
}

/// A readable report if the replies differ.
fn verdict(case: &Case, theirs: Result<Vec<Document>>, ours: Result<Vec<Document>>) -> Option<String> {
    let (theirs, ours) = match (theirs, ours) {
        (Ok(theirs), Ok(ours)) => (theirs, ours),
        (Err(error), _) => return Some(format!("  theirs: {error:#}\n")),
        (_, Err(error)) => return Some(format!("  ours: {error:#}\n")),
    };
    let mut report = String::new();
    for ((command, theirs), ours) in case.run.iter().zip(&theirs).zip(&ours) {
        let found = compare(theirs, ours, case.options.message);
        if found.is_empty() {
            continue;
        }
        report += &format!("  sent:   {}\n", json::line_of(command));
        for difference in found.iter().take(5) {
            report += &format!(
                "    at {}\n      theirs: {}\n      ours:   {}\n",
                difference.path, difference.theirs, difference.ours
            );
        }
        for (who, reply) in [("theirs", theirs), ("ours", ours)] {
            if let Some(message) = message(reply) {
                report += &format!("    {who} said: {message}\n");
            }
        }
    }
    (!report.is_empty()).then_some(report)
}

fn message(reply: &Document) -> Option<&str> {
    let write = || reply.get_array("writeErrors").ok()?.first()?.as_document()?.get_str("errmsg").ok();
    reply.get_str("errmsg").ok().or_else(write)
}
