"""An object knows the process it was made in; children and copies are not it."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
from multiprocessing.connection import Connection
from unittest import mock

import pytest

from reticent.core.processes import HomeProcess


def _tell(home: HomeProcess, pipe: Connection) -> None:
    pipe.send((home.is_here, HomeProcess().is_here))


def test_a_forked_child_is_not_home() -> None:
    home = HomeProcess()
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_tell, args=(home, theirs))
    child.start()
    assert ours.recv() == (False, True)
    child.join()
    assert home.is_here


def test_a_fork_that_calls_no_hook_is_seen_by_its_number() -> None:
    home = HomeProcess()
    with mock.patch.object(os, "getpid", return_value=os.getpid() + 1):
        assert not home.is_here


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda home: pickle.loads(pickle.dumps(home))]
)
def test_no_copy_is_home(copied) -> None:
    home = HomeProcess()
    twin = copied(home)
    assert not twin.is_here
    assert not copied(twin).is_here
    assert home.is_here
