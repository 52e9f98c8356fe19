//! One run: sample, build every candidate, measure, and keep what was found in the ledger.

use super::calibrate::calibrate;
use super::in_force::InForce;
use super::mix::mix;
use super::scratch::{self, Scratch};
use super::source::Opened;
use super::text;
use crate::options::TargetOptions;
use crate::progress::Progress;
use crate::report::{self, Code, Failure, Verdict};
use lab::ledger::Ledger;
use lab::measure;
use lab::mix::{Mix, Pools};
use lab::outcome::{Outcome, Row};
use lab::plan::Plan;
use lab::sample::{self, Amount, Sample};
use lab::source::Source;
use lab::store::{Candidate, Store};
use lab::traffic::{self, Traffic};
use patterns::rule::Rule;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What is to be measured.
pub(crate) struct Asked<'a> {
    pub(crate) target: &'a TargetOptions,
    pub(crate) database: String,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) amount: Amount,
    pub(crate) seed: u64,
    pub(crate) mix: Option<Mix>,
    pub(crate) scratch: Option<String>,
    pub(crate) memory: f64,
    pub(crate) time: Duration,
    pub(crate) report: Option<PathBuf>,
    pub(crate) json: bool,
}

pub(crate) fn run(asked: &Asked<'_>) -> Result<Verdict, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start the runtime: {error}")))?;
    let outcome = runtime.block_on(interruptible(asked));
    runtime.shutdown_timeout(Duration::from_secs(2));
    let outcome = outcome?;
    let cannot = |path: &std::path::Path, error: std::io::Error| {
        Failure::of(Code::Word("file"), format!("cannot write {}: {error}", path.display()))
    };
    if let Some(path) = &asked.report {
        std::fs::write(path, lab::page::page(&outcome)).map_err(|error| cannot(path, error))?;
    }
    let ledger = Ledger::of(std::path::Path::new("."));
    if let Err(error) = ledger.measured(&super::verify::now(), &outcome) {
        // What was measured is shown all the same.
        report::note(&format!("warning: the ledger {} cannot be written: {error}", ledger.path().display()));
    }
    match asked.json {
        true => {
            outcome.notes.iter().for_each(|note| report::note(&format!("note: {note}")));
            report::json(&outcome.json());
        }
        false => report::text(&text::outcome(&outcome)),
    }
    Ok(Verdict::Fine)
}

/// Runs until it is done or somebody stops it; what was made for it is taken away in any case.
async fn interruptible(asked: &Asked<'_>) -> Result<Outcome, Failure> {
    let source = Opened::open(asked.target).await?;
    let mut scratches = Vec::new();
    let result = tokio::select! {
        result = measured(asked, &source, &mut scratches) => result,
        () = stop_signal() => {
            Err(Failure::of(Code::Word("interrupted"), "stopped before it was done; the scratch data is removed")
                .hint("a smaller --sample or --seconds takes less time"))
        }
    };
    let mut taken = Ok(());
    for scratch in scratches {
        let one = scratch.take_away().await;
        taken = taken.and(one);
    }
    source.close().await;
    let outcome = result?;
    taken?;
    Ok(outcome)
}

/// Ctrl-C, the end of the terminal, or the wish of a supervisor.
async fn stop_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut terminate), Ok(mut hangup)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup())) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

async fn measured(asked: &Asked<'_>, opened: &Opened, scratches: &mut Vec<Scratch>) -> Result<Outcome, Failure> {
    let source = Source::new(opened.line.clone(), &asked.database);
    let traffic = match asked.mix {
        Some(_) => Traffic::default(),
        None => traffic::of(&opened.line, &asked.database).await,
    };
    let in_force = InForce::of(&source, &asked.candidates).await;
    let candidates = in_force.completed(&asked.candidates);
    let rules: Vec<Arc<Rule>> = candidates.iter().flat_map(|candidate| candidate.rules.iter().cloned()).collect();
    let plan = Plan::of(rules.iter().map(|rule| &**rule));
    if plan.members.is_empty() {
        return Err(Failure::of(Code::Word("declaration"), "no candidate has a rule: there is nothing to compare")
            .hint("name a declaration beside `now`: --declare now --declare candidate.yaml"));
    }
    let mut stores: Vec<Store> = Vec::new();
    if let Some(uri) = &asked.scratch {
        scratch::tell_of_leftovers(uri).await?;
    }
    for _ in &candidates {
        match &asked.scratch {
            // It is in the list before anything is made there: whatever happens, it is taken away.
            Some(uri) => stores.push(Scratch::mongodb(uri, scratches).await?),
            None => stores.push(Scratch::embedded(&asked.database, scratches).await?),
        }
    }
    let mut progress = Progress::new();
    let mut show = |done: u64, total: u64| progress.show(done, total, &["the sample".to_owned()]);
    let sample = sample::take(&source, &plan, asked.amount, asked.seed, &stores, &mut show).await.map_err(room)?;
    progress.end();
    let (mix, mut notes) = mix(asked, &traffic, &candidates, &plan);
    let layouts: Vec<(&Candidate, &Store)> = candidates.iter().zip(&stores).collect();
    let rows = built(asked, &source, &plan, &sample, &layouts, &mix, opened.is_mongodb).await.map_err(room)?;
    notes.extend(in_force.missing_in(&asked.candidates));
    notes.extend(sample.notes.clone());
    let mut outcome = Outcome {
        database: asked.database.clone(),
        rows,
        sampled: sample.documents,
        of: sample.of,
        seed: asked.seed,
        memory: asked.memory,
        is_snapshot: sample.is_snapshot,
        notes,
    };
    if opened.is_mongodb && asked.scratch.is_none() {
        calibrate(&mut outcome, opened, &plan, in_force.is_none()).await;
    }
    if opened.is_mongodb && !sample.is_snapshot {
        outcome.notes.push(
            "the server cannot show one moment to several reads: what was written meanwhile may be half in the sample"
                .to_owned(),
        );
    }
    Ok(outcome)
}

