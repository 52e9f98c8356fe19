//! A bare relay: bytes there, bytes back, nothing looked at. What it costs is what any program between client and server costs on
//! this machine.

use crate::report;
use anyhow::{Context, Result};
use clap::Args;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

#[derive(Args)]
pub(crate) struct Relay {
    /// Where the bytes go, as HOST:PORT.
    #[arg(long)]
    to: String,
}

impl Relay {
    /// Says where it listens, then relays until it is ended.
    pub(crate) async fn run(&self) -> Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listening")?;
        report::say(&listener.local_addr()?.to_string());
        loop {
            let (client, _) = listener.accept().await?;
            let to = self.to.clone();
            tokio::spawn(async move {
                // A connection that breaks is the business of who measures.
                drop(relay(client, &to).await);
            });
        }
    }
}

async fn relay(mut client: TcpStream, to: &str) -> Result<()> {
    let mut server = TcpStream::connect(to).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
