"""Build hook: the price book is compiled here, so that nobody's first call has to (src/tenfold/prices/stored.py)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledBook(BuildHookInterface[Any]):
    """Compile the price files of this checkout into the package."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 -- hatchling's signature
        """Store the compiled book next to the price files.

        Args:
            version: Kind of build.
            build_data: What else goes into it.
        """
        source = Path(self.root) / "src"
        sys.path.insert(0, str(source))
        from tenfold.prices import stored
        from tenfold.prices.compiling import compiled
        from tenfold.prices.files import shipped, toml_files

        stored.save(compiled(toml_files(shipped())), source / "tenfold" / "_shipped" / stored.NAME)
