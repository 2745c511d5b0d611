"""A bundle: a folder with a system's settings (JSON), weights (safetensors) and card (Markdown). No
pickle.

``manifest.json`` has the digest and size of the other three and the identity of the bundle. Like
all JSON here it has one spelling, so that no byte of a bundle can change unnoticed. A digest finds
damage, not intent: whoever edits a bundle can write a manifest to it. Against that there are
signatures (``sign_bundle``), and whatever a load can recompute is recomputed and compared.

A folder is written under another name and renamed into place, so a bundle is there whole or not
at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from reticent.core.checks import count, words
from reticent.core.errors import CorruptBundle, InvalidInput, MissingExtra, UntrustedSignature
from reticent.core.files import output_file, output_folder, read_regular
from reticent.core.signatures import sign, verify
from reticent.core.strict_json import strict_dumps, strict_loads

if TYPE_CHECKING:
    import numpy.typing as npt

FORMAT = "reticent-bundle"
VERSION = 2

_MANIFEST = "manifest.json"
_SETTINGS = "bundle.json"
_WEIGHTS = "weights.safetensors"
_CARD = "card.md"
_SIGNATURE = "signature.json"

MOST_BYTES = {_MANIFEST: 2**14, _SIGNATURE: 2**14, _SETTINGS: 2**24, _CARD: 2**20, _WEIGHTS: 2**31}
"""Size of each file at most; larger ones are neither written nor read."""

MARKER = _SETTINGS
"""A folder that holds this file is a bundle, and may be replaced by one."""

_HEAD = {"format", "version", "system", "settings", "serial"}


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
        """SHA-256 of what decides an answer: system, settings and weights; names the bundle in
        receipts and scopes.

        The card follows from these. It has no part in the name, so that a clearer sentence in a
        later version does not part a bundle from the budget that was granted to it.

        A serial stands for the weights. A digest of weights that hold private records tells
        whoever can compute them for a guess of the records whether the guess is right, and
        receipts are let out.
        """
        weights = b"" if self.serial else self._weights()
        head = strict_dumps([self.system, self.settings, self.serial])
        return hashlib.sha256(
            hashlib.sha256(head).digest() + hashlib.sha256(weights).digest()
        ).hexdigest()

    @property
    def private(self) -> bool:
        """Whether its weights hold private records; its files are then for their owner alone."""
        return bool(self.serial)

    def same_content(self, other: Bundle) -> bool:
        """Whether both hold the same system, settings, serial and weights, to the last bit;
        cards may differ in their words.
        """
        return self._settings() == other._settings() and self._weights() == other._weights()

    def write(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """The folder, written whole; a private bundle's for its owner alone, another's as the umask
        says.

        Raises:
            InvalidInput: the folder exists and ``overwrite`` is False, or is not a bundle; or the
                bundle is too large.
            WriteFailed: the disk is full or not writable; nothing is left behind.
        """
        files = self._files()
        for name, content in files.items():
            if len(content) > MOST_BYTES[name]:
                raise InvalidInput(
                    f"bundle: {name} takes {len(content)} bytes; expected at most "
                    f"{MOST_BYTES[name]}"
                )
        with output_folder(
            folder, marker=_SETTINGS, overwrite=overwrite, private=self.private
        ) as output:
            for name, content in files.items():
                output.write(name, content)
        return output.target

    @classmethod
    def read(
        cls, folder: str | Path, *, system: str | None = None, trusted_key: str | Path | None = None
    ) -> Bundle:
        """The bundle in ``folder``, every byte accounted for.

        Args:
            folder: where it was written.
            system: name of the class that must have written it, or None for any.
            trusted_key: file with the public key that must have signed it, checked before anything
                else is read; None for a bundle that is trusted as its folder is.

        Raises:
            InvalidInput: no such folder, or a bundle of another system.
            CorruptBundle: a file is missing, damaged, no plain file, too large, or of another
                format or version.
            UntrustedSignature: not signed by ``trusted_key``.
        """
        source = Path(folder)
        contents, identity = _read_files(source, trusted_key)
        try:
            found = _parsed(contents)
        except InvalidInput as error:
            raise _corrupt(source, str(error)) from error
        if found.identity != identity:
            raise _corrupt(source, "its identity is not that of its settings and weights")
        if system is not None and found.system != system:
            raise InvalidInput(
                f"folder={str(folder)!r}: holds a {found.system}, expected a {system}"
            )
        return found

    def _weights(self) -> bytes:
        # Here, because a card is shown without arrays, and numpy takes longer than the rest of it.
        import numpy as np
        from safetensors.numpy import save as save_tensors

        weights: bytes = save_tensors(
            {name: np.ascontiguousarray(array) for name, array in sorted(self.arrays.items())}
        )
        return weights

    def _settings(self) -> bytes:
        head = {
            "format": FORMAT,
            "version": VERSION,
            "system": self.system,
            "settings": self.settings,
            "serial": self.serial,
        }
        return strict_dumps(head)

    def _files(self) -> dict[str, bytes]:
        contents = {
            _SETTINGS: self._settings(),
            _WEIGHTS: self._weights(),
            _CARD: self.card.encode(),
        }
        return {**contents, _MANIFEST: _manifest(contents, self.identity)}


@dataclass(frozen=True)
class Edition:
    """What a bundle's owner calls it, and which of its editions it is, under the owner's signature.

    Attributes:
        name: the owner's name for it.
        number: of the edition, 0 or more; a device refuses one below the highest it has seen.
        key: digest of the public key that signed it, as ``signature.json`` has it.
    """

    name: str
    number: int
    key: str = ""

    def signed(self, manifest: bytes) -> bytes:
        """Return what the signature of a bundle is of."""
        digest = hashlib.sha256(manifest).hexdigest()
        return strict_dumps({"edition": self.number, "manifest": digest, "name": self.name})


def read_edition(folder: str | Path, *, trusted_key: str | Path) -> Edition:
    """Return the name and the edition that the bundle in ``folder`` was signed with.

    Raises:
        CorruptBundle: it has no manifest.
        UntrustedSignature: not signed by ``trusted_key``.
    """
    return _checked_signature(Path(folder), _read_manifest(Path(folder)), trusted_key)


def _checked_signature(source: Path, manifest: bytes, trusted_key: str | Path) -> Edition:
    content = _read_signature(source)
    if content is None:
        verify(manifest, None, purpose="bundle", trusted_key=trusted_key)  # says by whom it is not
    try:
        values = strict_loads(content or b"")
        name, number = words(values.pop("name"), name="name"), values.pop("edition")
        edition = Edition(name, count(number, name="edition", minimum=0), str(values["key"]))
        rest = strict_dumps(values)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UntrustedSignature("bundle: its signature is damaged") from error
    verify(edition.signed(manifest), rest, purpose="bundle", trusted_key=trusted_key)
    return edition


def sign_bundle(
    folder: str | Path, *, key: str | Path, name: str | None = None, edition: int = 0
) -> Path:
    """Signs the bundle in ``folder``, or signs it anew; the file with the signature.

    A signature is of the manifest, and so of every byte but the signature's own, and of the
    bundle's name and edition.

    Args:
        folder: a bundle.
        key: file with a private Ed25519 key in PEM.
        name: what its owner calls it, and a service has to; None takes the folder's name.
        edition: 0 or more, higher than that of any bundle of this name that it replaces.

    Raises:
        InvalidInput, InvalidParameter: no such folder or key, or no name or edition.
        CorruptBundle: not a whole bundle.
        MissingExtra: the package cryptography is not installed.
        WriteFailed: the folder is not writable.
    """
    private = Bundle.read(folder).private
    target = Path(folder) / _SIGNATURE
    called = words(Path(folder).resolve().name if name is None else name, name="name")
    stated = Edition(called, count(edition, name="edition", minimum=0))
    manifest = _read_manifest(Path(folder))
    values = strict_loads(sign(stated.signed(manifest), purpose="bundle", key=key))
    content = strict_dumps({**values, "name": stated.name, "edition": stated.number})
    with output_file(target, size=len(content), overwrite=True, private=private) as put:
        put(content)
    return target


def stored_card(folder: str | Path, *, trusted_key: str | Path | None = None) -> str:
    """Return the card that stands in a bundle, every byte of which is accounted for.

    Nothing is rebuilt, so whoever wrote the manifest answers for the words of the card. Give
    ``trusted_key``, or use ``load(folder).card()``, where that may have been somebody else.

    Args:
        folder: a bundle.
        trusted_key: file with public keys, one of which must have signed it; None for a bundle that
            is trusted as its folder is.

    Raises:
        InvalidInput, CorruptBundle, UntrustedSignature: as ``Bundle.read``.
    """
    source = Path(folder)
    contents, _ = _read_files(source, trusted_key)
    try:
        return contents[_CARD].decode()
    except UnicodeDecodeError as error:
        raise _corrupt(source, f"{_CARD}: expected text") from error


@contextmanager
def rebuilding() -> Iterator[None]:
    """Turns whatever is raised over values that no fitted system has into ``CorruptBundle``.

    For the code that builds a system from what a bundle holds. Its settings can be edited to any
    JSON and its weights to any arrays; what numpy, torch or a constructor raises over them is not
    foreseen one by one.

    Raises:
        CorruptBundle: in place of any other exception.
        MissingExtra: a package that the system needs is not installed; the bundle may be whole.
    """
    try:
        yield
    except (CorruptBundle, MissingExtra):
        raise
    except Exception as error:
        reason = str(error).splitlines()[0][:200] if str(error) else ""
        raise CorruptBundle(
            f"bundle: its settings do not fit together ({type(error).__name__}: {reason}); "
            "fetch or fit it again"
        ) from error


def check_rebuilt(stored: Bundle, rebuilt: Bundle) -> None:
    """Nothing, if the system that was built from ``stored`` would be stored as it was.

    So no setting is unknown, missing, of another type, or without effect, and nothing that a system
    derives from its weights, such as the identity of its space, can be stated differently.

    Raises:
        CorruptBundle: it would be stored differently.
    """
    if not stored.same_content(rebuilt):
        raise CorruptBundle(
            "bundle: holds settings or weights that its system does not have; fetch or fit it again"
        )


def _read_files(source: Path, trusted_key: str | Path | None) -> tuple[dict[str, bytes], str]:
    """Return the files of a bundle, all as its manifest states them, and the stated identity."""
    if not source.is_dir():
        raise InvalidInput(f"folder={str(source)!r}: expected a bundle folder, found none")
    manifest = _read_manifest(source)
    if trusted_key is not None:
        _checked_signature(source, manifest, trusted_key)
    try:
        contents = {
            name: read_regular(source / name, most=MOST_BYTES[name])
            for name in (_SETTINGS, _WEIGHTS, _CARD)
        }
        return contents, _checked_manifest(manifest, contents)
    except InvalidInput as error:
        raise _corrupt(source, str(error)) from error


def _manifest(contents: dict[str, bytes], identity: str) -> bytes:
    files = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in contents.items()
    }
    return strict_dumps(
        {"format": FORMAT, "version": VERSION, "identity": identity, "files": files}
    )


def _read_manifest(source: Path) -> bytes:
    try:
        return read_regular(source / _MANIFEST, most=MOST_BYTES[_MANIFEST])
    except InvalidInput as error:
        if not (source / _MANIFEST).exists() and (source / _SETTINGS).is_file():
            raise _corrupt(
                source,
                f"has no {_MANIFEST}; expected format {FORMAT} version {VERSION}, and this may "
                "be one of version 1, whose "
                "settings no checksum covers",
            ) from error
        raise _corrupt(source, f"{_MANIFEST}: {error}") from error


def _read_signature(source: Path) -> bytes | None:
    try:
        return read_regular(source / _SIGNATURE, most=MOST_BYTES[_SIGNATURE])
    except InvalidInput:
        return None


def _checked_manifest(manifest: bytes, contents: dict[str, bytes]) -> str:
    """The identity that a manifest states, if it is the manifest of ``contents``."""
    stated = strict_loads(manifest)
    identity = words(stated.get("identity"), name="identity") if isinstance(stated, dict) else ""
    if not isinstance(stated, dict) or (stated.get("format"), stated.get("version")) != (
        FORMAT,
        VERSION,
    ):
        raise InvalidInput(f"expected format {FORMAT} version {VERSION}")
    for name, content in contents.items():
        expected = stated["files"].get(name) if isinstance(stated.get("files"), dict) else None
        if (
            not isinstance(expected, dict)
            or expected.get("sha256") != hashlib.sha256(content).hexdigest()
        ):
            raise InvalidInput(f"{name} does not match its checksum")
    if manifest != _manifest(contents, identity):
        raise InvalidInput(f"{_MANIFEST} does not match the files")
    return identity


def _parsed(contents: dict[str, bytes]) -> Bundle:
    head = strict_loads(contents[_SETTINGS])
    if (
        not isinstance(head, dict)
        or set(head) != _HEAD
        or (head["format"], head["version"]) != (FORMAT, VERSION)
    ):
        raise InvalidInput(
            f"{_SETTINGS}: expected format {FORMAT} version {VERSION}, with "
            f"{', '.join(sorted(_HEAD))}"
        )
    if not isinstance(head["settings"], dict):
        raise InvalidInput(f"{_SETTINGS}: expected settings by name")
    serial = words(head["serial"], name="serial", minimum=0)
    system = words(head["system"], name="system")
    from safetensors.numpy import load as load_tensors

    try:
        arrays, card = load_tensors(contents[_WEIGHTS]), contents[_CARD].decode()
    except (
        SafetensorError,
        AttributeError,
        KeyError,
        OverflowError,
        TypeError,
        ValueError,
    ) as error:
        raise InvalidInput(f"{_WEIGHTS} or {_CARD}: damaged ({type(error).__name__})") from error
    return Bundle(system, head["settings"], arrays, card, serial)


def _corrupt(source: Path, reason: str) -> CorruptBundle:
    return CorruptBundle(f"bundle {str(source)!r}: {reason}; fetch or fit it again")
