"""What several tests share."""

import gc
from collections.abc import Iterator
from pathlib import Path

import numba
import pytest
from hypothesis import HealthCheck, settings

# Examples are the same on every run, and never fail for being slow.
settings.register_profile(
    "steady",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
    max_examples=60,
    database=None,
)
settings.load_profile("steady")


def pytest_collection_finish() -> None:
    """Keep the garbage collector off the thousands of collected tests, which are never freed."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # libraries that count what is freed at the end find nothing missing


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of published data, beside the project; tests that need it are skipped without."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"there is no data folder {folder}")
    return folder


@pytest.fixture
def threads() -> Iterator[None]:
    """As many threads afterwards as before."""
    before = numba.get_num_threads()
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("there is one thread only")
    yield
    numba.set_num_threads(before)
