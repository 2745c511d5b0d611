"""A critic of drawn pictures: a decoder's opponent that tells them from real ones.

A decoder of least error draws the posterior mean, which is smooth where the values leave doubt. A
decoder with a critic draws sharper pictures, which look more real. They are further from the true
picture in squared error.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from reticent.training.networks import Adam

_SLOPE = 0.2
_BETAS = (0.5, 0.999)


class Critic(nn.Module):
    """Two strided convolutions and a linear layer: the log-odds that a picture is a real one.

    Args:
        image_shape: height and width in pixels.
        channels: maps of the first convolution. The second has twice as many.
    """

    def __init__(self, image_shape: tuple[int, int], channels: int) -> None:
        super().__init__()
        height, width = ((side + 3) // 4 for side in image_shape)
        self.network = nn.Sequential(
            nn.Unflatten(1, (1, *image_shape)),
            nn.Conv2d(1, channels, 3, stride=2, padding=1),
            nn.LeakyReLU(_SLOPE),
            nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1),
            nn.LeakyReLU(_SLOPE),
            nn.Flatten(),
            nn.Linear(2 * channels * height * width, 1),
        )

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Return the log-odds, shape (n,), of pictures in [0, 1] of shape (n, pixels)."""
        odds: torch.Tensor = self.network(pictures)
        return odds[:, 0]


class Opponent:
    """A critic that learns while a decoder does, and the critic's term of the decoder's loss.

    Args:
        critic: the critic, trained in place.
        learning_rate: learning rate of its Adam.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> opponent = Opponent(Critic((8, 8), 4), learning_rate=1e-2)
        >>> dark, bright = torch.zeros(20, 64), torch.ones(20, 64)
        >>> before = opponent.term(dark).item()
        >>> for _ in range(20):
        ...     opponent.learn(real=bright, drawn=dark)
        >>> opponent.term(dark).item() > before
        True

    References:
        - Goodfellow, Pouget-Abadie, Mirza, Xu, Warde-Farley, Ozair, Courville and Bengio (2014),
          "Generative adversarial nets", Advances in Neural Information Processing Systems
          (NeurIPS), arXiv:1406.2661, the two losses.
    """

    def __init__(self, critic: Critic, *, learning_rate: float) -> None:
        self.critic = critic
        self._optimizer = Adam(critic.parameters(), betas=_BETAS)
        self._learning_rate = learning_rate

    def learn(self, *, real: torch.Tensor, drawn: torch.Tensor) -> None:
        """Make one step of the critic on real and drawn pictures, shape (n, pixels) each.

        The decoder that drew them gets no gradient.
        """
        self.critic.requires_grad_(True)
        of_real, of_drawn = self.critic(real), self.critic(drawn.detach())
        loss = functional.softplus(-of_real).mean() + functional.softplus(of_drawn).mean()
        torch.autograd.backward(loss)
        self._optimizer.step(self._learning_rate)

    def term(self, drawn: torch.Tensor) -> torch.Tensor:
        """Return the decoder's loss from pictures that the critic takes for drawn ones."""
        self.critic.requires_grad_(False)
        return functional.softplus(-self.critic(drawn)).mean()
