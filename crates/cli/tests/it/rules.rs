//! The verbs about rules as people and programs meet them: on a running server, on a folder, and what they refuse.

use crate::shop::{Shop, text};
use bson::doc;
use judge::client::Client;

const DECLARATION: &str = "\
database: shop
collections:
  products:
    computed:
      reviewCount: { count: reviews, by: productId }
      margin: { expr: { $subtract: [$price, $cost] } }
";

fn fill(client: &mut Client) {
    let products: Vec<_> = (1..=3).map(|id| doc! { "_id": id, "price": 10, "cost": id }).collect();
    client.must(&doc! { "insert": "products", "documents": products, "$db": "shop" }).unwrap();
    let reviews: Vec<_> = (0..7).map(|id| doc! { "_id": id, "productId": id % 3 + 1 }).collect();
    client.must(&doc! { "insert": "reviews", "documents": reviews, "$db": "shop" }).unwrap();
}

fn products(client: &mut Client) -> Vec<bson::Bson> {
    let reply = client.must(&doc! { "find": "products", "sort": { "_id": 1 }, "$db": "shop" }).unwrap();
    reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone()
}

#[test]
fn a_rule_from_the_first_look_to_the_last() {
    let shop = Shop::new("life", DECLARATION);
    let serving = shop.serve(&[]);
    fill(&mut serving.client());
    // The running server is found by the folder.
    let plan = shop.run(&["plan"]);
    let (code, out, _) = text(&plan);
    assert_eq!(code, Some(1), "{plan:?}");
    assert!(out.starts_with("products.reviewCount  new: 3 documents: 3 filled; 1 index\n"), "{out}");
    let plan = shop.run(&["plan", "--full"]);
    let (code, out, _) = text(&plan);
    assert_eq!(code, Some(1), "{plan:?}");
    assert!(out.contains("products.reviewCount  create an index that it needs"), "{out}");
    assert!(out.contains("\"createIndexes\": \"reviews\"") && out.contains("new: make the field right"), "{out}");
    let (code, plan) = shop.json(&["plan"]);
    assert_eq!(code, Some(1));
    let steps: Vec<(&str, &str, &str)> = plan["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            (step["rule"].as_str().unwrap(), step["kind"].as_str().unwrap(), step["namespace"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        steps,
        [
            ("products.reviewCount", "index", "shop.reviews"),
            ("products.reviewCount", "seed", "shop.products"),
            ("products.margin", "seed", "shop.products"),
        ]
    );
    let applied = shop.run(&["apply"]);
    let (code, out, _) = text(&applied);
    assert_eq!(code, Some(0), "{applied:?}");
    assert!(out.contains("shop      products.reviewCount  on"), "{out}");
    assert_eq!(
        products(&mut serving.client()),
        [(1, 3), (2, 2), (3, 2)].map(|(id, count)| {
            bson::Bson::from(doc! { "_id": id, "price": 10, "cost": id, "reviewCount": count, "margin": 10 - id })
        })
    );
    assert_eq!(shop.json(&["plan"]).0, Some(0));
    let status = shop.json(&["status"]).1;
    assert_eq!(status["rules"][0]["rule"], "products.reviewCount");
    assert_eq!((&status["rules"][0]["state"], &status["outbox"]["pending"]), (&"on".into(), &0.into()));
    let (code, report) = shop.json(&["audit"]);
    assert_eq!((code, &report["checked"], &report["drifted"]), (Some(0), &6.into(), &0.into()), "{report}");
    let status = serving.client().must(&doc! { "serverStatus": 1, "$db": "admin" }).unwrap();
    let rules = status.get_document("pleach").unwrap().get_array("rules").unwrap();
    assert_eq!(rules.len(), 2);
    shop.stop(serving);

    // Rules switched off: what is written drifts, and the next run says so.
    let serving = shop.serve(&["--raw"]);
    serving
        .client()
        .must(&doc! { "delete": "reviews", "deletes": [{ "q": { "productId": 1 }, "limit": 1 }], "$db": "shop" })
        .unwrap();
    let refused = shop.run(&["apply"]);
    let (code, _, said) = text(&refused);
    assert_eq!(code, Some(2), "{refused:?}");
    assert!(
        said.contains("switched off for this run") && said.contains("hint: start the server without --raw"),
        "{said}"
    );
    let log = shop.stop(serving);
    assert!(log.contains("switched off") && log.contains("--raw"), "{log}");
    let serving = shop.serve(&[]);
    let (code, report) = shop.json(&["audit"]);
    assert_eq!(code, Some(1), "{report}");
    assert_eq!(
        report["drift"],
        serde_json::json!([{
            "rule": "products.reviewCount", "collection": "products", "_id": 1, "field": "reviewCount", "stored": 3, "expected": 2,
            "database": "shop",
        }])
    );
    let log = shop.stop(serving);
    assert!(log.contains("run `pleach audit`"), "{log}");

    // No server is running: the verbs open the folder themselves.
    let repaired = shop.run(&["repair"]);
    let (code, out, _) = text(&repaired);
    assert_eq!(code, Some(0), "{repaired:?}");
    assert!(out.contains("1 value repaired:"), "{out}");
    let clean = shop.run(&["audit"]);
    let (code, out, _) = text(&clean);
    assert_eq!(code, Some(0), "{clean:?}");
    assert!(out.contains("every derived value is what it should be"), "{out}");
    let dropped = shop.run(&["drop", "products.margin", "--with-data"]);
    let (code, out, note) = text(&dropped);
    assert_eq!((code, out), (Some(0), "products.margin is no longer kept; its field is gone\n"), "{dropped:?}");
    assert!(note.contains("brings it back"), "{note}");
    assert!(shop.data().join("pleach.lock").exists());
}

