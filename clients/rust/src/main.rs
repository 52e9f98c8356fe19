//! The official Rust driver against a server: connect, CRUD, aggregate, indexes, a transaction, a bulk of writes, an error.
#![expect(clippy::print_stdout, reason = "a check prints what it did")]

use anyhow::{Result, ensure};
use futures_util::TryStreamExt;
use mongodb::bson::{Document, doc};
use mongodb::options::IndexOptions;
use mongodb::{Client, IndexModel};

#[tokio::main]
async fn main() -> Result<()> {
    let uri = std::env::args().nth(1).unwrap_or_else(|| "mongodb://127.0.0.1:27017".into());
    let client = Client::with_uri_str(&uri).await?;
    let db = client.database("client_check_rust");
    db.drop().await?;
    let things = db.collection::<Document>("things");

    things.insert_one(doc! { "_id": 1, "name": "one" }).await?;
    let many = things.insert_many((0..250).map(|n| doc! { "n": n, "group": n % 5 })).await?;
    ensure!(many.inserted_ids.len() == 250, "insert_many");
    let found: Vec<Document> =
        things.find(doc! { "group": 2 }).sort(doc! { "n": 1 }).batch_size(7).await?.try_collect().await?;
    ensure!(found.len() == 50 && found.first().and_then(|d| d.get_i32("n").ok()) == Some(2), "find over batches");
    ensure!(
        things.update_many(doc! { "group": 1 }, doc! { "$inc": { "n": 1000 } }).await?.modified_count == 50,
        "update_many"
    );
    ensure!(things.count_documents(doc! { "n": { "$gte": 1000 } }).await? == 50, "count");
    ensure!(things.delete_many(doc! { "group": 0 }).await?.deleted_count == 50, "delete_many");
    let after = things.find_one_and_update(doc! { "_id": 1 }, doc! { "$set": { "x": 1 } }).await?;
    ensure!(after.is_some_and(|d| !d.contains_key("x")), "find_one_and_update gives the document before");

    let groups: Vec<Document> = things
        .aggregate([doc! { "$group": { "_id": "$group", "n": { "$sum": 1 } } }, doc! { "$sort": { "_id": 1 } }])
        .await?
        .try_collect()
        .await?;
    ensure!(groups.len() == 5, "aggregate: {groups:?}");

    let unique = IndexModel::builder()
        .keys(doc! { "name": 1 })
        .options(IndexOptions::builder().unique(true).sparse(true).build())
        .build();
    ensure!(things.create_index(unique).await?.index_name == "name_1", "create_index");
    let error = things.insert_one(doc! { "name": "one" }).await.err();
    ensure!(error.is_some_and(|e| e.to_string().contains("E11000")), "duplicate key");

    let mut session = client.start_session().await?;
    session.start_transaction().await?;
    things.insert_one(doc! { "_id": "in" }).session(&mut session).await?;
    things.delete_one(doc! { "_id": 1 }).session(&mut session).await?;
    session.commit_transaction().await?;
    ensure!(things.find_one(doc! { "_id": "in" }).await?.is_some(), "commit");
    session.start_transaction().await?;
    things.delete_many(doc! {}).session(&mut session).await?;
    session.abort_transaction().await?;
    ensure!(things.count_documents(doc! {}).await? == 201, "abort");

    db.drop().await?;
    println!("rust: ok");
    Ok(())
}
