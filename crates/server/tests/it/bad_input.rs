//! What no client should send: an error or a close, and the other clients do not notice.

use crate::client::{Client, Running};
use bson::{Document, doc};
use pleach_server::Options;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn frame(op_code: i32, payload: &[u8]) -> Vec<u8> {
    let length = i32::try_from(16 + payload.len()).unwrap();
    let mut bytes: Vec<u8> = [length, 7, 0, op_code].into_iter().flat_map(i32::to_le_bytes).collect();
    bytes.extend_from_slice(payload);
    bytes
}

fn msg(flags: u32, sections: &[&[u8]]) -> Vec<u8> {
    frame(2013, &[&flags.to_le_bytes(), sections.concat().as_slice()].concat())
}

fn body(command: Document) -> Vec<u8> {
    [vec![0], command.to_vec().unwrap()].concat()
}

fn sequence(name: &str, documents: &[&[u8]]) -> Vec<u8> {
    let content = [name.as_bytes(), &[0], documents.concat().as_slice()].concat();
    [&[1], i32::try_from(content.len() + 4).unwrap().to_le_bytes().as_slice(), &content].concat()
}

/// `{ a: { a: … { a: 1 } } }`, `levels` documents in all.
fn nested(levels: usize) -> Vec<u8> {
    let mut bytes = doc! {"a": 1}.to_vec().unwrap();
    for _ in 1..levels {
        let length = i32::try_from(bytes.len() + 8).unwrap();
        bytes = [&length.to_le_bytes(), b"\x03a\0".as_slice(), &bytes, &[0]].concat();
    }
    bytes
}

enum Then {
    /// The connection is closed without an answer.
    Closed,
    /// An error of this code; the connection stays.
    Error(i32),
    /// A statement error of this code; the connection stays.
    WriteError(i32),
    Ok,
}
use Then::{Closed, Error, Ok, WriteError};

#[test]
fn malformed_messages_are_refused_and_others_do_not_notice() {
    let server = Running::start();
    let mut other = server.connect();
    let ping = body(doc! {"ping": 1, "$db": "admin"});
    let insert = body(doc! {"insert": "c", "$db": "test"});
    let stated = |length: i32| {
        let mut bytes = msg(0, &[&ping]);
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes
    };
    let not_utf8 = b"\x0f\0\0\0\x02a\0\x03\0\0\0\xff\xfe\0\0";
    let with_nul_key = b"\x0c\0\0\0\x10a\0\x01\0\0\0".as_slice();
    let large = |bytes: usize| doc! {"_id": 1, "a": "x".repeat(bytes)}.to_vec().unwrap();
    let (over_limit, far_over) = (large(16 << 20), large(17 << 20));
    let rows: Vec<(&str, Vec<u8>, Then)> = vec![
        ("a good one", msg(0, &[&ping]), Ok),
        ("length 10", stated(10), Closed),
        ("negative length", stated(-5), Closed),
        ("length over the limit", stated(48_000_001), Closed),
        ("largest length", stated(i32::MAX), Closed),
        ("unknown op code", frame(99, &[0; 20]), Closed),
        ("legacy insert", frame(2002, &[0; 20]), Closed),
        ("compressed", frame(2012, &[0; 20]), Closed),
        ("a reply", frame(1, &[0; 30]), Closed),
        ("nothing in it", frame(2013, &[]), Closed),
        ("unknown flag", msg(8, &[&ping]), Closed),
        ("wrong checksum", msg(1, &[&ping, &[1, 2, 3, 4]]), Closed),
        ("no sections", msg(0, &[]), Error(40587)),
        ("two bodies", msg(0, &[&ping, &ping]), Error(40430)),
        ("torn body", msg(0, &[&ping[..ping.len() - 3]]), Error(22)),
        ("body with a type that is none", msg(0, &[&[0, 8, 0, 0, 0, 0x77, b'a', 0, 0]]), Error(22)),
        ("body without a command", msg(0, &[&body(doc! {})]), Error(40571)),
        ("no database", msg(0, &[&body(doc! {"ping": 1})]), Error(40571)),
        ("database of a wrong type", msg(0, &[&body(doc! {"ping": 1, "$db": 3})]), Error(13111)),
        ("empty database name", msg(0, &[&body(doc! {"ping": 1, "$db": ""})]), Error(73)),
        ("command that is none", msg(0, &[&body(doc! {"foo": 1, "$db": "a"})]), Error(59)),
        ("sequence twice", msg(0, &[&insert, &sequence("documents", &[]), &sequence("documents", &[])]), Error(40431)),
        ("sequence without documents", msg(0, &[&insert, &sequence("documents", &[])]), Error(16)),
        ("unknown sequence", msg(0, &[&insert, &sequence("foo", &[])]), Error(40415)),
        ("sequence of another command", msg(0, &[&ping, &sequence("documents", &[])]), Error(40415)),
        ("torn document in a sequence", msg(0, &[&insert, &sequence("documents", &[&[9, 0, 0, 0]])]), Error(22)),
        ("text that is not UTF-8", msg(0, &[&insert, &sequence("documents", &[not_utf8])]), Error(22)),
        ("a key that runs into the end", msg(0, &[&insert, &sequence("documents", &[with_nul_key])]), Error(22)),
        ("nested as deep as may be stored", msg(0, &[&insert, &sequence("documents", &[&nested(180)])]), Ok),
        ("nested too deep to be stored", msg(0, &[&insert, &sequence("documents", &[&nested(181)])]), WriteError(15)),
        ("nested too deep", msg(0, &[&insert, &sequence("documents", &[&nested(5000)])]), Error(15)),
        ("document over 16 MB", msg(0, &[&insert, &sequence("documents", &[&over_limit])]), WriteError(2)),
        ("document far over 16 MB", msg(0, &[&insert, &sequence("documents", &[&far_over])]), Error(10334)),
        (
            "legacy query of a collection",
            frame(2004, b"\0\0\0\0test.c\0\0\0\0\0\xff\xff\xff\xff\x05\0\0\0\0"),
            Error(5_739_101),
        ),
    ];
    for (name, bytes, then) in rows {
        let mut client = server.connect();
        // The server may close before it has taken everything.
        let _ = client.stream.write_all(&bytes);
        match then {
            Closed => assert!(client.is_closed(), "{name}"),
            Error(code) => {
                assert_eq!(client.receive().expect(name).get_i32("code").ok(), Some(code), "{name}");
                client.still_works();
            }
            WriteError(code) => {
                let reply = client.receive().expect(name);
                let errors = reply.get_array("writeErrors").expect(name);
                assert_eq!(errors[0].as_document().unwrap().get_i32("code").ok(), Some(code), "{name}");
                client.still_works();
            }
            Ok => assert_eq!(client.receive().expect(name).get_f64("ok").ok(), Some(1.0), "{name}"),
        }
        other.still_works();
    }
}

