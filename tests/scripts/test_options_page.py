"""docs/options.md says what the code takes."""

import subprocess
import sys
from pathlib import Path


def test_the_page_of_options_is_what_the_code_says(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, root / "scripts" / "list_options.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
