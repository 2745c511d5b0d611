"""One label within a radius, by codes and by label rules: ``python -m papers.posthoc.code_labels``.

Handwritten digits of scikit-learn, public principal components as the embedding. Half of the rows
are public, and the other half scores. The radius is the one within which half of the public rows
have another digit. Accuracies are exact over the mechanism's randomness.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from papers.seeds import combined, with_error
from reticent.radius import survey_radius
from reticent.systems import CodeEncoder, PosthocClassifier
from reticent.systems.power.code_targets import Within

COMPONENTS = 4
EPSILONS = (1.0, 2.0, 5.0)


def measured(seed: int, epsilon: float) -> dict[str, float]:
    """Expected accuracies on one cut."""
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(pixels))
    public, held = np.array_split(order, 2)
    components = PCA(COMPONENTS, random_state=0).fit(pixels[public])
    points, known = components.transform(pixels[public]), labels[public]
    asked, truth = components.transform(pixels[held]), labels[held]
    survey = survey_radius(points, radii=[], epsilons=[epsilon], columns={"digit": known})
    radius = survey.rules[1].radius
    found = {"radius": radius}
    rules = PosthocClassifier(
        epsilon=epsilon, delta=0.0, radius=radius, embedder="identity", random_state=seed
    ).fit(points, known)
    found["label rules"] = float(rules.probabilities(asked)[np.arange(len(truth)), truth].mean())
    for name, near, scoring in (
        ("codes", Within(radius), "information"),
        ("codes for any two", None, "information"),
        ("codes, by accuracy", Within(radius), "accuracy"),
        ("codes for any two, by accuracy", None, "accuracy"),
    ):
        code = CodeEncoder(epsilon=epsilon, neighbours=near, scoring=scoring, random_state=seed)
        code.fit(points, known)
        read = code.posterior("target").argmax(axis=1)
        chances = code.channel_[code.query_.nodes(code.checked(asked))]
        found[name] = float((chances * (read == truth[:, None])).sum(axis=1).mean())
    return found


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=3, help="how many cuts are averaged")
    chosen = parser.parse_args(arguments)
    for place, epsilon in enumerate(EPSILONS):
        mean, error = combined([measured(seed, epsilon) for seed in range(chosen.seeds)])
        if not place:
            print("| epsilon | " + " | ".join(mean) + " |\n|" + "---|" * (len(mean) + 1))
        cells = (with_error(mean[name], error[name]) for name in mean)
        print(f"| {epsilon:g} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
