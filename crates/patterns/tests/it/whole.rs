//! Whole collections (SEMANTICS R21), bookkeeping, and what expires (R7).

use crate::harness::*;
use crate::life::village::Village;
use bson::doc;
use document::Doc;
use document::backend::{Backend, Session};
use document::op::AdminOp;
use std::sync::Arc;
use std::time::Duration;
use testing::Data;

const LIKES: &str = "
  posts:
    computed:
      likeCount: { count: likes, by: postId }
";

#[test]
fn collections_of_a_rule_are_neither_dropped_nor_renamed() {
    run(async {
        let village = Village::new().await;
        village.apply("{ posts: { computed: { likeCount: { count: likes, by: postId } } } }").await.unwrap();
        village.did(insert("posts", vec![doc! {"_id": 1}])).await;
        village.did(insert("likes", vec![doc! {"postId": 1}])).await;
        let admin = async |op| village.front.admin(&mut Session::default(), &context(), op).await;
        for ns in [ns("posts"), ns("likes")] {
            let error = admin(AdminOp::Drop { ns: ns.clone() }).await.unwrap_err();
            assert_eq!(error.code().number(), 96);
            assert!(error.hint().unwrap().contains("pleach drop posts.likeCount"), "{:?}", error.hint());
            let to = self::ns("elsewhere");
            let error =
                admin(AdminOp::Rename { from: ns.clone(), to: to.clone(), drop_target: false }).await.unwrap_err();
            assert_eq!(error.code().number(), 96);
            let error = admin(AdminOp::Rename { from: to, to: ns, drop_target: true }).await.unwrap_err();
            assert_eq!(error.code().number(), 96);
        }
        admin(AdminOp::DropDatabase { db: "shop".to_owned() }).await.unwrap();
        assert_eq!(village.states().await, [("posts.likeCount".to_owned(), "on".to_owned())]);
        assert!(village.all("likes").await.is_empty() && village.all("posts").await.is_empty());
        admin(AdminOp::Drop { ns: ns("posts") }).await.unwrap_err();
        village.did(insert("likes", vec![doc! {"postId": 1}])).await;
        admin(AdminOp::Drop { ns: ns("likes") }).await.unwrap();
        village.did(insert("posts", vec![doc! {"_id": 1}])).await;
        assert_eq!(village.field("posts", 1, "likeCount").await, Some(0.into()));
        let (code, message) = village.refused(insert("pleach.outbox", vec![doc! {"_id": 1}])).await;
        assert_eq!(
            (code, message.as_str()),
            (73, "'shop.pleach.outbox' belongs to Pleach: clients may read it, but not write to it",)
        );
        village.close().await;
    });
}

#[test]
fn what_expires_is_taken_off_its_parent() {
    let options = engine::Options { ttl_period: Duration::from_millis(50), ..testing::options() };
    let world = World::on(Data::folder().open_folder(options), "shop").declaring(LIKES);
    run(async {
        let front: Arc<dyn Backend> = Arc::new(world.front.clone());
        world.opened.engine.as_ref().unwrap().expire_through(Arc::downgrade(&front));
        world.did(insert("posts", vec![doc! {"_id": 1}])).await;
        let old = bson::DateTime::from_millis(0);
        world.did(insert("likes", (0..700).map(|_| doc! {"postId": 1, "at": old}).collect())).await;
        world.did(insert("likes", vec![doc! {"postId": 1}])).await;
        assert_eq!(world.field("posts", 1, "likeCount").await, Some(701.into()));
        let index = doc! {"key": {"at": 1}, "name": "at_1", "expireAfterSeconds": 1};
        let create = AdminOp::CreateIndexes { ns: ns("likes"), indexes: vec![Doc::from(index)] };
        world.front.admin(&mut Session::default(), &context(), create).await.unwrap();
        for _ in 0..100 {
            if world.all("likes").await.len() == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(world.field("posts", 1, "likeCount").await, Some(1.into()));
        world.check().await;
    });
}
