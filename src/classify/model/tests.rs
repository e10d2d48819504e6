use super::*;

const SHIPPED: &str = "models/classifier.bin";

#[test]
fn a_model_in_use_does_not_mind_that_its_file_is_written_over_or_cut() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("classifier.bin");
    fs::copy(SHIPPED, &path).expect("a copy");
    let model = Model::open(&path).expect("a model");
    let sums = |model: &Model| -> usize { (0..model.nodes()).map(|node| model.rows_of(node).len()).sum() };
    let before = sums(&model);
    let file = fs::File::options().write(true).open(&path).expect("the file");
    file.set_len(0).expect("cut");
    assert_eq!(sums(&model), before);
    fs::copy(SHIPPED, &path).expect("written over");
    assert_eq!(sums(&model), before);
    assert_eq!(Model::open(&path).expect("a model").info(), model.info());
}
