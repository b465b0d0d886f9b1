"""``python -m core``: the command line, see :mod:`core.cli`."""

import sys

from core.cli.main import main

sys.exit(main())
