//! A really full disk: writers fill it, then another process takes the last byte while they write. What was acknowledged must
//! be there throughout, what was refused must say so, reads go on, deletes and drops free room, and the server goes on by
//! itself when there is room, also if its store had to stop, or was killed in that state.

use crate::process::{self, Place, Server};
use anyhow::{Context, Result, bail, ensure};
use bson::{Document, doc};
use judge::client::Client;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DB: &str = "full";
const OUT_OF_DISK_SPACE: i32 = 14_031;
/// What the refusal says of a store that takes no more writes, room or not; whether the write had an effect is open then.
const STOPPED: &str = "opened anew";
/// What it says of a disk on which deletes and drops are still taken.
const NEARLY_FULL: &str = "nearly full";
/// How long the store may take to write out what is in memory and to remove what that leaves.
const SETTLED: Duration = Duration::from_secs(10);
/// Documents in one insert, and the bytes that fill each.
const BATCH: i64 = 10;
const FILLER: usize = 8_000;
/// How long a full disk may take to be noticed, and room to be used again.
const PATIENCE: Duration = Duration::from_secs(60);

/// What one writer knows.
#[derive(Default)]
struct Writer {
    worker: i64,
    next: i64,
    acknowledged: Vec<i64>,
    /// The first numbers of inserts that were refused and must have had no effect.
    refused: Vec<i64>,
}

pub(crate) fn run(binary: &Path, folder: &Path, rounds: usize, workers: usize) -> Result<()> {
    let (data, fill) = (folder.join("data"), folder.join("fill"));
    let (mut acknowledged, mut stopped) = (0, 0);
    for round in 0..rounds {
        let _ = std::fs::remove_file(&fill);
        let _ = std::fs::remove_dir_all(&data);
        let mut writers: Vec<Writer> =
            (0..workers).map(|worker| Writer { worker: worker as i64, ..Writer::default() }).collect();
        let about = |what: &str| format!("round {round}, {what}");
        let server = process::start(binary, &Place::Data(&data), None)?;
        let mut client = Client::connect(&server.address)?;
        client.must(&doc! { "createIndexes": "documents", "$db": DB, "indexes": [{ "key": { "worker": 1, "n": 1 }, "name": "worker" }] })?;
        ballast(&mut client)?;

        writers = write(&server, writers, None).with_context(|| about("filling"))?;
        ensure!(writers.iter().all(|writer| !writer.refused.is_empty()), "a writer was never refused");
        verify(&mut client, &writers).with_context(|| about("full by its own writers"))?;

        delete_half(&mut client, &mut writers).with_context(|| about("deleting on a full disk"))?;
        client.must(&doc! { "drop": "ballast", "$db": DB }).with_context(|| about("dropping on a full disk"))?;
        until_accepted(&mut client, &mut writers).with_context(|| about("after a drop"))?;
        verify(&mut client, &writers).with_context(|| about("after a drop"))?;

        writers = write(&server, writers, Some(&fill)).with_context(|| about("filled from outside"))?;
        verify(&mut client, &writers).with_context(|| about("filled from outside"))?;
        let has_stopped = has_stopped(&mut client)?;
        stopped += usize::from(has_stopped);
        if has_stopped || round % 2 == 0 {
            std::fs::remove_file(&fill)?;
            let mut client = until_served(&server, &mut writers).with_context(|| about("room again"))?;
            verify(&mut client, &writers).with_context(|| about("room again"))?;
            writers = write(&server, writers, Some(&fill)).with_context(|| about("filled again"))?;
        }
        server.kill()?;

        // With no byte left it may serve or say why not; with room it must serve.
        if let Ok(server) = process::start(binary, &Place::Data(&data), None) {
            let mut client = Client::connect(&server.address)?;
            verify(&mut client, &writers).with_context(|| about("started on the full disk"))?;
            server.kill()?;
        }
        std::fs::remove_file(&fill)?;
        let server =
            process::start(binary, &Place::Data(&data), None).with_context(|| about("start with room again"))?;
        let mut client = Client::connect(&server.address)?;
        verify(&mut client, &writers).with_context(|| about("started with room again"))?;
        until_room(&mut client, &mut writers).with_context(|| about("started with room again"))?;
        let report = client.must(&doc! { "validate": "documents", "full": true, "$db": DB })?;
        ensure!(report.get_bool("valid").unwrap_or(false), "{}: {report}", about("not valid"));
        server.stop()?;
        acknowledged += writers.iter().map(|writer| writer.acknowledged.len()).sum::<usize>();
    }
    println!(
        "full disk: {rounds} rounds, {acknowledged} acknowledged documents, none lost; the store stopped and was opened anew in {stopped}"
    );
    Ok(())
}

