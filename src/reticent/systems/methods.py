"""The list of methods: ours, and those of other packages, which are found by an entry point.

A package adds its own by an entry point in the group ``reticent.methods``, whose object is a
``Method`` or a list of them::

    [project.entry-points."reticent.methods"]
    clinic = "clinic_methods:METHODS"

A method says what it is in words, and names its class by a string: a list of methods imports none
of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from reticent.core.checks import one_of, words
from reticent.core.errors import InvalidInput, MissingExtra, ReticentError, UnknownName
from reticent.version import __version__

GROUP = "reticent.methods"
"""The group of entry points."""

OWN = f"reticent {__version__}"
"""Where our own methods come from."""

Role = Literal["estimator", "part"]

_MOST = 2000
_SHOWN = 200


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method in words, and the place of its class.

    Attributes:
        name: the word by which it is asked for, the name of its class.
        target: "module:name" of the class, or of what makes an instance. ``load`` imports it.
        summary: description in one line.
        role: "estimator", which is fitted on data and protects something, or "part", an argument
            of an estimator.
        protects: the protected thing of an estimator, in a few words, or "" for a part.
        releases: the released thing, in a few words, or "" for a part.
        origin: name and version of the package that offers it, filled in where it is found.

    Example:
        >>> half = Method(name="Half", target="fractions:Fraction", summary="exact", role="part")
        >>> half.load()(1, 2)
        Fraction(1, 2)
    """

    name: str
    target: str
    summary: str
    role: Role = "estimator"
    protects: str = ""
    releases: str = ""
    origin: str = ""

    def __post_init__(self) -> None:
        for field in ("name", "target", "summary"):
            words(getattr(self, field), name=field, most=_MOST)
        one_of(self.role, ("estimator", "part"), name="role")
        for field in ("protects", "releases"):
            words(
                getattr(self, field), name=field, minimum=int(self.role == "estimator"), most=_MOST
            )
        module, colon, path = self.target.partition(":")
        if not (module and colon and path):
            raise InvalidInput(f"target={self.target!r}: expected 'module:name'")

    def load(self) -> Any:
        """The class.

        Raises:
            InvalidInput: it is not there, or cannot be imported.
            MissingExtra: it needs a package that is not installed.
        """
        module, _, path = self.target.partition(":")
        try:
            return reduce(getattr, path.split("."), importlib.import_module(module))
        except MissingExtra:
            raise
        except ImportError:
            if self.origin == OWN:
                raise
            raise self._not_there() from None
        except AttributeError:
            raise self._not_there() from None

    def describe(self) -> str:
        """One line: name, what it protects, what it releases, where it comes from."""
        said = (
            f"protects {self.protects}; releases {self.releases}"
            if self.role == "estimator"
            else f"part: {self.summary}"
        )
        return f"{self.name}: {said} ({self.origin})"

    def _not_there(self) -> InvalidInput:
        return InvalidInput(
            f"method {self.name!r}: {self.target} of {self.origin} cannot be imported; install "
            "that package again, or ask its authors"
        )


def _own(name: str, summary: str, *, of: str = "systems", **said: Any) -> Method:
    return Method(name=name, target=f"reticent.{of}:{name}", summary=summary, origin=OWN, **said)


