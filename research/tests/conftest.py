"""The hooks and fixtures of tests/conftest.py and of tests of systems, for the systems of this package."""

from tests.conftest import *  # noqa: F403
from tests.conftest import _logging_goes_on as _logging_goes_on
from tests.systems.conftest import *  # noqa: F403