#[test]
fn half_a_message_costs_only_what_has_arrived_and_ends_by_itself() {
    let options = Options { stall_timeout: Duration::from_millis(300), ..Options::default() };
    let server = Running::with(options);
    let mut whole = msg(0, &[&body(doc! {"ping": 1, "$db": "admin"})]);
    whole[..4].copy_from_slice(&48_000_000_i32.to_le_bytes());
    let mut halves: Vec<Client> = (0..50).map(|_| server.connect()).collect();
    for half in &mut halves {
        half.stream.write_all(&whole).unwrap();
    }
    let mut silent = server.connect();
    let mut other = server.connect();
    other.still_works();
    let started = Instant::now();
    assert!(halves.iter_mut().all(Client::is_closed));
    assert!(silent.is_closed());
    assert!(started.elapsed() < Duration::from_secs(8));
    // Who has said hello may be silent for as long as it likes.
    std::thread::sleep(Duration::from_millis(400));
    other.still_works();
}

#[test]
fn large_messages_wait_for_each_other_when_memory_is_short() {
    let options = Options { message_memory: 8 << 20, ..Options::default() };
    let server = Running::with(options);
    let address = server.address;
    let threads: Vec<_> = (0..6)
        .map(|thread| {
            std::thread::spawn(move || {
                let stream = TcpStream::connect(address).unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                let mut client = Client::over(stream);
                let documents: Vec<Document> = vec![doc! {"_id": thread, "a": "x".repeat(3 << 20)}];
                client.run(doc! {"insert": "c", "documents": documents})
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), doc! {"n": 1, "ok": 1.0});
    }
}

#[test]
fn thousands_of_idle_connections_are_harmless() {
    let server = Running::start();
    // Twice as many descriptors are needed as connections: both ends are in this process.
    let mut idle = Vec::new();
    while let (0..4000, Result::Ok(stream)) = (idle.len(), TcpStream::connect(server.address)) {
        idle.push(stream);
        if idle.len() % 100 == 0 {
            // Accepted after all the others: so none of them waits in the system's queue, which may be short.
            server.connect().still_works();
        }
    }
    assert!(idle.len() > 300, "only {} connections could be made here", idle.len());
    let mut client = server.connect();
    let started = Instant::now();
    for _ in 0..100 {
        client.still_works();
    }
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn connections_over_the_limit_are_closed_and_the_others_stay() {
    let server = Running::with(Options { max_connections: 2, ..Options::default() });
    let (mut first, mut second) = (server.connect(), server.connect());
    first.still_works();
    second.still_works();
    assert!(server.connect().is_closed());
    drop(second);
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let mut next = server.connect();
        next.send(&doc! {"ping": 1, "$db": "admin"}, 0);
        match next.receive() {
            Result::Ok(_) => break,
            Err(_) => assert!(Instant::now() < deadline, "no place was freed"),
        }
    }
    first.still_works();
}

#[test]
fn a_panic_is_an_error_of_one_command() {
    let server = Running::start();
    let (mut client, mut other) = (server.connect(), server.connect());
    assert_eq!(client.code(doc! {"find": "panics"}), 1);
    client.still_works();
    other.still_works();
}
