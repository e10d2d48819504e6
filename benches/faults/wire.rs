//! A client that costs next to nothing, so that on the same machine the service has what is left: it writes a request as
//! it is, and reads the status and as many bytes as the answer announces.

use std::io;
use std::sync::Mutex;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// How long an answer is waited for.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Connections to one address, kept open from request to request.
pub(crate) struct Wire {
    address: String,
    idle: Mutex<Vec<(TcpStream, Vec<u8>)>>,
}

impl Wire {
    pub(crate) fn to(address: &str) -> Wire {
        Wire { address: address.to_owned(), idle: Mutex::default() }
    }

    /// Sends a request and answers the status; 0 when there is no answer in time.
    pub(crate) async fn send(&self, request: &[u8]) -> u16 {
        tokio::time::timeout(TIMEOUT, self.exchange(request)).await.map_or(0, Result::unwrap_or_default)
    }

    async fn exchange(&self, request: &[u8]) -> io::Result<u16> {
        let idle = self.idle.lock().expect("connections").pop();
        let (mut stream, mut read) = match idle {
            Some(idle) => idle,
            None => (TcpStream::connect(&self.address).await?, Vec::with_capacity(READ_BYTES)),
        };
        stream.write_all(request).await?;
        read.clear();
        let (status, whole) = loop {
            if stream.read_buf(&mut read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(head) = read.windows(4).position(|end| end == b"\r\n\r\n") {
                break head_of(&read[..head]).map(|(status, body)| (status, head + 4 + body))?;
            }
        };
        while read.len() < whole {
            if stream.read_buf(&mut read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.idle.lock().expect("connections").push((stream, read));
        Ok(status)
    }
}

/// Status and length of the body by the head of an answer.
fn head_of(head: &[u8]) -> io::Result<(u16, usize)> {
    let text = std::str::from_utf8(head).map_err(io::Error::other)?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok()).flatten()
    });
    status.zip(length).ok_or_else(|| io::Error::other("an answer without status or length"))
}
