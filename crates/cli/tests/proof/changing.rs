//! Rules are added to, changed in and removed from live collections under load, and whoever does it is killed at any moment:
//! what comes next resumes it, with no gap and no double count.

use crate::dying::{Task, assert_right, lives};
use crate::failing::Failing;
use patterns::life::apply::Consent;
use patterns::life::relocate::drop::Leaving;
use rand::RngExt;
use std::sync::Arc;
use testing::registry::{fields_on, merged, owned, some};
use testing::shop::{self, Client};
use testing::{ALL_OF_IT, Data, declared};

const CLIENTS: u64 = 4;

type Base = Vec<&'static str>;

/// Some of the listed fields that go with it: always the same by one seed.
fn variant(base: &Base, seed: u64) -> String {
    let blocks: Vec<&str> = base.iter().copied().chain(some(&fields_on(base), 3, seed)).collect();
    merged(&blocks)
}

/// On collections as they are, or in other forms.
pub(crate) async fn check(data: Data, base: &Base, seed: u64, rounds: i64) {
    let opened = data.open().await;
    let living = shop::open(&opened, Arc::new(Failing::default()), &merged(base)).await;
    let mut client = Client::new(seed);
    for at in 0..120 {
        living.act(&client.act(at)).await.unwrap();
    }
    let db = living.db.clone();
    living.life.close().await;
    drop(living);
    opened.close();
    let changed = base.clone();
    let run = move |task: Task| {
        match task.number {
            CLIENTS => tokio::spawn(change(task, changed.clone())),
            _ => tokio::spawn(write(task)),
        };
    };
    let last = lives(&data, &db, seed, rounds, CLIENTS + 1, Arc::new(run)).await;
    last.life.settle(&db).await.unwrap();
    assert_right(&last, "as it was found").await;
    // What rules that went without their data left behind is theirs again.
    let everything = merged(&base.iter().copied().chain(fields_on(base)).collect::<Vec<_>>());
    for variant in [&variant(base, seed), &everything] {
        last.life.apply(&declared(&db, variant), ALL_OF_IT).await.unwrap();
        last.life.settle(&db).await.unwrap();
        assert_right(&last, variant).await;
    }
    without_a_trace(&last, base, &everything).await;
    last.life.close().await;
    last.drop_database().await;
}

async fn write(mut task: Task) {
    let mut client = Client::new(task.random.random());
    // Numbers that no other client had.
    let first = i32::try_from(task.round * 10 + 1).unwrap() * 100_000 + i32::try_from(task.number).unwrap() * 20_000;
    for at in first.. {
        if !task.act(&client.act(at)).await {
            return;
        }
    }
}

/// Applies one variant after the other, and drops rules in between.
async fn change(mut task: Task, base: Base) {
    let (life, db) = (task.process.life.clone(), task.process.db.clone());
    loop {
        let with_data = task.random.random_bool(0.5);
        let variant = variant(&base, task.random.random());
        let rules = declared(&db, &variant).rules;
        let done = match task.random.random_range(0..4) {
            0 => {
                let leaving = Leaving { with_data, ..Leaving::default() };
                let dropped = rules.iter().rfind(|rule| rule.kept_field().is_some()).unwrap();
                life.drop_rule(Some(&db), &dropped.name, leaving).await.map(drop)
            }
            _ => life.apply(&declared(&db, &variant), Consent { with_data, ..ALL_OF_IT }).await.map(drop),
        };
        let expected = ["there is no rule", "another Pleach is changing the rules"];
        if let Err(error) = done
            && !expected.iter().any(|text| error.message().contains(text))
        {
            task.complain(format!("a change of rules: {error:?}\n{variant}"));
            return;
        }
        task.pause().await;
    }
}

/// All fields go: no document has anything of theirs. What is left is the form, which does not go before those that read it.
async fn without_a_trace(last: &testing::Living, base: &Base, everything: &str) {
    let left = if base.is_empty() { "{}".to_owned() } else { merged(base) };
    last.life.apply(&declared(&last.db, &left), ALL_OF_IT).await.unwrap();
    last.life.settle(&last.db).await.unwrap();
    for (collection, path) in owned(everything) {
        let first = path.split('.').next().unwrap();
        for document in last.all(&collection).await {
            // A basket's items are its own.
            let left = ["_pleach", first].into_iter().find(|name| *name != "items" && document.contains_key(name));
            assert_eq!(left, None, "{document}");
        }
    }
}
