//! Opening a connection: the first `hello`, and the login of the connection string's own user.

use crate::answer::{checked, lost, number};
use crate::command::Command;
use crate::connection::Connection;
use crate::stream::Stream;
use crate::tls::Tls;
use crate::uri::{Credentials, Host, Uri};
use document::{Blob, Code, Doc, DocWriter, Error, Result, Value};
use rand::RngExt;
use std::sync::Arc;
use wire::scram::{Mechanism, Scram};

/// Makes connections as the connection string says.
pub(crate) struct Connector {
    pub(crate) uri: Arc<Uri>,
    tls: Option<Tls>,
}

impl Connector {
    pub(crate) fn new(uri: Arc<Uri>) -> std::io::Result<Connector> {
        let tls = uri.tls.as_ref().map(Tls::new).transpose()?;
        Ok(Connector { uri, tls })
    }

    /// Opens a socket and says hello; gives what the server says about itself.
    pub(crate) async fn open(
        &self,
        host: &Host,
        generation: u64,
        metadata: Option<&Doc<'_>>,
    ) -> std::io::Result<(Connection, Doc<'static>)> {
        let limit = self.uri.connect_timeout;
        let stream = Stream::open(host, self.tls.as_ref(), limit).await?;
        let mut connection = Connection::new(stream, host.clone(), generation);
        let own;
        let metadata = match metadata {
            Some(metadata) => metadata,
            None => {
                own = self.own_metadata();
                &own
            }
        };
        let hello = Command::new("admin", "hello", 1).with_doc("client", metadata);
        let greeting = tokio::time::timeout(limit, connection.run(hello)).await.map_err(|_| {
            std::io::Error::new(std::io::ErrorKind::TimedOut, "it accepts connections but does not answer")
        })??;
        Ok((connection, greeting))
    }

    /// What the server's log and `currentOp` show of our own connections.
    fn own_metadata(&self) -> Doc<'static> {
        let mut writer = DocWriter::new();
        if let Some(name) = &self.uri.app_name {
            writer.start_document("application").append("name", &Value::from(name.as_str())).end();
        }
        writer.start_document("driver").append("name", &Value::from("pleach"));
        writer.append("version", &Value::from(env!("CARGO_PKG_VERSION"))).end();
        writer.start_document("os").append("type", &Value::from(std::env::consts::OS)).end();
        writer.finish()
    }

    /// Logs the connection string's user in, if it names one, within the time that a connection may take.
    pub(crate) async fn login(&self, connection: &mut Connection) -> Result<()> {
        let Some(credentials) = &self.uri.credentials else { return Ok(()) };
        let host = connection.host.clone();
        let logging_in = async {
            let mechanism = match credentials.mechanism {
                Some(mechanism) => mechanism,
                None => offered(connection, credentials).await?,
            };
            scram(connection, credentials, mechanism).await
        };
        let limit = self.uri.connect_timeout;
        tokio::time::timeout(limit, logging_in).await.unwrap_or_else(|_| {
            let message = format!("the login was not answered within {} ms", limit.as_millis());
            Err(lost(host, &std::io::Error::new(std::io::ErrorKind::TimedOut, message)))
        })
    }
}

/// The strongest mechanism that the server has for the user.
async fn offered(connection: &mut Connection, credentials: &Credentials) -> Result<Mechanism> {
    let user = format!("{}.{}", credentials.source, credentials.user);
    let hello = Command::new("admin", "hello", 1).with("saslSupportedMechs", user);
    let reply = checked(run(connection, hello).await?)?;
    let strong = match reply.get("saslSupportedMechs") {
        Some(Value::Array(names)) => names.iter().any(|name| name.as_str() == Some(Mechanism::Sha256.name())),
        _ => true,
    };
    Ok(if strong { Mechanism::Sha256 } else { Mechanism::Sha1 })
}

async fn scram(connection: &mut Connection, credentials: &Credentials, mechanism: Mechanism) -> Result<()> {
    let failed = |error: wire::scram::ScramError| {
        let message = format!("cannot log in to {} as {}: {error}", connection_name(credentials), credentials.user);
        Error::new(Code::AuthenticationFailed, message)
    };
    let nonce: [u8; 24] = rand::rng().random();
    let nonce: String = nonce.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut scram = Scram::new(mechanism, &credentials.user, &credentials.password, &nonce).map_err(failed)?;
    let start = Command::new(&credentials.source, "saslStart", 1)
        .with("mechanism", mechanism.name())
        .with("payload", binary(&scram.first()))
        .with_doc("options", &skip_empty());
    let first = checked(run(connection, start).await?)?;
    let id = number(&first, "conversationId").unwrap_or(1);
    let proof = scram.proof(&payload(&first)).map_err(failed)?;
    let next = |text: &str| {
        Command::new(&credentials.source, "saslContinue", 1)
            .with("conversationId", i32::try_from(id).unwrap_or(1))
            .with("payload", binary(text))
    };
    let mut last = checked(run(connection, next(&proof)).await?)?;
    scram.verify(&payload(&last)).map_err(failed)?;
    while !last.get("done").is_some_and(|done| done.is_truthy()) {
        last = checked(run(connection, next("")).await?)?;
    }
    Ok(())
}

fn connection_name(credentials: &Credentials) -> String {
    format!("database {}", credentials.source)
}

async fn run(connection: &mut Connection, command: Command) -> Result<Doc<'static>> {
    let host = connection.host.clone();
    connection.run(command).await.map_err(|error| lost(host, &error))
}

fn binary(text: &str) -> Value<'_> {
    Value::Binary { subtype: 0, bytes: Blob::Borrowed(text.as_bytes()) }
}

fn payload(reply: &Doc<'_>) -> String {
    match reply.get("payload") {
        Some(Value::Binary { bytes, .. }) => String::from_utf8_lossy(bytes.as_slice()).into_owned(),
        _ => String::new(),
    }
}

fn skip_empty() -> Doc<'static> {
    let mut writer = DocWriter::new();
    writer.append("skipEmptyExchange", &Value::Bool(true));
    writer.finish()
}

impl Connector {
    /// The write concern of background work, if the connection string has one.
    pub(crate) fn write_concern(&self) -> Option<Doc<'static>> {
        if self.uri.w.is_none() && self.uri.journal.is_none() {
            return None;
        }
        let mut writer = DocWriter::new();
        if let Some(w) = &self.uri.w {
            match w.parse::<i32>() {
                Ok(nodes) => writer.append("w", &Value::Int32(nodes)),
                Err(_) => writer.append("w", &Value::from(w.as_str())),
            };
        }
        if let Some(journal) = self.uri.journal {
            writer.append("j", &Value::Bool(journal));
        }
        Some(writer.finish())
    }
}
