"""DP-SGD on a small ReLU network: a baseline, whose noise here is no release noise."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from reticent.core.arrays import Array
from reticent.core.extras import require
from reticent.core.guarantees import Guarantee
from reticent.planning.candidates import Requirements
from reticent.planning.tasks import Settings, StandIns, Task
from reticent.systems.scores import Predictions


@lru_cache(maxsize=256)
def _step_noise(epsilon: float, delta: float, sampling_probability: float, steps: int) -> float:
    from reticent.training.dpsgd import step_noise

    return step_noise(
        epsilon=epsilon, delta=delta, sampling_probability=sampling_probability, steps=steps
    )


class DpSgd:
    """Clipped and noised gradients of Poisson samples, by Opacus."""

    name = "DP-SGD"
    line = "a ReLU network trained by DP-SGD; this package has it to compare with"
    protects = "every private record, by the noise of the gradients"
    requirements = Requirements(slow=True, replace=False, module="opacus", extra="baselines")

    def settings(self, task: Task) -> Sequence[Settings]:
        """Passes and learning rates."""
        return [
            {"hidden": [64], "epochs": 12, "rate": 0.05, "learning_rate": rate}
            for rate in (0.5, 2.0)
        ]

    def evaluate(
        self,
        settings: Settings,
        tasks: Sequence[Task],
        stand_ins: StandIns,
        queries: Array,
        *,
        noise_scale: float,
        seeds: Sequence[int],
    ) -> list[list[Predictions]]:
        """See ``Candidate.evaluate``; one draw for each total, since training takes seconds."""
        found: dict[Guarantee, list[Predictions]] = {}
        for task in tasks:
            if task.guarantee not in found:
                one = self._predicted(settings, task, stand_ins, queries, noise_scale, seeds[0])
                found[task.guarantee] = [one] * len(seeds)
        return [found[task.guarantee] for task in tasks]

    def estimator(self, settings: Settings, task: Task) -> Any:
        """None: the noise of this package's DP-SGD is drawn in float32 from a seed."""
        return None

    def _predicted(
        self,
        settings: Settings,
        task: Task,
        stand_ins: StandIns,
        queries: Array,
        noise_scale: float,
        seed: int,
    ) -> Predictions:
        from reticent.training.dpsgd import private_optimizer
        from reticent.training.networks import relu_network

        torch = require("torch", extra="networks")
        public = stand_ins.public_rows
        center, spread = public.mean(axis=0), np.maximum(public.std(axis=0), 1e-9)
        points, asked = (
            torch.from_numpy(np.clip((rows - center) / spread, -5, 5).astype(np.float32))
            for rows in (stand_ins.private_rows, queries)
        )
        targets = torch.from_numpy(stand_ins.private_labels)
        rate, steps = settings["rate"], round(settings["epochs"] / settings["rate"])
        generator = torch.Generator().manual_seed(seed % 2**31)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed % 2**31)
            network = relu_network([points.shape[1], *settings["hidden"], task.classes])
        wrap = require("opacus", extra="baselines").GradSampleModule
        model = wrap(network)
        optimizer = private_optimizer(
            torch.optim.SGD(model.parameters(), lr=settings["learning_rate"]),
            noise_multiplier=noise_scale
            * _step_noise(task.guarantee.epsilon, task.guarantee.delta, rate, steps),
            clip=1.0,
            expected_batch_size=max(1, round(rate * len(points))),
            generator=generator,
        )
        # Opacus' hooks fire on outputs of a network whose inputs need no gradient, as they should.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Full backward hook is firing")
            self._train(model, optimizer, points, targets, rate, steps, generator)
        with torch.no_grad():
            return Predictions.of(torch.softmax(model(asked), dim=1).double().numpy())

    def _train(
        self,
        model: Any,
        optimizer: Any,
        points: Any,
        targets: Any,
        rate: float,
        steps: int,
        generator: Any,
    ) -> None:
        torch = require("torch", extra="networks")
        for _ in range(steps):
            rows = torch.nonzero(torch.rand(len(points), generator=generator) < rate)[:, 0]
            optimizer.zero_grad()
            if len(rows):
                loss = torch.nn.functional.cross_entropy(model(points[rows]), targets[rows])
                torch.autograd.backward(loss)
            else:
                for parameter in model.parameters():
                    parameter.grad_sample = torch.zeros(0, *parameter.shape)
            optimizer.step()
