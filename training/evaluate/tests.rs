use super::*;

#[test]
fn a_decision_is_right_in_as_many_digits_as_its_truth_has() {
    let code = |code: &str| ClassCode::new(code).expect("a code");
    for (truth, decided, counted) in [
        // Nobody knows the subheading: what is decided there counts as a heading, never as a right subheading.
        ("6109", "610910", ([0, 1, 0], [0, 1, 0])),
        ("6109", "611020", ([0, 1, 0], [0, 0, 0])),
        ("610910", "610910", ([0, 0, 1], [0, 0, 1])),
        ("610910", "610990", ([0, 0, 1], [0, 0, 0])),
        ("610910", "6109", ([0, 1, 0], [0, 1, 0])),
    ] {
        let (truth, decided) = (code(truth), code(decided));
        let case = Case {
            set: "shop".to_owned(),
            language: "de".to_owned(),
            name: String::new(),
            description: String::new(),
            tags: Vec::new(),
            code: truth,
            given: truth,
        };
        let mut tally = Tally::default();
        tally.add(&case, &Ranking::default(), Some(Decision { code: decided, confidence: 0.97 }));
        assert_eq!((tally.decided, tally.decided_right), counted, "{truth} {decided}");
    }
}
