"""``python -m verifier DIR [--key FILE] [--ledger EXPORT.json]``."""

import sys

from .check import main

if __name__ == "__main__":
    sys.exit(main())
