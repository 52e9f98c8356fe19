//! The backend that is a real MongoDB: seed list, topology, connections, sessions and transactions over our own wire client.
