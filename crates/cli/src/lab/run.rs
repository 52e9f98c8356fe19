//! One run: sample, build every candidate, measure, and keep what was found in the ledger.

use super::scratch::{self, Scratch};
use super::shown;
use super::source::Opened;
use crate::options::TargetOptions;
use crate::progress::Progress;
use crate::report::{self, Code, Failure, Verdict};
use lab::bottleneck;
use lab::ledger::Ledger;
use lab::line::Rows;
use lab::measure::{self, Bytes};
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
        false => report::text(&shown::outcome(&outcome)),
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
    let in_force = rules_in_force(&source).await;
    let candidates = with_rules_in_force(&asked.candidates, &in_force);
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
    let rows =
        built(asked, &source, &plan, &sample, &candidates, &stores, &mix, opened.is_mongodb).await.map_err(room)?;
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
        calibrate(&mut outcome, opened, &plan, in_force.is_empty()).await;
    }
    if opened.is_mongodb && !sample.is_snapshot {
        outcome.notes.push(
            "the server cannot show one moment to several reads: what was written meanwhile may be half in the sample"
                .to_owned(),
        );
    }
    Ok(outcome)
}

/// The rules that are in force stay so beside those of a candidate; `now` has them alone.
fn with_rules_in_force(asked: &[Candidate], in_force: &[Arc<Rule>]) -> Vec<Candidate> {
    let rules = asked.iter().flat_map(|candidate| candidate.rules.clone()).collect();
    let mut all = Candidate { name: String::new(), rules };
    all.join(in_force);
    let is_near = |rule: &&Arc<Rule>| all.rules.iter().any(|other| other.name == rule.name);
    let near: Vec<Arc<Rule>> = in_force.iter().filter(is_near).cloned().collect();
    let mut candidates = asked.to_vec();
    for candidate in &mut candidates {
        match candidate.rules.is_empty() {
            true => candidate.rules.clone_from(&near),
            false => candidate.join(&near),
        }
    }
    candidates
}

/// The mix that was given, that of the traffic, or one read per pattern and one write per source; and where it comes from.
fn mix(asked: &Asked<'_>, traffic: &Traffic, candidates: &[Candidate], plan: &Plan) -> (Mix, Vec<String>) {
    if let Some(mix) = &asked.mix {
        return (mix.clone(), Vec::new());
    }
    let rules = || candidates.iter().flat_map(|candidate| candidate.rules.iter().map(|rule| &**rule));
    let collections: Vec<&str> = plan.members.iter().map(|member| &*member.name).collect();
    match lab::mix::of_traffic(&asked.database, traffic, rules(), &collections) {
        Some((mix, left)) => {
            let mut notes = vec![format!("the mix is that of the traffic in {}", traffic.source)];
            if !left.is_empty() {
                notes.push(format!("not in the mix, since it cannot be repeated or is seldom: {}", left.join("; ")));
            }
            (mix, notes)
        }
        None => {
            let note =
                "the mix is one read per pattern and one write per source: no traffic is known (--mix names another)";
            (lab::mix::of_rules(rules()), vec![note.to_owned()])
        }
    }
}

/// Builds every candidate, measures what it takes, then all of them in turns.
async fn built(
    asked: &Asked<'_>,
    source: &Source,
    plan: &Plan,
    sample: &Sample,
    candidates: &[Candidate],
    stores: &[Store],
    mix: &Mix,
    is_mongodb: bool,
) -> document::Result<Vec<Row>> {
    let mut progress = Progress::of("candidates");
    let groups = async |rule: &Rule| measure::groups(source, rule).await;
    let mut all = Vec::new();
    for (at, (candidate, store)) in candidates.iter().zip(stores).enumerate() {
        progress.show(at as u64, candidates.len() as u64, &[format!("building {}", candidate.name)]);
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
    let built: Vec<(&Candidate, &Store)> = candidates.iter().zip(stores).collect();
    let pools = Pools::new(plan, &sample.pools);
    let mut progress = Progress::of("rounds");
    let mut show = |done: u64, total: u64| progress.show(done, total, &["the mix".to_owned()]);
    let speeds = lab::rounds::measure(&built, mix, &pools, asked.seed, asked.time, &mut show).await?;
    progress.end();
    let is_mongodb = is_mongodb || stores.iter().any(|store| store.is_mongodb);
    let row = |((candidate, sizes), speed): ((&Candidate, measure::Sizes), lab::rounds::Speed)| Row {
        name: candidate.name.clone(),
        declaration: declared(asked, &candidate.name),
        full: sizes.full(),
        error: sizes.error(),
        errors: sizes.errors(is_mongodb),
        sizes,
        speed,
    };
    let rows: Vec<Row> = candidates.iter().zip(all).zip(speeds).map(row).collect();
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

/// The rules that the data has now.
async fn rules_in_force(source: &Source) -> Vec<Arc<Rule>> {
    let mut rules = Vec::new();
    // Whoever may not read the catalog is answered as if there were none.
    let Ok(mut rows) = Rows::find(&source.line, &source.db, "pleach.catalog", bson::doc! {}).await else {
        return rules;
    };
    while let Ok(Some(row)) = rows.next().await {
        if let Some(document::Value::Document(declaration)) = row.get("declaration") {
            rules.extend(patterns::declare::from_catalog(&declaration).ok().map(Arc::new));
        }
    }
    rules
}

/// Index and disk bytes of the embedded store as a MongoDB would have them: by what the same figures of today are there.
async fn calibrate(outcome: &mut Outcome, opened: &Opened, plan: &Plan, is_plain: bool) {
    let mut real = Bytes::default();
    for member in &plan.members {
        let Ok(found) = measure::statistics(&opened.stored, &outcome.database, &member.name).await else {
            continue;
        };
        real.indexes += found.bytes.indexes;
        real.disk += found.bytes.disk;
    }
    let now = outcome.rows.iter().find(|row| row.name == "now").map(|row| row.full);
    let Some(now) = now.filter(|now| is_plain && now.indexes > 0.0 && now.disk > 0.0 && real.disk > 0.0) else {
        outcome.notes.push("bytes of indexes and on disk are those of the embedded store: with --declare now as well they are scaled by what the MongoDB has today, with --scratch mongodb://… they are measured".to_owned());
        return;
    };
    let (indexes, disk) = (real.indexes / now.indexes, real.disk / now.disk);
    for row in &mut outcome.rows {
        row.full.indexes *= indexes;
        row.full.disk *= disk;
    }
    outcome.notes.push(format!(
        "bytes of indexes and on disk are estimates: those of the embedded store, scaled by what this MongoDB has today ({} and {}); --scratch mongodb://… measures them",
        bottleneck::shown(real.indexes),
        bottleneck::shown(real.disk)
    ));
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
