//! What the end-to-end tests share: brokers, clients, and klamp itself, each started and stopped.