/// Something to drop later.
fn ballast(client: &mut Client) -> Result<()> {
    for batch in 0..250_i64 {
        let documents: Vec<Document> =
            (0..50_i64).map(|n| doc! { "_id": batch * 50 + n, "filler": filler() }).collect();
        client.must(&doc! { "insert": "ballast", "documents": documents, "$db": DB })?;
    }
    Ok(())
}

/// Not compressible.
fn filler() -> bson::Binary {
    static NOISE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    let noise = NOISE.get_or_init(|| (0..1 << 17).flat_map(|_| rand::random::<[u8; 8]>()).collect());
    let start = rand::random_range(0..noise.len() - FILLER);
    let bytes = noise.get(start..start + FILLER).unwrap_or_default().to_vec();
    bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes }
}

/// All writers at full speed until each was refused; meanwhile `fill` takes what is left of the disk.
fn write(server: &Server, writers: Vec<Writer>, fill: Option<&Path>) -> Result<Vec<Writer>> {
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = writers
        .into_iter()
        .map(|writer| {
            let (address, stop) = (server.address.clone(), stop.clone());
            std::thread::spawn(move || until_refused(&address, writer, &stop))
        })
        .collect();
    if let Some(fill) = fill {
        std::thread::sleep(Duration::from_millis(rand::random_range(0..1500)));
        let mut file = File::create(fill)?;
        let block = vec![0xA5; 1 << 20];
        while file.write_all(&block).is_ok() {}
    }
    let mut writers = Vec::new();
    for thread in threads {
        writers.push(thread.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??);
    }
    stop.store(true, Ordering::Relaxed);
    Ok(writers)
}

fn until_refused(address: &str, mut writer: Writer, stop: &AtomicBool) -> Result<Writer> {
    let mut client = Client::connect(address)?;
    let since = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        ensure!(since.elapsed() < PATIENCE * 3, "the disk did not get full");
        if !insert(&mut client, &mut writer)? {
            break;
        }
    }
    Ok(writer)
}

/// One insert; whether it was taken. Refused it must be with the right code.
fn insert(client: &mut Client, writer: &mut Writer) -> Result<bool> {
    let first = writer.next;
    writer.next += BATCH;
    let id = |n: i64| format!("{}-{n}", writer.worker);
    let documents: Vec<Document> = (first..first + BATCH)
        .map(|n| doc! { "_id": id(n), "worker": writer.worker, "n": n, "filler": filler() })
        .collect();
    let reply = client.command(&doc! { "insert": "documents", "documents": documents, "$db": DB })?.document;
    if reply.get_f64("ok").is_ok_and(|ok| ok == 1.0) {
        ensure!(reply.get_i32("n").ok() == Some(i32::try_from(BATCH)?), "an insert answered {reply}");
        writer.acknowledged.extend(first..first + BATCH);
        return Ok(true);
    }
    ensure!(reply.get_i32("code").ok() == Some(OUT_OF_DISK_SPACE), "refused with another code: {reply}");
    if !reply.get_str("errmsg")?.contains(STOPPED) {
        writer.refused.push(first);
    }
    Ok(false)
}

fn delete_half(client: &mut Client, writers: &mut [Writer]) -> Result<()> {
    for writer in writers {
        let reply = client.must(&doc! { "delete": "documents", "$db": DB,
        "deletes": [{ "q": { "worker": writer.worker, "n": { "$mod": [2, 0] } }, "limit": 0 }] })?;
        let before = writer.acknowledged.len();
        writer.acknowledged.retain(|n| n % 2 != 0);
        let deleted = i32::try_from(before - writer.acknowledged.len())?;
        ensure!(reply.get_i32("n").ok() == Some(deleted), "{deleted} were to be deleted: {reply}");
    }
    Ok(())
}

