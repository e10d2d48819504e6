//! Looks names up, and hands on only those addresses that may be called: what is judged is what is connected to.

use std::io;
use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::domain::addresses::is_public;

#[derive(Debug)]
pub(super) struct PublicResolver {
    pub(super) allow_private: bool,
}

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One private address among public ones is one too many: the name is not what it seems.
            if !allow_private && found.iter().any(|address| !is_public(address.ip())) {
                let refusal = "the name leads to a private, loopback or link-local address";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, refusal).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
