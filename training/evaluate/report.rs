//! The readable report of an evaluation: one HTML file with its plots in it.

use std::fmt::Write;

use super::calibration::Reliability;
use super::{DEPTHS, TOPS, Tally};

/// Width and height of a plot, in pixels.
const PLOT: f64 = 280.0;

/// A pair of headings that are taken for each other: right, answered, how often, an example.
pub(crate) type Confusion = (String, String, usize, String);

/// Writes the page.
pub(crate) fn page(
    title: &str,
    tallies: &[(String, Tally)],
    reliability: &[(usize, Reliability)],
    confusions: &[Confusion],
) -> Result<String, std::fmt::Error> {
    let mut page = String::new();
    writeln!(page, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{}</title>", escape(title))?;
    writeln!(
        page,
        "<style>body{{font:14px sans-serif;margin:2em;max-width:75em}}table{{border-collapse:collapse;margin:1em 0}}\
         td,th{{padding:.2em .6em;border-bottom:1px solid #ccc;text-align:right}}td:first-child,th:first-child\
         {{text-align:left}}figure{{display:inline-block;margin:0 1em 1em 0}}</style><h1>{}</h1>",
        escape(title)
    )?;
    accuracy(&mut page, tallies)?;
    decisions(&mut page, tallies)?;
    writeln!(page, "<h2>Calibration</h2>")?;
    for (digits, reliability) in reliability {
        plot(&mut page, *digits, reliability)?;
    }
    writeln!(
        page,
        "<h2>Worst confusions</h2><table><tr><th>right</th><th>answered</th><th>texts</th><th>such as</th></tr>"
    )?;
    for (right, answered, count, example) in confusions {
        writeln!(page, "<tr><td>{right}</td><td>{answered}</td><td>{count}</td><td>{}</td></tr>", escape(example))?;
    }
    writeln!(page, "</table></html>")?;
    Ok(page)
}

fn accuracy(page: &mut String, tallies: &[(String, Tally)]) -> std::fmt::Result {
    writeln!(
        page,
        "<h2>Accuracy</h2><p>Per cent of texts whose class is among the first answers, with 95 % confidence intervals.</p>"
    )?;
    write!(page, "<table><tr><th>set</th><th>texts</th>")?;
    for digits in DEPTHS {
        for top in TOPS {
            write!(page, "<th>top-{top}, {digits} digits</th>")?;
        }
    }
    writeln!(page, "</tr>")?;
    for (name, tally) in tallies {
        write!(page, "<tr><td>{}</td><td>{}</td>", escape(name), tally.rows[0])?;
        for depth in 0..DEPTHS.len() {
            for top in 0..TOPS.len() {
                let (low, high) = interval(tally.top[depth][top], tally.rows[depth]);
                let share = tally.share(depth, top);
                write!(
                    page,
                    "<td title=\"{low:.1} to {high:.1}\">{share:.1} <small>±{:.1}</small></td>",
                    (high - low) / 2.0
                )?;
            }
        }
        writeln!(page, "</tr>")?;
    }
    writeln!(page, "</table>")
}

fn decisions(page: &mut String, tallies: &[(String, Tally)]) -> std::fmt::Result {
    writeln!(page, "<h2>Decisions</h2><table><tr><th>set</th>")?;
    for digits in DEPTHS {
        write!(page, "<th>decided at {digits} digits, %</th><th>right, %</th>")?;
    }
    writeln!(page, "<th>without evidence, %</th></tr>")?;
    for (name, tally) in tallies {
        write!(page, "<tr><td>{}</td>", escape(name))?;
        for depth in 0..DEPTHS.len() {
            let decided = super::percent(tally.decided[depth], tally.rows[0]);
            let right = super::percent(tally.decided_right[depth], tally.decided[depth]);
            write!(page, "<td>{decided:.1}</td><td>{right:.1}</td>")?;
        }
        writeln!(page, "<td>{:.1}</td></tr>", super::percent(tally.empty, tally.rows[0]))?;
    }
    writeln!(page, "</table>")
}

/// Share of right answers over confidence; the diagonal is perfect.
fn plot(page: &mut String, digits: usize, reliability: &Reliability) -> std::fmt::Result {
    writeln!(
        page,
        "<figure><figcaption>{digits} digits: expected calibration error {:.3}</figcaption>",
        reliability.error()
    )?;
    writeln!(page, "<svg width=\"{PLOT}\" height=\"{PLOT}\" style=\"border:1px solid #888\">")?;
    writeln!(page, "<line x1=\"0\" y1=\"{PLOT}\" x2=\"{PLOT}\" y2=\"0\" stroke=\"#bbb\"/>")?;
    let all = reliability.bins.iter().map(|bin| bin.rows).max().unwrap_or(1).max(1) as f64;
    for bin in reliability.bins.iter().filter(|bin| bin.rows > 0) {
        let (x, y) = (bin.confidence() * PLOT, (1.0 - bin.share_right()) * PLOT);
        let radius = 3.0 + 9.0 * (bin.rows as f64 / all).sqrt();
        let what = format!("confidence {:.2}: {:.2} of {} right", bin.confidence(), bin.share_right(), bin.rows);
        writeln!(
            page,
            "<circle cx=\"{x:.0}\" cy=\"{y:.0}\" r=\"{radius:.1}\" fill=\"#27c\" fill-opacity=\".6\"><title>{what}</title></circle>"
        )?;
    }
    writeln!(page, "</svg></figure>")
}

/// Wilson's interval for a share at 95 %, in per cent.
pub(crate) fn interval(part: usize, whole: usize) -> (f64, f64) {
    const Z: f64 = 1.96;
    if whole == 0 {
        return (0.0, 100.0);
    }
    let (n, p) = (whole as f64, part as f64 / whole as f64);
    let centre = (p + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    (100.0 * (centre - half).max(0.0), 100.0 * (centre + half).min(1.0))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_hold_the_share_and_shrink_with_rows() {
        for (part, whole) in [(0, 5), (5, 5), (50, 100), (500, 1000)] {
            let (low, high) = interval(part, whole);
            let share = 100.0 * part as f64 / whole as f64;
            assert!((0.0..=share).contains(&low) && (share..=100.0).contains(&high), "{part} of {whole}: {low} {high}");
        }
        let width = |(low, high): (f64, f64)| high - low;
        assert!(width(interval(500, 1000)) < width(interval(50, 100)));
    }

    #[test]
    fn names_of_sets_cannot_break_the_page() {
        let page = page("<b>", &[("a&b".to_owned(), Tally::default())], &[], &[]).expect("a page");
        assert!(page.contains("&lt;b&gt;") && page.contains("a&amp;b"));
    }
}
