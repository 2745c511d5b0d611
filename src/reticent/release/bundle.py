"""A bundle: a folder with a system's settings (JSON), weights (safetensors) and card (Markdown).

There is no pickle. ``manifest.json`` has the digest and size of the other three and the identity of
the bundle. Like all JSON here it has one spelling, so that no byte of a bundle can change
unnoticed. A digest finds damage, not intent: someone who edits a bundle can write a new manifest.
Signatures (``sign_bundle``) prevent that. A load also recomputes what it can, and compares.

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
"""Most bytes of each file. Larger files are neither written nor read."""

RESEARCH = "research"
"""Setting of a bundle whose system is an algorithm as printed, and not private."""

MARKER = _SETTINGS
"""Mark of a folder that is a bundle, and that another bundle may replace."""

_HEAD = {"format", "version", "system", "settings", "serial"}


@dataclass(frozen=True)
class Bundle:
    """The stored form of a fitted system.

    Attributes:
        system: name of the class that wrote it.
        settings: plain JSON values.
        arrays: weights by name, any numeric dtype.
        card: the guarantee card as Markdown.
        serial: random text if the weights hold private records, else "".
    """

    system: str
    settings: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]
    card: str
    serial: str = ""

    @property
    def identity(self) -> str:
        """The SHA-256 of system, settings and weights, the bundle's name in receipts and scopes.

        These three decide an answer, and the card follows from them. The card has no part in the
        name, so a clearer sentence in a later version does not part a bundle from its budget.

        If weights hold private records, a serial stands for them. Receipts leave, and a digest of
        such weights would confirm a right guess of the records to anyone who can compute the
        weights from the guess.
        """
        weights = b"" if self.serial else self._weights()
        head = strict_dumps([self.system, self.settings, self.serial])
        return hashlib.sha256(
            hashlib.sha256(head).digest() + hashlib.sha256(weights).digest()
        ).hexdigest()

    @property
    def private(self) -> bool:
        """Return whether its weights hold private records, so that its files are private too."""
        return bool(self.serial)

    def same_content(self, other: Bundle) -> bool:
        """Return whether both hold the same system, settings, serial and weights, to the last bit.

        The words of their cards may differ.
        """
        return self._settings() == other._settings() and self._weights() == other._weights()

    def write(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the folder whole, and return it.

        Only the owner may read a private bundle. The umask decides for others.

        Raises:
            InvalidInput: the bundle is too large, or the folder exists and ``overwrite`` is False,
                or it is not a bundle.
            WriteFailed: the disk is full or not writable. Nothing is left behind.
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
        cls,
        folder: str | Path,
        *,
        system: str | None = None,
        trusted_key: str | Path | None = None,
        research: bool = False,
    ) -> Bundle:
        """Return the bundle in ``folder``, after a check of every byte.

        Args:
            folder: the bundle's folder.
            system: name of the class that must have written it, or None for any.
            trusted_key: file with the public key that must have signed it, checked before anything
                else is read, or None for a bundle that is trusted as its folder is.
            research: True to read an algorithm as printed, which is not private, and nothing else.

        Raises:
            InvalidInput: no such folder, a bundle of another system, or one of the other kind.
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
        _check_kind(source, found.system, found.settings, research)
        if system is not None and found.system != system:
            raise InvalidInput(
                f"folder={str(folder)!r}: holds a {found.system}, expected a {system}"
            )
        return found

    def _weights(self) -> bytes:
        # Imported here: a card is shown without arrays, and numpy loads slower than all the rest.
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
    """The name and the edition of a bundle, under its owner's signature.

    Attributes:
        name: the owner's name for the bundle.
        number: number of the edition, 0 or more. A device refuses one below the highest it has
            seen.
        key: digest of the public key that signed it, as in ``signature.json``.
    """

    name: str
    number: int
    key: str = ""

    def signed(self, manifest: bytes) -> bytes:
        """Return the bytes that the signature of a bundle covers."""
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
        verify(manifest, None, purpose="bundle", trusted_key=trusted_key)  # names the expected key
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
    folder: str | Path,
    *,
    key: str | Path,
    name: str | None = None,
    edition: int = 0,
    research: bool = False,
) -> Path:
    """Sign the bundle in ``folder``, or sign it anew, and return the file with the signature.

    The signature covers the bundle's name and edition, and its manifest. Through the manifest it
    covers every byte but the signature's own.

    Args:
        folder: a bundle.
        key: file with a private Ed25519 key in PEM.
        name: the owner's name for it, which a service has to use, or None for the folder's name.
        edition: number of 0 or more, higher than that of any bundle of this name that it replaces.
        research: as for ``Bundle.read``.

    Raises:
        InvalidInput, InvalidParameter: no such folder or key, or no name or edition.
        CorruptBundle: not a whole bundle.
        MissingExtra: the package cryptography is not installed.
        WriteFailed: the folder is not writable.
    """
    private = Bundle.read(folder, research=research).private
    target = Path(folder) / _SIGNATURE
    called = words(Path(folder).resolve().name if name is None else name, name="name")
    stated = Edition(called, count(edition, name="edition", minimum=0))
    manifest = _read_manifest(Path(folder))
    values = strict_loads(sign(stated.signed(manifest), purpose="bundle", key=key))
    content = strict_dumps({**values, "name": stated.name, "edition": stated.number})
    with output_file(target, size=len(content), overwrite=True, private=private) as put:
        put(content)
    return target


