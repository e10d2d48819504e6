//! The page about the query language. Its examples are data, which a test sends as they stand.

use std::fmt::Write as _;
use std::sync::OnceLock;

use axum::response::Html;
use serde_json::Value;

/// Products and what is found of them.
const EXAMPLES: &str = include_str!("filter_criteria.json");

const BEFORE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>filterCriteria</title>\
<meta name=\"viewport\" content=\"width=device-width\"><style>\
body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}\
table{border-collapse:collapse;width:100%;margin:1rem 0}th,td{border:1px solid #8a929c;padding:.35rem .6rem;text-align:left;vertical-align:top}\
code{font:14px ui-monospace,monospace;overflow-wrap:anywhere}\
@media(prefers-color-scheme:dark){body{color:#e6e9ee;background:#14171b}a{color:#8ab8ff}}</style>\
<main><h1>filterCriteria</h1><p><a href=\"/docs/\">The whole interface</a></p>\
<p>An array of elements. <code>GET /products/global?filterCriteria=…</code> takes it as JSON, percent-encoded; \
<code>POST /products/global/search</code> takes it as it is. An empty array selects everything.</p>\
<h2>Elements</h2><table><tr><th>property<th>matches\
<tr><td><code>keywords</code><td>an expression, in productName and productDescription of <code>languageKey</code> (<code>en</code> when absent)\
<tr><td><code>productName</code><td>an expression, in the name; <code>languageKey</code> is required\
<tr><td><code>productTag</code><td>an expression, in the tags; <code>languageKey</code> is required\
<tr><td><code>productId</code><td>a part of the id, spaces included\
<tr><td><code>countryOfOrigin</code><td>the country, ISO 3166-1 alpha-2\
<tr><td><code>operation</code><td><code>AND</code> (when absent) or <code>OR</code>: how the next element is joined. Elements are chained from left to right: \
<code>((e1 op1 e2) op2 e3)</code></table>\
<p>All properties of an element hold; one with none to match is refused. At most 32 elements, 8 KiB and 64 values.</p>\
<h2>Expressions</h2><pre><code>value  = group { OR group }          OR: the word or, in any case, between two groups\n\
group  = term { term }               all must hold\n\
term   = [ \"-\" ] ( phrase | plain )  - negates, after a space and at the very start\n\
phrase = a quote that begins a term, up to the next quote, then a space or the end\n\
plain  = any other run of characters without spaces</code></pre>\
<p>Case makes no difference (Unicode, after NFKC); accents do. A plain value is found anywhere in the text, also within a word. \
A phrase is found word by word: each space within it stands for exactly one word between, two spaces for two; \
words that are not separated by a space, as in <code>\"T-Shirt\"</code>, are next to each other. \
Where a field or language is absent, nothing occurs in it: a value fails, and its negation holds.</p>";

/// The page.
pub(super) async fn page() -> Html<&'static str> {
    static PAGE: OnceLock<String> = OnceLock::new();
    Html(PAGE.get_or_init(|| {
        // The text is part of the program.
        let data: Value = serde_json::from_str(EXAMPLES).unwrap_or_default();
        let mut page = BEFORE.to_owned();
        page.push_str("<h2>Examples</h2><p>Among these products:</p><table><tr><th>productId<th>texts, origin");
        for (id, product) in data["products"].as_object().into_iter().flatten() {
            let _ = write!(
                page,
                "<tr><td><code>{}</code><td><code>{}</code>",
                escaped(id),
                json(&product["productDetails"])
            );
        }
        page.push_str("</table><table><tr><th>filterCriteria<th>finds<th>because");
        for example in data["examples"].as_array().into_iter().flatten() {
            let finds: Vec<&str> =
                example["finds"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let says = escaped(example["says"].as_str().unwrap_or_default());
            let _ = write!(
                page,
                "<tr><td><code>{}</code><td>{}<td>{says}",
                json(&example["criteria"]),
                escaped(&finds.join(", "))
            );
        }
        page.push_str("</table><h2>Refused with 400</h2><table><tr><th>filterCriteria<th>because it has");
        for example in data["refused"].as_array().into_iter().flatten() {
            let says = escaped(example["says"].as_str().unwrap_or_default());
            let _ = write!(page, "<tr><td><code>{}</code><td>{says}", json(&example["criteria"]));
        }
        page.push_str("</table></main></html>");
        page
    }))
}

fn json(value: &Value) -> String {
    escaped(&value.to_string())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
