//! What a client may take of the service's time and connections.

use std::net::IpAddr;
use std::time::Duration;

use clap::Args;
use ipnet::IpNet;

use super::crowd::peer_of;
use super::pace::Pace;

/// How long a connection may keep the service waiting before it can be closed for another. Those that lie idle go first:
/// were they left alone for longer, a crowd of them that comes at one moment would have those closed that send a body.
const PATIENCE: Duration = Duration::from_millis(50);
/// How long requests under way may still take after a shutdown began.
const DRAIN: Duration = Duration::from_secs(20);
/// Files that the process opens beside connections: to the database, to the search engine, pictures.
const OTHER_FILES: u64 = 256;

/// Connections and rates that clients are allowed.
#[derive(Clone, Debug, Args)]
pub struct ConnectionSettings {
    /// Connections at one time. When they are nearly taken, those that lie idle longest are closed for newcomers. The
    /// limit of open files, which is raised as far as the system allows, may make it fewer.
    #[arg(long, env = "MAX_CONNECTIONS", default_value_t = 3_072, value_parser = clap::value_parser!(u32).range(16..=1_000_000))]
    pub max_connections: u32,
    /// Connections of one address, or one /64 of IPv6. The machine itself and trusted proxies may have any number.
    #[arg(long, env = "MAX_CONNECTIONS_PER_PEER", default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_connections_per_peer: u32,
    /// Networks of proxies in front of the service, such as 10.0.0.0/8, comma-separated.
    #[arg(long, env = "TRUSTED_PROXIES", value_delimiter = ',')]
    pub trusted_proxies: Vec<IpNet>,
    /// Seconds that a connection may lie idle between requests.
    #[arg(long, env = "IDLE_TIMEOUT_S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub idle_timeout_s: u64,
    /// Seconds that a new connection may take to send the headers of its first request.
    #[arg(long, env = "FIRST_REQUEST_TIMEOUT_S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub first_request_timeout_s: u64,
    /// Seconds that a body may take before its rate counts.
    #[arg(long, env = "BODY_GRACE_S", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub body_grace_s: u64,
    /// Seconds that a client may keep an answer waiting before its rate counts.
    #[arg(long, env = "ANSWER_GRACE_S", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub answer_grace_s: u64,
    /// Bytes a second at which a body must arrive on average, and at which a client must take an answer.
    #[arg(long, env = "MIN_BODY_RATE", default_value_t = 8 << 10, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub min_body_rate: u64,
}

/// What a client may take of the service's time and connections. The default is for production.
#[derive(Debug, Clone)]
pub struct ServeLimits {
    /// Connections at one time, at least 1.
    pub connections: usize,
    /// Connections of one peer at one time, at least 1.
    pub per_peer: usize,
    /// How long a connection may keep the service waiting before it can be closed for another.
    pub patience: Duration,
    /// Networks whose addresses may have any number of connections.
    pub trusted: Vec<IpNet>,
    /// How long a new connection may take to send the headers of its first request.
    pub first_request: Duration,
    /// How long a connection may lie idle between requests.
    pub idle: Duration,
    /// The least rate at which a body arrives.
    pub pace: Pace,
    /// The least rate at which a peer takes what is sent to it.
    pub answers: Pace,
    /// How long requests under way may still take after a shutdown began.
    pub drain: Duration,
}

impl Default for ConnectionSettings {
    fn default() -> ConnectionSettings {
        ConnectionSettings {
            max_connections: 3_072,
            max_connections_per_peer: 1_024,
            trusted_proxies: Vec::new(),
            idle_timeout_s: 60,
            first_request_timeout_s: 10,
            body_grace_s: 5,
            answer_grace_s: 15,
            min_body_rate: 8 << 10,
        }
    }
}

impl Default for ServeLimits {
    fn default() -> ServeLimits {
        ServeLimits::new(&ConnectionSettings::default(), u64::MAX)
    }
}

impl ServeLimits {
    /// The limits that follow from settings, for a process that may open so many files.
    pub fn new(settings: &ConnectionSettings, files: u64) -> ServeLimits {
        let affordable = files.saturating_sub(OTHER_FILES).max(files / 2).max(1);
        let connections = affordable.min(u64::from(settings.max_connections));
        let least = |grace_s| Pace { grace: Duration::from_secs(grace_s), bytes_per_second: settings.min_body_rate };
        ServeLimits {
            connections: usize::try_from(connections).unwrap_or(usize::MAX),
            per_peer: settings.max_connections_per_peer as usize,
            patience: PATIENCE,
            trusted: settings.trusted_proxies.clone(),
            first_request: Duration::from_secs(settings.first_request_timeout_s),
            idle: Duration::from_secs(settings.idle_timeout_s),
            pace: least(settings.body_grace_s),
            answers: least(settings.answer_grace_s),
            drain: DRAIN,
        }
    }

    /// The peer that an address counts as; none when it may have any number of connections.
    pub(super) fn peer(&self, address: IpAddr) -> Option<IpAddr> {
        let address = address.to_canonical();
        let trusted = address.is_loopback() || self.trusted.iter().any(|network| network.contains(&address));
        (!trusted).then(|| peer_of(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_bound_connections_and_leave_some_for_other_things() {
        let settings = ConnectionSettings::default();
        for (files, connections) in [(u64::MAX, 3_072), (3_328, 3_072), (1_024, 768), (256, 128), (1, 1), (0, 1)] {
            assert_eq!(ServeLimits::new(&settings, files).connections, connections, "{files}");
        }
    }

    #[test]
    fn the_machine_itself_and_trusted_proxies_are_no_peers() {
        let trusted_proxies = vec!["10.0.0.0/8".parse().expect("a network")];
        let limits = ServeLimits::new(&ConnectionSettings { trusted_proxies, ..ConnectionSettings::default() }, 1_024);
        for (address, counts) in
            [("127.0.0.1", false), ("::1", false), ("10.1.2.3", false), ("::ffff:10.1.2.3", false), ("192.0.2.1", true)]
        {
            assert_eq!(limits.peer(address.parse().expect("an address")).is_some(), counts, "{address}");
        }
    }
}
