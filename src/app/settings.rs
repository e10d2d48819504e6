//! Settings, each a flag and an environment variable, one documented struct per concern.

use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use url::Url;

use crate::domain::Precision;
use crate::domain::access::{Level, Plan};
use crate::http::AdmissionSettings;
use crate::http::serve::ConnectionSettings;
use crate::http::traces::TraceSettings;
use crate::pictures::S3Settings;
use crate::search;
use crate::store;
use crate::store::parked::Queue;
use crate::webhooks::WebhookSettings;

/// Stores merchants' products and finds the customs product class, and so the VAT rate, of each.
#[derive(Debug, Parser)]
#[command(name = "vat-classification", version, args_conflicts_with_subcommands = true)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub serve: ServeSettings,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serves requests; the default.
    Serve(ServeSettings),
    /// Accounts.
    Account {
        #[command(subcommand)]
        command: AccountCommand,
    },
    /// Access tokens.
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Work that was set aside because it failed for what a product holds.
    Queue {
        #[command(subcommand)]
        command: QueueCommand,
    },
    /// Brings the database's schema up to date, and does nothing else. Every other program does so when it starts.
    Migrate {
        #[command(flatten)]
        database: DatabaseSettings,
    },
    /// Judges all settings of the service and what they name, starts nothing and changes nothing.
    CheckConfig(ServeSettings),
    /// Builds the search index anew from the database, while the service goes on; or compares the two.
    Reindex {
        /// Compare index and database and print the differences; change nothing.
        #[arg(long)]
        verify: bool,
        #[command(flatten)]
        database: DatabaseSettings,
        #[command(flatten)]
        search: search::Settings,
    },
    /// Merges the products of a file into those of an account: what the file does not speak of stays.
    ///
    /// CSV (comma, semicolon or tab; UTF-8, UTF-16 or Windows-1252), XLSX (its first sheet), a product export of
    /// Shopify, or a Google Merchant feed (XML or TSV), told apart by their content. The header names the columns:
    /// productId, shopId, shopIds, manufacturerName, gtin, asin, productUids (JSON), countryOfOrigin, unit, amount, measure
    /// (such as 1.5 kg), btiId, measureConditionTaric, customsTariffCode, taricCode, eztCode, taresCode, ukgtCode,
    /// tolletatenCode, reviewWeight, platformCode, platformCodeTaxonomy, merchantProductAttributes (JSON), and for each language
    /// de:productName, de:productDescription, de:productTags, de:merchantProductAttributes. Lists are separated by |.
    /// Other columns are told and left; --map gives them a meaning. An empty cell says nothing. A line with a mistake is
    /// left and told, and the program then ends with 1; all other lines are stored.
    Import {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        command: ImportCommand,
    },
    /// Writes products of an account, and what became of them, to a file: CSV, or XLSX where its name ends so.
    Export {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        settings: ExportSettings,
    },
    /// Loads sample products and shows their classes: into a service that it starts and then keeps serving, or into
    /// the running one that --url names.
    Demo {
        /// Address of a running service, such as http://127.0.0.1:8080.
        #[arg(long, requires = "token")]
        url: Option<String>,
        /// Access token of level EDIT for it.
        #[arg(long, requires = "url")]
        token: Option<String>,
        #[command(flatten)]
        serve: ServeSettings,
    },
}

/// Where data lies.
#[derive(Clone, Debug, Args)]
pub(super) struct DatabaseSettings {
    /// PostgreSQL 14 or later, such as postgres://user:password@host/database. Without it the service starts a private
    /// PostgreSQL of its own in the data directory.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Directory of the private PostgreSQL and of pictures.
    #[arg(long, env = "DATA_DIR", default_value = "./data")]
    pub data_dir: PathBuf,
    #[command(flatten)]
    pub pool: store::Settings,
}

/// Whose products are transferred.
#[derive(Clone, Debug, Args)]
pub(super) struct TransferSettings {
    /// The account.
    #[arg(long)]
    pub account: String,
    /// The name that histories show.
    #[arg(long, default_value = "import", value_parser = name)]
    pub user: String,
    #[command(flatten)]
    pub database: DatabaseSettings,
}

