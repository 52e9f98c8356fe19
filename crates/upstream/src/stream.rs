//! A socket to a server, plain or encrypted.

use crate::tls::Tls;
use crate::uri::Host;
use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

pub(crate) enum Stream {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Connects within `limit`, the TLS handshake included.
    pub(crate) async fn open(host: &Host, tls: Option<&Tls>, limit: Duration) -> Result<Stream> {
        let connecting = async {
            let socket = TcpStream::connect((host.name.as_str(), host.port)).await?;
            socket.set_nodelay(true)?;
            let alive =
                socket2::TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(10));
            socket2::SockRef::from(&socket).set_tcp_keepalive(&alive)?;
            match tls {
                Some(tls) => Ok(Stream::Encrypted(Box::new(tls.handshake(&host.name, socket).await?))),
                None => Ok(Stream::Plain(socket)),
            }
        };
        match tokio::time::timeout(limit, connecting).await {
            Ok(result) => result,
            Err(_) => Err(Error::new(ErrorKind::TimedOut, format!("no answer within {} ms", limit.as_millis()))),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Encrypted(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Encrypted(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Encrypted(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Encrypted(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
