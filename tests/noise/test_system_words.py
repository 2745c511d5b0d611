"""Words of the operating system: fresh for every call, process and thread, read whole, and the
caller's own.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import stats

from reticent.noise import SecureSampler, release_samplers
from reticent.noise.release_samplers import system_words
from tests.together import in_forks, in_threads

COLLISION = "64-bit words that agree by chance: below 1e-12"


def test_words_are_uniform_bits() -> None:
    bits = np.unpackbits(system_words(20_000).view(np.uint8))
    assert stats.binomtest(int(bits.sum()), bits.size, 0.5).pvalue > 1e-6
    assert system_words(0).shape == (0,)


def test_no_word_comes_twice() -> None:
    words = np.concatenate([system_words(1000) for _ in range(20)])
    assert len(np.unique(words)) == len(words), COLLISION


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_draws_other_numbers_than_its_parent() -> None:
    sampler = SecureSampler()
    sampler.discrete_laplace(100, scale=2.0**40)  # whatever could be kept in store is there now
    (theirs,) = in_forks(lambda: sampler.discrete_laplace(100, scale=2.0**40))
    ours = sampler.discrete_laplace(100, scale=2.0**40)
    assert theirs.shape == (100,)
    assert not np.isin(ours, theirs).any(), COLLISION


def test_threads_draw_different_numbers() -> None:
    sampler = SecureSampler()
    drawn = in_threads(*[lambda: sampler.discrete_laplace(500, scale=2.0**49)] * 8)
    assert len(np.unique(np.concatenate(drawn))) == 4000, COLLISION


def test_short_reads_are_completed(monkeypatch) -> None:
    real, sizes = os.readv, []

    def short(device: int, buffers: list[memoryview]) -> int:
        sizes.append(len(buffers[0]))
        return real(device, [buffers[0][:5]])

    monkeypatch.setattr(os, "readv", short)
    words = system_words(4)
    assert sizes == [32, 27, 22, 17, 12, 7, 2]
    assert all(int(word) >> 32 and int(word) % 2**32 for word in words), COLLISION


def test_a_device_without_bytes_is_an_error_and_not_a_constant(monkeypatch) -> None:
    monkeypatch.setattr(os, "readv", lambda device, buffers: 0)
    with pytest.raises(OSError, match="no random bytes"):
        system_words(4)


def test_no_file_stays_open() -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(5):
        system_words(10)
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert before == after


@pytest.mark.parametrize("lack", ["missing", "a plain file"])
def test_without_a_device_the_words_come_from_the_library_call(
    monkeypatch, tmp_path, lack: str
) -> None:
    if lack == "missing":
        monkeypatch.setattr(release_samplers, "_DEVICE", "/nowhere/urandom")
    else:
        # A plain file in the device's place, as in a careless container, must not be read.
        plain = tmp_path / "urandom"
        plain.write_bytes(bytes(1000))
        monkeypatch.setattr(release_samplers, "_DEVICE", str(plain))
    asked: list[int] = []
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda count: asked.append(count) or real(count))
    words = system_words(100)
    assert 800 in asked
    assert len(np.unique(words)) == 100
