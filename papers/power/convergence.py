"""Training as the paper shows it: losses of the client (Figures 6 and 8), accuracy of the server
(7), cost to reach it (Table 4).

The server is a neural network, trained step by step on the embeddings that the filter lets pass;
DP-Adam trains the same network on the client. Cost is the paper's: memory of a step times number
of steps; floating-point operations are beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from papers.dpsgd import PrivateSteps, PrivateTraining
from papers.power.parts import Array, Parts, Results
from papers.power.published_mode import DP_ADAM_DELTA, published_encoder
from papers.power.step_costs import StepCost, step_cost
from reticent.core.arrays import Integers
from reticent.published.power_network import PowerSteps
from reticent.training.networks import relu_network

CLIENTS = {"PowerSmall": 128, "PowerLarge": 512}
"""Batch sizes of the paper's two clients."""

_HIDDEN = (64, 64)
_POINTS = 60  # of a curve, at least
_LEAST = 300  # steps of a curve, whatever it reached


@dataclass(frozen=True, eq=False)
class _Task:
    """What every server learns from and is tested on: tensors of released rows and labels, and
    the test rows.
    """

    rows: torch.Tensor
    labels: torch.Tensor
    test_rows: torch.Tensor
    test_labels: Integers

    @classmethod
    def of(cls, rows: Array, labels: Integers, test_rows: Array, test_labels: Integers) -> _Task:
        return cls(_float(rows), torch.from_numpy(labels), _float(test_rows), test_labels)


def clients(parts: Parts) -> Results:
    """Loss curves and the cost of a step of both clients, and of the paper's non-private one
    (small, no privacy loss).
    """
    results = {}
    for name, (batch, private) in {
        **{key: (size, True) for key, size in CLIENTS.items()},
        "NonPriv": (128, False),
    }.items():
        encoder = published_encoder(parts, private=private, batch_size=batch)
        training, density = encoder.training_, encoder.density_
        config = replace(
            parts.settings.power_config, batch_size=batch, private=private, seed=parts.seed
        )
        rows = parts.schema.encode(parts.private_rows)
        steps = PowerSteps(rows, parts.private_labels, config, density=density)
        # Scores are numpy's: a product with the centers and one with the kernels.
        kernels = 4.0 * batch * density.centers.size
        cost = step_cost(steps.step, held=steps.parameters, extra_operations=kernels)
        weight = config.weight
        joint = [
            first * private + weight * second
            for first, second in zip(training.privacy_losses, training.utility_losses, strict=True)
        ]
        results[name] = {
            "privacy": list(training.privacy_losses),
            "utility": list(training.utility_losses),
            "joint": joint,
            "steps": config.steps,
            **_plain(cost),
        }
    return results


def servers(parts: Parts) -> Results:
    """Accuracy on all held-out rows along the training of every server, and the cost of its
    steps. A training ends where it has reached all of the accuracies that are counted to, and has
    made 300 steps.
    """
    settings = parts.settings
    rows, test = parts.schema.encode(parts.private_rows), parts.schema.encode(parts.test_rows)
    labels, wanted = parts.private_labels, parts.test_labels
    results: Results = {}
    for client, batch in CLIENTS.items():
        encoder = published_encoder(parts, batch_size=batch)
        scores = encoder.scores(parts.private_rows)
        embedded, tested = (encoder.training_.network.embed(part) for part in (rows, test))
        for epsilon in settings.cost_epsilons:
            kept = scores <= epsilon
            if len(np.unique(labels[kept])) > 1:
                task = _Task.of(embedded[kept], labels[kept], tested, wanted)
                results[f"{client}, score {epsilon:g}"] = _plain_training(parts, task)
    encoder = published_encoder(parts, private=False, batch_size=CLIENTS["PowerSmall"])
    embedded, tested = (encoder.training_.network.embed(part) for part in (rows, test))
    results["NonPriv"] = _plain_training(parts, _Task.of(embedded, labels, tested, wanted))
    rows, test = parts.standardised(rows, test)
    for epsilon in settings.cost_epsilons:
        task = _Task.of(rows, labels, test, wanted)
        results[f"DP-Adam, epsilon {epsilon:g}"] = _private_training(parts, task, epsilon=epsilon)
    return results


def _plain_training(parts: Parts, task: _Task) -> Results:
    """Adam on batches of released rows, which are brought to zero mean and unit variance first."""
    center, spread = task.rows.mean(dim=0), task.rows.std(dim=0, correction=0).clamp(min=1e-6)
    task = replace(
        task, rows=(task.rows - center) / spread, test_rows=(task.test_rows - center) / spread
    )
    network, schedule = _network(parts, task), parts.settings.server
    optimizer = torch.optim.Adam(network.parameters(), lr=schedule.rate)

    def step() -> None:
        chosen = torch.randint(len(task.rows), (min(schedule.batch, len(task.rows)),))
        loss = functional.cross_entropy(network(task.rows[chosen]), task.labels[chosen])
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        optimizer.step()

    return _followed(parts, task, network, step, schedule.steps)


def _private_training(parts: Parts, task: _Task, *, epsilon: float) -> Results:
    network, schedule = _network(parts, task), parts.settings.dp_adam
    config = PrivateTraining(
        epsilon=epsilon,
        delta=DP_ADAM_DELTA,
        hidden=_HIDDEN,
        batch_size=schedule.batch,
        learning_rate=schedule.rate,
        optimizer="adam",
        seed=parts.seed,
    )
    generator = torch.Generator().manual_seed(parts.seed)
    training = PrivateSteps(
        network, task.rows, task.labels, config, steps=schedule.steps, generator=generator
    )
    return _followed(
        parts, task, network, training.quick_step, schedule.steps, counted=training.step
    )


def _network(parts: Parts, task: _Task) -> nn.Sequential:
    torch.manual_seed(parts.seed)
    return relu_network([task.rows.shape[1], *_HIDDEN, parts.table.classes])


def _followed(
    parts: Parts,
    task: _Task,
    network: nn.Sequential,
    step: Callable[[], object],
    most: int,
    *,
    counted: Callable[[], object] | None = None,
) -> Results:
    """The accuracy after steps 1, 2, ... in growing strides (NaN once the training has ended), the
    first step that reached each accuracy (NaN for none), and the cost of one more step: of
    ``counted``, where that is the paper's way to make the same step.
    """
    steps = np.unique(np.geomspace(1, most, _POINTS).round().astype(int))
    accuracies = np.full(len(steps), np.nan)
    done = 0
    for look, number in enumerate(steps):
        for _ in range(done, number):
            step()
        done = number
        with torch.no_grad():
            found: npt.NDArray[np.int64] = network(task.test_rows).argmax(dim=1).numpy()
        accuracies[look] = (found == task.test_labels).mean()
        best = float(np.nanmax(accuracies))
        if number >= _LEAST and best >= max(parts.settings.cost_targets):
            break
    reached = {
        f"{target:g}": float(min(steps[accuracies >= target], default=np.nan))
        for target in parts.settings.cost_targets
    }
    return {
        "steps": steps.tolist(),
        "accuracy": accuracies.tolist(),
        "best": best,
        "reached": reached,
        **_plain(step_cost(counted or step, held=network.parameters())),
    }


def _plain(cost: StepCost) -> Results:
    return {"bytes": cost.peak_bytes, "operations": cost.operations}


def _float(rows: Array) -> torch.Tensor:
    return torch.from_numpy(rows.astype(np.float32))
