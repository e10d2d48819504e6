//! Stands between a service and Elasticsearch, to take it away and give it back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What becomes of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They reach the server.
    Open,
    /// They are closed at once, those that are open too: the server is stopped.
    Closed,
    /// They are accepted and nothing moves on them: the server is frozen.
    Frozen,
}

/// A proxy for as long as it is kept.
pub(crate) struct Proxy {
    pub(crate) url: String,
    mode: watch::Sender<Mode>,
}

impl Proxy {
    pub(crate) async fn to(server: &str) -> Proxy {
        let url: url::Url = server.parse().expect("a URL");
        let target = format!("{}:{}", url.host_str().expect("a host"), url.port().expect("a port"));
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (mode, modes) = watch::channel(Mode::Open);
        tokio::spawn(async move {
            let target = Arc::new(target);
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, target.clone(), modes.clone()));
            }
        });
        Proxy { url: format!("http://{address}"), mode }
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

async fn serve(mut client: TcpStream, target: Arc<String>, mut modes: watch::Receiver<Mode>) {
    loop {
        let mode = *modes.borrow_and_update();
        match mode {
            Mode::Closed => return,
            Mode::Frozen => {
                if modes.changed().await.is_err() {
                    return;
                }
                // What a frozen server was sent is of no use to a test: the connection ends with the freeze.
                tokio::time::sleep(Duration::from_millis(1)).await;
                return;
            }
            Mode::Open => {
                let Ok(mut server) = TcpStream::connect(target.as_str()).await else { return };
                tokio::select! {
                    _ = copy_bidirectional(&mut client, &mut server) => return,
                    _ = modes.changed() => {}
                }
            }
        }
    }
}
