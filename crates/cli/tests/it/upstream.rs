//! `pleach serve --upstream`: what passes, what is planned, who may do what, and what happens when the primary goes.

use crate::mongod::{Mongod, initiate, key_file, until};
use crate::serving::{Serving, pleach};
use bson::{Binary, Bson, Document, doc, spec::BinarySubtype};
use judge::client::Client;
use std::process::Command;
use std::time::{Duration, Instant};
use wire::scram::{Mechanism, Scram};

fn refusal(arguments: &[&str]) -> String {
    let output = pleach().args(["serve", "--port", "0"]).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

pub(crate) fn database(name: &str) -> String {
    format!("{name}{}", std::process::id())
}

pub(crate) fn session(number: u8) -> Document {
    let mut bytes = vec![number; 12];
    bytes.extend_from_slice(&std::process::id().to_le_bytes());
    doc! { "id": Binary { subtype: BinarySubtype::Uuid, bytes } }
}

/// A reply without what differs between two runs.
pub(crate) fn lasting(mut reply: Document) -> Document {
    for name in ["$clusterTime", "operationTime", "opTime", "electionId"] {
        reply.remove(name);
    }
    reply
}

pub(crate) fn rows(reply: &Document, name: &str) -> Vec<Bson> {
    reply.get_document("cursor").unwrap().get_array(name).unwrap().clone()
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn what_no_rule_concerns_is_answered_by_the_real_server() {
    let uri = judge::real::uri().unwrap();
    let proxy = Serving::upstream(&uri, &[]);
    let (mut through, mut direct) = (proxy.client(), Client::connect(&uri).unwrap());
    let db = database("passes");
    let hello = through.must(&doc! { "hello": 1, "$db": "admin" }).unwrap();
    assert_eq!(hello.get_str("msg").unwrap(), "isdbgrid");
    assert_eq!(hello.get_i32("maxWireVersion").unwrap(), 17);
    assert!(["setName", "hosts", "me", "topologyVersion"].iter().all(|name| !hello.contains_key(name)), "{hello}");
    let documents: Vec<Document> = (0..250).map(|n| doc! { "_id": n, "a": n % 3 }).collect();
    through.must(&doc! { "insert": "c", "documents": documents, "$db": &db }).unwrap();
    for command in [
        doc! { "find": "c", "filter": { "_id": { "$lt": 3 } }, "$db": &db },
        doc! { "count": "c", "query": { "a": 1 }, "$db": &db },
        doc! { "distinct": "c", "key": "a", "$db": &db },
        doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": &db },
        doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "_id": 1 } } }], "$db": &db },
        doc! { "aggregate": "c", "pipeline": [{ "$nonsense": 1 }], "cursor": {}, "$db": &db },
        doc! { "mapReduce": "c", "map": "function() { emit(this.a, 1) }", "reduce": "function(k, v) { return v.length }", "out": { "inline": 1 }, "query": { "a": 1 }, "$db": &db },
        doc! { "noSuchCommandYet": 1, "$db": &db },
        doc! { "buildInfo": 1, "$db": "admin" },
    ] {
        let (ours, theirs) = (through.command(&command).unwrap(), direct.command(&command).unwrap());
        assert_eq!(lasting(ours.document), lasting(theirs.document), "{command}");
    }
    // A cursor in batches.
    let mut reply = through.must(&doc! { "find": "c", "batchSize": 100, "$db": &db }).unwrap();
    let mut count = rows(&reply, "firstBatch").len();
    loop {
        let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
        if id == 0 {
            break;
        }
        reply = through.must(&doc! { "getMore": id, "collection": "c", "batchSize": 100, "$db": &db }).unwrap();
        count += rows(&reply, "nextBatch").len();
    }
    assert_eq!(count, 250);
    direct.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn transactions_retries_and_change_streams_pass() {
    let uri = judge::real::uri().unwrap();
    let proxy = Serving::upstream(&uri, &[]);
    let (mut client, mut other) = (proxy.client(), proxy.client());
    let db = database("sessions");
    client.must(&doc! { "create": "c", "$db": &db }).unwrap();
    let watch = doc! { "aggregate": "c", "pipeline": [{ "$changeStream": {} }], "cursor": {}, "$db": &db };
    let stream = other.must(&watch).unwrap().get_document("cursor").unwrap().get_i64("id").unwrap();
    let statement = |id: i32, first: bool| {
        let mut command = doc! {
            "insert": "c", "documents": [{ "_id": id }], "lsid": session(1), "txnNumber": 1_i64, "autocommit": false, "$db": &db,
        };
        if first {
            command.insert("startTransaction", true);
        }
        command
    };
    client.must(&statement(1, true)).unwrap();
    client.must(&statement(2, false)).unwrap();
    assert_eq!(rows(&other.must(&doc! { "find": "c", "$db": &db }).unwrap(), "firstBatch").len(), 0);
    let commit =
        doc! { "commitTransaction": 1, "lsid": session(1), "txnNumber": 1_i64, "autocommit": false, "$db": "admin" };
    client.must(&commit).unwrap();
    client.must(&commit).unwrap();
    let more = doc! { "getMore": stream, "collection": "c", "maxTimeMS": 5000, "$db": &db };
    let seen = rows(&other.must(&more).unwrap(), "nextBatch");
    assert_eq!(seen[0].as_document().unwrap().get_str("operationType").unwrap(), "insert");
    let write = doc! {
        "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } }], "lsid": session(2), "txnNumber": 7_i64, "$db": &db,
    };
    assert!(!client.must(&write).unwrap().contains_key("retriedStmtIds"));
    assert!(other.must(&write).unwrap().contains_key("retriedStmtIds"));
    client.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn rules_hold_and_a_retry_has_one_effect() {
    let uri = judge::real::uri().unwrap();
    let db = database("ruled");
    let folder = tempfile::tempdir().unwrap();
    let declaration = folder.path().join("pleach.yaml");
    std::fs::write(
        &declaration,
        format!(
            "database: {db}\ncollections:\n  posts:\n    computed:\n      likeCount: {{ count: likes, by: postId }}\n"
        ),
    )
    .unwrap();
    let proxy = Serving::upstream(&uri, &["--declare", declaration.to_str().unwrap()]);
    let mut client = proxy.client();
    until("the rule is on", || {
        let status = client.command(&doc! { "pleach": "status", "$db": &db }).unwrap().document;
        let rules = status.get_array("rules").cloned().unwrap_or_default();
        rules
            .iter()
            .any(|rule| rule.as_document().is_some_and(|rule| rule.get_str("state").is_ok_and(|state| state == "on")))
    });
    client.must(&doc! { "insert": "posts", "documents": [{ "_id": "p" }], "$db": &db }).unwrap();
    let likes = |client: &mut Client| {
        let found = rows(&client.must(&doc! { "find": "posts", "$db": &db }).unwrap(), "firstBatch");
        found[0].as_document().unwrap().get("likeCount").cloned()
    };
    let insert = doc! {
        "insert": "likes", "documents": [{ "_id": 1, "postId": "p" }, { "_id": 2, "postId": "p" }], "lsid": session(3), "txnNumber": 1_i64, "$db": &db,
    };
    assert!(!client.must(&insert).unwrap().contains_key("retriedStmtIds"));
    let status = client.must(&doc! { "serverStatus": 1, "$db": "admin" }).unwrap();
    assert_eq!((status.get_str("process").unwrap(), status.contains_key("pleach")), ("mongod", true));
    // Sent again, to this process and to another.
    let another = Serving::upstream(&uri, &[]);
    for client in [&mut client, &mut another.client()] {
        let reply = client.must(&insert).unwrap();
        assert_eq!(reply.get_i32("n").unwrap(), 2);
        assert_eq!(reply.get_array("retriedStmtIds").unwrap().len(), 2);
    }
    assert_eq!(likes(&mut client), Some(Bson::Int32(2)));
    // In the client's own transaction, ended both ways.
    for (number, end, expected) in [(2_i64, "abortTransaction", 2), (3, "commitTransaction", 3)] {
        let mut statement = doc! { "insert": "likes", "documents": [{ "_id": 3, "postId": "p" }], "lsid": session(3) };
        statement.extend(doc! { "txnNumber": number, "autocommit": false, "startTransaction": true, "$db": &db });
        client.must(&statement).unwrap();
        client
            .must(&doc! { end: 1, "lsid": session(3), "txnNumber": number, "autocommit": false, "$db": "admin" })
            .unwrap();
        assert_eq!(likes(&mut client), Some(Bson::Int32(expected)), "{end}");
    }
    client.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}

/// SCRAM as a driver does it.
pub(crate) fn log_in(client: &mut Client, user: &str, password: &str) -> anyhow::Result<()> {
    let mut scram = Scram::new(Mechanism::Sha256, user, password, "fyko+d2lbbFgONRv9qkxdawL").unwrap();
    let payload = |text: String| Binary { subtype: BinarySubtype::Generic, bytes: text.into_bytes() };
    let text = |reply: &Document| String::from_utf8(reply.get_binary_generic("payload").unwrap().clone()).unwrap();
    let start = doc! {
        "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": payload(scram.first()), "options": { "skipEmptyExchange": true }, "$db": "admin",
    };
    let first = client.must(&start)?;
    let proof = scram.proof(&text(&first)).unwrap();
    let last = client.must(&doc! {
        "saslContinue": 1, "conversationId": first.get_i32("conversationId")?, "payload": payload(proof), "$db": "admin",
    })?;
    scram.verify(&text(&last)).unwrap();
    Ok(())
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn authentication_is_the_real_servers() {
    let folder = tempfile::tempdir().unwrap();
    let key = key_file(folder.path());
    let mongod = Mongod::start(&["--replSet", "rs", "--keyFile", &key]);
    initiate(&[&mongod]);
    let mut first = mongod.client();
    let user = |name: &str, role: &str| doc! { "createUser": name, "pwd": "s3cret", "roles": [role], "$db": "admin" };
    first.must(&user("root", "root")).unwrap();
    log_in(&mut first, "root", "s3cret").unwrap();
    first.must(&user("reader", "readAnyDatabase")).unwrap();
    let wrong = refusal(&["--upstream", &format!("mongodb://root:wrong@{}/?replicaSet=rs", mongod.address())]);
    assert!(wrong.contains("cannot log in") && wrong.contains("authSource") && !wrong.contains("wrong@"), "{wrong}");
    let proxy = Serving::upstream(&format!("mongodb://root:s3cret@{}/?replicaSet=rs", mongod.address()), &[]);
    let insert = doc! { "insert": "c", "documents": [{}], "$db": "auth" };
    let code = |client: &mut Client, command: &Document| {
        client.command(command).unwrap().document.get_i32("code").unwrap_or_default()
    };
    let mut nobody = proxy.client();
    assert_eq!(code(&mut nobody, &insert), 13);
    assert!(log_in(&mut nobody, "reader", "wrong").is_err());
    let certificate = doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "$db": "$external" };
    let refused = nobody.command(&certificate).unwrap().document;
    assert!(refused.get_str("errmsg").unwrap().contains("MONGODB-X509 cannot be relayed"), "{refused}");
    let (mut reader, mut root) = (proxy.client(), proxy.client());
    log_in(&mut reader, "reader", "s3cret").unwrap();
    log_in(&mut root, "root", "s3cret").unwrap();
    assert_eq!(code(&mut reader, &insert), 13);
    root.must(&insert).unwrap();
    assert_eq!(rows(&reader.must(&doc! { "find": "c", "$db": "auth" }).unwrap(), "firstBatch").len(), 1);
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn a_failover_is_followed_and_loses_nothing_acknowledged() {
    let options = ["--replSet", "rs"];
    let mut first = Mongod::start(&options);
    let (second, third) = (Mongod::start(&options), Mongod::start(&options));
    initiate(&[&first, &second, &third]);
    until("all members are there", || {
        let status = first.client().must(&doc! { "replSetGetStatus": 1, "$db": "admin" }).unwrap();
        let members = status.get_array("members").unwrap();
        members
            .iter()
            .all(|member| member.as_document().is_some_and(|member| matches!(member.get_i32("state"), Ok(1 | 2))))
    });
    let proxy = Serving::upstream(&format!("mongodb://{}/?replicaSet=rs", first.address()), &[]);
    let mut client = proxy.client();
    let insert = |id: i32| {
        let concern = doc! { "w": "majority" };
        doc! { "insert": "c", "documents": [{ "_id": id }], "lsid": session(9), "txnNumber": i64::from(id), "writeConcern": concern, "$db": "failover" }
    };
    client.must(&insert(1)).unwrap();
    first.kill();
    let killed = Instant::now();
    let mut labelled = false;
    until("a write goes through again", || {
        let asked = Instant::now();
        let reply = client.command(&insert(2)).unwrap().document;
        assert!(asked.elapsed() < Duration::from_secs(10), "{reply}");
        let failed = !reply.contains_key("n");
        if failed {
            let labels = reply.get_array("errorLabels").cloned().unwrap_or_default();
            labelled |= labels.contains(&Bson::from("RetryableWriteError"));
        }
        !failed
    });
    eprintln!("a write went through {} ms after the kill", killed.elapsed().as_millis());
    assert!(labelled, "the error in between must be retryable");
    let found =
        rows(&client.must(&doc! { "find": "c", "sort": { "_id": 1 }, "$db": "failover" }).unwrap(), "firstBatch");
    assert_eq!(found, vec![Bson::from(doc! { "_id": 1 }), Bson::from(doc! { "_id": 2 })]);
}

/// A certificate authority and a certificate for 127.0.0.1 by it: the authority's file and the server's.
fn certificates(folder: &std::path::Path) -> (String, String) {
    let make = "set -e; cd \"$0\"; \
        openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=tests; \
        openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=tests-server; \
        echo subjectAltName=IP:127.0.0.1 > names; \
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.crt; \
        cat server.crt server.key > server.pem";
    let made = Command::new("sh").args(["-c", make]).arg(folder).output();
    let path = |name: &str| folder.join(name).display().to_string();
    let made = made.expect("there is a shell");
    assert!(made.status.success(), "openssl makes certificates: {made:?}");
    (path("ca.pem"), path("server.pem"))
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn tls_is_spoken_and_certificates_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let (authority, server) = certificates(folder.path());
    let options = ["--tlsMode", "preferTLS", "--tlsCertificateKeyFile", &server, "--tlsCAFile", &authority];
    let without = ["--tlsAllowConnectionsWithoutCertificates", "--replSet", "rs"];
    let mongod = Mongod::start(&[&options[..], &without[..]].concat());
    initiate(&[&mongod]);
    let uri = |more: &str| {
        format!("mongodb://{}/?replicaSet=rs&tls=true&serverSelectionTimeoutMS=1500{more}", mongod.address())
    };
    for trusted in [format!("&tlsCAFile={authority}"), "&tlsAllowInvalidCertificates=true".to_owned()] {
        let proxy = Serving::upstream(&uri(&trusted), &[]);
        let mut client = proxy.client();
        client.must(&doc! { "insert": "c", "documents": [{}], "$db": "tls" }).unwrap();
        let status = client.must(&doc! { "serverStatus": 1, "$db": "admin" }).unwrap();
        assert!(status.contains_key("transportSecurity"), "{status}");
    }
    let said = refusal(&["--upstream", &uri("")]);
    assert!(said.contains("certificate") && said.contains("does not answer"), "{said}");
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn what_cannot_be_used_is_refused_with_the_way_out() {
    let said = refusal(&["--upstream", "mongodb+srv://cluster.example"]);
    assert!(said.contains("mongodb+srv") && said.contains("list the hosts"), "{said}");
    let said = refusal(&["--upstream", "localhost:27017"]);
    assert!(said.contains("does not begin with mongodb://"), "{said}");
    let said = refusal(&["--upstream", "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=300"]);
    assert!(said.contains("127.0.0.1:1 does not answer") && said.contains("check host names"), "{said}");
    let standalone = Mongod::start(&[]);
    let said = refusal(&["--upstream", &format!("mongodb://{}", standalone.address())]);
    assert!(said.contains("standalone") && said.contains("--replSet rs") && said.contains("rs.initiate"), "{said}");
    let fresh = Mongod::start(&["--replSet", "rs"]);
    let said = refusal(&["--upstream", &format!("mongodb://{}", fresh.address())]);
    assert!(said.contains("has not been initiated") && said.contains("rs.initiate"), "{said}");
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn a_rule_that_begins_waits_for_open_transactions() {
    let uri = judge::real::uri().unwrap();
    let db = database("begun");
    let proxy = Serving::upstream(&uri, &[]);
    let (mut client, mut other) = (proxy.client(), proxy.client());
    for collection in ["posts", "likes"] {
        client.must(&doc! { "create": collection, "$db": &db }).unwrap();
    }
    client.must(&doc! { "insert": "posts", "documents": [{ "_id": "p" }], "$db": &db }).unwrap();
    client
        .must(
            &doc! { "createIndexes": "likes", "indexes": [{ "key": { "postId": 1 }, "name": "postId_1" }], "$db": &db },
        )
        .unwrap();
    // No rule knows of it, and it is not committed: seeding would not see it.
    let insert = doc! { "insert": "likes", "documents": [{ "_id": 1, "postId": "p" }], "lsid": session(21), "txnNumber": 1_i64, "autocommit": false, "startTransaction": true, "$db": &db };
    client.must(&insert).unwrap();
    let declaration = doc! { "database": &db, "collections": { "posts": { "computed": { "likeCount": { "count": "likes", "by": "postId" } } } } };
    let apply = doc! { "pleach": "apply", "declaration": declaration, "$db": &db };
    let applied = std::thread::spawn(move || other.command(&apply).unwrap().document);
    std::thread::sleep(Duration::from_secs(2));
    let status = proxy.client().must(&doc! { "pleach": "status", "$db": &db }).unwrap();
    let rules = status.get_array("rules").unwrap();
    assert_eq!(rules[0].as_document().unwrap().get_str("state").unwrap(), "maintaining");
    let commit =
        doc! { "commitTransaction": 1, "lsid": session(21), "txnNumber": 1_i64, "autocommit": false, "$db": "admin" };
    client.must(&commit).unwrap();
    let committed = Instant::now();
    let reply = applied.join().unwrap();
    assert_eq!(reply.get_f64("ok").unwrap(), 1.0, "{reply}");
    until("the count is there", || {
        let found = rows(&client.must(&doc! { "find": "posts", "$db": &db }).unwrap(), "firstBatch");
        found[0].as_document().unwrap().get("likeCount") == Some(&Bson::Int32(1))
    });
    assert!(committed.elapsed() < Duration::from_secs(20));
    client.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn an_unmet_write_concern_is_told_to_all_who_share_a_transaction() {
    let uri = judge::real::uri().unwrap();
    let db = database("unmet");
    let folder = tempfile::tempdir().unwrap();
    let declaration = folder.path().join("pleach.yaml");
    let rules = format!(
        "database: {db}\ncollections:\n  posts:\n    computed:\n      likeCount: {{ count: likes, by: postId }}\n"
    );
    std::fs::write(&declaration, rules).unwrap();
    let proxy = Serving::upstream(&uri, &["--declare", declaration.to_str().unwrap()]);
    let mut client = proxy.client();
    until("the rule is on", || {
        let status = client.command(&doc! { "pleach": "status", "$db": &db }).unwrap().document;
        status.get_array("rules").is_ok_and(|rules| {
            rules.iter().any(|rule| rule.as_document().unwrap().get_str("state").is_ok_and(|state| state == "on"))
        })
    });
    client.must(&doc! { "insert": "posts", "documents": [{ "_id": "p" }], "$db": &db }).unwrap();
    // One host, so that they wait for each other; every second one asks for more nodes than there are.
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (mut client, db) = (proxy.client(), &db);
            scope.spawn(move || {
                for at in 0..10 {
                    let nodes = if number % 2 == 0 { 9 } else { 1 };
                    let insert = doc! { "insert": "likes", "documents": [{ "_id": number * 100 + at, "postId": "p" }], "writeConcern": { "w": nodes }, "$db": db };
                    let reply = client.command(&insert).unwrap().document;
                    assert_eq!(reply.get_i32("n").unwrap(), 1, "{reply}");
                    assert_eq!(reply.contains_key("writeConcernError"), nodes == 9, "{reply}");
                }
            });
        }
    });
    let found = rows(&client.must(&doc! { "find": "posts", "$db": &db }).unwrap(), "firstBatch");
    assert_eq!(found, [Bson::from(doc! { "_id": "p", "likeCount": 80 })]);
    client.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}
