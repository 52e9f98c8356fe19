//! Commands and their errors, on the wire.

use crate::client::Running;
use bson::{Bson, Document, doc};
use std::time::{Duration, Instant};
use wire::message::flags;
use wire::{Message, encode};

#[test]
fn hello_is_that_of_a_router_in_both_forms() {
    let server = Running::start();
    let mut client = server.connect();
    let hello = client.admin(doc! {"hello": 1, "helloOk": true, "client": {"application": {"name": "it"}}});
    for (name, value) in doc! {
        "helloOk": true, "isWritablePrimary": true, "msg": "isdbgrid", "maxBsonObjectSize": 16_777_216,
        "maxMessageSizeBytes": 48_000_000, "maxWriteBatchSize": 100_000, "logicalSessionTimeoutMinutes": 30,
        "minWireVersion": 0, "maxWireVersion": 17,
    } {
        assert_eq!(hello.get(&name), Some(&value), "{name}");
    }
    for absent in ["setName", "hosts", "topologyVersion", "compression", "speculativeAuthenticate"] {
        assert!(!hello.contains_key(absent), "{absent}");
    }
    let mut buffer = Vec::new();
    encode::query(&mut buffer, 1, "admin.$cmd", &doc! {"isMaster": 1}.to_vec().unwrap());
    std::io::Write::write_all(&mut client.stream, &buffer).unwrap();
    let (header, bytes) = client.message().unwrap();
    assert_eq!(header.response_to, 1);
    let Message::Reply(reply) = wire::message::parse(&header, &bytes).unwrap() else { panic!("not OP_REPLY") };
    let legacy = Document::from_reader(reply.document).unwrap();
    assert_eq!((legacy.get_bool("ismaster").ok(), legacy.get_str("msg").ok()), (Some(true), Some("isdbgrid")));
}

#[test]
fn errors_have_mongodbs_codes_and_words() {
    let server = Running::start();
    let mut client = server.connect();
    let rows: Vec<(Document, i32, &str)> = vec![
        (doc! {"foo": 1}, 59, "no such command: 'foo'"),
        (doc! {"find": "c", "foo": 1}, 40415, "BSON field 'FindCommandRequest.foo' is an unknown field."),
        (
            doc! {"find": "c", "limit": "x"},
            14,
            "BSON field 'FindCommandRequest.limit' is the wrong type 'string', expected types '[long, int, decimal, double']",
        ),
        (doc! {"find": "c", "limit": -1}, 51024, "BSON field 'limit' value must be >= 0, actual value '-1'"),
        (doc! {"find": "c", "filter": 3}, 14, "Expected field filterto be of type object"),
        (doc! {"find": 3}, 2, "collection name has invalid type int"),
        (doc! {"find": "c", "writeConcern": {"w": 1}}, 72, "Command does not support writeConcern"),
        (doc! {"insert": "c"}, 40414, "BSON field 'insert.documents' is missing but a required field"),
        (
            doc! {"insert": "c", "documents": [3]},
            14,
            "BSON field 'insert.documents.0' is the wrong type 'int', expected type 'object'",
        ),
        (
            doc! {"insert": "c", "documents": []},
            16,
            "Write batch sizes must be between 1 and 100000. Got 0 operations.",
        ),
        (
            doc! {"update": "c", "updates": [{"q": {}}]},
            40414,
            "BSON field 'update.updates.u' is missing but a required field",
        ),
        (
            doc! {"delete": "c", "deletes": [{"q": {}, "limit": 2}]},
            9,
            "The limit field in delete objects must be 0 or 1. Got 2",
        ),
        (doc! {"listDatabases": 1}, 13, "listDatabases may only be run against the admin database."),
        (doc! {"ping": 1, "apiVersion": "2"}, 322, "Cannot accept API version 2"),
        (
            doc! {"distinct": "c", "key": "a", "lsid": {}},
            40414,
            "BSON field 'OperationSessionInfo.lsid.id' is missing but a required field",
        ),
        (doc! {"mapReduce": "c"}, 238, "the command 'mapReduce' is not supported by the embedded store"),
        (
            doc! {"find": "c", "collation": {"locale": "en"}},
            238,
            "a collation other than { locale: \"simple\" } is not supported by the embedded store",
        ),
        (doc! {"getLastError": 1}, 5_739_000, "getLastError command is not supported"),
    ];
    for (command, code, message) in rows {
        let reply = client.run(command.clone());
        assert_eq!(
            (reply.get_i32("code").ok(), reply.get_str("errmsg").ok()),
            (Some(code), Some(message)),
            "{command}"
        );
        assert_eq!(reply.keys().collect::<Vec<_>>(), ["ok", "errmsg", "code", "codeName"], "{command}");
    }
    let mut twice = doc! {"find": "c", "limit": 1, "$db": "test", "limiz": 2}.to_vec().unwrap();
    let at = twice.windows(5).position(|window| window == b"limiz").unwrap();
    twice[at..at + 5].copy_from_slice(b"limit");
    let mut buffer = Vec::new();
    let start = encode::begin_msg(&mut buffer, 1, 0, 0);
    buffer.extend_from_slice(&twice);
    encode::finish(&mut buffer, start);
    std::io::Write::write_all(&mut client.stream, &buffer).unwrap();
    assert_eq!(client.receive().unwrap().get_i32("code").ok(), Some(40413));
}

