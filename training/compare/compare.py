"""The peers of the classifier on the same rows: fastText (softmax) and scikit-learn's logistic regression.

Called by `training compare` with a directory that holds train.tsv (code, text) and test.tsv (set, code, text), codes of
four digits; prints one line a set, peer and setting: set, peer, top-1, top-5 as JSON. Needs: fasttext-wheel, scikit-learn.
"""

import json
import re
import sys
import time
from pathlib import Path

# Of 600,000 rows five epochs are as many steps as fifteen were of 200,000, and take six minutes each.
FASTTEXT_SETTINGS = [
    {"wordNgrams": 1, "minn": 0, "maxn": 0, "epoch": 5, "lr": 0.5},
    {"wordNgrams": 2, "minn": 0, "maxn": 0, "epoch": 5, "lr": 0.5},
    {"wordNgrams": 2, "minn": 3, "maxn": 5, "epoch": 5, "lr": 0.5},
]


def rows(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        yield line.split("\t")


def words(text):
    return " ".join(re.findall(r"\w+", text.lower()))


def score(peer, tests, predict):
    """Prints the figures of a peer; predict makes the five best codes of each of a list of texts."""
    start, by_set = time.time(), {}
    answers = predict([text for _, _, text in tests])
    speed = len(tests) / (time.time() - start)
    for (name, code, _), best in zip(tests, answers):
        tally = by_set.setdefault(name, [0, 0, 0])
        tally[0] += 1
        tally[1] += best[:1] == [code]
        tally[2] += code in best
    print(f"{peer}: {speed:.0f} texts/s", file=sys.stderr, flush=True)
    for name, (all_rows, top1, top5) in sorted(by_set.items()):
        print(json.dumps({"set": name, "peer": peer, "top1": top1 / all_rows, "top5": top5 / all_rows, "speed": speed}))
    sys.stdout.flush()


def fasttext_peers(directory, train, tests):
    import fasttext

    file = directory / "fasttext.txt"
    file.write_text("".join(f"__label__{code} {words(text)}\n" for code, text in train), encoding="utf-8")
    for setting in FASTTEXT_SETTINGS:
        model = fasttext.train_supervised(str(file), loss="softmax", dim=100, thread=2, verbose=0, bucket=500000, **setting)
        # The wrapper's predict() does not work with numpy 2; what it wraps does.
        one = lambda text: [label[9:] for _, label in model.f.predict(words(text) + "\n", 5, 0.0, "strict")]
        predict = lambda texts: [one(text) for text in texts]
        score("fasttext " + " ".join(f"{key}={value}" for key, value in setting.items()), tests, predict)


def sklearn_peer(train, tests):
    import numpy
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import SGDClassifier

    vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, token_pattern=r"\w+", dtype=numpy.float32)
    matrix = vectorizer.fit_transform(text for _, text in train)
    # A regression for each of 1,200 headings. Eight epochs did no better than three (2026-11-22).
    for alpha, epochs in ((1e-6, 3),):
        model = SGDClassifier(loss="log_loss", alpha=alpha, max_iter=epochs, tol=None, n_jobs=2, random_state=1)
        model.fit(matrix, [code for code, _ in train])

        # Feature by feature in memory, or every product with a sparse row would copy it whole.
        coefficients = numpy.ascontiguousarray(model.coef_.T, dtype=numpy.float32)

        def predict(texts):
            best = []
            for first in range(0, len(texts), 500):
                scores = vectorizer.transform(texts[first : first + 500]) @ coefficients + model.intercept_
                best += [[model.classes_[index] for index in numpy.argsort(-row)[:5]] for row in scores]
            return best

        score(f"sklearn alpha={alpha} epochs={epochs}", tests, predict)


def main():
    directory = Path(sys.argv[1])
    train, tests = list(rows(directory / "train.tsv")), list(rows(directory / "test.tsv"))
    if "sklearn" not in sys.argv[2:]:
        fasttext_peers(directory, train, tests)
    if "fasttext" not in sys.argv[2:]:
        sklearn_peer(train, tests)


if __name__ == "__main__":
    main()
