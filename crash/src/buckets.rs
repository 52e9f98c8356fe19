//! The bucket scenario: workers have readings of their own in buckets that they share, and sums in slots. Fields are kept from the
//! readings of every other worker. After each crash the readings and sums are those acknowledged, the fields are what the readings
//! add up to, and the audit is clean.

use crate::scenario::{Progress, Scenario};
use crate::worker::{found_in, send, session_of};
use anyhow::{Context, Result, ensure};
use bson::{DateTime, Document, doc};
use judge::client::Client;
use rand::RngExt;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const DB: &str = "crash_buckets";
/// Few, so that the workers meet in their buckets.
const SENSORS: i64 = 3;
/// From so many readings on a worker deletes instead of inserting.
const MANY: usize = 400;
const DAYS: i64 = 40;
const DAY: i64 = 86_400_000;
/// 2024-03-01T00:00:00Z.
const BEGIN: i64 = 1_709_251_200_000;

pub(crate) struct Bucketed {
    worker: usize,
    session: [u8; 16],
    transaction_number: i64,
    next: i64,
    /// Reading number to its sensor and value.
    readings: BTreeMap<i64, (i64, i64)>,
    /// Day to what was added up.
    sums: BTreeMap<i64, i64>,
    in_flight: Option<Operation>,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Insert {
        number: i64,
        count: i64,
        sensor: i64,
    },
    /// Another value, or another series too, which moves it to another bucket.
    Change {
        number: i64,
        sensor: i64,
        value: i64,
    },
    Delete {
        number: i64,
    },
    Add {
        day: i64,
        amount: i64,
    },
}

fn declaration() -> Document {
    let readings = |into: &str| {
        doc! { "into": into, "time": "ts", "by": ["sensorId"], "every": "hour", "at_most": 20,
        "stats": { "v": ["sum", "max"] } }
    };
    let events = doc! { "into": "event_months", "time": "date", "by": ["key"], "every": "month", "slot": "day",
    "sum": { "amount": "a" }, "layout": "field_names" };
    let sensors = doc! {
        "readings": { "count": "sensor_data", "by": "sensorId" },
        "total": { "sum": "v", "from": "sensor_data", "by": "sensorId" },
    };
    doc! { "database": DB, "collections": {
        "sensor_data": { "bucket": readings("sensor_hours") },
        "meter_data": { "bucket": readings("meter_hours") },
        "events": { "bucket": events },
        "sensors": { "computed": sensors },
    } }
}

impl Bucketed {
    fn id(&self, number: i64) -> String {
        format!("{}-{number}", self.worker)
    }

    fn reading(&self, number: i64, sensor: i64) -> Document {
        let ts = DateTime::from_millis(BEGIN + number % 97 * 61_000);
        doc! { "_id": self.id(number), "sensorId": sensor, "ts": ts, "worker": self.key(), "number": number, "v": 0_i64 }
    }

    /// Where its readings are: fields are kept from the first.
    fn collection(&self) -> &'static str {
        if self.worker.is_multiple_of(2) { "sensor_data" } else { "meter_data" }
    }

    fn key(&self) -> i64 {
        i64::try_from(self.worker).unwrap_or_default()
    }

    fn choose(&mut self) -> Operation {
        let mut rng = rand::rng();
        let (sensor, value) = (rng.random_range(0..SENSORS), rng.random_range(1..100));
        let start = rng.random_range(0..self.next.max(1));
        let existing = self.readings.range(start..).next().map(|(number, _)| *number);
        match (rng.random_range(0..10), existing) {
            (0 | 1, _) => Operation::Add { day: rng.random_range(0..DAYS), amount: value },
            (2 | 3, Some(number)) => Operation::Change { number, sensor, value },
            (4, Some(number)) => Operation::Delete { number },
            (_, Some(number)) if self.readings.len() >= MANY => Operation::Delete { number },
            (kind, _) => {
                let count = if kind == 5 { 3 } else { 1 };
                let number = self.next + 1;
                self.next += count;
                Operation::Insert { number, count, sensor }
            }
        }
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Insert { number, count, sensor } => {
                self.readings.extend((number..number + count).map(|number| (number, (sensor, 0))));
            }
            Operation::Change { number, sensor, value } => {
                self.readings.insert(number, (sensor, value));
            }
            Operation::Delete { number } => {
                self.readings.remove(&number);
            }
            Operation::Add { day, amount } => *self.sums.entry(day).or_default() += amount,
        }
    }

    fn command(&self, operation: Operation, relaxed: bool) -> Document {
        let mut command = match operation {
            Operation::Insert { number, count, sensor } => {
                let readings: Vec<Document> =
                    (number..number + count).map(|number| self.reading(number, sensor)).collect();
                doc! { "insert": self.collection(), "documents": readings }
            }
            Operation::Change { number, sensor, value } => {
                let change = doc! { "$set": { "sensorId": sensor, "v": value } };
                doc! { "update": self.collection(), "updates": [{ "q": { "_id": self.id(number) }, "u": change }] }
            }
            Operation::Delete { number } => {
                doc! { "delete": self.collection(), "deletes": [{ "q": { "_id": self.id(number) }, "limit": 1 }] }
            }
            Operation::Add { day, amount } => {
                let date = DateTime::from_millis(BEGIN + day * DAY + amount * 1_000);
                doc! { "insert": "events", "documents": [{ "key": self.key(), "date": date, "amount": amount }] }
            }
        };
        command.insert("lsid", session_of(self.session));
        command.insert("txnNumber", self.transaction_number);
        if relaxed {
            command.insert("writeConcern", doc! { "w": 1 });
        }
        command.insert("$db", DB);
        command
    }
}

