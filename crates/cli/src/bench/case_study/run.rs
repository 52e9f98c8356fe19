//! One run: every subject in turn, each alone on the machine, then the readings.

use super::client::{Client, Server};
use super::events::{Event, Events};
use super::layout::Layout;
use super::options::Options;
use super::outcome::{Outcome, Row};
use super::place::{Place, Running};
use super::reports::{self, Pace};
use super::sizes::{Files, Sizes};
use super::stored::Amount;
use super::subject::Subject;
use super::truth::Truth;
use super::{columns, ingest, load, readings};
use crate::ask::{list, text};
use crate::report::{self, Failure};
use bson::doc;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) async fn run(study: &Options) -> Result<Outcome, Failure> {
    let subjects = chosen(study)?;
    let folder = Folder::of(study)?;
    let mongod = match &study.upstream {
        Some(uri) => Some(Server::open(uri).await?),
        None => None,
    };
    report::note("making the events");
    let Events { users, all } = Events::generate(study.events_per_year, study.seed);
    let events = Events { users, all };
    let truth = Arc::new(Truth::of(&events));
    let bench = Bench { study, folder: &folder.path, mongod, events: Arc::new(events.all), truth, users };
    let mut outcome = Outcome {
        events: bench.events.len() as u64,
        users,
        seed: study.seed,
        clients: study.clients,
        servers: bench.servers().await?,
        expected: Layout::ALL.map(|layout| (layout, Amount::of(&bench.truth, layout))).into(),
        rows: Vec::new(),
        readings: Vec::new(),
        estimates: Vec::new(),
    };
    for (at, subject) in subjects.iter().enumerate() {
        let step = format!("{} of {}", at + 1, subjects.len());
        outcome.rows.push(bench.row(*subject, &step).await?);
    }
    for place in [Place::Embedded, Place::Proxy] {
        let declared = |subject: &&Subject| subject.place == place && subject.declaration().is_some();
        if subjects.iter().any(|subject| declared(&subject)) {
            outcome.readings.push((place, bench.readings(place).await?));
        }
    }
    outcome.estimates = [Layout::Array, Layout::Month, Layout::Quarter]
        .map(|layout| columns::Estimate::of(&bench.truth, layout))
        .into();
    Ok(outcome)
}

/// The subjects that were asked for.
fn chosen(study: &Options) -> Result<Vec<Subject>, Failure> {
    let layouts = if study.layout.is_empty() { Layout::ALL.to_vec() } else { study.layout.clone() };
    let mut subjects = Subject::all(&layouts, study.upstream.is_some());
    if !study.only.is_empty() {
        subjects.retain(|subject| study.only.iter().any(|only| subject.word().contains(only.as_str())));
    }
    match subjects.is_empty() {
        true => Err(Failure::new("nothing is left to measure").hint(
            "--only takes parts of names such as embedded-declared-quarter, mongod-hand-day (with --upstream), proxy-declared-month",
        )),
        false => Ok(subjects),
    }
}

/// The folder of the embedded stores; a temporary one is removed with this.
struct Folder {
    path: PathBuf,
    _temporary: Option<tempfile::TempDir>,
}

impl Folder {
    fn of(study: &Options) -> Result<Folder, Failure> {
        let Some(path) = study.data.clone() else {
            let temporary = tempfile::Builder::new()
                .prefix("pleach-case-study-")
                .tempdir()
                .map_err(|error| Failure::new(format!("cannot make a temporary folder: {error}")))?;
            return Ok(Folder { path: temporary.path().to_owned(), _temporary: Some(temporary) });
        };
        let cannot = |error: std::io::Error| Failure::new(format!("cannot use the folder {}: {error}", path.display()));
        std::fs::create_dir_all(&path).map_err(cannot)?;
        if std::fs::read_dir(&path).map_err(cannot)?.next().is_some() {
            return Err(Failure::new(format!("the folder {} is not empty", path.display()))
                .hint("the study measures files: give it a new folder with --data"));
        }
        Ok(Folder { path, _temporary: None })
    }
}

struct Bench<'a> {
    study: &'a Options,
    folder: &'a Path,
    mongod: Option<Server>,
    events: Arc<Vec<Event>>,
    truth: Arc<Truth>,
    users: u32,
}

