//! The settings for a server that wants TLS and credentials, on one that only listens.

use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use vat_classification::search::{Engine, EngineError, Settings};

use crate::fixture::Fixture;

/// An answer to any request about the cluster.
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";

/// A server with a certificate of its own, for `localhost`.
struct Server {
    url: String,
    /// The certificate as a file, for those who trust it.
    certificate: tempfile::NamedTempFile,
    /// The header `authorization` of each request.
    authorizations: mpsc::UnboundedReceiver<String>,
}

async fn server() -> Server {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).expect("a key");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("a certificate");
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let url = format!("https://localhost:{}", listener.local_addr().expect("an address").port());
    let (told, authorizations) = mpsc::unbounded_channel();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that does not trust the certificate ends here.
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else { break };
                head.push(byte);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let header = head.lines().find_map(|line| line.strip_prefix("authorization: "));
            let _ = told.send(header.unwrap_or_default().to_owned());
            let _ = stream.write_all(ANSWER).await;
            let _ = stream.shutdown().await;
        }
    });
    let certificate = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(certificate.path(), cert.pem()).expect("written");
    Server { url, certificate, authorizations }
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_go_to_a_server_whose_certificate_is_trusted_and_to_no_other() {
    let fixture = Fixture::new().await;
    let mut server = server().await;
    let settings = Settings {
        elasticsearch_url: Some(server.url.parse().expect("a URL")),
        elasticsearch_user: Some("elastic".to_owned()),
        elasticsearch_password: Some("pass:wörd".to_owned()),
        ..Settings::default()
    };
    let trusting = Settings { elasticsearch_ca_file: Some(server.certificate.path().to_owned()), ..settings.clone() };
    let with_key = Settings { elasticsearch_api_key: Some("aWQ6a2V5".to_owned()), ..trusting.clone() };
    for (settings, authorization) in [(&trusting, "Basic ZWxhc3RpYzpwYXNzOnfDtnJk"), (&with_key, "ApiKey aWQ6a2V5")] {
        let engine = Engine::new(settings, &fixture.store).expect("an engine");
        engine.ping().await.expect("an answer");
        assert_eq!(server.authorizations.recv().await.as_deref(), Some(authorization));
    }
    let engine = Engine::new(&settings, &fixture.store).expect("an engine");
    let refused = engine.ping().await;
    assert!(matches!(refused, Err(EngineError::Elasticsearch(_))), "{refused:?}");
    assert!(server.authorizations.try_recv().is_err(), "credentials went to a server that is not trusted");
}
