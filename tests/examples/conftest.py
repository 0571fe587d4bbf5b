import importlib
import sys

import pytest
from examples_folder import EXAMPLES
from small_nights import DAY, nightly_job


@pytest.fixture(scope="session")
def example():
    """Import an example as a user does who has copied it: its folder on the path; anew on every call."""
    names = [file.stem for file in EXAMPLES.glob("*.py")]
    sys.path.insert(0, str(EXAMPLES))

    def imported(name):
        for one in names:
            sys.modules.pop(one, None)
        return importlib.import_module(name)

    yield imported
    sys.path.remove(str(EXAMPLES))
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture(scope="session")
def night(tmp_path_factory, example):
    """A night that has been run: the job, and what it came to."""
    job = nightly_job(example, tmp_path_factory.mktemp("night"))
    return job, example("nightly").run(job, DAY)
