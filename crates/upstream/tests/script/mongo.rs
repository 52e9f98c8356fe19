//! The server that plays a script: a listener on loopback that reads and writes OP_MSG.
//!
//! `hello` is answered from the server's greeting, which a test may change while the backend waits for such a change. Every
//! other command is the next step of the script, whichever connection it comes over. A command that the script does not expect is
//! answered with an error and makes [`ScriptedMongo::played`] fail.

use crate::step::{Reaction, Step};
use bson::{Document, doc, oid::ObjectId};
use document::Doc;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use wire::{Header, Message, encode};

/// No test takes as long: what is still missing then never comes.
const LIMIT: Duration = Duration::from_secs(10);

pub(crate) struct ScriptedMongo {
    pub(crate) address: String,
    state: Arc<State>,
}

/// A command as it came.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// The connection that it came over: the number of the server's connections before it.
    pub(crate) connection: usize,
    pub(crate) command: Document,
    pub(crate) bytes: Vec<u8>,
}

struct State {
    greeting: watch::Sender<Greeting>,
    script: Mutex<VecDeque<Step>>,
    received: watch::Sender<Vec<Received>>,
    faults: Mutex<Vec<String>>,
    connections: AtomicUsize,
    /// What each connection's client said about itself.
    clients: Mutex<Vec<Document>>,
    tasks: Mutex<Vec<AbortHandle>>,
}

#[derive(Clone)]
struct Greeting {
    version: i64,
    fields: Document,
}

impl Drop for ScriptedMongo {
    fn drop(&mut self) {
        self.stop();
    }
}

impl ScriptedMongo {
    /// The primary of a replica set of its own.
    pub(crate) async fn primary() -> ScriptedMongo {
        let [mongo] = ScriptedMongo::replica_set().await;
        mongo
    }

    /// Servers that know one another; the first is primary.
    pub(crate) async fn replica_set<const N: usize>() -> [ScriptedMongo; N] {
        let mut servers = Vec::new();
        for _ in 0..N {
            servers.push(ScriptedMongo::greeting(doc! {}).await);
        }
        let hosts: Vec<&str> = servers.iter().map(|server| server.address.as_str()).collect();
        for (at, server) in servers.iter().enumerate() {
            server.greet(member(&hosts, (at == 0).then_some(1)));
        }
        servers.try_into().unwrap_or_else(|_| panic!("as many as were made"))
    }

    /// A server that says this about itself.
    pub(crate) async fn greeting(fields: Document) -> ScriptedMongo {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(State {
            greeting: watch::Sender::new(Greeting { version: 1, fields }),
            script: Mutex::default(),
            received: watch::Sender::default(),
            faults: Mutex::default(),
            connections: AtomicUsize::new(0),
            clients: Mutex::default(),
            tasks: Mutex::default(),
        });
        let accepting = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                socket.set_nodelay(true).unwrap();
                let number = accepting.connections.fetch_add(1, Ordering::SeqCst);
                let task = tokio::spawn(serve(accepting.clone(), socket, number));
                accepting.tasks.lock().push(task.abort_handle());
            }
        });
        state.tasks.lock().push(task.abort_handle());
        ScriptedMongo { address, state }
    }

    /// From now on it says this about itself; whoever waits for a change is told.
    pub(crate) fn greet(&self, fields: Document) {
        self.state.greeting.send_modify(|greeting| {
            *greeting = Greeting { version: greeting.version + 1, fields };
        });
    }

    /// Makes it primary of that election among these members, or a secondary if there is no election.
    pub(crate) fn elect(&self, members: &[&ScriptedMongo], election: Option<u8>) {
        let hosts: Vec<&str> = members.iter().map(|server| server.address.as_str()).collect();
        self.greet(member(&hosts, election));
    }

    /// The steps that come next.
    pub(crate) fn script(&self, steps: impl IntoIterator<Item = Step>) {
        self.state.script.lock().extend(steps);
    }

    pub(crate) fn uri(&self) -> String {
        format!("mongodb://{}/", self.address)
    }

    /// Closes all connections and takes no new ones.
    pub(crate) fn stop(&self) {
        self.state.tasks.lock().iter().for_each(AbortHandle::abort);
    }

    /// All commands but `hello`, as they came.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.state.received.borrow().clone()
    }

    pub(crate) fn clients(&self) -> Vec<Document> {
        self.state.clients.lock().clone()
    }

    /// Waits for the end of the script and returns what came; fails if anything else came or something never does.
    pub(crate) async fn played(&self) -> Vec<Received> {
        let mut received = self.state.received.subscribe();
        let is_over = |_: &Vec<Received>| self.state.script.lock().is_empty() || !self.state.faults.lock().is_empty();
        let in_time = tokio::time::timeout(LIMIT, received.wait_for(is_over)).await.is_ok();
        let faults = self.state.faults.lock().join("\n");
        assert!(faults.is_empty(), "{faults}");
        let missing: Vec<&str> = self.state.script.lock().iter().map(Step::name).collect();
        assert!(in_time, "these commands never came: {missing:?}");
        self.received()
    }
}

