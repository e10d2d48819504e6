use super::*;

fn filter(change: fn(&mut AssignmentFilter)) -> AssignmentFilter {
    let mut filter = AssignmentFilter::default();
    change(&mut filter);
    filter
}

fn instant(text: &str) -> Option<DateTime<Utc>> {
    text.parse().ok()
}

#[test]
fn what_is_kept_answers_what_it_can() {
    for (filter, by, expected) in [
        (filter(|_| {}), vec![], Some(Kept::Days)),
        (filter(|_| {}), vec![CountBy::Status, CountBy::Day], Some(Kept::Days)),
        (filter(|_| {}), vec![CountBy::Chapter, CountBy::Status], Some(Kept::Headings)),
        (filter(|_| {}), vec![CountBy::Chapter, CountBy::ConfidenceBand], Some(Kept::Chapters)),
        (filter(|_| {}), vec![CountBy::Heading, CountBy::ConfidenceBand], None),
        (filter(|_| {}), vec![CountBy::ConfidenceBand], Some(Kept::Sureness)),
        (filter(|_| {}), vec![CountBy::Label], Some(Kept::Labels)),
        (filter(|_| {}), vec![CountBy::Label, CountBy::Heading], None),
        (filter(|_| {}), vec![CountBy::Day, CountBy::Heading], None),
        (filter(|f| f.with_labels = vec!["a".to_owned()]), vec![CountBy::Status], Some(Kept::Labels)),
        (filter(|f| f.with_labels = vec!["a".to_owned()]), vec![CountBy::Label], None),
        (filter(|f| f.with_labels = vec!["a".to_owned(); 2]), vec![], None),
        (filter(|f| f.class_prefix = Some("6109".to_owned())), vec![CountBy::Heading], Some(Kept::Headings)),
        (filter(|f| f.class_prefix = Some("61".to_owned())), vec![CountBy::ConfidenceBand], Some(Kept::Chapters)),
        (filter(|f| f.class_prefix = Some("6109".to_owned())), vec![CountBy::ConfidenceBand], None),
        (filter(|f| f.class_prefix = Some("610910".to_owned())), vec![CountBy::Heading], None),
        (filter(|f| f.confidence_from = Some(0.5)), vec![CountBy::Strategy], Some(Kept::Sureness)),
        (filter(|f| f.confidence_from = Some(0.5)), vec![CountBy::Chapter], None),
        (filter(|f| f.updated_from = instant("2026-11-22T00:00:00Z")), vec![], Some(Kept::Days)),
        (filter(|f| f.updated_from = instant("2026-11-22T12:00:00Z")), vec![CountBy::Chapter], None),
        (filter(|f| f.shop = crate::domain::ShopId::local(1)), vec![], None),
        (filter(|f| f.product_ids = Some(Vec::new())), vec![], None),
    ] {
        assert_eq!(kind(&filter, &by), expected, "{filter:?} {by:?}");
    }
}

/// What parts there are: kept, one by one, or taken away.
fn shape(filter: &AssignmentFilter) -> String {
    let letter = |part: &Part| match part {
        Part::Kept { hundredths: Some(range), .. } => format!("k{}-{}", range.start, range.end),
        Part::Kept { .. } => "k".to_owned(),
        Part::Counted { taken_away: true, .. } => "-".to_owned(),
        Part::Counted { .. } => "c".to_owned(),
    };
    parts(filter, &[]).iter().map(letter).collect::<Vec<_>>().join(" ")
}

#[test]
fn ranges_are_what_is_kept_and_little_at_their_ends() {
    let sure = |from: Option<f64>, to: Option<f64>| AssignmentFilter {
        confidence_from: from,
        confidence_to: to,
        ..AssignmentFilter::default()
    };
    for (from, to, expected) in [
        (Some(0.85), Some(0.8999), "k85-90"),
        (Some(0.85), Some(0.9), "k85-90 c"),
        (Some(0.85), Some(1.0), "k85-100"),
        (Some(0.855), None, "k86-100 c"),
        (None, Some(0.3), "k0-30 c"),
        (Some(0.0), Some(1.0), "k0-100"),
        (Some(0.851), Some(0.852), "c"),
        (Some(0.9), Some(0.1), "c"),
    ] {
        assert_eq!(shape(&sure(from, to)), expected, "{from:?} {to:?}");
    }
    let dated = |from: &str, before: &str| AssignmentFilter {
        updated_from: instant(from),
        updated_before: instant(before),
        ..AssignmentFilter::default()
    };
    for (from, before, expected) in [
        ("2026-11-20T00:00:00Z", "2026-11-22T00:00:00Z", "k"),
        ("2026-11-20T08:00:00Z", "", "k c"),
        ("2026-11-20T08:00:00Z", "2026-11-22T12:00:00Z", "k c c"),
        ("2026-11-20T08:00:00Z", "2026-11-20T12:00:00Z", "c"),
        ("2026-11-20T08:00:00Z", "2026-11-21T12:00:00Z", "c"),
    ] {
        assert_eq!(shape(&dated(from, before)), expected, "{from} {before}");
    }
    let without = filter(|f| f.without_labels = vec!["a".to_owned()]);
    assert_eq!(shape(&without), "k -");
    for (from, to, expected) in [
        (Some(0.851), Some(0.852), "k85-86"),
        (Some(0.85), Some(0.9), "k85-91"),
        (Some(0.8537), Some(0.8999), "k85-90"),
        (None, Some(1.0), "k0-100"),
        (Some(0.855), None, "k85-100"),
    ] {
        assert_eq!(shape(&rounded(&sure(from, to))), expected, "{from:?} {to:?}");
    }
    for (from, before) in
        [("2026-11-20T08:00:00Z", "2026-11-20T12:00:00Z"), ("2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z")]
    {
        let day = rounded(&dated(from, before));
        assert_eq!((shape(&day).as_str(), day.updated_before), ("k", instant("2026-11-21T00:00:00Z")));
    }
}
