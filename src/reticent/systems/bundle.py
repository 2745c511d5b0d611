"""A bundle: a folder with a system's settings (JSON), weights (safetensors) and card (Markdown). No pickle.

Everything is checked by SHA-256 on the way in, and written to a temporary folder that is renamed into place on
the way out, so a bundle is there whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from reticent.core.errors import CorruptBundle, InvalidInput
from reticent.core.files import output_folder

FORMAT = "reticent-bundle"
VERSION = 1

_SETTINGS = "bundle.json"
_WEIGHTS = "weights.safetensors"
_CARD = "card.md"


@dataclass(frozen=True)
class Bundle:
    """What is stored.

    Attributes:
        system: name of the class that wrote it.
        settings: plain JSON values.
        arrays: weights by name, any numeric dtype.
        card: the guarantee card as Markdown.
        serial: drawn at random where the weights hold private records, else "".
    """

    system: str
    settings: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]
    card: str
    serial: str = ""

    @property
    def identity(self) -> str:
        """SHA-256 of what decides an answer: system, settings and weights; names the bundle in receipts and scopes.

        The card follows from these. It has no part in the name, so that a clearer sentence in a later version does not
        part a bundle from the budget that was granted to it.

        A serial stands for the weights. A digest of weights that hold private records tells whoever can compute them for a
        guess of the records whether the guess is right, and receipts are let out.
        """
        head = json.dumps([self.system, self.settings, self.serial], sort_keys=True, allow_nan=False).encode()
        weights = b"" if self.serial else self._weights()
        return hashlib.sha256(hashlib.sha256(head).digest() + hashlib.sha256(weights).digest()).hexdigest()

    def _weights(self) -> bytes:
        weights: bytes = save_tensors({name: np.ascontiguousarray(array) for name, array in sorted(self.arrays.items())})
        return weights

    def _files(self) -> dict[str, bytes]:
        weights = self._weights()
        card = self.card.encode()
        head = {
            "format": FORMAT,
            "version": VERSION,
            "system": self.system,
            "settings": self.settings,
            "serial": self.serial,
            "sha256": {_WEIGHTS: _digest(weights), _CARD: _digest(card)},
        }
        text = json.dumps(head, indent=2, sort_keys=True, allow_nan=False).encode() + b"\n"
        return {_SETTINGS: text, _WEIGHTS: weights, _CARD: card}

    def write(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """The folder, written whole.

        Raises:
            InvalidInput: the folder exists and ``overwrite`` is False, or is not a bundle.
            WriteFailed: the disk is full or not writable; nothing is left behind.
        """
        with output_folder(folder, marker=_SETTINGS, overwrite=overwrite) as output:
            for name, content in self._files().items():
                output.write(name, content)
        return output.target

    @classmethod
    def read(cls, folder: str | Path, *, system: str | None = None) -> Bundle:
        """The bundle in ``folder``, every checksum verified.

        Args:
            folder: where it was written.
            system: name of the class that must have written it, or None for any.

        Raises:
            InvalidInput: no such folder, or a bundle of another system.
            CorruptBundle: a file is missing, damaged, or of another format or version.
        """
        source = Path(folder)
        if not source.is_dir():
            raise InvalidInput(f"folder={str(source)!r}: expected a bundle folder, found none")
        try:
            head = json.loads((source / _SETTINGS).read_bytes())
            contents = {name: (source / name).read_bytes() for name in (_WEIGHTS, _CARD)}
        except (OSError, ValueError) as error:
            raise CorruptBundle(f"bundle {str(source)!r}: cannot be read ({error}); fetch or fit it again") from error
        if not isinstance(head, dict) or head.get("format") != FORMAT or head.get("version") != VERSION:
            raise CorruptBundle(f"bundle {str(source)!r}: expected format {FORMAT} version {VERSION}")
        for name, content in contents.items():
            if not isinstance(head.get("sha256"), dict) or head["sha256"].get(name) != _digest(content):
                raise CorruptBundle(f"bundle {str(source)!r}: {name} does not match its checksum; fetch or fit it again")
        try:
            arrays = load_tensors(contents[_WEIGHTS])
            found = cls(str(head["system"]), dict(head["settings"]), arrays, contents[_CARD].decode(), str(head["serial"]))
        except (KeyError, TypeError, ValueError, SafetensorError) as error:
            raise CorruptBundle(f"bundle {str(source)!r}: damaged ({error}); fetch or fit it again") from error
        if system is not None and found.system != system:
            raise InvalidInput(f"folder={str(folder)!r}: holds a {found.system}, expected a {system}")
        return found


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