/// What is imported, and how.
#[derive(Clone, Debug, Args)]
pub(super) struct ImportCommand {
    /// What a column stands for, such as "Artikel-Nr=productId"; with nothing after the = it is left.
    #[arg(long, value_name = "COLUMN=FIELD")]
    pub map: Vec<String>,
    /// The language of columns that do not name theirs, such as title.
    #[arg(long, default_value = "de")]
    pub language: String,
    /// A CSV file that takes the outcome of every line, and all mistakes.
    #[arg(long)]
    pub report: Option<PathBuf>,
    /// Judge everything and store nothing.
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub transfer: TransferSettings,
}

/// What is exported, and how.
#[derive(Clone, Debug, Args)]
pub(super) struct ExportSettings {
    /// Languages whose texts are written.
    #[arg(long, value_delimiter = ',', default_value = "de,en")]
    pub languages: Vec<String>,
    /// csv or xlsx; by the name of the file without it.
    #[arg(long)]
    pub format: Option<FileFormat>,
    #[command(flatten)]
    pub transfer: TransferSettings,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum FileFormat {
    Csv,
    Xlsx,
}

/// How the service serves.
#[derive(Clone, Debug, Args)]
pub(super) struct ServeSettings {
    #[command(flatten)]
    pub database: DatabaseSettings,
    /// Address to listen on.
    #[arg(long, env = "BIND_ADDR", default_value = "127.0.0.1:8080", value_parser = address)]
    pub bind_addr: SocketAddr,
    /// What URLs in answers begin with; default http://BIND_ADDR.
    #[arg(long, env = "PUBLIC_URL", value_parser = public_url)]
    pub public_url: Option<String>,
    /// File of mode 600 that the first start writes its token to, instead of showing it. Without it, and where the output
    /// is no terminal, the token is shown and also written to the file first-token in the data directory.
    #[arg(long, env = "FIRST_TOKEN_FILE")]
    pub first_token_file: Option<PathBuf>,
    #[command(flatten)]
    pub models: ModelSettings,
    #[command(flatten)]
    pub search: search::Settings,
    #[command(flatten)]
    pub pictures: S3Settings,
    /// Address for health and metrics alone; without it metrics are served beside the interface.
    #[arg(long, env = "METRICS_ADDR", value_parser = address)]
    pub metrics_addr: Option<SocketAddr>,
    #[command(flatten)]
    pub connections: ConnectionSettings,
    #[command(flatten)]
    pub admission: AdmissionSettings,
    #[command(flatten)]
    pub webhooks: WebhookSettings,
    #[command(flatten)]
    pub traces: TraceSettings,
    #[command(flatten)]
    pub log: LogSettings,
}

/// Where the classifier's model and the facts lie.
#[derive(Clone, Debug, Args)]
pub(super) struct ModelSettings {
    /// Directory with classifier.bin, taxonomy/ and vat/; default is the one shipped with the program.
    #[arg(long, env = "MODELS_DIR")]
    pub models_dir: Option<PathBuf>,
    /// Directory with an operator's own taxonomy/ and vat/ instead.
    #[arg(long, env = "TAXONOMY_DIR")]
    pub taxonomy_dir: Option<PathBuf>,
}

/// How the service logs, on stderr.
#[derive(Clone, Debug, Args)]
pub(super) struct LogSettings {
    /// text, or json: one object a line.
    #[arg(long, env = "LOG_FORMAT", default_value = "text")]
    pub log_format: LogFormat,
    /// What is logged, such as info or warn,vat_classification=debug.
    #[arg(long, env = "RUST_LOG", default_value = "info")]
    pub log: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub(super) enum AccountCommand {
    /// Makes an account and prints its name.
    Create {
        /// 1 to 100 characters.
        #[arg(value_parser = name)]
        name: String,
        /// UNLIMITED or FREE_TRIAL.
        #[arg(long, default_value = "UNLIMITED", value_parser = plan)]
        plan: Plan,
        /// Share of the decisions by text that are meant to be right: 0.90, 0.95 or 0.98.
        #[arg(long, default_value = "0.95", value_parser = precision)]
        precision: Precision,
        #[command(flatten)]
        database: DatabaseSettings,
    },
    /// Sets which share of an account's decisions by text is meant to be right.
    Precision {
        /// The account.
        #[arg(value_parser = name)]
        name: String,
        /// 0.90, 0.95 or 0.98; the lower, the more is decided.
        #[arg(value_parser = precision)]
        precision: Precision,
        #[command(flatten)]
        database: DatabaseSettings,
    },
    /// Prints the accounts: name, plan, precision, active or disabled, and when made, separated by tabs.
    List {
        #[command(flatten)]
        database: DatabaseSettings,
    },
    /// Refuses the tokens of an account from now on.
    Disable(NamedAccount),
    /// Takes the tokens of a disabled account again.
    Enable(NamedAccount),
    /// Sets how much an account may use.
    Plan {
        /// The account.
        #[arg(value_parser = name)]
        name: String,
        /// UNLIMITED or FREE_TRIAL.
        #[arg(value_parser = plan)]
        plan: Plan,
        #[command(flatten)]
        database: DatabaseSettings,
    },
    /// Deletes an account with its tokens, products, assignments, pictures and history, for good, and prints how many
    /// products that were.
    Delete(NamedAccount),
    /// What is remembered of the decisions of an account's people.
    Memory {
        #[command(subcommand)]
        command: MemoryCommand,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum MemoryCommand {
    /// Prints how many decisions are remembered: taxonomy, classes said to be right, classes said to be wrong.
    Show(NamedAccount),
    /// Forgets them and prints how many they were. Assignments stay as they are.
    Clear(NamedAccount),
    /// Writes them to a file, one a line in JSON with the texts of the products, and prints how many they were.
    Export(MemoryFile),
    /// Makes the account remember what such a file holds, so that a second account of the same merchant starts with what
    /// the first one knows; prints how many decisions were new. All lines are checked before any is taken.
    Import(MemoryFile),
}

/// An account and a file of remembered decisions.
#[derive(Clone, Debug, Args)]
pub(super) struct MemoryFile {
    #[command(flatten)]
    pub account: NamedAccount,
    /// The file.
    pub file: PathBuf,
}

/// An account by its name.
#[derive(Clone, Debug, Args)]
pub(super) struct NamedAccount {
    /// The account.
    #[arg(value_parser = name)]
    pub name: String,
    #[command(flatten)]
    pub database: DatabaseSettings,
}

#[derive(Debug, Subcommand)]
pub(super) enum QueueCommand {
    /// Prints parked work: queue, account, productId, shopId, when and why, separated by tabs.
    Parked(ParkedSettings),
    /// Sends parked work again and prints how many products that are.
    Retry(ParkedSettings),
}

/// Which parked work is meant.
#[derive(Clone, Debug, Args)]
pub(super) struct ParkedSettings {
    /// auto-assignment or search; both without it.
    #[arg(long, value_parser = queue)]
    pub queue: Option<Queue>,
    /// The account; all without it.
    #[arg(long)]
    pub account: Option<String>,
    #[command(flatten)]
    pub database: DatabaseSettings,
}

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Makes a token and prints it; it is not shown again.
    Create {
        /// The account.
        #[arg(long)]
        account: String,
        /// The name that histories show; 1 to 100 characters.
        #[arg(long, value_parser = name)]
        user: String,
        /// READ, EDIT or ADMIN.
        #[arg(long, value_parser = level)]
        level: Level,
        /// Days until it expires, 1 to 36500; without it, never.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=36_500))]
        expires_days: Option<u32>,
        #[command(flatten)]
        database: DatabaseSettings,
    },
    /// Prints tokens, ended ones too: id, account, user, level, when made, until when good, last used (to the hour) and
    /// when ended, separated by tabs; a dash where there is nothing.
    List {
        /// The account; all without it.
        #[arg(long)]
        account: Option<String>,
        #[command(flatten)]
        database: DatabaseSettings,
    },
    /// Ends a token, or all those of a user.
    Revoke {
        /// The token.
        #[arg(required_unless_present_any = ["id", "account"], conflicts_with_all = ["id", "account", "user"])]
        token: Option<String>,
        /// The token's id, as token list prints it.
        #[arg(long, conflicts_with_all = ["account", "user"])]
        id: Option<String>,
        /// The account of the user.
        #[arg(long, requires = "user")]
        account: Option<String>,
        /// The user whose tokens end.
        #[arg(long, requires = "account")]
        user: Option<String>,
        #[command(flatten)]
        database: DatabaseSettings,
    },
}

impl Cli {
    /// Reads a command line. `serve` is the default, so that its flags may also stand before its name.
    pub(super) fn read(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(&arguments).or_else(|error| {
            let Some(at) = arguments.iter().skip(1).position(|argument| argument == "serve") else { return Err(error) };
            let mut arranged = arguments;
            let serve = arranged.remove(at + 1);
            arranged.insert(1, serve);
            Cli::try_parse_from(arranged).map_err(|_| error)
        })
    }
}

/// An address to listen on: a number or a name, and a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().map_err(|error| format!("an address such as 127.0.0.1:8080: {error}"))?;
    // Of a name with both kinds of address, the one that clients try by default everywhere.
    let mut found: Vec<SocketAddr> = found.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().ok_or_else(|| "the name has no address".to_owned())
}

fn public_url(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| format!("a URL such as https://vat.example.com: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("a URL that begins with http:// or https:// and names a host".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
        return Err("a URL without a user, a query and a fragment".to_owned());
    }
    Ok(text.to_owned())
}

fn name(text: &str) -> Result<String, String> {
    let characters = text.chars().count();
    let printable = !text.chars().any(char::is_control);
    if (1..=100).contains(&characters) && printable {
        Ok(text.to_owned())
    } else {
        Err("1 to 100 printable characters".to_owned())
    }
}

fn plan(text: &str) -> Result<Plan, String> {
    Plan::from_name(text).ok_or_else(|| "UNLIMITED or FREE_TRIAL".to_owned())
}

fn queue(text: &str) -> Result<Queue, String> {
    Queue::from_name(text).ok_or_else(|| "auto-assignment or search".to_owned())
}

fn precision(text: &str) -> Result<Precision, String> {
    let share = text.parse().ok().and_then(Precision::from_share);
    share.ok_or_else(|| "0.90, 0.95 or 0.98".to_owned())
}

fn level(text: &str) -> Result<Level, String> {
    Level::from_name(text).ok_or_else(|| "READ, EDIT or ADMIN".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent_and_serve_is_the_default() {
        Cli::command().debug_assert();
        let bare = Cli::try_parse_from(["vat-classification", "--bind-addr", "127.0.0.1:1"]).expect("serve");
        assert!(bare.command.is_none() && bare.serve.bind_addr.port() == 1);
        assert!(Cli::try_parse_from(["vat-classification", "account", "create", "shop", "--plan", "FREE"]).is_err());
        for (precision, is_known) in [("0.90", true), ("0.9", true), ("0.98", true), ("0.97", false), ("95", false)] {
            let made =
                Cli::try_parse_from(["vat-classification", "account", "create", "shop", "--precision", precision]);
            let set = Cli::try_parse_from(["vat-classification", "account", "precision", "shop", precision]);
            assert_eq!((made.is_ok(), set.is_ok()), (is_known, is_known), "{precision}");
        }
    }

    #[test]
    fn the_flags_of_serve_may_stand_before_its_name() {
        let read = |line: &str| Cli::read(line.split(' ').map(OsString::from).collect());
        for line in ["x --bind-addr 127.0.0.1:1 serve", "x serve --bind-addr 127.0.0.1:1", "x --bind-addr localhost:1"]
        {
            let cli = read(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            let serve = match cli.command {
                Some(Command::Serve(serve)) => serve,
                _ => cli.serve,
            };
            assert_eq!((serve.bind_addr.port(), serve.bind_addr.ip().is_loopback()), (1, true), "{line}");
        }
        for line in ["x --bind-addr 127.0.0.1:1 serve serve", "x account serve", "x --bind-addr 1 serve"] {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_token_is_revoked_by_itself_or_its_id_or_its_user_and_by_one_of_these() {
        for (line, is_right) in [
            ("t", true),
            ("--id 1", true),
            ("--account a --user u", true),
            ("", false),
            ("--account a", false),
            ("--user u", false),
            ("t --id 1", false),
            ("--id 1 --account a --user u", false),
            ("t --account a --user u", false),
        ] {
            let words = ["x", "token", "revoke"].into_iter().chain(line.split_whitespace());
            assert_eq!(Cli::try_parse_from(words).is_ok(), is_right, "{line}");
        }
    }

    #[test]
    fn public_urls_are_judged_at_start() {
        for (text, is_right) in [
            ("https://vat.example.com", true),
            ("http://127.0.0.1:8080/base/", true),
            ("notaurl", false),
            ("vat.example.com", false),
            ("ftp://vat.example.com", false),
            ("https://vat.example.com?a=1", false),
            ("https://user:word@vat.example.com", false),
            ("", false),
        ] {
            assert_eq!(public_url(text).is_ok(), is_right, "{text}");
        }
    }
}
