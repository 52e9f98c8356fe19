//! The backend that is a real MongoDB: seed list, topology, connections, sessions and transactions over our own wire client.
//!
//! Reading order: [`Uri`] is the connection string; `topology` knows who is primary; a `line` is a connection to it that
//! survives a failover; [`Upstream`] is the backend: `read`, `write`, `transaction`, `fence`, `retries`, `admin`.

#![allow(dead_code, reason = "read, write and transactions come next")]

mod answer;
mod backend;
mod command;
mod connection;
mod line;
mod login;
mod shared;
mod stream;
mod tls;
mod topology;
mod upstream;
mod uri;

pub use upstream::Upstream;
pub use uri::{Uri, UriError};