/// What a member of a replica set says about itself.
fn member(hosts: &[&str], election: Option<u8>) -> Document {
    let mut greeting = doc! {
        "ok": 1, "setName": "rs", "hosts": hosts.to_vec(), "isWritablePrimary": election.is_some(), "maxWireVersion": 21,
        "logicalSessionTimeoutMinutes": 30,
    };
    if let Some(election) = election {
        greeting.insert("electionId", ObjectId::from_bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, election]));
    }
    greeting
}

impl State {
    /// Answers at once, or if the client knows this greeting, when there is another.
    async fn hello(&self, command: &Document) -> Document {
        let mut greetings = self.greeting.subscribe();
        let known = command.get_document("topologyVersion").ok().and_then(|version| version.get_i64("counter").ok());
        let wait = Duration::from_millis(command.get_i64("maxAwaitTimeMS").unwrap_or_default().cast_unsigned());
        let another = greetings.wait_for(|greeting| known != Some(greeting.version));
        let _still_the_same = tokio::time::timeout(wait, another).await.is_err();
        let Greeting { version, fields } = self.greeting.borrow().clone();
        let mut reply = fields;
        reply.insert("topologyVersion", doc! { "counter": version });
        reply
    }

    /// The step that is played with this command, or why there is none.
    fn next_step(&self, command: &Document) -> Result<Step, String> {
        let mut script = self.script.lock();
        let difference = match script.front() {
            Some(step) => step.difference(command),
            None => Some("the script is over".to_owned()),
        };
        match difference {
            None => script.pop_front().ok_or_else(String::new),
            Some(difference) => Err(format!("{difference}: {command}")),
        }
    }
}

async fn serve(state: Arc<State>, mut socket: TcpStream, number: usize) {
    let mut output = Vec::new();
    while let Some((header, flags, command, bytes)) = receive(&mut socket).await {
        let mut append = |reply: Document| {
            if flags & wire::message::flags::MORE_TO_COME == 0 {
                let start = encode::begin_msg(&mut output, 1, header.request_id, 0);
                output.extend_from_slice(Doc::from(reply).as_bytes());
                encode::finish(&mut output, start);
            }
        };
        let mut is_last = false;
        if command.contains_key("hello") {
            if let Ok(client) = command.get_document("client") {
                state.clients.lock().push(client.clone());
            }
            append(state.hello(&command).await);
        } else {
            let step = state.next_step(&command);
            if let Err(fault) = &step {
                state.faults.lock().push(fault.clone());
            }
            state.received.send_modify(|received| {
                received.push(Received { connection: number, command, bytes });
            });
            match step {
                Err(fault) => append(doc! { "ok": 0, "code": 8, "errmsg": fault }),
                Ok(Step { awaits, reaction, .. }) => {
                    if let Some(awaited) = awaits {
                        awaited.notified().await;
                    }
                    match reaction {
                        Reaction::Answer(reply) => append(reply),
                        Reaction::AnswerWithNext(reply) => {
                            append(reply);
                            continue;
                        }
                        Reaction::AnswerAndCut(reply) => {
                            append(reply);
                            is_last = true;
                        }
                        Reaction::Cut => is_last = true,
                        Reaction::Hang => std::future::pending().await,
                    }
                }
            }
        }
        if socket.write_all(&output).await.is_err() || is_last {
            break;
        }
        output.clear();
    }
    // What the client sends behind its end is taken and thrown away: a reset would race with the last answer.
    let _ = socket.shutdown().await;
    let _ = tokio::io::copy(&mut socket, &mut tokio::io::sink()).await;
}

/// The next message: its flags, its command with the sequences as arrays, and its bytes.
async fn receive(socket: &mut TcpStream) -> Option<(Header, u32, Document, Vec<u8>)> {
    let mut bytes = vec![0; Header::SIZE];
    socket.read_exact(&mut bytes).await.ok()?;
    let header = Header::peek(&bytes)?.unwrap();
    bytes.resize(header.length, 0);
    socket.read_exact(&mut bytes[Header::SIZE..]).await.ok()?;
    let Message::Msg(msg) = wire::message::parse(&header, &bytes).unwrap() else { panic!("not an OP_MSG") };
    let document = |bytes: &[u8]| Document::try_from(&Doc::trusted(bytes)).unwrap();
    let mut command = document(msg.body);
    for sequence in &msg.sequences {
        command.insert(sequence.name, sequence.iter().map(document).collect::<Vec<_>>());
    }
    let flags = msg.flags;
    Some((header, flags, command, bytes))
}
