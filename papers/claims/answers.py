"""Answers of libraries, one a line: run by the Python of an environment that has the library.

``python answers.py NAME`` reads a data set a line as JSON and writes an answer a line. It imports
nothing of reticent, and of each library only what its row uses, so that it runs anywhere.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any

Answer = Callable[[Any], Any]


def _of(name: str) -> Any:
    return importlib.import_module(name)


def diffprivlib_laplace() -> Answer:
    """Answer with the Laplace mechanism at epsilon 1, sensitivity 1."""
    mechanism = _of("diffprivlib.mechanisms").Laplace(epsilon=1.0, delta=0.0, sensitivity=1.0)
    return lambda value: mechanism.randomise(float(value))


def diffprivlib_mean() -> Answer:
    """Answer with the mean at epsilon 1, bounds 0 and 1."""
    np, tools = _of("numpy"), _of("diffprivlib.tools")
    return lambda rows: float(tools.mean(np.array(rows), epsilon=1.0, bounds=(0.0, 1.0)))


def diffprivlib_histogram() -> Answer:
    """Answer with a histogram of two bins at epsilon 1, range 0 to 1."""
    np, tools = _of("numpy"), _of("diffprivlib.tools")

    def answer(rows: Any) -> Any:
        return tools.histogram(np.array(rows), epsilon=1.0, bins=2, range=(0.0, 1.0))[0].tolist()

    return answer


def diffprivlib_logistic() -> Answer:
    """Answer with coefficients of a logistic regression at epsilon 1, data norm 1."""
    np, models = _of("numpy"), _of("diffprivlib.models")

    def answer(data: Any) -> Any:
        model = models.LogisticRegression(epsilon=1.0, data_norm=1.0)
        model.fit(np.array(data["X"]), np.array(data["y"]))
        return [*model.coef_.ravel().tolist(), *model.intercept_.tolist()]

    return answer


def opendp_laplace() -> Answer:
    """Answer with Laplace noise of scale 1, which the library maps to epsilon 1 at distance 1."""
    dp = _of("opendp.prelude")
    dp.enable_features("contrib")
    measure = dp.m.make_laplace(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1.0
    )
    return lambda value: measure(float(value))


def opendp_gaussian() -> Answer:
    """Answer with Gaussian noise of scale 1, which the library maps to rho .5 at distance 1."""
    dp = _of("opendp.prelude")
    dp.enable_features("contrib")
    measure = dp.m.make_gaussian(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1.0
    )
    return lambda value: measure(float(value))


def _pydp(kind: str, **settings: Any) -> Answer:
    algorithm = getattr(_of("pydp.algorithms.laplacian"), kind)
    return lambda rows: algorithm(epsilon=1.0, **settings).quick_result([float(x) for x in rows])


def pydp_sum() -> Answer:
    """Answer with a bounded sum at epsilon 1."""
    return _pydp("BoundedSum", delta=0, lower_bound=0.0, upper_bound=1.0, dtype="float")


def pydp_count() -> Answer:
    """Answer with a count at epsilon 1."""
    return _pydp("Count", dtype="float")


def pydp_mean() -> Answer:
    """Answer with a bounded mean at epsilon 1."""
    return _pydp("BoundedMean", delta=0, lower_bound=0.0, upper_bound=1.0, dtype="float")


def flower_local(epsilon: float = 1.0) -> Answer:
    """Answer with one client's update, clipped to 1 and noised as the local mod does, at delta
    1e-5 and sensitivity 1. The noise of 1,024 answers about one update is drawn in one call.
    """
    np, common = _of("numpy"), _of("flwr.common")
    private = _of("flwr.supercore.differential_privacy")
    drawn: dict[str, list[list[float]]] = {}

    def noisy(update: Any) -> list[list[float]]:
        arrays = [np.array(update, dtype=np.float64)]
        private.compute_clip_model_update(arrays, [np.zeros(len(update))], 1.0)
        copies = common.ndarrays_to_parameters([np.tile(arrays[0], (1024, 1))])
        made = private.add_localdp_gaussian_noise_to_params(copies, 1.0, epsilon, 1e-5)
        return list(np.round(common.parameters_to_ndarrays(made)[0], 6).tolist())

    def answer(update: Any) -> Any:
        left = drawn.setdefault(str(update), [])
        if not left:
            left += noisy(update)
        return left.pop()

    return answer


def flower_local_2() -> Answer:
    """Answer with the same at epsilon 2."""
    return flower_local(2.0)


def flower_local_8() -> Answer:
    """Answer with the same at epsilon 8."""
    return flower_local(8.0)


def opacus_step() -> Answer:
    """Answer with the weight after one step of a linear model: noise multiplier 1, norm 1."""
    torch, optimizers = _of("torch"), _of("opacus.optimizers")
    torch.set_num_threads(1)
    torch.manual_seed(_of("secrets").randbits(63))
    sample = _of("opacus.grad_sample").GradSampleModule

    def answer(rows: Any) -> Any:
        model = sample(torch.nn.Linear(1, 1, bias=False))
        with torch.no_grad():
            next(model.parameters()).zero_()
        steps = optimizers.DPOptimizer(
            torch.optim.SGD(model.parameters(), lr=1.0),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            expected_batch_size=1,
        )
        model(torch.tensor(rows, dtype=torch.float32).reshape(-1, 1)).sum().backward()
        steps.step()
        return round(float(next(model.parameters()).detach()), 4)

    return answer


def jax_privacy_noise() -> Answer:
    """Answer with a noisy sum of clipped gradients, standard deviation 1."""
    jax = _of("jax")
    noise = _of("jax_privacy.noise_addition")
    privatizer = noise.gaussian_privatizer(
        stddev=1.0, prng_key=jax.random.key(_of("secrets").randbits(31))
    )
    state = [privatizer.init(jax.numpy.zeros(1))]

    def answer(value: Any) -> Any:
        grad = jax.numpy.array([float(value)])
        noisy, state[0] = privatizer.update(sum_of_clipped_grads=grad, noise_state=state[0])
        return round(float(noisy[0]), 4)

    return answer


def tf_privacy_sum() -> Answer:
    """Answer with a sum of rows of one number, clipped to 1, with noise of deviation 1."""
    tf = _of("tensorflow")
    query = _of("tensorflow_privacy").GaussianSumQuery(l2_norm_clip=1.0, stddev=1.0)
    state = query.initial_global_state()

    def answer(rows: Any) -> Any:
        total = query.initial_sample_state(tf.zeros(1))
        for row in rows:
            total = query.accumulate_record(
                query.derive_sample_params(state), total, tf.constant([float(row)])
            )
        return round(float(query.get_noised_result(total, state)[0][0]), 4)

    return answer


def interpret_boosting() -> Answer:
    """Answer with scores of a private boosting machine at epsilon 1, delta 1e-5, bounds given."""
    np, privacy = _of("numpy"), _of("interpret.privacy")

    def answer(data: Any) -> Any:
        X, y = np.array(data["X"], dtype=float), np.array(data["y"])
        model = privacy.DPExplainableBoostingClassifier(
            epsilon=1.0,
            delta=1e-5,
            privacy_bounds={0: (0.0, 1.0)},
            feature_types=["continuous"],
            max_rounds=5,
            n_jobs=1,
        )
        model.fit(X, y)
        return [round(x, 6) for x in model.predict_proba(np.array([[0.1], [0.9]]))[:, 1].tolist()]

    return answer


def datasynthesizer_histogram() -> Answer:
    """Answer with the described distribution of one column at epsilon 1, independent mode, all else
    as by default.
    """
    os, tempfile = _of("os"), _of("tempfile")
    describer = _of("DataSynthesizer.DataDescriber").DataDescriber

    def answer(rows: Any) -> Any:
        handle, path = tempfile.mkstemp(suffix=".csv")
        with os.fdopen(handle, "w") as stream:
            stream.write("x\n" + "".join(f"{row}\n" for row in rows))
        try:
            found = describer(category_threshold=4)
            found.describe_dataset_in_independent_attribute_mode(
                path, epsilon=1.0, attribute_to_is_candidate_key={"x": False}
            )
            described = found.data_description["attribute_description"]["x"]
            return [round(float(x), 9) for x in described["distribution_probabilities"]]
        finally:
            os.unlink(path)

    return answer


def smartnoise_mwem() -> Answer:
    """Answer with counts of 200 synthetic rows over four cells, of multiplicative weights at
    epsilon 1.
    """
    np, synth = _of("numpy"), _of("snsynth")

    def answer(rows: Any) -> Any:
        maker = synth.Synthesizer.create("mwem", epsilon=1.0, verbose=False)
        frame = _of("pandas").DataFrame(rows, columns=["a", "b"])
        maker.fit(frame, categorical_columns=["a", "b"], preprocessor_eps=0.0)
        made = np.asarray(maker.sample(200)).astype(int)
        return np.bincount(2 * made[:, 0] + made[:, 1], minlength=4).tolist()

    return answer


def tmlt_laplace() -> Answer:
    """Answer with Laplace noise of scale 1, which the library maps to epsilon 1 at distance 1."""
    noise = _of("tmlt.core.measurements.noise_mechanisms")
    domain = _of("tmlt.core.domains.numpy_domains").NumpyFloatDomain()
    measure = noise.AddLaplaceNoise(input_domain=domain, scale=1)
    return lambda value: float(measure(float(value)))


def recipe_coefficients() -> Answer:
    """Answer with coefficients of scikit-learn's regression plus Laplace noise of scale 1."""
    np, linear = _of("numpy"), _of("sklearn.linear_model")
    random = np.random.default_rng()

    def answer(data: Any) -> Any:
        model = linear.LinearRegression().fit(np.array(data["X"]), np.array(data["y"]))
        return [round(float(x + random.laplace()), 6) for x in model.coef_]

    return answer


