//! The engines that answer filterCriteria agree with the reference evaluator, and their indices follow the products.

mod support;

#[path = "search/agreement.rs"]
mod agreement;
#[path = "search/catalogue.rs"]
mod catalogue;
#[path = "search/deadline.rs"]
mod deadline;
#[path = "search/feeding.rs"]
mod feeding;
#[path = "search/fixture.rs"]
mod fixture;
#[path = "search/nodes.rs"]
mod nodes;
#[path = "search/proxy.rs"]
mod proxy;
#[path = "search/rebuilding.rs"]
mod rebuilding;
#[path = "search/tls.rs"]
mod tls;
#[path = "search/versions.rs"]
mod versions;
