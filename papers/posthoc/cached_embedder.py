"""The embedder of an experiment, trained once per folder."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import load_file, save_file

from papers.posthoc.settings import TableSettings
from reticent.datasets import Dataset
from reticent.training.embedder import Embedder, EmbedderConfig, train_embedder
from reticent.training.progress import Report


def cached_embedder(
    data: Dataset, settings: TableSettings, folder: Path, *, seed: int, report: Report
) -> Embedder:
    """The beta-VAE of ``settings``, read from ``folder`` if an earlier run left it there.

    Args:
        data: its training part is what the embedder is trained on.
        settings: fixed settings.
        folder: an existing folder.
        seed: of training.
        report: told about every finished epoch.
    """
    config = EmbedderConfig(
        image_shape=data.image_shape,
        latent_dimension=settings.latent_dimension,
        architecture=settings.architecture,
        epochs=settings.embedder_epochs,
        width=settings.embedder_width,
        seed=seed,
    )
    path = folder / "embedder.safetensors"
    if path.is_file():
        embedder = Embedder(config)
        embedder.load_state_dict(load_file(path))
        return embedder.eval()
    embedder = train_embedder(data.train_images, config, report=report)
    save_file({name: tensor.contiguous() for name, tensor in embedder.state_dict().items()}, path)
    return embedder
