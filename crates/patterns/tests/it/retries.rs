//! SEMANTICS R4: a write that is sent again has one effect, the derived part included.

use crate::harness::*;
use bson::doc;
use document::backend::{Answer, Session};
use document::op::{Modify, WriteOp};
use document::{Code, Error};
use pleach_patterns::gate::{Gate, Point};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const LIKES: &str = "
  posts:
    computed:
      likeCount: { count: likes, by: postId }
";

fn numbered(number: i64) -> Session {
    Session { id: Some([9; 16]), retry: Some(number), ..Session::default() }
}

fn writes() -> Vec<WriteOp> {
    vec![
        insert("likes", (0..3).map(|id| doc! {"_id": id, "postId": 1}).collect()),
        update("likes", doc! {"postId": 1}, doc! {"$set": {"postId": 2}}, &[]),
        find_and_modify("likes", doc! {"postId": 1}, modify(doc! {"$set": {"postId": 2}}, false)),
        delete("likes", doc! {"postId": 2}, false),
        find_and_modify("likes", doc! {"postId": 2}, Modify::Remove),
    ]
}

#[test]
fn a_repeated_write_is_answered_and_not_run_again_also_after_a_restart() {
    let mut world = World::new(LIKES);
    run(async { world.did(insert("posts", vec![doc! {"_id": 1}, doc! {"_id": 2}])).await });
    for (number, op) in (1..).zip(writes()) {
        let (first, posts) = run(async {
            let first = world.write_at(&mut numbered(number), &op).await.unwrap();
            assert!(first.errors.is_empty() && first.retried.is_empty());
            (first, world.all("posts").await)
        });
        for restart in [false, true] {
            if restart {
                world = world.reopen().declaring(LIKES);
            }
            run(async {
                let again = world.write_at(&mut numbered(number), &op).await.unwrap();
                assert_eq!((again.n, again.modified), (first.n, first.modified), "{op:?}");
                assert!(!again.retried.is_empty());
                assert_eq!(world.all("posts").await, posts, "{op:?}");
            });
        }
    }
    run(async { world.check().await });
}

/// Fails once, before the step with this number.
struct Once(AtomicI64);

impl Gate for Once {
    fn pass<'a>(&'a self, _point: Point<'a>) -> Answer<'a, ()> {
        let fails = self.0.fetch_sub(1, Ordering::Relaxed) == 0;
        let failure = || Err(Error::new(Code::InterruptedAtShutdown, "the process is gone"));
        Box::pin(std::future::ready(if fails { failure() } else { Ok(()) }))
    }
}

#[test]
fn cut_off_before_any_step_and_sent_again_it_has_one_effect() {
    let gate = Arc::new(Once(AtomicI64::new(i64::MAX)));
    let world = World::with_gate(Opened::engine(), "shop", gate.clone()).declaring(LIKES);
    run(async {
        world.did(insert("posts", vec![doc! {"_id": 1}, doc! {"_id": 2}])).await;
        let mut number = 0;
        for step in 0..12 {
            for (at, op) in writes().into_iter().enumerate() {
                gate.0.store(i64::MAX, Ordering::Relaxed);
                world.did(delete("likes", doc! {}, true)).await;
                let likes = [doc! {"_id": 7, "postId": 1}, doc! {"_id": 8, "postId": 2}, doc! {"_id": 9, "postId": 2}];
                world.did(insert("likes", likes.to_vec())).await;
                gate.0.store(step, Ordering::Relaxed);
                number += 1;
                let mut told = world.write_at(&mut numbered(number), &op).await;
                if told.is_err() {
                    world.check().await;
                    told = world.write_at(&mut numbered(number), &op).await;
                }
                assert_eq!(told.unwrap().n, if at == 0 { 3 } else { 1 });
                world.check().await;
            }
        }
    });
}
