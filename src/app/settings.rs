//! Settings, each a flag and an environment variable, one documented struct per concern.

mod accounts;
mod values;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::http::AdmissionSettings;
use crate::http::serve::ConnectionSettings;
use crate::http::traces::TraceSettings;
use crate::pictures::S3Settings;
use crate::search;
use crate::store;
use crate::webhooks::WebhookSettings;
pub(super) use accounts::{
    AccountCommand, MemoryCommand, MemoryFile, NamedAccount, ParkedSettings, QueueCommand, TokenCommand,
};
use values::{address, name, public_url};

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
}