#[test]
fn serve_declare_adds_in_the_background_and_changes_nothing_else() {
    let shop = Shop::new("declare", DECLARATION);
    let serving = shop.serve(&["--declare", "pleach.yaml"]);
    fill(&mut serving.client());
    settled(&shop);
    assert_eq!(shop.json(&["audit"]).0, Some(0));
    let log = shop.stop(serving);
    assert!(!log.contains("rule"), "{log}");
    // A rule is gone, another is changed: both stay as they are.
    shop.declare(
        &DECLARATION
            .replace("$price, $cost", "$cost, $price")
            .replace("      reviewCount: { count: reviews, by: productId }\n", ""),
    );
    let serving = shop.serve(&["--declare", "pleach.yaml"]);
    let mut client = serving.client();
    client.must(&doc! { "insert": "reviews", "documents": [{ "productId": 1 }], "$db": "shop" }).unwrap();
    assert_eq!(products(&mut client)[0].as_document().unwrap().get_i32("reviewCount").unwrap(), 4);
    let refused = shop.run(&["apply"]);
    let (code, _, said) = text(&refused);
    assert_eq!(code, Some(2), "{refused:?}");
    assert!(said.contains("rule products.reviewCount is kept in shop") && said.contains("--remove"), "{said}");
    assert_eq!(shop.run(&["apply", "--remove"]).status.code(), Some(0));
    assert_eq!(products(&mut client)[0].as_document().unwrap().get_i32("margin").unwrap(), -9);
    let log = shop.stop(serving);
    assert!(
        log.contains("products.reviewCount is no longer declared")
            && log.contains("products.margin is declared differently"),
        "{log}"
    );
}

fn settled(shop: &Shop) {
    for _ in 0..200 {
        let status = shop.json(&["status"]).1;
        let rules = status["rules"].as_array().unwrap();
        if !rules.is_empty() && rules.iter().all(|rule| rule["state"] == "on") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("the rules do not come on");
}

#[test]
fn what_cannot_be_done_is_refused_with_the_way_out() {
    let shop = Shop::new("refused", DECLARATION);
    shop.serve(&[]).stop();
    let bad = DECLARATION.replace("count: reviews", "cuont: reviews");
    for (yaml, args, told) in [
        (DECLARATION, &["status"][..], "nothing says where the data is"),
        (DECLARATION, &["status", "--data", "nowhere"], "there is no folder nowhere"),
        (DECLARATION, &["status", "--server", "mongodb://127.0.0.1:1"], "127.0.0.1:1 does not answer"),
        (DECLARATION, &["drop", "products.nothing", "--data", "data"], "there is no rule products.nothing"),
        (DECLARATION, &["repair", "--declare", "pleach.yaml", "--data", "data"], "is declared and not applied"),
        (&bad, &["apply", "--data", "data"], "pleach.yaml:5"),
        (&bad, &["serve", "--port", "0", "--declare", "pleach.yaml"], "is not a valid declaration"),
    ] {
        shop.declare(yaml);
        let output = shop.command(args).output().unwrap();
        let (code, out, said) = text(&output);
        assert_eq!((code, out), (Some(2), ""), "{output:?}");
        assert!(said.contains(told) && said.contains("hint: "), "{said}");
    }
}

#[test]
fn the_same_from_a_shell() {
    let shop = Shop::new("wire", DECLARATION);
    let serving = shop.serve(&[]);
    let mut client = serving.client();
    fill(&mut client);
    let declaration = doc! { "collections": { "products": { "computed": { "reviewCount": { "count": "reviews", "by": "productId" } } } } };
    let reply = client.must(&doc! { "pleach": "apply", "declaration": declaration.clone(), "$db": "shop" }).unwrap();
    assert_eq!(reply.get_array("rules").unwrap()[0].as_document().unwrap().get_str("state").unwrap(), "on");
    let reply = client.must(&doc! { "pleach": "audit", "$db": "admin" }).unwrap();
    assert_eq!((reply.get_i64("checked").unwrap(), reply.get_i64("drifted").unwrap()), (3, 0));
    let reply = client.must(&doc! { "pleach": "plan", "declaration": declaration, "$db": "shop" }).unwrap();
    assert!(reply.get_array("steps").unwrap().is_empty());
    let refused = client.command(&doc! { "pleach": "aply", "$db": "shop" }).unwrap().document;
    assert!(refused.get_str("errmsg").unwrap().contains("it knows apply, audit"), "{refused}");
    let refused = client.must(&doc! { "pleach": "drop", "rule": "products.reviewCount", "$db": "shop" }).unwrap();
    assert_eq!(refused.get_str("rule").unwrap(), "products.reviewCount");
    shop.stop(serving);
}
