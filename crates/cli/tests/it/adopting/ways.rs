//! The ways to apply: several files, over the wire, when a server starts.

use super::{COPY, Door, orders};
use crate::doors::{At, at_each_door};
use crate::serving::pleach;
use bson::doc;

at_each_door!(
    two_files_are_one_declaration,
    over_the_wire_apply_answers_a_summary_and_takes_the_same_flags,
    serve_declare_leaves_pending_what_needs_a_word,
);

fn two_files_are_one_declaration(at: At) {
    let door = Door::new(at, "files");
    let file = |name: &str, collections: &str| {
        let text = format!("database: {}\ncollections: {collections}\n", door.db);
        std::fs::write(door.shop.folder.join(name), text).unwrap();
    };
    orders(&door);
    file("a.yaml", COPY);
    file("b.yaml", "{ customers: { computed: { orders: { count: orders, by: customerId } } } }");
    let both = ["--declare", "a.yaml", "--declare", "b.yaml"];
    assert_eq!(door.told(&[&["apply"], &both[..]].concat()).0, Some(0));
    for verb in ["audit", "repair"] {
        assert_eq!(door.told(&[&[verb], &both[..]].concat()).0, Some(0), "{verb}");
    }
    assert_eq!(door.json(&[&["plan"], &both[..]].concat()).0, Some(0));
    let audit = door.json(&[&["audit"], &both[..]].concat()).1;
    assert_eq!(audit["rules"].as_array().unwrap().len(), 2, "{audit:#}");
    // Two owners of one field: both files are named.
    file("b.yaml", "{ orders: { computed: { customer: { count: lines, by: orderId } } } }");
    let output = door.shop.command(&[&["check"], &both[..]].concat()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("b.yaml:2") && said.contains("in line 2 of a.yaml"), "{said}");
    assert_eq!(door.told(&[&["apply"], &both[..]].concat()).0, Some(2));
}

fn over_the_wire_apply_answers_a_summary_and_takes_the_same_flags(at: At) {
    let door = Door::new(at, "wire");
    let proxy = door.uri.as_ref().map(|uri| crate::serving::Serving::upstream(uri, &[]));
    let mut client = proxy.as_ref().map_or_else(|| door.client(), |proxy| proxy.client());
    orders(&door);
    let rule = |by: &str| doc! { "orders": { "extended_reference": { "customer": { "from": "customers", "by": by, "fields": ["name"] } } } };
    let command = |by: &str| doc! { "pleach": "apply", "declaration": { "collections": rule(by) }, "$db": &door.db };
    let refused = client.command(&command("zzz")).unwrap().document;
    assert_eq!(refused.get_i32("code").unwrap(), 96, "{refused}");
    assert!(refused.get_str("errmsg").unwrap().contains("overwrite: true"), "{refused}");
    let refused = client.command(&command("customerid")).unwrap().document;
    assert!(refused.get_str("errmsg").unwrap().contains("create_missing: true"), "{refused}");
    let reply = client.must(&command("customerId")).unwrap();
    let rules = reply.get_array("rules").unwrap();
    assert_eq!(rules[0].as_document().unwrap().get_str("state").unwrap(), "on", "{reply}");
    let done = ["corrected", "filled", "removed"].map(|name| rules[0].as_document().unwrap().get_i64(name).unwrap());
    assert_eq!(done, [1, 2, 0], "{reply}");
    assert!(!reply.contains_key("steps") && reply.to_string().len() < 1_000, "{reply}");
    let mut verbose = command("customerId");
    verbose.extend(doc! { "verbose": true });
    assert!(client.must(&verbose).unwrap().contains_key("steps"));
    // Two teams.
    let teams = doc! { "pleach": "apply", "declaration": [
        { "collections": rule("customerId") }, { "collections": { "customers": { "computed": { "n": { "count": "orders", "by": "customerId" } } } } },
    ], "$db": &door.db };
    let reply = client.must(&teams).unwrap();
    assert_eq!(reply.get_array("rules").unwrap().len(), 2, "{reply}");
    let plan = doc! { "pleach": "plan", "declaration": { "collections": { "customers": { "computed": { "n": { "count": "orders", "by": "customerId" } } } } }, "remove": true, "$db": &door.db };
    let reply = client.must(&plan).unwrap();
    assert!(
        reply
            .get_array("rules")
            .unwrap()
            .iter()
            .any(|rule| rule.as_document().unwrap().get_str("work").unwrap() == "remove"),
        "{reply}"
    );
}

fn serve_declare_leaves_pending_what_needs_a_word(at: At) {
    let mut door = Door::new(at, "pending");
    orders(&door);
    // Each waits for another word.
    let copy = "customer: { from: customers, by: zzz, fields: [name] }, buyer: { from: customerz, by: customerId, fields: [name] }";
    let double = "double: { expr: { $multiply: [$_id, 2] } }";
    door.declare(&format!("{{ orders: {{ extended_reference: {{ {copy} }}, computed: {{ {double} }} }} }}"));
    let log = door.shop.folder.join("log");
    let mut command = pleach();
    // The folder has one server.
    if let Some(server) = door.server.take() {
        door.shop.stop(server);
    }
    let arguments: Vec<&str> = match &door.uri {
        Some(uri) => vec!["--upstream", uri],
        None => vec!["--data", "data"],
    };
    command.args(["serve", "--port", "0", "--log", "warn", "--declare", "pleach.yaml"]).args(arguments);
    command.current_dir(&door.shop.folder).stderr(std::fs::File::create(&log).unwrap());
    let serving = crate::serving::Serving::of(&mut command);
    let mut client = serving.client();
    let status = || doc! { "pleach": "status", "$db": &door.db };
    crate::mongod::until("the other rule is on", || {
        let status = client.must(&status()).unwrap();
        let rules = status.get_array("rules").unwrap();
        !rules.is_empty() && rules.iter().all(|rule| rule.as_document().unwrap().get_str("state").unwrap() == "on")
    });
    let status = client.must(&status()).unwrap();
    assert_eq!(status.get_array("rules").unwrap().len(), 1, "{status}");
    let pending: Vec<_> = status.get_array("pending").unwrap().iter().map(|row| row.as_document().unwrap()).collect();
    assert_eq!(pending.len(), 2, "{status}");
    let server = format!("mongodb://{}", serving.address);
    let told = pleach().args(["status", "--server", &server]).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    for (rule, reason) in [
        ("orders.customer", "would disappear from 7 of the 7 documents"),
        ("orders.buyer", "there is no collection `customerz`"),
    ] {
        let own = pending.iter().find(|row| row.get_str("rule").unwrap() == rule).unwrap();
        assert_eq!(own.get_str("database").unwrap(), door.db);
        assert!(own.get_str("reason").unwrap().contains(reason), "{own}");
        let shown = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains(&format!("{rule} is pending: ")), "{told}");
        assert!(shown.contains(reason), "{told}");
    }
    // The reason of one is not said of the other.
    let of_customer = pending.iter().find(|row| row.get_str("rule").unwrap() == "orders.customer").unwrap();
    assert!(!of_customer.get_str("reason").unwrap().contains("customerz"), "{of_customer}");
    let found = client.must(&doc! { "find": "orders", "filter": { "_id": 6 }, "$db": &door.db }).unwrap();
    assert!(found.to_string().contains("stale"), "{found}");
    serving.stop();
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("would disappear from 7") && log.contains("pleach apply --overwrite"), "{log}");
}
