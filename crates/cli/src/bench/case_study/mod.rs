//! `pleach bench case-study`: the study "The Cost of Not Knowing MongoDB" on this machine, in one run.
//!
//! The same events, made from a seed, go through each layout by hand and through Pleach's declarations; sizes, speeds and the
//! rightness of every report are found out. Reading order: `events`, `layout` and `truth` are the workload; `hand` and `declared`
//! what clients send; `subject` is what is measured once; `load`, `reports`, `sizes`, `ingest`, `readings` and `columns` measure;
//! `outcome` is all of it as data, `tables` and `page` show it.

mod calendar;
mod client;
mod columns;
mod compare;
mod declared;
mod events;
mod hand;
mod ingest;
mod latency;
mod layout;
mod load;
mod options;
mod outcome;
mod page;
mod place;
mod plot;
mod random;
mod readings;
mod reports;
mod run;
mod sizes;
mod stored;
mod subject;
mod tables;
mod template;
mod truth;

pub(crate) use options::Options;

use crate::report::{self, Failure, Verdict};

pub(crate) fn run(study: &Options) -> Result<Verdict, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start the runtime: {error}")))?;
    let result = runtime.block_on(async {
        tokio::select! {
            result = run::run(study) => result,
            // Servers and folders of this run go with it.
            _ = tokio::signal::ctrl_c() => Err(Failure::new("interrupted")),
        }
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    let outcome = result?;
    if let Some(path) = &study.html {
        std::fs::write(path, page::page(&outcome))
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
        report::note(&format!("the page is {}", path.display()));
    }
    match study.output.json {
        true => report::json(&outcome.json()),
        false => report::text(&tables::render(&outcome)),
    }
    Ok(if outcome.wrong().is_empty() { Verdict::Fine } else { Verdict::Findings })
}