def stored_card(
    folder: str | Path, *, trusted_key: str | Path | None = None, research: bool = False
) -> str:
    """Return the card stored in a bundle, after a check of every byte of the bundle.

    Nothing is rebuilt, so the card's words are those of whoever wrote the manifest. If that may be
    somebody else, give ``trusted_key`` or use ``load(folder).card()``.

    Args:
        folder: a bundle.
        trusted_key: file with public keys, one of which must have signed it, or None for a bundle
            that is trusted as its folder is.
        research: as for ``Bundle.read``.

    Raises:
        InvalidInput, CorruptBundle, UntrustedSignature: the errors of ``Bundle.read``.
    """
    source = Path(folder)
    contents, _ = _read_files(source, trusted_key)
    try:
        system, settings, _ = _head(contents[_SETTINGS])
    except InvalidInput as error:
        raise _corrupt(source, str(error)) from error
    _check_kind(source, system, settings, research)
    try:
        return contents[_CARD].decode()
    except UnicodeDecodeError as error:
        raise _corrupt(source, f"{_CARD}: expected text") from error


@contextmanager
def rebuilding() -> Iterator[None]:
    """Turn every exception over impossible values into ``CorruptBundle``.

    It is for the code that builds a system from a bundle's content. Settings can be edited to any
    JSON and weights to any arrays. The exceptions that numpy, torch or a constructor may then raise
    cannot all be listed.

    Raises:
        CorruptBundle: any other exception was raised.
        MissingExtra: a package that the system needs is not installed. The bundle may be whole.
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
    """Raise unless the system that was built from ``stored`` would be stored in the same way.

    So no setting is unknown, missing, of another type, or without effect. Nor can a bundle misstate
    a value that a system derives from its weights, such as the identity of its space.

    Raises:
        CorruptBundle: the system would be stored differently.
    """
    if not stored.same_content(rebuilt):
        raise CorruptBundle(
            "bundle: holds settings or weights that its system does not have; fetch or fit it again"
        )


def _read_files(source: Path, trusted_key: str | Path | None) -> tuple[dict[str, bytes], str]:
    """Return the files of a bundle, checked against its manifest, and the stated identity."""
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
    """Return the identity that a manifest states, if it is the manifest of ``contents``."""
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


def _check_kind(source: Path, system: str, settings: dict[str, Any], research: bool) -> None:
    """Refuse an algorithm as printed, or anything else where one is asked for."""
    if (settings.get(RESEARCH) is True) != research:
        expected = (
            "expected an algorithm as printed; leave research out"
            if research
            else "an algorithm as printed, which is not private; expected research=True, or "
            "--research where a command takes it"
        )
        raise InvalidInput(f"folder={str(source)!r}: holds a {system}, {expected}")


def _head(content: bytes) -> tuple[str, dict[str, Any], str]:
    """Return system, settings and serial of a settings file."""
    head = strict_loads(content)
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
    return words(head["system"], name="system"), head["settings"], serial


def _parsed(contents: dict[str, bytes]) -> Bundle:
    system, settings, serial = _head(contents[_SETTINGS])
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
    return Bundle(system, settings, arrays, card, serial)


def _corrupt(source: Path, reason: str) -> CorruptBundle:
    return CorruptBundle(f"bundle {str(source)!r}: {reason}; fetch or fit it again")