def recipe_boosted() -> Answer:
    """Answer with one prediction of boosted trees of xgboost plus Laplace noise of scale 1."""
    np, xgboost = _of("numpy"), _of("xgboost")
    random = np.random.default_rng()

    def answer(data: Any) -> Any:
        model = xgboost.XGBRegressor(n_estimators=5, max_depth=2, n_jobs=1)
        model.fit(np.array(data["X"]), np.array(data["y"]))
        return round(float(model.predict(np.array([[1.0]]))[0] + random.laplace()), 6)

    return answer


def main() -> None:
    """Answer line by line."""
    warnings.simplefilter("ignore")
    known = [name for name, made in globals().items() if isinstance(made, FunctionType)]
    cases = [name for name in known if not name.startswith("_") and name != "main"]
    if len(sys.argv) != 2 or sys.argv[1] not in cases:
        sys.exit(f"usage: answers.py NAME, where NAME is one of {', '.join(cases)}")
    answer = globals()[sys.argv[1]]()
    out = sys.stdout
    sys.stdout = sys.stderr  # what a library prints is no answer
    for number, line in enumerate(sys.stdin):
        try:
            found = answer(json.loads(line))
        except Exception as error:
            if number == 0:
                raise  # a setting that does not run at all is no audit
            found = f"exception {type(error).__name__}"
        out.write(json.dumps(found) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
