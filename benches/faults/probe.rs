//! The service under attack, and what its other clients see.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use reqwest::Client;
use serde_json::{Value, json};

use crate::own::{self, BASE_PATH};

/// Longer than any answer may take.
const GIVE_UP: Duration = Duration::from_secs(60);
/// Between two questions of a probe.
const ROUND: Duration = Duration::from_millis(100);
/// Products that a long list has, and characters of each.
const PRODUCTS: (usize, usize) = (1_000, 20_000);

/// The service under attack.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) client: Client,
    pub(crate) base: String,
    pub(crate) token: String,
    /// Where health is answered by a thread of its own; the same as `base` where there is no such address.
    operators: String,
    pid: u32,
}

/// What others saw during an attack.
pub(crate) struct Seen {
    pub(crate) live: Duration,
    /// That 99 of 100 answers of `/health/live` took at most.
    pub(crate) live_p99: Duration,
    /// As `live` and `live_p99`, at the address for operators.
    pub(crate) apart: Duration,
    pub(crate) apart_p99: Duration,
    pub(crate) other: Duration,
    pub(crate) peak_mib: u64,
}

/// Other clients, at work until stopped. They have a thread of their own, so that they measure the service and not how
/// busy the attackers are.
pub(crate) struct Probe {
    stop: Arc<AtomicBool>,
    clients: JoinHandle<Seen>,
}

impl Service {
    pub(crate) fn from_environment() -> Service {
        let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
        Service {
            client: Client::builder().timeout(GIVE_UP).build().expect("a client"),
            base: variable("BASE_URL"),
            operators: variable("BASE_URL"),
            token: variable("TOKEN"),
            pid: variable("PID").parse().expect("a process id"),
        }
    }

    /// A service that was started for this.
    pub(crate) fn own(own: &own::Service) -> Service {
        let client = Client::builder().timeout(GIVE_UP).build().expect("a client");
        Service {
            client,
            base: own.base.clone(),
            operators: own.operators.clone(),
            token: own.token(),
            pid: own.child.id(),
        }
    }

    /// Where the service listens, for clients that speak no HTTP.
    pub(crate) fn address(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    pub(crate) fn path(&self, path: &str) -> String {
        format!("{BASE_PATH}{path}")
    }

    /// Sends a JSON body and answers the status; 0 when there is no answer.
    pub(crate) async fn post(&self, path: &str, body: impl Into<reqwest::Body>) -> u16 {
        let request = self.client.post(format!("{}{}", self.base, self.path(path))).bearer_auth(&self.token);
        let answer = request.header("content-type", "application/json").body(body).send().await;
        answer.map_or(0, |answer| answer.status().as_u16())
    }

    /// Makes products whose list is long.
    pub(crate) async fn fill(&self) {
        let text = "Baumwolle ".repeat(PRODUCTS.1 / 10);
        let product = json!({"productDetails": {"languageAttributes": {"de": {"productDescription": text}}}});
        for part in (0..PRODUCTS.0).step_by(250) {
            let body = (part..part + 250).map(|i| (format!("long-{i}"), product.clone())).collect();
            let status = self.post("/products/global?updateIfExists=true", Value::Object(body).to_string()).await;
            assert_eq!(status, 201, "the service takes products before it is attacked");
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
    }

    pub(crate) fn resident_mib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).expect("the service runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a figure");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") >> 10
    }

    /// Seconds of processor time that the service has used.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).expect("the service runs");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields[at].parse::<f64>().expect("ticks");
        // Hundredths of a second, the unit of /proc on every usual system.
        (ticks(11) + ticks(12)) / 100.0
    }
}

impl Probe {
    pub(crate) fn start(service: &Service) -> Probe {
        let stop = Arc::new(AtomicBool::new(false));
        let (service, ended) = (service.clone(), stop.clone());
        let clients = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let url = |base: &str, path: &str| format!("{base}{path}");
                let live = ask(&service, url(&service.base, "/health/live"), &ended);
                let apart = ask(&service, url(&service.operators, "/health/live"), &ended);
                let other = ask(&service, url(&service.base, &service.path("/usage")), &ended);
                let (live, apart, other, peak_mib) = tokio::join!(live, apart, other, weigh(&service, &ended));
                let last = |times: &[Duration]| times.last().copied().unwrap_or_default();
                let p99 = |times: &[Duration]| times.get(times.len() * 99 / 100).copied().unwrap_or_default();
                let (live_p99, apart_p99) = (p99(&live), p99(&apart));
                Seen { live: last(&live), live_p99, apart: last(&apart), apart_p99, other: last(&other), peak_mib }
            })
        });
        Probe { stop, clients }
    }

    pub(crate) async fn stop(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        tokio::task::spawn_blocking(|| self.clients.join()).await.expect("a thread").expect("a probe")
    }
}

/// Asks one question again and again; how long each answer took, the slowest last.
async fn ask(service: &Service, url: String, ended: &AtomicBool) -> Vec<Duration> {
    let mut times = Vec::new();
    // Each question on a connection of its own, as new clients come.
    let client = Client::builder().timeout(GIVE_UP).pool_max_idle_per_host(0).build().expect("a client");
    while !ended.load(Ordering::Relaxed) {
        let began = Instant::now();
        let answer = client.get(&url).bearer_auth(&service.token).send().await;
        times.push(if answer.is_ok() { began.elapsed() } else { GIVE_UP });
        tokio::time::sleep(ROUND).await;
    }
    times.sort_unstable();
    times
}

/// The most memory that the service has.
async fn weigh(service: &Service, ended: &AtomicBool) -> u64 {
    let mut peak = 0;
    while !ended.load(Ordering::Relaxed) {
        peak = peak.max(service.resident_mib());
        tokio::time::sleep(ROUND / 4).await;
    }
    peak
}
