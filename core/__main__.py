"""``python -m core`` and ``espalier``: the command line, see :mod:`espalier.core.cli`."""

import sys


def run() -> int:
    """Run the command that was typed; Ctrl-C while the program is still loading ends it without a traceback."""
    try:
        from espalier.core.cli.main import main

        return main()
    except KeyboardInterrupt:
        print("\nespalier: cancelled; nothing was spent", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(run())
