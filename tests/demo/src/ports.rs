//! The ports of the demo: the README's, so that its commands can be copied, or free ones.

use klamp_tests::place;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Where klamp listens.
#[derive(Debug)]
pub(crate) struct Ports {
    /// For Kafka clients.
    pub(crate) clients: SocketAddr,
    /// For `/metrics`.
    pub(crate) admin: SocketAddr,
    /// For the pages for operators.
    pub(crate) debug: SocketAddr,
}

const CLIENTS: u16 = 9192;
const ADMIN: u16 = 9644;
const DEBUG: u16 = 9645;

impl Ports {
    /// The usual ones, as far as they are free now.
    pub(crate) fn choose() -> Self {
        Self {
            clients: usual_or_free(CLIENTS),
            admin: usual_or_free(ADMIN),
            debug: usual_or_free(DEBUG),
        }
    }

    /// A sentence for each port that is not the usual one.
    pub(crate) fn notes(&self) -> Vec<String> {
        [
            (CLIENTS, self.clients, "clients"),
            (ADMIN, self.admin, "metrics"),
            (DEBUG, self.debug, "operators"),
        ]
        .into_iter()
        .filter(|(usual, chosen, _)| *usual != chosen.port())
        .map(|(usual, chosen, whom)| {
            format!(
                "(port {usual} is taken: the one for {whom} is {} this time)",
                chosen.port()
            )
        })
        .collect()
    }
}

fn usual_or_free(port: u16) -> SocketAddr {
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match TcpListener::bind(usual) {
        Ok(_) => usual,
        Err(_) => place::free_address(),
    }
}
