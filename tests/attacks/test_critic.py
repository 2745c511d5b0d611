"""A critic learns to tell drawn pictures from real ones, and only says what the decoder loses."""

from __future__ import annotations

import pytest
import torch

from reticent.attacks.critic import Critic, Opponent


def weights(critic: Critic) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in critic.parameters()]


@pytest.mark.parametrize("shape", [(8, 8), (5, 7), (1, 3), (28, 28)])
def test_pictures_of_any_shape_have_log_odds(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    odds = Critic(shape, 3)(torch.rand(6, shape[0] * shape[1]))
    assert odds.shape == (6,)
    assert torch.isfinite(odds).all()


def test_a_critic_learns_to_tell_two_kinds_of_pictures_apart() -> None:
    """Stripes along and across, in noise: every parameter moves, and unseen ones are told apart."""
    torch.manual_seed(0)
    lines = torch.arange(8) % 2
    across, along = lines.repeat(8, 1).flatten(), lines[:, None].repeat(1, 8).flatten()

    def some(pattern: torch.Tensor) -> torch.Tensor:
        return 0.25 + 0.5 * pattern + 0.25 * torch.rand(64, 64)

    critic = Critic((8, 8), 4)
    before, opponent = weights(critic), Opponent(critic, learning_rate=1e-2)
    for _ in range(60):
        opponent.learn(real=some(across), drawn=some(along))
    for old, new in zip(before, weights(critic), strict=True):
        assert not torch.equal(old, new)
    with torch.no_grad():
        assert (critic(some(across)) > 0).float().mean() > 0.95
        assert (critic(some(along)) < 0).float().mean() > 0.95


def test_each_side_learns_from_its_own_loss_alone() -> None:
    torch.manual_seed(0)
    critic = Critic((4, 4), 2)
    opponent = Opponent(critic, learning_rate=1e-2)
    drawn = torch.rand(10, 16, requires_grad=True)
    opponent.learn(real=torch.rand(10, 16), drawn=drawn)
    assert drawn.grad is None
    before = weights(critic)
    opponent.term(drawn).backward()
    assert drawn.grad is not None
    assert float(drawn.grad.abs().sum()) > 0
    for old, new in zip(before, weights(critic), strict=True):
        assert torch.equal(old, new)
    # A step along the gradient makes them pass for real ones more often.
    with torch.no_grad():
        assert opponent.term(drawn - drawn.grad) < opponent.term(drawn)