#[test]
fn a_statement_that_cannot_be_compiled_fails_alone_and_at_its_place() {
    let server = Running::start();
    let mut client = server.connect();
    client.run(doc! {"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]});
    let update = |id: i32, update: Document| doc! {"q": {"_id": id}, "u": update};
    let statements = [
        update(1, doc! {"$set": {"a": 1}}),
        update(1, doc! {"$nonsense": {"a": 1}}),
        update(2, doc! {"$set": {"a": 1}}),
    ];
    let error = |reply: &Document| {
        let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap().clone();
        (error.get_i32("index").unwrap(), error.get_i32("code").unwrap())
    };
    let ordered = client.run(doc! {"update": "c", "updates": statements.to_vec()});
    assert_eq!(
        (ordered.get_i32("n").ok(), ordered.get_i32("nModified").ok(), error(&ordered)),
        (Some(1), Some(1), (1, 9))
    );
    let unordered = client.run(doc! {"update": "c", "updates": statements.to_vec(), "ordered": false});
    assert_eq!(
        (unordered.get_i32("n").ok(), unordered.get_i32("nModified").ok(), error(&unordered)),
        (Some(2), Some(1), (1, 9))
    );
    let deletes = vec![doc! {"q": {"$foo": 1}, "limit": 1}, doc! {"q": {"_id": 1}, "limit": 1}];
    let deleted = client.run(doc! {"delete": "c", "deletes": deletes, "ordered": false});
    assert_eq!((deleted.get_i32("n").ok(), error(&deleted)), (Some(1), (0, 2)));
}

#[test]
fn a_write_concern_that_one_node_cannot_give_is_reported_beside_the_result() {
    let server = Running::start();
    let mut client = server.connect();
    let reply = client.run(doc! {"insert": "c", "documents": [{"_id": 1}], "writeConcern": {"w": 2}});
    assert_eq!(
        reply,
        doc! {
            "n": 1,
            "writeConcernError": {
                "code": 100, "codeName": "UnsatisfiableWriteConcern", "errmsg": "Not enough data-bearing nodes",
                "errInfo": {"writeConcern": {"w": 2, "wtimeout": 0, "provenance": "clientSupplied"}},
            },
            "ok": 1.0,
        }
    );
}

#[test]
fn a_request_that_wants_no_answer_gets_none() {
    let server = Running::start();
    let mut client = server.connect();
    let insert = doc! {"insert": "c", "documents": [{"_id": 1}], "writeConcern": {"w": 0}, "$db": "test"};
    client.send(&insert, flags::MORE_TO_COME);
    client.send(&insert, flags::MORE_TO_COME);
    assert_eq!(client.run(doc! {"count": "c"}), doc! {"n": 1, "ok": 1.0});
}

#[test]
fn a_checksum_is_answered_with_one() {
    let server = Running::start();
    let mut client = server.connect();
    client.send(&doc! {"ping": 1, "$db": "admin"}, flags::CHECKSUM_PRESENT);
    let (header, bytes) = client.message().unwrap();
    let Message::Msg(msg) = wire::message::parse(&header, &bytes).unwrap() else { panic!("not OP_MSG") };
    assert_eq!(msg.flags, flags::CHECKSUM_PRESENT);
}

#[test]
fn time_limits_and_kill_op_end_a_command() {
    let server = Running::start();
    let (mut client, mut other) = (server.connect(), server.connect());
    assert_eq!(client.code(doc! {"find": "never_ends", "maxTimeMS": 30}), 50);
    client.send(&doc! {"find": "never_ends", "$db": "test"}, 0);
    let deadline = Instant::now() + Duration::from_secs(5);
    let id =
        loop {
            let running = other.admin(doc! {"currentOp": 1});
            let found =
                running.get_array("inprog").unwrap().iter().filter_map(Bson::as_document).find_map(|op| {
                    (op.get_str("ns").ok() == Some("test.never_ends")).then(|| op.get_i32("opid").unwrap())
                });
            match found {
                Some(id) => break id,
                None => assert!(Instant::now() < deadline, "the command was never seen"),
            }
        };
    assert_eq!(other.admin(doc! {"killOp": 1, "op": id}).get_f64("ok").ok(), Some(1.0));
    assert_eq!(client.receive().unwrap().get_i32("code").ok(), Some(11601));
}

#[test]
fn what_clients_ask_on_connecting_is_answered() {
    let server = Running::start();
    let mut client = server.connect();
    for command in [
        doc! {"buildInfo": 1},
        doc! {"whatsmyuri": 1},
        doc! {"connectionStatus": 1, "showPrivileges": true},
        doc! {"getParameter": 1, "featureCompatibilityVersion": 1},
        doc! {"getLog": "startupWarnings"},
        doc! {"hostInfo": 1},
        doc! {"serverStatus": 1},
        doc! {"getCmdLineOpts": 1},
        doc! {"listCommands": 1},
        doc! {"usersInfo": 1},
        doc! {"getFreeMonitoringStatus": 1},
        doc! {"top": 1},
        doc! {"features": 1},
        doc! {"logout": 1},
        doc! {"startSession": 1},
    ] {
        let reply = client.admin(command.clone());
        assert_eq!(reply.get_f64("ok").ok(), Some(1.0), "{command}: {reply}");
    }
    let parameter = client.admin(doc! {"getParameter": 1, "featureCompatibilityVersion": 1});
    assert_eq!(parameter, doc! {"featureCompatibilityVersion": {"version": "6.0"}, "ok": 1.0});
}

#[test]
fn a_stop_lets_running_commands_answer() {
    let mut server = Running::start();
    let mut idle = server.connect();
    idle.still_works();
    let mut busy = server.connect();
    busy.send(&doc! {"find": "never_ends", "maxTimeMS": 400, "$db": "test"}, 0);
    std::thread::sleep(Duration::from_millis(100));
    let waiting = std::thread::spawn(move || busy.receive().unwrap());
    let started = Instant::now();
    server.stop();
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(idle.is_closed());
    assert_eq!(waiting.join().unwrap().get_i32("code").ok(), Some(50));
}
