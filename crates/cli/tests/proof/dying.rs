//! Processes that live for a while under load and are killed at any moment: what comes next resumes their work.
//!
//! A process is a runtime of its own with a backend, a layer, its life and clients; a kill drops all of its tasks where they are.

use document::Env;
use document::op::Context;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use std::time::Duration;
use testing::{Act, Data, Living, World};

/// Every process lives a minute later than the one before.
fn at_round(round: i64) -> Context {
    let context = testing::context();
    Context { env: Env { now: context.env.now + round * 60_000, ..context.env }, ..context }
}

/// A process of some round, with its background work.
pub(crate) async fn start(data: &Data, db: &str, round: i64) -> Living {
    let world = World { contexts: Arc::new(move || at_round(round)), ..World::on(data.open().await, db) };
    let living = Living::of(world);
    living.life.limit_hosts(3);
    // The proofs beside this one have rules without a lease: whoever saw them would think that their process is gone.
    living.life.limit_database(db);
    living.life.load().await.unwrap();
    living.life.limit_lease(Duration::from_millis(500));
    living.life.start().await.unwrap();
    living
}

/// What one of the tasks of a process has.
pub(crate) struct Task {
    pub(crate) process: Arc<Living>,
    pub(crate) round: i64,
    pub(crate) number: u64,
    pub(crate) random: StdRng,
    complaints: Arc<Mutex<Vec<String>>>,
}

impl Task {
    pub(crate) fn complain(&self, complaint: String) {
        self.complaints.lock().push(complaint);
    }

    /// Whether it went well. A busy machine may renew a short lease too late.
    pub(crate) async fn act(&mut self, act: &Act) -> bool {
        match self.process.act(act).await {
            Err(error) if !error.message().contains("holds no lease") => {
                self.complain(format!("{act:?}: {error:?}"));
                false
            }
            _ => {
                tokio::time::sleep(Duration::from_micros(self.random.random_range(0..2_000))).await;
                true
            }
        }
    }

    /// Some time, or until all rules are on.
    pub(crate) async fn pause(&mut self) {
        match self.random.random_bool(0.5) {
            true => tokio::time::sleep(Duration::from_millis(self.random.random_range(0..50))).await,
            false => {
                if let Err(error) = self.process.life.settle(&self.process.db).await {
                    self.complain(format!("rules do not come on: {error:?}"));
                }
            }
        }
    }
}

/// Starts the work of one task.
pub(crate) type Run = Arc<dyn Fn(Task) + Send + Sync>;

/// So many processes one after the other, each with tasks 0, 1, … that `run` starts. Gives the one after the last.
pub(crate) async fn lives(data: &Data, db: &str, seed: u64, rounds: i64, tasks: u64, run: Run) -> Living {
    let mut random = StdRng::seed_from_u64(seed);
    for round in 1..=rounds {
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let (time, seed) = (Duration::from_millis(random.random_range(20..450)), random.random::<u64>());
        let (data, db, heard, run) = (data.clone(), db.to_owned(), complaints.clone(), run.clone());
        // The runtime is ended where waiting is allowed.
        let killed = tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            let opened = runtime.block_on(async {
                let process = Arc::new(start(&data, &db, round).await);
                for number in 0..tasks {
                    let random = StdRng::seed_from_u64(seed ^ number);
                    run(Task { process: process.clone(), round, number, random, complaints: heard.clone() });
                }
                tokio::time::sleep(time).await;
                process.opened.clone()
            });
            runtime.shutdown_timeout(Duration::from_secs(60));
            opened
        });
        killed.await.unwrap().close();
        assert!(complaints.lock().is_empty(), "round {round}: {:#?}", complaints.lock());
    }
    start(data, db, rounds + 1).await
}

/// Once the outbox is empty, an audit finds nothing.
pub(crate) async fn assert_right(process: &Living, when: &str) {
    for _ in 0..200 {
        if process.all("pleach.outbox").await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(process.all("pleach.outbox").await.is_empty(), "{when}: the outbox does not empty");
    assert_eq!(process.audit().await, Vec::<bson::Document>::new(), "{when}");
}
