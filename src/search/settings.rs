//! How search is set up.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use url::Url;

use crate::search::SettingsError;

/// Where searches are answered, and for how long at most. Without a URL, PostgreSQL answers them.
#[derive(Clone, clap::Args)]
#[group(id = "search")]
pub struct Settings {
    /// Address of an Elasticsearch 8.19 or 9.x, or of several nodes of one cluster, comma-separated, which are asked in turn;
    /// without it PostgreSQL answers searches.
    #[arg(long, env = "ELASTICSEARCH_URL")]
    pub elasticsearch_url: Option<ElasticsearchUrls>,
    /// User for basic authentication.
    #[arg(long, env = "ELASTICSEARCH_USER", requires = "elasticsearch_password")]
    pub elasticsearch_user: Option<String>,
    /// Password of the user.
    #[arg(long, env = "ELASTICSEARCH_PASSWORD", requires = "elasticsearch_user", hide_env_values = true)]
    pub elasticsearch_password: Option<String>,
    /// API key as Elasticsearch shows it under `encoded`; goes before user and password.
    #[arg(long, env = "ELASTICSEARCH_API_KEY", hide_env_values = true)]
    pub elasticsearch_api_key: Option<String>,
    /// Certificate authority of Elasticsearch as a PEM file; the public authorities are trusted as well.
    #[arg(long, env = "ELASTICSEARCH_CA_FILE")]
    pub elasticsearch_ca_file: Option<PathBuf>,
    /// What the names of indices and aliases begin with. Each database needs a prefix of its own.
    #[arg(long, env = "ELASTICSEARCH_INDEX_PREFIX", default_value = DEFAULT_PREFIX, value_parser = index_prefix)]
    pub elasticsearch_index_prefix: String,
    /// Shards of an index that is made. One holds some ten million products; more let several nodes share the work.
    #[arg(long, env = "ELASTICSEARCH_SHARDS", default_value_t = DEFAULT_SHARDS, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub elasticsearch_shards: u32,
    /// Over how many of the shards one account spreads, less than there are: 1 where accounts are many and small, more
    /// where one of them would fill a shard.
    #[arg(long, env = "ELASTICSEARCH_SHARDS_PER_ACCOUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub elasticsearch_shards_per_account: u32,
    /// How long a search may take, in milliseconds, before the answer is 503.
    #[arg(long, env = "SEARCH_DEADLINE_MS", default_value_t = DEFAULT_DEADLINE_MS, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub search_deadline_ms: u64,
}

/// Most nodes that are asked in turn.
const MAX_NODES: usize = 16;
/// What the names of indices begin with unless told otherwise.
const DEFAULT_PREFIX: &str = "vat-classification";
/// Shards of an index unless told otherwise.
const DEFAULT_SHARDS: u32 = 1;
/// How long a search may take unless told otherwise, in milliseconds.
const DEFAULT_DEADLINE_MS: u64 = 2_000;
/// Most characters of a prefix: a name has at most 255, and more is added.
const MAX_PREFIX_CHARACTERS: usize = 100;

impl Settings {
    /// How long a search may take.
    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.search_deadline_ms)
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            elasticsearch_url: None,
            elasticsearch_user: None,
            elasticsearch_password: None,
            elasticsearch_api_key: None,
            elasticsearch_ca_file: None,
            elasticsearch_index_prefix: DEFAULT_PREFIX.to_owned(),
            elasticsearch_shards: DEFAULT_SHARDS,
            elasticsearch_shards_per_account: 1,
            search_deadline_ms: DEFAULT_DEADLINE_MS,
        }
    }
}

/// Shows everything but credentials.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("elasticsearch_url", &self.elasticsearch_url)
            .field("elasticsearch_ca_file", &self.elasticsearch_ca_file)
            .field("elasticsearch_index_prefix", &self.elasticsearch_index_prefix)
            .field("search_deadline_ms", &self.search_deadline_ms)
            .finish_non_exhaustive()
    }
}

/// Where the nodes of one cluster are: 1 to 16 addresses.
#[derive(Clone, PartialEq, Eq)]
pub struct ElasticsearchUrls(Vec<Url>);

impl ElasticsearchUrls {
    /// The addresses, of which there is always one.
    pub fn as_slice(&self) -> &[Url] {
        &self.0
    }
}

impl FromStr for ElasticsearchUrls {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<ElasticsearchUrls, SettingsError> {
        let mut urls = Vec::new();
        for (at, part) in text.split(',').map(str::trim).enumerate() {
            // What stands there is not told: there may be a password in it.
            let url = Url::parse(part).map_err(|error| SettingsError(format!("address {}: {error}", at + 1)))?;
            if !matches!(url.scheme(), "http" | "https") {
                return Err(SettingsError(format!("address {}: must begin with http:// or https://", at + 1)));
            }
            urls.push(url);
        }
        if urls.len() > MAX_NODES {
            return Err(SettingsError(format!("there are {} addresses, and at most {MAX_NODES} may be", urls.len())));
        }
        Ok(ElasticsearchUrls(urls))
    }
}

/// Shows hosts alone.
impl fmt::Debug for ElasticsearchUrls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|url| url.host_str().unwrap_or_default())).finish()
    }
}

/// Checks a prefix: what Elasticsearch allows in a name, without what would make a pattern or a list of it.
fn index_prefix(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    if begins && text.len() <= MAX_PREFIX_CHARACTERS && text.chars().all(allowed) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "a prefix has 1 to {MAX_PREFIX_CHARACTERS} small letters, digits, dashes, underscores and dots, \
             and begins with a letter or digit"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_part_of_a_name_and_never_a_pattern() {
        for good in ["vat-classification", "a", "shop_1.test"] {
            assert!(index_prefix(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "-a", "a*", "a,b", "a b", "ä", &"a".repeat(101)] {
            assert!(index_prefix(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn one_address_or_a_few_name_the_cluster() {
        let few = |count: usize| vec!["http://search.example:9200"; count].join(",");
        let read = |text: &str| text.parse::<ElasticsearchUrls>().ok().map(|urls| urls.as_slice().len());
        for (text, addresses) in [(few(1), 1), ("https://a:9200, https://b".to_owned(), 2), (few(16), 16)] {
            assert_eq!(read(&text), Some(addresses), "{text}");
        }
        for bad in [String::new(), "search:9200".to_owned(), few(2) + ",", "http://a,b".to_owned(), few(17)] {
            assert_eq!(read(&bad), None, "{bad}");
        }
    }

    #[test]
    fn credentials_are_not_shown() {
        let settings = Settings {
            elasticsearch_url: "https://elastic:secret@search.example:9200".parse().ok(),
            elasticsearch_password: Some("secret".to_owned()),
            elasticsearch_api_key: Some("secret".to_owned()),
            ..Settings::default()
        };
        assert!(!format!("{settings:?}").contains("secret"));
    }
}
