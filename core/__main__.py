"""``python -m core`` and ``espalier``: the command line (see :mod:`espalier.core.cli`)."""

import os
import sys


def run() -> int:
    """Run the command line. Ctrl-C during start-up exits without a traceback."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # return freed memory to the system
    try:
        from espalier.core.cli.main import main

        return main()
    except KeyboardInterrupt:
        print("\nespalier: cancelled; nothing was spent", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(run())
