//! What a rule costs: inserts of children with and without a count on their parent, on the embedded store.
//!
//! `cargo run --release -p pleach-patterns --example cost [inserts]` prints microseconds per insert: one client, then 64
//! clients on one parent and on 10,000.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool that prints what it measured")]

use bson::doc;
use document::backend::{Backend, Session};
use document::op::{Capture, Context, Durability, Insert, Namespace, ReadConcern, Sent, WriteOp};
use document::{Doc, Env};
use engine::{Engine, Options};
use pleach_patterns::rule::State;
use pleach_patterns::{Patterned, declare};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

const RULES: &str = "database: shop
collections:
  posts:
    computed:
      likeCount: { count: likes, by: postId }
";

fn context(durability: Durability) -> Context {
    Context { env: Env::fixed(), read_concern: ReadConcern::Local, durability, deadline: None, sent: Sent::default() }
}

fn insert(collection: &str, documents: Vec<bson::Document>) -> WriteOp {
    WriteOp::Insert(Insert {
        ns: Namespace::new("shop", collection),
        documents: documents.into_iter().map(Doc::from).collect(),
        ordered: true,
        bypass_validation: false,
        statement_ids: Vec::new(),
    })
}

async fn write(layer: &Patterned, context: &Context, op: &WriteOp) {
    let written = layer.write(&mut Session::default(), context, op, &Capture::Nothing).await.unwrap();
    assert!(written.errors.is_empty(), "{:?}", written.errors);
}

/// Microseconds per insert.
async fn measure(
    layer: &Patterned,
    collection: &'static str,
    clients: i64,
    parents: i64,
    inserts: i64,
    durability: Durability,
) -> f64 {
    static NEXT: AtomicI64 = AtomicI64::new(0);
    let start = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..clients {
        let layer = layer.clone();
        tasks.push(tokio::spawn(async move {
            let context = context(durability);
            for _ in 0..inserts / clients {
                let id = NEXT.fetch_add(1, Ordering::Relaxed);
                let like = doc! {"_id": id, "postId": id % parents, "text": "x".repeat(150)};
                write(&layer, &context, &insert(collection, vec![like])).await;
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    start.elapsed().as_secs_f64() * 1e6 / inserts as f64
}

fn main() {
    let inserts: i64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = Engine::open(folder.path(), Options { ttl_period: Duration::from_secs(600), ..Options::default() });
        let layer = Patterned::new(Arc::new(engine.unwrap()));
        let declared = declare::from_yaml("pleach.yaml", RULES).into_result().unwrap();
        layer.set_rules(declared.rules.into_iter().map(|rule| (Arc::new(rule), State::On)).collect()).unwrap();
        let relaxed = context(Durability::Relaxed);
        for chunk in 0..20 {
            let posts = (chunk * 500..chunk * 500 + 500).map(|id: i64| doc! {"_id": id}).collect();
            write(&layer, &relaxed, &insert("posts", posts)).await;
        }
        for durability in [Durability::Relaxed, Durability::Synced] {
            for (clients, parents) in [(1, 10_000), (1, 1), (64, 10_000), (64, 1)] {
                let (mut plain, mut kept) = (Vec::new(), Vec::new());
                for _ in 0..5 {
                    plain.push(measure(&layer, "plain", clients, parents, inserts / 5, durability).await);
                    kept.push(measure(&layer, "likes", clients, parents, inserts / 5, durability).await);
                }
                let middle = |list: &mut Vec<f64>| {
                    list.sort_by(f64::total_cmp);
                    list.get(list.len() / 2).copied().unwrap_or_default()
                };
                let (plain, kept) = (middle(&mut plain), middle(&mut kept));
                println!(
                    "{durability:?} {clients:>2} clients {parents:>6} parents: plain {plain:7.1} µs, kept {kept:7.1} µs, {:.2}",
                    kept / plain
                );
            }
        }
    });
}