/// Whether it was answered with its whole effect.
fn is_done(operation: Operation, reply: &Document) -> bool {
    let wanted = match operation {
        Operation::Insert { count, .. } => count,
        Operation::Change { .. } | Operation::Delete { .. } | Operation::Add { .. } => 1,
    };
    let n = reply.get("n").and_then(|n| n.as_i32().map(i64::from).or(n.as_i64()));
    reply.get_f64("ok").is_ok_and(|ok| ok > 0.0) && !reply.contains_key("writeErrors") && n == Some(wanted)
}

/// Sends a retryable statement until it is answered otherwise than by "try again".
fn until_answered(client: &mut Client, command: &Document) -> Option<Document> {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let reply = send(client, command)?;
        let again = reply
            .get_array("errorLabels")
            .is_ok_and(|labels| labels.iter().any(|label| label.as_str() == Some("RetryableWriteError")));
        if !again || Instant::now() > end {
            return Some(reply);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl Scenario for Bucketed {
    fn new(worker: usize) -> Bucketed {
        Bucketed {
            worker,
            session: rand::random(),
            transaction_number: 0,
            next: 0,
            readings: BTreeMap::new(),
            sums: BTreeMap::new(),
            in_flight: None,
        }
    }

    fn worker(&self) -> usize {
        self.worker
    }

    fn prepare(client: &mut Client, first: bool) -> Result<()> {
        if first {
            client.must(&doc! { "dropDatabase": 1, "$db": DB })?;
            client.must(&doc! { "pleach": "apply", "declaration": declaration(), "$db": DB })?;
            let sensors: Vec<Document> = (0..SENSORS).map(|sensor| doc! { "_id": sensor }).collect();
            client.must(&doc! { "insert": "sensors", "documents": sensors, "$db": DB })?;
        }
        Ok(())
    }

    fn settle(&mut self, client: &mut Client) -> Result<()> {
        let Some(operation) = self.in_flight.take() else { return Ok(()) };
        let reply = until_answered(client, &self.command(operation, false)).context("the connection is gone")?;
        ensure!(is_done(operation, &reply), "sent again, {operation:?} was refused: {reply}");
        self.apply(operation);
        Ok(())
    }

    fn run(mut self, address: &str, allow_relaxed: bool, progress: &Progress) -> Result<Bucketed> {
        let Ok(mut client) = Client::connect(address) else { return Ok(self) };
        while !progress.is_stopped() {
            let operation = self.choose();
            self.transaction_number += 1;
            self.in_flight = Some(operation);
            let relaxed = allow_relaxed && rand::rng().random_range(0..2) == 0;
            // Nothing: the connection is gone, the crash.
            let Some(reply) = until_answered(&mut client, &self.command(operation, relaxed)) else { break };
            ensure!(is_done(operation, &reply), "{operation:?} was refused: {reply}");
            self.apply(operation);
            self.in_flight = None;
            progress.add(1);
        }
        Ok(self)
    }

    fn verify(client: &mut Client, models: &[Bucketed]) -> Result<()> {
        for model in models {
            let worker = model.key();
            let (mut readings, mut sums) = (BTreeMap::new(), BTreeMap::new());
            for row in found_in(client, DB, model.collection(), doc! { "worker": worker })? {
                let number = row.get_i64("number")?;
                let twice = readings.insert(number, (row.get_i64("sensorId")?, row.get_i64("v")?));
                ensure!(twice.is_none(), "worker {worker}: reading {number} is there twice");
            }
            ensure!(readings == model.readings, "worker {worker}: readings are not those acknowledged");
            for row in found_in(client, DB, "events", doc! { "key": worker })? {
                let day = (row.get_datetime("date")?.timestamp_millis() - BEGIN) / DAY;
                let amount = row.get("amount").and_then(|n| n.as_i64().or(n.as_i32().map(i64::from)));
                sums.insert(day, amount.with_context(|| format!("no sum in {row}"))?);
            }
            ensure!(sums == model.sums, "worker {worker}: sums are not those acknowledged");
        }
        for row in found_in(client, DB, "sensors", doc! {})? {
            let sensor = row.get_i64("_id")?;
            let watched = models.iter().filter(|model| model.collection() == "sensor_data");
            let values: Vec<i64> = watched
                .flat_map(|model| model.readings.values().filter(|(of, _)| *of == sensor).map(|(_, value)| *value))
                .collect();
            let number = |name: &str| row.get(name).and_then(|n| n.as_i64().or(n.as_i32().map(i64::from)));
            let wanted = (i64::try_from(values.len()).ok(), Some(values.iter().sum::<i64>()));
            ensure!((number("readings"), number("total")) == wanted, "sensor {sensor}: {row} instead of {wanted:?}");
        }
        let audit = client.must(&doc! { "pleach": "audit", "$db": DB })?;
        let drifted = audit.get("drifted").and_then(|n| n.as_i32().map(i64::from).or(n.as_i64()));
        ensure!(drifted == Some(0), "the audit found {audit}");
        Ok(())
    }
}