BUILT_IN = (
    _own(
        "PosthocEncoder",
        "obfuscated embeddings for an untrusted server",
        protects="an input, among those near it in its embedding",
        releases="a vector for every input",
    ),
    _own(
        "PosthocClassifier",
        "labels of private inputs from a classifier that the client runs",
        protects="an input, among those near it in its embedding",
        releases="a label for every input",
    ),
    _own(
        "PowerEncoder",
        "vectors of table rows from which any model may learn one target",
        protects="a table row, or its changes within a radius",
        releases="a vector for every row",
    ),
    _own(
        "CodeEncoder",
        "one code of a row, an embedding or a picture that serves several targets",
        protects="any two inputs, inputs near each other, or like the same public rows",
        releases="a code for every input",
    ),
    _own(
        "CertifiedClassifier",
        "labels from one model trained without noise, by certified distances",
        protects="one record of the training set",
        releases="a label for every query",
    ),
    _own(
        "CertifiedEnsemble",
        "labels from a vote of models trained without noise, by certified distances",
        protects="one record of the training set",
        releases="a label for every query",
    ),
    _own(
        "ConvexCertifiedClassifier",
        "labels of logistic regression trained without noise, by its convex certificate",
        protects="one record of the training set",
        releases="a label for every query",
    ),
    _own(
        "CertifiedNetwork",
        "labels of a hidden layer trained without noise, by how far a record moves its weights",
        protects="one record of the training set",
        releases="a label for every query",
    ),
    _own(
        "PrivateKNNClassifier",
        "labels of public queries by noisy votes of private neighbours",
        protects="one record, or all of one person",
        releases="labels of a fixed number of queries, under one total",
    ),
    _own(
        "IndividualKNNClassifier",
        "labels of public queries from private records, each with a budget of its own",
        protects="one record, or all of one person",
        releases="labels of any number of queries, under one total",
    ),
    _own(
        "LinearVoteClassifier",
        "labels of public queries by clipped linear votes of private records",
        protects="one record, or all of one person",
        releases="labels of a fixed number of queries, under one total",
    ),
    _own(
        "NoisyGradientClassifier",
        "softmax regression by noisy full-batch gradient descent on public features",
        protects="one record, or all of one person",
        releases="a model, under one total",
    ),
    _own(
        "PublicModelsClassifier",
        "the pool of public models that a public start begins with, and no private record",
        protects="one record, or all of one person: none has a part in it",
        releases="a model, which costs nothing",
    ),
    _own(
        "PublicStartClassifier",
        "the best public model, moved by a few noisy gradients as far as they are worth",
        protects="one record, or all of one person",
        releases="a model, under one total",
    ),
    _own(
        "PateClassifier",
        "labels of public queries by noisy votes of any classifiers on parts of the records",
        protects="one record, or all of one person",
        releases="labels of a fixed number of queries, under one total",
    ),
    _own(
        "PublicStartRegressor",
        "the best public regression, moved by a few noisy gradients as far as they are worth",
        protects="one record, or all of one person",
        releases="a model, under one total",
    ),
    _own(
        "NoisyGradientRegressor",
        "linear regression by noisy full-batch gradient descent on public features",
        protects="one record, or all of one person",
        releases="a model, under one total",
    ),
    _own("BetaVAE", "embedder: a beta-VAE", role="part"),
    _own("Identity", "embedder: nothing", role="part"),
    _own("Named", "an embedder, and its name", role="part"),
    _own(
        "NoiseAware",
        "obfuscator trained through the noise of its release",
        role="part",
    ),
    _own("PublishedObfuscator", "obfuscators of the papers", of="published", role="part"),
    _own(
        "LabelAware",
        "classifier trained for the mechanism that releases its label",
        role="part",
    ),
    _own(
        "Calibration",
        "how the utility of a posthoc release is measured",
        role="part",
    ),
    _own(
        "ClippedDescent",
        "training of a certified network",
        role="part",
    ),
    _own(
        "HiddenLayer",
        "training of a certified hidden layer",
        role="part",
    ),
    _own(
        "VectorTraining",
        "training of encoders of table rows, and how they are compared",
        role="part",
    ),
    _own("Within", "neighbours of codes in a radius", role="part"),
    _own("NearRows", "neighbours of codes by rows", role="part"),
    _own("Recall", "nearest public rows as a target", role="part"),
    _own("ExplainedVariance", "a vector as a target", role="part"),
    _own("Features", "what columns are, and how rows become vectors", role="part"),
    _own(
        "PublicReference",
        "public models that private records correct, and features beside them",
        role="part",
    ),
    _own("Teachers", "a model of any kind on parts", role="part"),
    _own("Neighbours", "which records vote on a query", role="part"),
    _own("Ball", "which records are near a query", role="part"),
)
"""Methods of this package."""


@dataclass(frozen=True)
class FoundMethods:
    """The result of ``find_methods``.

    Attributes:
        methods: our methods first, then those of other packages by name.
        problems: a line for each entry point that gives no methods, or methods of taken names.
    """

    methods: tuple[Method, ...]
    problems: tuple[str, ...]

    def named(self, name: str, *, role: Role) -> Method:
        """The method called ``name``.

        Raises:
            UnknownName: there is none of that role.
        """
        known = {method.name: method for method in self.methods if method.role == role}
        if name not in known:
            more = f"; not loaded: {'; '.join(self.problems)}" if self.problems else ""
            raise UnknownName(f"{role} {name!r}: expected one of {', '.join(known)}{more}")
        return known[name]


def find_methods() -> FoundMethods:
    """Return our methods, and those that installed packages offer.

    An entry point that cannot be loaded, or gives something else, is a problem that is told and
    stands in the way of no other. No package can take the name of another's method.
    """
    found = {method.name: method for method in BUILT_IN}
    problems: list[str] = []
    points = entry_points(group=GROUP)
    for point in sorted(points, key=lambda point: (_origin(point), point.name)):
        where = f"{_origin(point)}, entry point {point.name!r} = {point.value!r}"
        try:
            offered = _offered(point)
        except Exception as error:  # somebody else's code may raise anything
            problems.append(f"{where}: {_told(error)}")
            continue
        for method in offered:
            if method.name in found:
                problems.append(
                    f"{where}: the name {method.name!r} is taken by {found[method.name].origin}"
                )
            else:
                found[method.name] = replace(method, origin=_origin(point))
    others = sorted(list(found.values())[len(BUILT_IN) :], key=lambda method: method.name)
    return FoundMethods((*BUILT_IN, *others), tuple(problems))


def _offered(point: EntryPoint) -> list[Method]:
    offered = point.load()
    listed = list(offered) if isinstance(offered, Iterable) else [offered]
    for method in listed:
        if not isinstance(method, Method):
            raise InvalidInput(f"expected a Method or a list of them, got {type(method).__name__}")
    return listed


def _origin(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else f"{point.dist.name} {point.dist.version}"


def _told(error: Exception) -> str:
    text = " ".join(str(error).split())[:_SHOWN]
    return text if isinstance(error, ReticentError) else f"{type(error).__name__}: {text}"
