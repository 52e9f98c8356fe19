//! The backend that is a real MongoDB: seed list, topology, connections, sessions and transactions over our own wire client.
//!
//! Reading order: [`Uri`] is the connection string; `topology` knows the primary; a `line` is a connection to it that
//! survives a failover; [`Upstream`] is the backend: `read`, `write`, `transaction`, `fence`, `retries`, `admin`.

mod admin;
mod answer;
mod backend;
mod client_or_own;
mod command;
mod commit;
mod connection;
mod fence;
mod leftover;
mod line;
mod login;
mod open;
mod pipeline;
mod privileges;
mod read;
mod repeated_writes;
mod retries;
mod shared;
mod stream;
mod tls;
mod to_mql;
mod topology;
mod transaction;
mod upstream;
mod uri;
mod version;
mod write;

pub use answer::is_failover;
pub use upstream::Upstream;
pub use uri::{Credentials, HostError, Uri, UriError};