impl Bench<'_> {
    /// What the servers are and how they are set.
    async fn servers(&self) -> Result<Vec<String>, Failure> {
        let mut lines = vec![format!("Pleach {}, each layout on a store of its own", env!("CARGO_PKG_VERSION"))];
        if let Some(mongod) = &self.mongod {
            let mut client = mongod.client();
            let version = client.run("admin", doc! { "buildInfo": 1 }).await?;
            let status = client.run("admin", doc! { "serverStatus": 1 }).await?;
            let cache = status.get_document("wiredTiger").and_then(|engine| engine.get_document("cache"));
            let bytes = cache.map_or(0, |cache| crate::ask::number(cache, "maximum bytes configured"));
            lines.push(format!("MongoDB {}, cache {} MB", text(&version, "version"), bytes >> 20));
        }
        Ok(lines)
    }

    /// `step` says how far the whole run is.
    async fn row(&self, subject: Subject, step: &str) -> Result<Row, Failure> {
        let folder = self.folder.join(subject.word());
        // Before the server starts: what an earlier run left is not its business.
        self.drop_database(&subject.db()).await?;
        let running = self.start(subject.place, &folder).await?;
        let server = running.server(self)?;
        let mut client = server.client();
        if let Some(declaration) = subject.declaration() {
            apply(&mut client, &subject.db(), &declaration).await?;
        }
        let loaded = load::load(server, subject, &self.events, self.study.clients, step).await?;
        let mut sizes = Sizes::ask(&mut client, subject).await?;
        let reported = reports::report(server, subject, &self.truth, self.pace(), step).await?;
        let ingests = subject.layout == Layout::Quarter;
        let running = match running {
            Started::Process(process) if subject.place == Place::Embedded => {
                client.run(&subject.db(), doc! { "compact": subject.stored() }).await?;
                drop(client);
                process.stop()?;
                let files = Files::of(&folder)?;
                sizes = Sizes { index: 0, disk: files.data + files.log, log: Some(files.log), ..sizes };
                match ingests {
                    true => Some(self.start(subject.place, &self.to_go_on(&folder)?).await?),
                    false => None,
                }
            }
            other => Some(other),
        };
        let mut ingest = None;
        if let Some(running) = running {
            if ingests {
                ingest = Some(ingest::events(running.server(self)?, subject, &self.events, self.each()).await?);
            }
            running.stop()?;
        }
        self.drop_database(&subject.db()).await?;
        if self.study.data.is_none() && subject.place == Place::Embedded {
            let _ = std::fs::remove_dir_all(&folder);
        }
        Ok(Row { subject, loaded, sizes, reported, ingest })
    }

    /// The store for what is measured after its files were counted: where they are kept, a copy, so that a person finds
    /// what was counted.
    fn to_go_on(&self, folder: &Path) -> Result<PathBuf, Failure> {
        if self.study.data.is_none() {
            return Ok(folder.to_owned());
        }
        let mut name = folder.file_name().unwrap_or_default().to_owned();
        name.push("-ingest");
        let copy = folder.with_file_name(name);
        copy_files(folder, &copy)
            .map_err(|error| Failure::new(format!("cannot copy {}: {error}", folder.display())))?;
        Ok(copy)
    }

    async fn readings(&self, place: Place) -> Result<readings::Readings, Failure> {
        self.drop_database(readings::db()).await?;
        let running = self.start(place, &self.folder.join("readings")).await?;
        let server = running.server(self)?;
        apply(&mut server.client(), readings::db(), readings::DECLARATION).await?;
        // One sensor for each million events: enough to be no blink, at any scale.
        let sensors = self.events.len().div_ceil(1_250_000).clamp(1, 4);
        let readings = readings::measure(server, sensors, self.each()).await?;
        running.stop()?;
        self.drop_database(readings::db()).await?;
        Ok(readings)
    }

    async fn start(&self, place: Place, folder: &Path) -> Result<Started, Failure> {
        let said = self.folder.join("server.log");
        Ok(match (place, &self.study.upstream) {
            (Place::Mongod, _) => Started::Mongod,
            (Place::Proxy, Some(uri)) => Started::Process(Running::proxy(uri, said).await?),
            (Place::Proxy | Place::Embedded, _) => Started::Process(Running::embedded(folder, said).await?),
        })
    }

    /// On the real MongoDB; stores of our own are new.
    async fn drop_database(&self, db: &str) -> Result<(), Failure> {
        if let Some(mongod) = &self.mongod {
            mongod.client().run(db, doc! { "dropDatabase": 1 }).await?;
        }
        Ok(())
    }

    fn pace(&self) -> Pace {
        Pace {
            clients: self.study.clients,
            requests: self.study.reports,
            at_most: Duration::from_secs(self.study.report_seconds),
            seed: self.study.seed,
            users: self.users,
        }
    }

    /// How long one-at-a-time and batches are measured: a twentieth of what reports may take.
    fn each(&self) -> Duration {
        Duration::from_millis((self.study.report_seconds * 50).clamp(50, 3_000))
    }
}

fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_files(&entry.path(), &target)?,
            false => drop(std::fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}

/// The server of one measurement.
enum Started {
    Mongod,
    Process(Running),
}

impl Started {
    fn server<'a>(&'a self, bench: &'a Bench<'_>) -> Result<&'a Server, Failure> {
        match self {
            Started::Process(running) => Ok(&running.server),
            Started::Mongod => bench.mongod.as_ref().ok_or_else(|| Failure::new("there is no MongoDB to measure")),
        }
    }

    fn stop(self) -> Result<(), Failure> {
        match self {
            Started::Process(running) => running.stop(),
            Started::Mongod => Ok(()),
        }
    }
}

/// Applies a declaration over the wire and waits until its rules are on.
async fn apply(client: &mut Client, db: &str, declaration: &str) -> Result<(), Failure> {
    client.run(db, doc! { "pleach": "apply", "declaration": declaration }).await?;
    loop {
        let status = client.run(db, doc! { "pleach": "status" }).await?;
        let waiting = list(&status, "rules").into_iter().find(|rule| text(rule, "state") != "on");
        match waiting {
            None => return Ok(()),
            Some(rule) => {
                if let Ok(problem) = rule.get_str("problem") {
                    return Err(Failure::new(format!("{} does not get on: {problem}", text(rule, "rule"))));
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