/// Builds every candidate, measures what it takes, then all of them in turns.
async fn built(
    asked: &Asked<'_>,
    source: &Source,
    plan: &Plan,
    sample: &Sample,
    layouts: &[(&Candidate, &Store)],
    mix: &Mix,
    is_mongodb: bool,
) -> document::Result<Vec<Row>> {
    let mut progress = Progress::of("candidates");
    let groups = async |rule: &Rule| measure::groups(source, rule).await;
    let mut all = Vec::new();
    for (at, (candidate, store)) in layouts.iter().enumerate() {
        progress.show(at as u64, layouts.len() as u64, &[format!("building {}", candidate.name)]);
        let loaded = measure::loaded(store).await?;
        store.apply(candidate).await.map_err(|error| {
            let said = format!("{} cannot be built of the sample: {}", candidate.name, error.message());
            let hint = error.hint().unwrap_or(
                "`pleach check --infer` and `pleach plan` on the data itself say more; nothing was changed there",
            );
            document::Error::new(error.code(), said).with_hint(hint.to_owned())
        })?;
        all.push(measure::sizes(store, &loaded, candidate, plan, sample, &groups).await?);
    }
    progress.end();
    let pools = Pools::new(plan, &sample.pools);
    if asked.mix.is_some() {
        lab::mix::check(mix, &pools)?;
    }
    let mut progress = Progress::of("rounds");
    let mut show = |done: u64, total: u64| progress.show(done, total, &["the mix".to_owned()]);
    let speeds = lab::rounds::measure(layouts, mix, &pools, asked.seed, asked.time, &mut show).await?;
    progress.end();
    let is_mongodb = is_mongodb || layouts.iter().any(|(_, store)| store.is_mongodb);
    let row = |(((candidate, _), sizes), speed): ((&(&Candidate, &Store), measure::Sizes), lab::rounds::Speed)| Row {
        name: candidate.name.clone(),
        declaration: declared(asked, &candidate.name),
        full: sizes.full(),
        error: sizes.error(),
        errors: sizes.errors(is_mongodb),
        sizes,
        speed,
    };
    let rows: Vec<Row> = layouts.iter().zip(all).zip(speeds).map(row).collect();
    for (name, timed) in
        rows.iter().flat_map(|row| row.speed.reads.iter().chain(&row.speed.writes).map(|timed| (&row.name, timed)))
    {
        if let Some(said) = &timed.failed {
            report::note(&format!("note: `{}` on {name} was left out: {said}", timed.name));
        }
    }
    Ok(rows)
}

/// A candidate's own rules, as the ledger has them.
fn declared(asked: &Asked<'_>, name: &str) -> serde_json::Value {
    let candidate = asked.candidates.iter().find(|candidate| candidate.name == name);
    candidate.map_or(serde_json::Value::Null, |candidate| candidate.canonical(&asked.database))
}

/// What to do about a disk that is full, if that is what it is.
fn room(error: document::Error) -> Failure {
    let failure = Failure::from(error);
    let said = failure.message.to_lowercase();
    let is_full =
        ["no space", "disk is full", "disk full", "nearly full", "os error 28"].iter().any(|word| said.contains(word));
    match is_full {
        true => failure.hint(
            "scratch stores are in the folder for temporary files: free space there, set TMPDIR to a larger disk, or take a smaller --sample",
        ),
        false => failure,
    }
}