/// Room is used again by a server that was not restarted.
fn until_accepted(client: &mut Client, writers: &mut [Writer]) -> Result<()> {
    let since = Instant::now();
    let Some(writer) = writers.first_mut() else { bail!("no writers") };
    while !insert(client, writer)? {
        ensure!(since.elapsed() < PATIENCE, "there is room, but inserts are refused");
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// As [`until_accepted`]; deletes make room if all of the disk was used.
fn until_room(client: &mut Client, writers: &mut [Writer]) -> Result<()> {
    let Some(writer) = writers.first_mut() else { bail!("no writers") };
    if !insert(client, writer)? {
        client.must(&doc! { "drop": "documents", "$db": DB })?;
        writers.iter_mut().for_each(|writer| writer.acknowledged.clear());
        until_accepted(client, writers)?;
    }
    Ok(())
}

/// As [`until_room`], of a server that may have to open its store anew: connections end then. What the store itself takes may
/// leave the disk nearly full although the other process has given its part back: then a drop makes room.
fn until_served(server: &Server, writers: &mut [Writer]) -> Result<Client> {
    let (since, mut has_dropped) = (Instant::now(), false);
    loop {
        if let Ok(mut client) = Client::connect(&server.address) {
            let Some(writer) = writers.first_mut() else { bail!("no writers") };
            if let Ok(true) = insert(&mut client, writer) {
                return Ok(client);
            }
            if !has_dropped && since.elapsed() > SETTLED && refusal(&mut client)?.contains(NEARLY_FULL) {
                client.must(&doc! { "drop": "documents", "$db": DB })?;
                writers.iter_mut().for_each(|writer| writer.acknowledged.clear());
                has_dropped = true;
            }
        }
        ensure!(since.elapsed() < PATIENCE, "there is room, but inserts are refused");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn has_stopped(client: &mut Client) -> Result<bool> {
    // A stopped store is noticed within a second.
    std::thread::sleep(Duration::from_millis(1500));
    Ok(refusal(client)?.contains(STOPPED))
}

/// Why a small insert is refused; empty if it is taken.
fn refusal(client: &mut Client) -> Result<String> {
    let insert = doc! { "insert": "probe", "documents": [{}], "$db": DB, "writeConcern": { "w": 1 } };
    let reply = client.command(&insert)?.document;
    Ok(reply.get_str("errmsg").unwrap_or_default().to_owned())
}

/// All that was acknowledged and nothing that was refused, by the documents and by the index.
fn verify(client: &mut Client, writers: &[Writer]) -> Result<()> {
    for writer in writers {
        let stored = numbers(client, writer.worker)?;
        let lost: Vec<_> = writer.acknowledged.iter().filter(|n| !stored.contains(n)).take(5).collect();
        ensure!(lost.is_empty(), "worker {}: acknowledged but lost: {lost:?}", writer.worker);
        let kept: Vec<_> = writer.refused.iter().filter(|n| stored.contains(n)).take(5).collect();
        ensure!(kept.is_empty(), "worker {}: refused but there: {kept:?}", writer.worker);
        let counted = client.must(
            &doc! { "aggregate": "documents", "cursor": {}, "$db": DB, "pipeline": [
                { "$match": { "worker": writer.worker } }, { "$group": { "_id": 0, "n": { "$sum": { "$toInt": { "$gt": ["$filler", null] } } } } }] },
        )?;
        let counted =
            counted.get_document("cursor")?.get_array("firstBatch")?.first().and_then(|row| row.as_document());
        let counted = counted.map_or(Ok(0), |row| row.get_i32("n"))?;
        ensure!(
            counted == i32::try_from(stored.len())?,
            "the index has {} entries, documents are {counted}",
            stored.len()
        );
    }
    Ok(())
}

/// By the index alone.
fn numbers(client: &mut Client, worker: i64) -> Result<std::collections::HashSet<i64>> {
    let reply = client
        .must(&doc! { "find": "documents", "filter": { "worker": worker }, "projection": { "_id": 0, "n": 1 },
        "hint": "worker", "batchSize": 1_000_000, "singleBatch": true, "$db": DB })?;
    let rows = reply.get_document("cursor")?.get_array("firstBatch")?;
    rows.iter().filter_map(|row| row.as_document()).map(|row| Ok(row.get_i64("n")?)).collect()
}
